//! Arrays: the numbers of a job's tasks. One array is a range; a list such as `1,3,5-8` is several of them in rising order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::limits::{ARRAY_PARTS_MAX, TASK_NUMBER_MAX, TASKS_MAX};
use super::number::text_in_schemas;

/// The numbers of a job's tasks: `first`, `first + step`, … , `count` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// The lowest number.
    pub first: u32,
    /// How many numbers there are.
    pub count: u32,
    /// From one to the next.
    pub step: u32,
}

/// Why something is no array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum ArrayError {
    /// Not of the form.
    #[error("invalid array: expected numbers A and ranges A-B or A-B:STEP, for example 1-1000, 0-90:10, 8 or 1,3,5-8")]
    Form,
    /// It has no task.
    #[error("invalid range in the array: must not decrease, with a step of at least 1")]
    Empty,
    /// It has too many.
    #[error("an array has at most {TASKS_MAX} tasks")]
    TooMany,
    /// A number is too high.
    #[error("task numbers go up to {TASK_NUMBER_MAX}")]
    TooHigh,
    /// A list has too many parts.
    #[error("the list of an array has at most {ARRAY_PARTS_MAX} numbers and ranges")]
    TooManyParts,
    /// A number is in two parts of a list, or lies between the numbers of a range with steps.
    #[error("the numbers and ranges of an array must not overlap")]
    Overlap,
    /// The parts of a list do not belong to the array they come with.
    #[error("the parts of an array must be in rising order and match its count")]
    Parts,
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
        let (range, step) = match text.split_once(':') {
            Some((range, step)) if range.contains('-') => (range, step),
            Some(_) => return Err(ArrayError::Form),
            None => (text, "1"),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Self::new(number(first)?, number(last)?, number(step)?)
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last())?;
        if self.step == 1 { Ok(()) } else { write!(f, ":{}", self.step) }
    }
}

/// The numbers of a job's tasks, in rising order: one array, or the parts of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers<'a> {
    /// All of them if there are no parts. Otherwise `first` is the lowest, `count` how many there are, and `step` 1.
    pub array: Array,
    /// The parts of a list: none, or at least two, in rising order.
    pub parts: &'a [Array],
}

impl Numbers<'_> {
    /// A list as a person types it: `8`, `1-1000`, `0-90:10`, `1,3,5-8`. The parts are in rising order whatever the order in
    /// which they were typed.
    pub fn parse(text: &str) -> Result<(Array, Vec<Array>), ArrayError> {
        let mut parts: Vec<Array> = Vec::new();
        for part in text.split(',') {
            if parts.len() == ARRAY_PARTS_MAX {
                return Err(ArrayError::TooManyParts);
            }
            parts.push(part.parse()?);
        }
        parts.sort_unstable_by_key(|part| part.first);
        if let [array] = parts[..] {
            return Ok((array, Vec::new()));
        }
        let tasks: u64 = parts.iter().map(|part| u64::from(part.count)).sum();
        let count = u32::try_from(tasks).map_err(|_| ArrayError::TooMany)?;
        let array = Array { first: parts.first().map_or(0, |part| part.first), count, step: 1 };
        Numbers { array, parts: &parts }.check().map_err(|error| match error {
            ArrayError::Parts => ArrayError::Overlap,
            other => other,
        })?;
        Ok((array, parts))
    }

    /// Whether there are such numbers, not too many, and each once.
    pub fn check(&self) -> Result<(), ArrayError> {
        self.array.check()?;
        let Some(first) = self.parts.first() else { return Ok(()) };
        if self.parts.len() > ARRAY_PARTS_MAX {
            return Err(ArrayError::TooManyParts);
        }
        self.parts.iter().try_for_each(Array::check)?;
        let rises = self.parts.iter().zip(self.parts.iter().skip(1)).all(|(part, next)| part.last() < next.first);
        let count: u64 = self.parts.iter().map(|part| u64::from(part.count)).sum();
        let belongs = (self.array.first, u64::from(self.array.count), self.array.step) == (first.first, count, 1);
        if self.parts.len() > 1 && rises && belongs { Ok(()) } else { Err(ArrayError::Parts) }
    }

    /// The number of the task at that place. Right for numbers that passed [`Self::check`].
    pub fn number_of(&self, place: u32) -> u32 {
        let mut rest = place;
        for part in self.parts {
            if rest < part.count {
                return part.number_of(rest);
            }
            rest -= part.count;
        }
        self.array.number_of(place)
    }

    /// The place of the task with that number.
    pub fn place_of(&self, number: u32) -> Option<u32> {
        if self.parts.is_empty() {
            return self.array.place_of(number);
        }
        let place = self.place_from(number);
        (place < self.array.count && self.number_of(place) == number).then_some(place)
    }

    /// The place of the first task whose number is not lower than that; `count` if there is none.
    pub fn place_from(&self, number: u32) -> u32 {
        let from = |array: &Array| number.saturating_sub(array.first).div_ceil(array.step).min(array.count);
        if self.parts.is_empty() {
            return from(&self.array);
        }
        // Those of lower parts are all lower, those of higher parts all higher.
        self.parts.iter().map(from).sum()
    }

    /// The place of the first task whose number is higher than that; 0 without one.
    pub fn place_after(&self, number: Option<u32>) -> u32 {
        number.map_or(0, |number| number.checked_add(1).map_or(self.array.count, |next| self.place_from(next)))
    }
}

