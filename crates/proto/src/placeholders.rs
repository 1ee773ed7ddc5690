//! Placeholders in the command of a job's tasks. Pure, the same for a submitter that looks at it beforehand
//! (`--dry-run`) and for the broker that does it.
//!
//! In the words of a command, in its directory and in the values of its environment
//!
//! - `{}` stands for the task's item, or for its number in a job without items;
//! - `{.}` is the item without its extension, `{/}` its last path component, `{/.}` both, `{//}` the directory before it;
//! - `{#}` stands for the task's number;
//! - `{column}` stands for a field of the item, in a job that names its columns;
//! - doubled braces are braces: `{{}}` gives `{}`, `{{column}}` gives `{column}`, and `{{{}}}` an item in braces.
//!
//! All else stays as it is: `{"a": 1}`, `{a,b}`, `${HOME}`, and `{name}` in a job without columns. For a shell a value is put in as
//! one word in single quotes, so that nothing in it is read by the shell; a place where that would not do (inside of
//! quotes, say) is refused by [`check`].

mod quotes;

use std::fmt;

use crate::items::Shape;
use crate::model::job::Work;
use crate::model::limits::{FILL_PLACES_MAX, FILLED_BYTES_MAX, ITEM_FIELDS_MAX};

use self::quotes::Quotes;

/// The values that placeholders of a task stand for: its number and its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceholderValues<'a> {
    /// The task's number, which `{#}` stands for.
    pub task: u32,
    /// The fields of its item; `None` in a job without items.
    pub item: Option<&'a [&'a str]>,
}

impl<'a> PlaceholderValues<'a> {
    /// A task of a job without items.
    pub const fn number(task: u32) -> Self {
        Self { task, item: None }
    }

    /// A task with an item.
    pub const fn item(task: u32, fields: &'a [&'a str]) -> Self {
        Self { task, item: Some(fields) }
    }
}

/// The command of one task, with all placeholders filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilledCommand {
    /// The program and its arguments; the shell with its line if one was asked for.
    pub argv: Vec<String>,
    /// See [`Work::cwd`].
    pub cwd: String,
    /// See [`Work::env`].
    pub env: Vec<(String, String)>,
}

/// Why a command cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// There is no such column.
    #[error("{{{name}}} is not a column; the columns are {}", Columns(columns))]
    UnknownColumn {
        /// The placeholder as it was written.
        name: String,
        /// Those that there are.
        columns: Vec<String>,
    },
    /// `{}`, or a part of it such as `{.}`, where an item has several fields.
    #[error("{place} is ambiguous because items have columns: name one of {}", Columns(columns))]
    NoColumn {
        /// The placeholder as it was written.
        place: String,
        /// Those that there are.
        columns: Vec<String>,
    },
    /// A place in a line for a shell where a value cannot be one word.
    #[error("{place} is {why}, where its value cannot be inserted as one word")]
    OddPlace {
        /// The placeholder as it was written.
        place: String,
        /// Where it stands in the line, as part of a sentence.
        why: &'static str,
    },
    /// A placeholder in the name of a variable.
    #[error("a placeholder is not allowed in the name of the variable {name}, only in its value")]
    InName {
        /// The name between the braces.
        name: String,
    },
    /// A shell is asked for, and there is no line or more than one word.
    #[error("--shell takes the command as one word")]
    ShellLine,
    /// Columns without a name, with the same name, or not as many as an item has fields.
    #[error("every item needs one field per column, and column names must be unique and without braces")]
    Columns,
    /// More placeholders than [`FILL_PLACES_MAX`].
    #[error("a command has at most {FILL_PLACES_MAX} placeholders")]
    TooMany,
    /// With the longest item in every place it is longer than [`FILLED_BYTES_MAX`].
    #[error(
        "command, directory and environment of a task have at most {FILLED_BYTES_MAX} bytes with its item inserted"
    )]
    TooLong,
}

