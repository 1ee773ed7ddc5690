//! One task for each path that matches a pattern.

use glob::MatchOptions;
use turno_proto::model::Code;

use super::Items;
use super::lines::not_text;
use crate::cli::error::Failure;

/// As a shell matches: `*` stops at a slash and leaves hidden names out.
const LIKE_A_SHELL: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Every path that matches, in order of name.
pub(super) fn items(pattern: &str) -> Result<Items, Failure> {
    let paths = glob::glob_with(pattern, LIKE_A_SHELL).map_err(|error| {
        Failure::new(Code::BadUsage, format!("invalid pattern {pattern:?}"))
            .why(error.to_string())
            .fix("* matches within a name, ** any directories, ? one character, [ab] one of these")
    })?;
    let mut found = Vec::new();
    for path in paths {
        found.push(path.map_err(|error| {
            Failure::system(format!("cannot read directory {}", error.path().display()), error.error())
        })?);
    }
    found.sort();
    let mut items = Items::plain()?;
    for path in &found {
        let text = path.to_str().ok_or_else(|| not_text(&path.display().to_string()))?;
        items.push(&[text], || text.to_owned())?;
    }
    Ok(items)
}

pub(super) fn nothing(pattern: &str) -> Failure {
    Failure::new(Code::NotFound, format!("nothing matches {pattern:?}"))
        .why("each matching path becomes a task, and no path matches")
        .fix("check with `ls`; the pattern is relative to the current directory and must be quoted")
}
