//! Rows for people: columns without borders, so that `awk` works too.

use std::borrow::Cow;

use turno_broker::config::nearest;
use turno_proto::model::archive::OutputStream;
use turno_proto::model::job::{JobId, JobState, TaskNumbers, TaskState};
use turno_proto::model::link::view::LinkState;
use turno_proto::model::ring::Sid;
use turno_proto::model::view::{WorkerKind, WorkerState};
use turno_proto::model::{Code, Moment, Seconds, Slots, TaskId, Token, WorkerId};

use super::error::Failure;
use super::shown::{Page, escaped};
use super::time::{Clock, short};

/// One column of a kind of row. Its key is the row's key in JSON, so that `--columns` means the same in both.
pub(crate) struct Column<R> {
    pub(crate) key: &'static str,
    /// Shown only when asked for: by `-o wide` or by name.
    pub(crate) wide: bool,
    pub(crate) cell: fn(&R, &Clock) -> String,
}

impl<R> Column<R> {
    pub(crate) const fn new(key: &'static str, cell: fn(&R, &Clock) -> String) -> Self {
        Self { key, wide: false, cell }
    }

    pub(crate) const fn wide(key: &'static str, cell: fn(&R, &Clock) -> String) -> Self {
        Self { key, wide: true, cell }
    }
}

/// The columns of a kind of row, each with a semicolon: the name of a field, or the key of a column with what is in its
/// cells. Those with `wide` in front are shown only when asked for.
macro_rules! columns {
    (@[$($done:expr,)*]) => {
        &[$($done),*]
    };
    (@[$($done:expr,)*] wide $key:ident = $cell:expr; $($rest:tt)*) => {
        columns![@[$($done,)* $crate::cli::table::Column::wide(stringify!($key), $cell),] $($rest)*]
    };
    (@[$($done:expr,)*] wide $field:ident; $($rest:tt)*) => {
        columns![@[$($done,)*] wide $field = |row, clock| row.$field.cell(clock); $($rest)*]
    };
    (@[$($done:expr,)*] $key:ident = $cell:expr; $($rest:tt)*) => {
        columns![@[$($done,)* $crate::cli::table::Column::new(stringify!($key), $cell),] $($rest)*]
    };
    (@[$($done:expr,)*] $field:ident; $($rest:tt)*) => {
        columns![@[$($done,)*] $field = |row, clock| row.$field.cell(clock); $($rest)*]
    };
    ($($all:tt)*) => {{
        #[allow(unused_imports, reason = "columns may all have cells of their own")]
        use $crate::cli::table::Cell as _;
        columns![@[] $($all)*]
    }};
}
pub(crate) use columns;

/// A value as it stands in a column.
pub(crate) trait Cell {
    fn cell(&self, clock: &Clock) -> String;
}

macro_rules! shown_as_text {
    ($($kind:ty)*) => { $(
        impl Cell for $kind {
            fn cell(&self, _: &Clock) -> String {
                self.to_string()
            }
        }
    )* };
}

shown_as_text! {
    String u8 u16 u32 u64 i32
    Slots WorkerId Token JobId TaskId TaskNumbers Sid
    WorkerKind WorkerState LinkState JobState TaskState OutputStream
}

impl Cell for bool {
    fn cell(&self, _: &Clock) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

impl Cell for Moment {
    fn cell(&self, clock: &Clock) -> String {
        clock.cell(*self)
    }
}

impl Cell for Seconds {
    fn cell(&self, _: &Clock) -> String {
        short(self.duration())
    }
}

impl<T: Cell> Cell for Option<T> {
    fn cell(&self, clock: &Clock) -> String {
        self.as_ref().map(|value| value.cell(clock)).unwrap_or_default()
    }
}

impl Cell for Vec<String> {
    fn cell(&self, _: &Clock) -> String {
        self.join(",")
    }
}

/// Something that is listed.
pub(crate) trait Row: Sized + 'static {
    /// Every column, in order.
    const COLUMNS: &'static [Column<Self>];

    /// What other commands take to mean this row.
    fn name(&self) -> String;
}

/// The columns to show: those asked for by name, or all, or the usual ones.
pub(crate) fn choose<R: Row>(asked: &[String], wide: bool) -> Result<Vec<&'static Column<R>>, Failure> {
    if asked.is_empty() {
        return Ok(R::COLUMNS.iter().filter(|column| wide || !column.wide).collect());
    }
    asked.iter().map(|name| find(name)).collect()
}

fn find<R: Row>(name: &str) -> Result<&'static Column<R>, Failure> {
    let typed = name.trim().to_lowercase();
    let keys = || R::COLUMNS.iter().map(|column| column.key);
    R::COLUMNS.iter().find(|column| column.key == typed).ok_or_else(|| {
        let what = format!("unknown column {name:?}");
        let fix = match nearest(&typed, keys()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("choose from {}", keys().collect::<Vec<_>>().join(",")),
        };
        Failure::new(Code::BadUsage, what).why("--columns takes columns of this listing").fix(fix)
    })
}