impl FillError {
    /// Advice in one line.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownColumn { name, .. } => format!("write {{{{{name}}}}} if you mean {{{name}}} itself"),
            Self::NoColumn { place, .. } => format!("write {{{place}}} if you mean {place} itself"),
            Self::OddPlace { place, .. } => format!("assign it to a variable first: f={place}; … \"$f\""),
            Self::InName { .. } => "put the placeholder into the value: NAME={}".to_owned(),
            Self::ShellLine => "put the whole line into quotes".to_owned(),
            Self::Columns => "check the first line of the table".to_owned(),
            Self::TooMany | Self::TooLong => "pass a file name, and let the task read the file".to_owned(),
        }
    }
}

/// Column names in a sentence.
struct Columns<'a>(&'a [String]);

impl fmt::Display for Columns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        for (at, name) in self.0.iter().take(SHOWN).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{{{name}}}")?;
        }
        if self.0.len() > SHOWN { write!(f, " and {} more", self.0.len() - SHOWN) } else { Ok(()) }
    }
}

/// The command of one task. An unknown placeholder stays as it is; [`check`] finds it before.
pub fn fill(work: &Work, given: PlaceholderValues<'_>) -> FilledCommand {
    if work.verbatim {
        return FilledCommand { argv: shell_or(work, work.argv.clone()), cwd: work.cwd.clone(), env: work.env.clone() };
    }
    let number = given.task.to_string();
    let by_number = [number.as_str()];
    let (columns, fields) = match given.item {
        Some(fields) => (&work.columns[..], fields),
        None => (&[][..], &by_number[..]),
    };
    let value = |what: PlaceholderKind| match what {
        PlaceholderKind::Number => Some(number.as_str()),
        PlaceholderKind::Field(field, part) => fields.get(field).map(|text| part.of(text)),
    };
    let put = |text: &str, quoted: bool| -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let mut filled = String::with_capacity(text.len());
        pieces(text, columns, |piece| match piece {
            TextPiece::Text(text) => filled.push_str(text),
            TextPiece::Place { what, raw } => match value(what) {
                Some(value) if quoted => quote(value, &mut filled),
                Some(value) => filled.push_str(value),
                None => filled.push_str(raw),
            },
            TextPiece::Unknown { raw, .. } => filled.push_str(raw),
        });
        filled
    };
    FilledCommand {
        argv: shell_or(work, work.argv.iter().map(|word| put(word, work.shell)).collect()),
        cwd: put(&work.cwd, false),
        env: work.env.iter().map(|(name, value)| (name.clone(), put(value, false))).collect(),
    }
}

fn shell_or(work: &Work, argv: Vec<String>) -> Vec<String> {
    if work.shell { vec!["/bin/sh".to_owned(), "-c".to_owned(), argv.join(" ")] } else { argv }
}

/// One word for a shell. Always in quotes: `2` in `echo {}>file` is a word then, and not the number of a stream.
fn quote(value: &str, out: &mut String) {
    out.push('\'');
    for (at, part) in value.split('\'').enumerate() {
        if at > 0 {
            out.push_str("'\\''");
        }
        out.push_str(part);
    }
    out.push('\'');
}

/// Whether anything in it stands for a task's item or number. A job whose items nobody is told of is a mistake.
pub fn has_places(work: &Work) -> bool {
    !work.verbatim && texts(work).any(|text| has_place(text, &work.columns))
}

fn texts(work: &Work) -> impl Iterator<Item = &str> {
    let values = work.env.iter().map(|(_, value)| value.as_str());
    work.argv.iter().map(String::as_str).chain([work.cwd.as_str()]).chain(values)
}

