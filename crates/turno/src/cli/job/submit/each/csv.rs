//! One task for each row of comma-separated values. The first row names the columns.

use csv::{ErrorKind, ReaderBuilder, StringRecord};

use super::lines::not_text;
use super::{Input, Items, bad};
use crate::cli::error::Failure;

/// Every row behind the header. Fields may be quoted; empty lines are left out.
pub(super) fn items(input: &Input) -> Result<Items, Failure> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(false).from_reader(&input.bytes[..]);
    let mut row = StringRecord::new();
    let failed = |error: csv::Error| refused(&error, input);
    if !reader.read_record(&mut row).map_err(failed)? {
        return Err(input.has_none("the first row must contain the column names"));
    }
    let first = line_of(&row);
    let columns: Vec<String> = row.iter().map(|name| name.trim().to_owned()).collect();
    if let Some(place) = columns.iter().position(String::is_empty) {
        return Err(
            bad(&input.at(first), &format!("column {} has no name", place + 1)).why("the first row names the columns")
        );
    }
    if let Some(name) = repeated(&columns) {
        return Err(
            bad(&input.at(first), &format!("two columns are called {name:?}")).why("column names must be unique")
        );
    }
    let mut items = Items::new(columns, &input.at(first))?;
    let mut rows = reader.into_records();
    while let Some(row) = rows.next().transpose().map_err(failed)? {
        let fields: Vec<&str> = row.iter().collect();
        items.push(&fields, || input.at(line_of(&row)))?;
    }
    Ok(items)
}

/// The first name that is there twice.
fn repeated(names: &[String]) -> Option<&String> {
    let mut seen = std::collections::BTreeSet::new();
    names.iter().find(|name| !seen.insert(*name))
}

fn line_of(row: &StringRecord) -> u64 {
    row.position().map_or(1, csv::Position::line)
}

fn refused(error: &csv::Error, input: &Input) -> Failure {
    let at = |place: &Option<csv::Position>| input.at(place.as_ref().map_or(1, csv::Position::line));
    match error.kind() {
        ErrorKind::Utf8 { pos, .. } => not_text(&at(pos)),
        ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let fields = if *len == 1 { "1 field".to_owned() } else { format!("{len} fields") };
            bad(&at(pos), &format!("{fields}, but the header has {expected_len} columns"))
                .why("every row needs one field per column; quote fields that contain a comma")
        }
        _ => bad(&input.name, "not valid CSV").why(error.to_string()),
    }
}
