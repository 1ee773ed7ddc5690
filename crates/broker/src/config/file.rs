//! Configuration files: which of them apply, and their keys with line numbers.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, KEYS, Key};
use super::origin::Origin;
use super::value::RawValue;
use super::world::Environment;
use super::zmq::{self, ENDPOINT};
use super::{Problem, nearest, unknown};
use crate::zmq::ZmqEndpoint;

/// Bytes of a configuration file. More: refused.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A key found in a file.
pub(super) struct FoundKey {
    pub(super) key: &'static Key,
    pub(super) raw: RawValue,
    pub(super) origin: Origin,
}

/// The files that count, in the order in which they are read: the named one, or the user's, or the machine's
/// with its additions. A named file must exist.
pub(super) fn find(world: &Environment, named: Option<&Path>) -> Result<Vec<PathBuf>, Problem> {
    if let Some(path) = named {
        return match is_there(path)? {
            true => Ok(vec![path.to_owned()]),
            false if path.exists() => Err(Problem::at(path.display(), "is not a regular file")),
            false => Err(Problem::at(path.display(), "the configuration file does not exist")),
        };
    }
    if let Some(dir) = &world.config_dir {
        let user = dir.join("turno").join("turno.toml");
        if is_there(&user)? {
            return Ok(vec![user]);
        }
    }
    let machine = world.system_dir.join("turno.toml");
    let mut files: Vec<PathBuf> = is_there(&machine)?.then_some(machine).into_iter().collect();
    let additions = world.system_dir.join("turno.d");
    let fail = |error: io::Error| Problem::unreadable(&additions, &error);
    match fs::read_dir(&additions) {
        Ok(entries) => {
            let paths = entries.map(|entry| Ok(entry.map_err(fail)?.path())).collect::<Result<Vec<_>, Problem>>()?;
            let mut paths: Vec<PathBuf> =
                paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
            paths.sort();
            files.extend(paths);
        }
        Err(error) if is_absent(&error) => {}
        Err(error) => return Err(fail(error)),
    }
    Ok(files)
}

/// Whether there is a file. A configuration that may not be looked at is not the same as none.
fn is_there(path: &Path) -> Result<bool, Problem> {
    match fs::metadata(path) {
        Ok(found) => Ok(found.is_file()),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(Problem::unreadable(path, &error)),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The values that a file sets. Mistakes in it go to `problems`.
pub(super) fn read(path: &Path, problems: &mut Vec<Problem>) -> (Vec<FoundKey>, Vec<ZmqEndpoint>) {
    let text = match read_text(path) {
        Ok(text) => text,
        Err(problem) => {
            problems.push(problem);
            return (Vec::new(), Vec::new());
        }
    };
    let mut walk = TableWalk { path, line_ends: line_ends(&text), found: Vec::new(), endpoints: Vec::new(), problems };
    match DeTable::parse(&text) {
        Ok(table) => walk.table("", table.get_ref()),
        Err(error) => {
            let line = error.span().map_or(1, |span| walk.line(&span));
            let text = format!("not TOML: {}", error.message());
            walk.problems.push(Problem::at(format_args!("{}:{line}", path.display()), text));
        }
    }
    (walk.found, walk.endpoints)
}

fn read_text(path: &Path) -> Result<String, Problem> {
    let fail = |error: io::Error| Problem::unreadable(path, &error);
    if fs::metadata(path).map_err(fail)?.len() > FILE_BYTES_MAX {
        return Err(Problem::at(path.display(), "is larger than 1MiB, the limit for a configuration file"));
    }
    fs::read_to_string(path).map_err(fail)
}

/// One pass over a file's tables.
struct TableWalk<'a> {
    path: &'a Path,
    line_ends: Vec<usize>,
    found: Vec<FoundKey>,
    endpoints: Vec<ZmqEndpoint>,
    problems: &'a mut Vec<Problem>,
}

impl TableWalk<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = format!("{prefix}{}", key.get_ref());
            let inner = format!("{name}.");
            if name == ENDPOINT {
                self.endpoints(&key.span(), value.get_ref());
            } else if let Some(key_known) = keys::find(&name) {
                let origin = self.origin(&key.span());
                self.found.push(FoundKey { key: key_known, raw: raw(value), origin });
            } else if KEYS.iter().any(|key| key.name.starts_with(&inner)) {
                match value.get_ref() {
                    DeValue::Table(table) => self.table(&inner, table),
                    _ => self.problem(&key.span(), format!("{name} is a table: write [{name}] with its keys below")),
                }
            } else {
                let near = nearest(&name, KEYS.iter().map(|key| key.name));
                self.problem(&key.span(), unknown("key", &name, near));
            }
        }
    }

    fn endpoints(&mut self, span: &Range<usize>, value: &DeValue<'_>) {
        let DeValue::Array(tables) = value else {
            return self
                .problem(span, format!("{ENDPOINT} is a list of tables: write [[{ENDPOINT}]] and its keys below"));
        };
        for table in tables {
            let DeValue::Table(keys) = table.get_ref() else {
                self.problem(&table.span(), format!("write [[{ENDPOINT}]] and its keys below"));
                continue;
            };
            match zmq::read(keys) {
                Ok(endpoint) => self.endpoints.push(endpoint),
                Err(problems) => {
                    for (place, text) in problems {
                        self.problem(&place.unwrap_or_else(|| table.span()), text);
                    }
                }
            }
        }
    }

    fn problem(&mut self, span: &Range<usize>, text: String) {
        let origin = self.origin(span);
        self.problems.push(Problem::at(origin, text));
    }

    fn origin(&self, span: &Range<usize>) -> Origin {
        Origin::File { path: self.path.to_owned(), line: self.line(span) }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        self.line_ends.partition_point(|end| *end < span.start) + 1
    }
}

/// Where each line ends. Found once: a file may have a hundred thousand keys, and each has a line.
fn line_ends(text: &str) -> Vec<usize> {
    text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect()
}

pub(super) fn raw(value: &Spanned<DeValue<'_>>) -> RawValue {
    match value.get_ref() {
        DeValue::String(text) => RawValue::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(RawValue::Other("a number too large"), RawValue::Integer),
        DeValue::Array(items) => items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            })
            .collect::<Option<Vec<String>>>()
            .map_or(RawValue::Other("a list of mixed types"), RawValue::List),
        DeValue::Float(_) => RawValue::Other("a fraction"),
        DeValue::Boolean(on) => RawValue::Switch(*on),
        DeValue::Datetime(_) => RawValue::Other("a date"),
        DeValue::Table(_) => RawValue::Other("a table"),
    }
}