/// Whether it can be filled, for a job with such items, or without any: every placeholder stands for something, and
/// stands where it can be put in.
pub fn check(work: &Work, items: Option<Shape>) -> Result<(), FillError> {
    if work.shell && work.argv.len() != 1 {
        return Err(FillError::ShellLine);
    }
    let fields = items.map_or(1, |items| items.fields);
    check_columns(&work.columns, items.map(|_| fields))?;
    if work.verbatim {
        return Ok(());
    }
    if let Some((name, _)) = work.env.iter().find(|(name, _)| has_place(name, &work.columns)) {
        return Err(FillError::InName { name: name.clone() });
    }
    let mut places = 0_usize;
    let mut unknown = None;
    for text in texts(work) {
        pieces(text, &work.columns, |piece| match piece {
            TextPiece::Text(_) => {}
            TextPiece::Place { .. } => places += 1,
            TextPiece::Unknown { name, .. } => drop(unknown.get_or_insert(name)),
        });
    }
    match unknown {
        None => {}
        Some(name) if Part::named(name).is_some() => {
            return Err(FillError::NoColumn { place: format!("{{{name}}}"), columns: work.columns.clone() });
        }
        Some(name) => {
            return Err(FillError::UnknownColumn { name: name.to_owned(), columns: work.columns.clone() });
        }
    }
    if places > FILL_PLACES_MAX {
        return Err(FillError::TooMany);
    }
    if work.shell {
        work.argv.iter().try_for_each(|line| check_line(line, &work.columns))?;
    }
    let words: usize = texts(work).map(str::len).sum();
    let longest = items.map_or(0, |items| items.longest);
    if words + places * value_bytes_max(longest) > FILLED_BYTES_MAX { Err(FillError::TooLong) } else { Ok(()) }
}

/// How many bytes a task's words may take, for work of so many bytes and an item of so many.
pub const fn bytes_max(work: usize, item: usize) -> usize {
    let most = work + FILL_PLACES_MAX * value_bytes_max(item);
    if most < FILLED_BYTES_MAX { most } else { FILLED_BYTES_MAX }
}

/// Bytes of a value in quotes: each quote in it takes four.
const fn value_bytes_max(value: usize) -> usize {
    2 + 4 * value
}

fn has_place(text: &str, columns: &[String]) -> bool {
    let mut has = false;
    pieces(text, columns, |piece| has |= !matches!(piece, TextPiece::Text(_)));
    has
}

fn check_columns(columns: &[String], fields: Option<usize>) -> Result<(), FillError> {
    let mut names: Vec<&String> = columns.iter().collect();
    names.sort_unstable();
    names.dedup();
    let good = columns.len() <= ITEM_FIELDS_MAX
        && names.len() == columns.len()
        && columns.iter().all(|name| !name.is_empty() && !name.contains(['{', '}', '\0']))
        && fields.is_none_or(|fields| fields == columns.len().max(1))
        && (fields.is_some() || columns.is_empty());
    if good { Ok(()) } else { Err(FillError::Columns) }
}

fn check_line(line: &str, columns: &[String]) -> Result<(), FillError> {
    let mut quotes = Quotes::default();
    let mut odd = None;
    pieces(line, columns, |piece| match piece {
        TextPiece::Text(text) => quotes.read(text),
        TextPiece::Place { raw, .. } | TextPiece::Unknown { raw, .. } => {
            if let (None, Some(why)) = (&odd, quotes.odd()) {
                odd = Some(FillError::OddPlace { place: raw.to_owned(), why });
            }
            // A value in quotes: a word, whatever stands before and after it.
            quotes.read("x");
        }
    });
    odd.map_or(Ok(()), Err)
}

/// Part of a text with placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextPiece<'a> {
    Text(&'a str),
    /// It stands for that.
    Place {
        what: PlaceholderKind,
        raw: &'a str,
    },
    /// It looks like a placeholder, and stands for nothing.
    Unknown {
        name: &'a str,
        raw: &'a str,
    },
}

/// The meaning of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceholderKind {
    /// The task's number.
    Number,
    /// Part of a field of its item.
    Field(usize, Part),
}

/// Part of a text that may be a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    NoExtension,
    Name,
    NameNoExtension,
    Directory,
}

impl Part {
    /// The part that is written like that between braces.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "" => Self::Whole,
            "." => Self::NoExtension,
            "/" => Self::Name,
            "/." => Self::NameNoExtension,
            "//" => Self::Directory,
            _ => return None,
        })
    }

    fn of(self, text: &str) -> &str {
        match self {
            Self::Whole => text,
            Self::NoExtension => without_extension(text),
            Self::Name => split_path(text).1,
            Self::NameNoExtension => without_extension(split_path(text).1),
            Self::Directory => split_path(text).0,
        }
    }
}

