//! One task for each line.

use super::{Input, Items, bad};
use crate::cli::error::Failure;

/// Every line that is not empty, without what ends it.
pub(super) fn items(input: &Input) -> Result<Items, Failure> {
    let mut items = Items::plain()?;
    for (line, bytes) in (1..).zip(input.bytes.split(|byte| *byte == b'\n')) {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.is_empty() {
            continue;
        }
        let text = std::str::from_utf8(bytes).map_err(|_| not_text(&input.at(line)))?;
        items.push(&[text], || input.at(line))?;
    }
    Ok(items)
}

/// Items of a job are text.
pub(super) fn not_text(at: &str) -> Failure {
    bad(at, "not valid UTF-8").why("a job can carry only UTF-8 text")
}
