//! Values of the flags of a submission.

use std::str::FromStr;
use std::time::Duration;

use turno_proto::model::job::{AfterWhen, Array, Numbers};
use turno_proto::model::limits::{
    BACKOFF_MS_MAX, JOB_KEY_BYTES_MAX, JOB_NAME_BYTES_MAX, LABEL_BYTES_MAX, TAG_BYTES_MAX,
};
use turno_proto::model::units;

use crate::cli::job::select::{JobSelector, SelectError};

/// `1-1000`, `0-90:10%4`, `8`, `1,3,5-8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArrayArg {
    pub(super) array: Array,
    /// The parts of a list.
    pub(super) parts: Vec<Array>,
    pub(super) max_parallel: Option<u32>,
}

impl FromStr for ArrayArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (range, max) = match text.split_once('%') {
            Some((range, max)) => (range, Some(max)),
            None => (text, None),
        };
        let max_parallel = match max.map(str::parse::<u32>) {
            None => None,
            Some(Ok(max @ 1..)) => Some(max),
            Some(_) => {
                return Err(
                    "% must be followed by the maximum number of running tasks, for example 1-1000%8".to_owned()
                );
            }
        };
        let (array, parts) = Numbers::parse(range).map_err(|error| error.to_string())?;
        Ok(Self { array, parts, max_parallel })
    }
}

/// `7`, `last:any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AfterArg {
    pub(super) job: JobSelector,
    pub(super) when: AfterWhen,
}

impl FromStr for AfterArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (job, when) = text.split_once(':').unwrap_or((text, "ok"));
        let when = match when {
            "ok" => AfterWhen::Ok,
            "any" => AfterWhen::Any,
            "failed" => AfterWhen::Failed,
            _ => return Err("the job must be followed by ok, any or failed, for example 7:any".to_owned()),
        };
        Ok(Self { job: job.parse().map_err(|error: SelectError| error.to_string())?, when })
    }
}

pub(super) fn parse_name(text: &str) -> Result<String, String> {
    match text.len() {
        1..=JOB_NAME_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("a name has 1 to {JOB_NAME_BYTES_MAX} bytes")),
    }
}

pub(super) fn parse_key(text: &str) -> Result<String, String> {
    match text.len() {
        1..=JOB_KEY_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("a key has 1 to {JOB_KEY_BYTES_MAX} bytes")),
    }
}

pub(super) fn parse_time_limit(text: &str) -> Result<Duration, String> {
    match units::parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be at least 1ms".to_owned()),
        Ok(limit) => Ok(limit),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn parse_backoff(text: &str) -> Result<Duration, String> {
    let longest = Duration::from_millis(BACKOFF_MS_MAX);
    match units::parse_duration(text) {
        Ok(backoff) if backoff <= longest => Ok(backoff),
        Ok(_) => Err(format!("must be at most {}", units::format_duration(longest))),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("invalid variable: expected KEY=VALUE".to_owned()),
    }
}

pub(super) fn parse_tag(text: &str) -> Result<String, String> {
    match is_plain(text, TAG_BYTES_MAX) && !text.is_empty() {
        true => Ok(text.to_owned()),
        false => Err(format!("a tag has 1 to {TAG_BYTES_MAX} bytes and no control characters")),
    }
}

pub(super) fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && [key, value].iter().all(|text| is_plain(text, LABEL_BYTES_MAX)) => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err(format!(
            "invalid label: expected KEY=VALUE, each at most {LABEL_BYTES_MAX} bytes without control characters"
        )),
    }
}

pub(super) fn parse_pool(text: &str) -> Result<String, String> {
    match is_plain(text, LABEL_BYTES_MAX) && !text.is_empty() {
        true => Ok(text.to_owned()),
        false => Err(format!("a pool name has 1 to {LABEL_BYTES_MAX} bytes and no control characters")),
    }
}

fn is_plain(text: &str, bytes_max: usize) -> bool {
    text.len() <= bytes_max && !text.chars().any(char::is_control)
}

pub(super) fn parse_collect(text: &str) -> Result<String, String> {
    let is_below = !text.is_empty() && !text.starts_with('/') && text.split('/').all(|part| part != "..");
    match glob::Pattern::new(text) {
        Ok(_) if is_below => Ok(text.to_owned()),
        Ok(_) => Err("a file pattern must be relative to the task's directory, for example 'out/*.csv'".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_may_say_how_many_run_at_a_time() {
        let table = [
            ("1-1000", "1-1000", None),
            ("1-1000%8", "1-1000", Some(8)),
            ("0-90:10%1", "0-90:10", Some(1)),
            ("7-7", "7-7", None),
            ("8", "8-8", None),
            ("0", "0-0", None),
            ("1,3,5-8", "1,3,5-8", None),
            ("5-8,3,1%2", "1,3,5-8", Some(2)),
            ("1-9:2,20%2", "1-9:2,20", Some(2)),
        ];
        for (text, array, max) in table {
            let read: ArrayArg = text.parse().unwrap();
            let numbers = Numbers { array: read.array, parts: &read.parts };
            assert_eq!((numbers.to_string().as_str(), read.max_parallel), (array, max), "{text}");
        }
        let form = "A-B or A-B:STEP";
        let table = [
            ("7:2", form),
            ("1,,2", form),
            ("", form),
            ("-1-3", form),
            ("1-", form),
            ("a-b", form),
            ("1-3:x", form),
            ("9-1", "must not decrease"),
            ("3,1-5", "overlap"),
            ("1-3:0", "must not decrease"),
            ("1-1000000000", "at most 10000000 tasks"),
            ("1-99999999999999999999", "task numbers go up to"),
            ("1-3%", "running tasks"),
            ("1-3%0", "running tasks"),
            ("1-3%-1", "running tasks"),
            ("1-3%x", "running tasks"),
            ("1-3%4%5", "running tasks"),
        ];
        for (text, expected) in table {
            let said = text.parse::<ArrayArg>().unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn tags_labels_and_pools_are_plain_and_short() {
        let long = "x".repeat(65);
        assert_eq!(parse_tag("a b").as_deref(), Ok("a b"));
        assert_eq!(parse_pool("gpu").as_deref(), Ok("gpu"));
        assert_eq!(parse_label("k=v=w"), Ok(("k".to_owned(), "v=w".to_owned())));
        assert_eq!(parse_label("k="), Ok(("k".to_owned(), String::new())));
        for bad in ["", "a\tb", "a\nb", &long] {
            assert!(parse_tag(bad).is_err() && parse_pool(bad).is_err(), "{bad:?}");
            assert!(parse_label(&format!("{bad}=x")).is_err(), "{bad:?}");
        }
        for bad in ["k", "=v", "k=a\tb", &format!("k={long}")] {
            assert!(parse_label(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn files_that_are_brought_back_are_below_the_tasks_directory() {
        for good in ["out.txt", "out/*.csv", "**/*.log", "a..b", "[ab]"] {
            assert_eq!(parse_collect(good).as_deref(), Ok(good));
        }
        for bad in ["", "/etc/passwd", "../x", "a/../../x", "[", "a***"] {
            assert!(parse_collect(bad).is_err(), "{bad:?}");
        }
    }
}