/// The listing with its heading. Columns of numbers are flush right.
pub(crate) fn render<R: Row>(columns: &[&Column<R>], rows: &[R], clock: &Clock) -> Page {
    let mut lines: Vec<Vec<String>> = vec![columns.iter().map(|column| column.key.to_uppercase()).collect()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|column| filled((column.cell)(row, clock))).collect()));
    let numeric: Vec<bool> =
        (0..columns.len()).map(|place| lines.iter().skip(1).all(|line| is_number(&line[place]))).collect();
    layout(&lines, &numeric)
}

/// Cells below each other, each escaped before it is measured, two blanks between them; some columns flush right.
pub(crate) fn layout(lines: &[Vec<String>], flush_right: &[bool]) -> Page {
    let lines: Vec<Vec<Cow<'_, str>>> =
        lines.iter().map(|line| line.iter().map(|cell| escaped(cell)).collect()).collect();
    let widths: Vec<usize> = (0..flush_right.len())
        .map(|place| lines.iter().map(|line| line[place].chars().count()).max().unwrap_or_default())
        .collect();
    let mut page = Page::new();
    for line in &lines {
        let mut out = String::new();
        for (place, cell) in line.iter().enumerate() {
            if place > 0 {
                out.push_str("  ");
            }
            let pad = " ".repeat(widths[place] - cell.chars().count());
            if flush_right[place] {
                out.push_str(&pad);
                out.push_str(cell);
            } else {
                out.push_str(cell);
                out.push_str(&pad);
            }
        }
        page.line(out.trim_end());
    }
    page
}

/// Things one below the other: their names on the left, what they are on the right.
pub(crate) fn facts(facts: &[(&str, String)]) -> Page {
    let lines: Vec<Vec<String>> = facts.iter().map(|(name, text)| vec![(*name).to_owned(), text.clone()]).collect();
    layout(&lines, &[false, false])
}

/// A number, percent too, or the lack of one.
fn is_number(cell: &str) -> bool {
    matches!(cell, "-" | "unlimited") || cell.strip_suffix('%').unwrap_or(cell).parse::<f64>().is_ok()
}

/// A cell that is never empty, so that columns can be counted.
fn filled(cell: String) -> String {
    if cell.is_empty() { "-".to_owned() } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::time::TimeStyle;

    struct Fruit {
        name: &'static str,
        count: u32,
        colour: Option<String>,
    }

    impl Row for Fruit {
        const COLUMNS: &'static [Column<Self>] = columns![
            name = |fruit, _| fruit.name.to_owned();
            count;
            wide colour;
        ];

        fn name(&self) -> String {
            self.name.to_owned()
        }
    }

    fn shown(asked: &[&str], wide: bool) -> Result<Page, Failure> {
        let yellow = Some("yellow".to_owned());
        let rows = [Fruit { name: "fig", count: 7, colour: None }, Fruit { name: "mango", count: 120, colour: yellow }];
        let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        let clock = Clock::new(TimeStyle::Utc);
        Ok(render(&choose::<Fruit>(&asked, wide)?, &rows, &clock))
    }

    #[test]
    fn columns_line_up_and_are_never_empty() {
        assert_eq!(shown(&[], false).unwrap(), "NAME   COUNT\nfig        7\nmango    120\n");
        assert_eq!(shown(&[], true).unwrap(), "NAME   COUNT  COLOUR\nfig        7  -\nmango    120  yellow\n");
    }

    /// A cell with a line break is one cell of one line, and what is escaped counts with its full width.
    #[test]
    fn cells_cannot_leave_their_place() {
        let cells = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let lines = [cells("NAME", "QUEUE"), cells("a\nb", "q\x1b[2J"), cells("longer", "\u{202e}q")];
        let expected = "NAME    QUEUE\na\\nb    q\\x1b[2J\nlonger  \\u{202e}q\n";
        assert_eq!(layout(&lines, &[false, false]), expected);
    }

    #[test]
    fn cells_by_kind() {
        let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Relative);
        let moment = Moment::from_unix_ms(1_794_743_910_000);
        let cells = [
            (true.cell(&clock), "yes"),
            (false.cell(&clock), "no"),
            (moment.cell(&clock), "1m30s"),
            (None::<Moment>.cell(&clock), ""),
            (Seconds::from_millis(61_000).cell(&clock), "1m1s"),
            (vec!["a".to_owned(), "b".to_owned()].cell(&clock), "a,b"),
            (Slots::Unlimited.cell(&clock), "unlimited"),
            (Some(WorkerState::Draining).cell(&clock), "draining"),
        ];
        for (cell, expected) in cells {
            assert_eq!(cell, expected);
        }
    }

    #[test]
    fn columns_are_chosen_and_ordered_by_name() {
        assert_eq!(shown(&["colour", "NAME"], false).unwrap(), "COLOUR  NAME\n-       fig\nyellow  mango\n");
        let failure = shown(&["colur"], false).unwrap_err();
        assert_eq!(failure.exit(), 2);
        assert!(failure.render(crate::cli::paint::Paint::plain()).contains("did you mean colour?"));
    }
}