/// Directory and last component: `.` and the text itself if it has no slash.
fn split_path(text: &str) -> (&str, &str) {
    let plain = text.trim_end_matches('/');
    match plain.rsplit_once('/') {
        _ if plain.is_empty() && !text.is_empty() => ("/", "/"),
        None => (".", plain),
        Some((before, name)) => match before.trim_end_matches('/') {
            "" => ("/", name),
            directory => (directory, name),
        },
    }
}

/// Without the last dot of the last component and what follows it; a dot at the beginning of a name starts no extension.
fn without_extension(text: &str) -> &str {
    let name_at = text.rfind('/').map_or(0, |slash| slash + 1);
    match text.rfind('.') {
        Some(dot) if dot > name_at => text.get(..dot).unwrap_or(text),
        _ => text,
    }
}

/// Takes a text apart. With `k` braces on either side of a name, two of them are one, and a single one that is left makes a
/// placeholder.
fn pieces<'a>(text: &'a str, columns: &[String], mut each: impl FnMut(TextPiece<'a>)) {
    // Where the text begins that was not told yet.
    let (mut told, mut at) = (0, 0);
    let tell = |from: usize, to: usize| text.get(from..to).filter(|text| !text.is_empty()).map(TextPiece::Text);
    while let Some(open) = find(text, at, |letter| letter == '{') {
        let name_at = open + run(text, open, '{');
        let Some(close) = find(text, name_at, |letter| matches!(letter, '{' | '}')) else { break };
        let closing = run(text, close, '}');
        let depth = closing.min(name_at - open);
        let (inner, end) = (name_at - depth, close + depth);
        at = close + closing;
        if depth == 0 {
            continue;
        }
        let name = text.get(name_at..close).unwrap_or_default();
        let raw = text.get(name_at - 1..=close).unwrap_or_default();
        let Some(piece) = meaning(name, raw, columns) else { continue };
        let is_variable =
            depth == 1 && !name.is_empty() && text.get(..inner).is_some_and(|before| before.ends_with('$'));
        if is_variable {
            continue;
        }
        let half = depth / 2;
        [tell(told, inner), tell(inner, inner + half)].into_iter().flatten().for_each(&mut each);
        if depth % 2 == 1 {
            each(piece)
        } else {
            tell(name_at, close).into_iter().for_each(&mut each)
        }
        tell(close, close + half).into_iter().for_each(&mut each);
        (told, at) = (end, end);
    }
    tell(told, text.len()).into_iter().for_each(each);
}

fn find(text: &str, from: usize, what: impl Fn(char) -> bool) -> Option<usize> {
    text.get(from..)?.find(what).map(|at| from + at)
}

/// How many of them follow each other there.
fn run(text: &str, from: usize, brace: char) -> usize {
    text.get(from..).map_or(0, |rest| rest.len() - rest.trim_start_matches(brace).len())
}

/// The meaning of `{name}`, unless it is text.
fn meaning<'a>(name: &'a str, raw: &'a str, columns: &[String]) -> Option<TextPiece<'a>> {
    let place = |what| Some(TextPiece::Place { what, raw });
    if let Some(field) = columns.iter().position(|column| column == name) {
        return place(PlaceholderKind::Field(field, Part::Whole));
    }
    match (Part::named(name), columns) {
        _ if name == "#" => place(PlaceholderKind::Number),
        (Some(part), [] | [_]) => place(PlaceholderKind::Field(0, part)),
        (Some(_), _) => Some(TextPiece::Unknown { name, raw }),
        (None, []) => None,
        (None, _) => is_word(name).then_some(TextPiece::Unknown { name, raw }),
    }
}

/// Whether somebody may have meant a column: `{print $1}`, `{1..9}` and `{a,b}` are none.
fn is_word(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests;