impl fmt::Display for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.parts.is_empty() {
            return self.array.fmt(f);
        }
        for (at, part) in self.parts.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match part.count {
                1 => write!(f, "{comma}{}", part.first)?,
                _ => write!(f, "{comma}{part}")?,
            }
        }
        Ok(())
    }
}

/// The numbers of a job's tasks, owned. Text in every format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskNumbers {
    /// See [`Numbers::array`].
    pub array: Array,
    /// See [`Numbers::parts`].
    pub parts: Vec<Array>,
}

impl TaskNumbers {
    /// The same, lent.
    pub fn numbers(&self) -> Numbers<'_> {
        Numbers { array: self.array, parts: &self.parts }
    }
}

impl Default for TaskNumbers {
    fn default() -> Self {
        Self { array: Array::ONE, parts: Vec::new() }
    }
}

impl From<Array> for TaskNumbers {
    fn from(array: Array) -> Self {
        Self { array, parts: Vec::new() }
    }
}

impl fmt::Display for TaskNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.numbers().fmt(f)
    }
}

impl Serialize for TaskNumbers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TaskNumbers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Numbers::parse(&text).map(|(array, parts)| Self { array, parts }).map_err(serde::de::Error::custom)
    }
}

text_in_schemas!(TaskNumbers);

/// The parts of a list as one text, `1,3,5-8`: a control map has few values.
pub(super) mod list {
    use super::{Array, Deserialize as _, Deserializer, Numbers, Serializer};

    pub(in crate::model) fn serialize<S: Serializer>(parts: &[Array], to: S) -> Result<S::Ok, S::Error> {
        let array = parts.first().copied().unwrap_or(Array::ONE);
        to.collect_str(&Numbers { array, parts })
    }

    pub(in crate::model) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Array>, D::Error> {
        let text = String::deserialize(from)?;
        Numbers::parse(&text).map(|(_, parts)| parts).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_what_a_person_writes() {
        let table = [
            ("8", "8-8", 1),
            ("1-1000", "1-1000", 1000),
            ("0-90:10", "0-90:10", 10),
            ("1,3,5-8", "1,3,5-8", 6),
            ("5-8,3,1", "1,3,5-8", 6),
            ("1-9:2,20", "1-9:2,20", 6),
            ("1,2", "1,2", 2),
        ];
        for (text, told, count) in table {
            let (array, parts) = Numbers::parse(text).unwrap();
            let numbers = Numbers { array, parts: &parts };
            assert_eq!((numbers.to_string().as_str(), array.count, numbers.check()), (told, count, Ok(())), "{text}");
        }
        let many = vec!["1"; ARRAY_PARTS_MAX + 1].join(",");
        for (text, why) in [
            ("", ArrayError::Form),
            ("1,", ArrayError::Form),
            ("1,,2", ArrayError::Form),
            ("8:2", ArrayError::Form),
            ("3,1-5", ArrayError::Overlap),
            ("1,1", ArrayError::Overlap),
            ("1-9:2,4", ArrayError::Overlap),
            ("1-6000000,6000001-12000000", ArrayError::TooMany),
            ("1-10000000,20000000-29999999,30000000-39999999", ArrayError::TooMany),
            (&many, ArrayError::TooManyParts),
        ] {
            assert_eq!(Numbers::parse(text), Err(why), "{text:.40}");
        }
    }

    /// Every number is found at its place, and what lies between is not there.
    #[test]
    fn numbers_and_places_belong_together() {
        for text in ["8", "0-90:10", "1,3,5-8", "2,4-10:3,12", "0-3"] {
            let (array, parts) = Numbers::parse(text).unwrap();
            let numbers = Numbers { array, parts: &parts };
            let all: Vec<u32> = (0..array.count).map(|place| numbers.number_of(place)).collect();
            assert!(all.is_sorted(), "{text}: {all:?}");
            for number in 0..100 {
                let place = all.iter().position(|one| *one == number).map(|place| u32::try_from(place).unwrap());
                assert_eq!(numbers.place_of(number), place, "{text}: {number}");
                let lower = u32::try_from(all.iter().filter(|one| **one < number).count()).unwrap();
                assert_eq!(numbers.place_from(number), lower, "{text}: {number}");
                let up_to = u32::try_from(all.iter().filter(|one| **one <= number).count()).unwrap();
                assert_eq!(numbers.place_after(Some(number)), up_to, "{text}: {number}");
            }
            assert_eq!((numbers.place_after(None), numbers.place_after(Some(u32::MAX))), (0, array.count));
        }
    }

    #[test]
    fn parts_that_a_peer_claims_are_checked() {
        let part = |first, count| Array { first, count, step: 1 };
        let table: [(Array, &[Array]); 7] = [
            (part(1, 2), &[part(1, 2)]),
            (part(1, 3), &[part(1, 1), part(3, 1)]),
            (part(2, 2), &[part(1, 1), part(3, 1)]),
            (part(3, 2), &[part(3, 1), part(1, 1)]),
            (part(1, 4), &[part(1, 2), part(2, 2)]),
            (part(1, 2), &[part(1, 0), part(3, 2)]),
            (Array { step: 2, ..part(1, 2) }, &[part(1, 1), part(3, 1)]),
        ];
        for (array, parts) in table {
            assert!(Numbers { array, parts }.check().is_err(), "{array:?} {parts:?}");
        }
    }

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
            ("7:2", ArrayError::Form),
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
