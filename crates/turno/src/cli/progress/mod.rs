//! Progress of jobs on stderr during a wait. There are two bars on a terminal, a plain line now and then elsewhere.
//! `meter` knows what there is to tell, `bars` how it looks, `screen` when and where.

mod bars;
mod meter;
mod screen;

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;

pub(crate) use self::meter::rate_text;
pub(crate) use self::screen::Screen;

/// The value of --progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressWhen {
    /// Bars on a terminal, plain lines elsewhere
    #[default]
    Auto,
    /// Two bars: jobs and tasks
    Bar,
    /// One line every 10 seconds
    Plain,
    /// Nothing
    None,
}

/// The form of progress, once the terminal is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressStyle {
    Bars,
    Lines,
    Nothing,
}

/// A terminal that cannot move its cursor gets lines, like a file.
const fn style(when: ProgressWhen, quiet: bool, terminal: bool, dumb: bool) -> ProgressStyle {
    match when {
        _ if quiet => ProgressStyle::Nothing,
        ProgressWhen::None => ProgressStyle::Nothing,
        ProgressWhen::Bar => ProgressStyle::Bars,
        ProgressWhen::Auto if terminal && !dumb => ProgressStyle::Bars,
        ProgressWhen::Auto | ProgressWhen::Plain => ProgressStyle::Lines,
    }
}

/// The style for this program's stderr.
pub(crate) fn style_here(when: ProgressWhen, quiet: bool) -> ProgressStyle {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    style(when, quiet, io::stderr().is_terminal(), dumb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_for_terminals_and_nothing_is_for_the_quiet() {
        let (terminal, file) = (true, false);
        let table = [
            (ProgressWhen::Auto, terminal, ProgressStyle::Bars),
            (ProgressWhen::Auto, file, ProgressStyle::Lines),
            (ProgressWhen::Plain, terminal, ProgressStyle::Lines),
            (ProgressWhen::Bar, file, ProgressStyle::Bars),
            (ProgressWhen::None, terminal, ProgressStyle::Nothing),
        ];
        for (when, terminal, expected) in table {
            assert_eq!(style(when, false, terminal, false), expected, "{when:?}");
            assert_eq!(style(when, true, terminal, false), ProgressStyle::Nothing, "{when:?}");
        }
        assert_eq!(style(ProgressWhen::Auto, false, terminal, true), ProgressStyle::Lines);
    }
}
