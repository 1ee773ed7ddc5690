//! Arrays: the numbers of a job's tasks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::limits::{TASK_NUMBER_MAX, TASKS_MAX};

/// The numbers of a job's tasks: `first`, `first + step`, … , `count` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// The lowest.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// From one to the next.
    pub step: u32,
}

/// Why something is no array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    /// Not of the form.
    #[error("an array is A-B or A-B:STEP, for example 1-1000 or 0-90:10")]
    Form,
    /// It has no task.
    #[error("an array goes from a number to one that is not lower, in steps of 1 or more")]
    Empty,
    /// It has too many.
    #[error("an array has at most {TASKS_MAX} tasks")]
    TooMany,
    /// A number is too high.
    #[error("task numbers go up to {TASK_NUMBER_MAX}")]
    TooHigh,
}

impl Array {
    /// One task, number 1.
    pub const ONE: Self = Self { first: 1, count: 1, step: 1 };

    /// From `first` to `last` at most.
    pub fn new(first: u32, last: u32, step: u32) -> Result<Self, ArrayError> {
        if step == 0 || last < first {
            return Err(ArrayError::Empty);
        }
        let array = Self { first, count: ((last - first) / step).saturating_add(1), step };
        array.check().map(|()| array)
    }

    /// Whether there are such numbers, and not too many.
    pub const fn check(&self) -> Result<(), ArrayError> {
        if self.count == 0 || self.step == 0 {
            return Err(ArrayError::Empty);
        }
        if self.count > TASKS_MAX {
            return Err(ArrayError::TooMany);
        }
        let last = self.first as u64 + (self.count as u64 - 1) * self.step as u64;
        if last > TASK_NUMBER_MAX as u64 { Err(ArrayError::TooHigh) } else { Ok(()) }
    }

    /// The number of the task at that place. Right for an array that passed [`Self::check`].
    pub const fn number_of(&self, place: u32) -> u32 {
        self.first + place * self.step
    }

    /// The place of the task with that number.
    pub const fn place_of(&self, number: u32) -> Option<u32> {
        let Some(above) = number.checked_sub(self.first) else { return None };
        let place = above / self.step;
        if above.is_multiple_of(self.step) && place < self.count { Some(place) } else { None }
    }

    /// The highest number.
    pub const fn last(&self) -> u32 {
        self.number_of(self.count - 1)
    }
}

impl FromStr for Array {
    type Err = ArrayError;

    fn from_str(text: &str) -> Result<Self, ArrayError> {
        let number = |text: &str| match text.parse::<u64>() {
            _ if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) => Err(ArrayError::Form),
            Ok(number) => u32::try_from(number).map_err(|_| ArrayError::TooHigh),
            Err(_) => Err(ArrayError::TooHigh),
        };
        let (range, step) = text.split_once(':').unwrap_or((text, "1"));
        let (first, last) = range.split_once('-').ok_or(ArrayError::Form)?;
        Self::new(number(first)?, number(last)?, number(step)?)
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last())?;
        if self.step == 1 { Ok(()) } else { write!(f, ":{}", self.step) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_what_a_person_writes() {
        let array: Array = "0-90:10".parse().unwrap();
        assert_eq!(array, Array { first: 0, count: 10, step: 10 });
        assert_eq!((array.last(), array.to_string().as_str()), (90, "0-90:10"));
        assert_eq!((array.place_of(20), array.place_of(25), array.place_of(100)), (Some(2), None, None));
        assert_eq!("1-1000".parse::<Array>().unwrap().to_string(), "1-1000");
        assert_eq!("5-9:3".parse::<Array>().unwrap().last(), 8);
        for (text, why) in [
            ("", ArrayError::Form),
            ("7", ArrayError::Form),
            ("1-", ArrayError::Form),
            ("+1-2", ArrayError::Form),
            ("1-2:", ArrayError::Form),
            ("2-1", ArrayError::Empty),
            ("1-2:0", ArrayError::Empty),
            ("1-10000001", ArrayError::TooMany),
            ("1-99999999999999999999", ArrayError::TooHigh),
            ("2147483647-2147483648", ArrayError::TooHigh),
        ] {
            assert_eq!(text.parse::<Array>(), Err(why), "{text}");
        }
    }

    #[test]
    fn what_a_peer_claims_is_checked() {
        for (first, count, step) in [(0, 0, 1), (0, 1, 0), (1, TASKS_MAX + 1, 1), (u32::MAX, 2, 1), (0, 2, u32::MAX)] {
            assert!(Array { first, count, step }.check().is_err(), "{first} {count} {step}");
        }
    }
}
