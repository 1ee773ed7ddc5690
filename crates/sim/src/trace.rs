//! The trace of a run: a hash of everything and the last few events as text.

use std::collections::VecDeque;
use std::fmt::Display;

use turno_proto::model::Mono;

/// Events kept for the report of a violation.
const KEPT: usize = 60;

/// A run's history.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    hash: u64,
    last: VecDeque<(Mono, &'static str, u64, u64)>,
    aloud: bool,
}

impl Trace {
    /// Prints every event as it happens.
    pub(crate) fn aloud() -> Self {
        Self { aloud: true, ..Self::default() }
    }

    /// Notes an event: what, and two numbers that tell which.
    pub(crate) fn note(&mut self, now: Mono, what: &'static str, a: u64, b: u64) {
        for word in [now.as_micros(), what.len() as u64, u64::from(what.as_bytes()[0]), a, b] {
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(17);
        }
        if self.aloud {
            say(&line(now, what, a, b));
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back((now, what, a, b));
    }

    /// Whether somebody reads along.
    pub(crate) const fn is_aloud(&self) -> bool {
        self.aloud
    }

    /// More about an event, for readers of the trace.
    pub(crate) fn say(&self, line: &str) {
        if self.aloud {
            say(line);
        }
    }

    /// One number for the whole history.
    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    /// The last events, oldest first.
    pub(crate) fn last(&self) -> String {
        self.last.iter().map(|(now, what, a, b)| line(*now, what, *a, *b) + "\n").collect()
    }
}

fn line(now: Mono, what: impl Display, a: u64, b: u64) -> String {
    let micros = now.as_micros();
    format!("{:>5}.{:06} {what:<24} {a} {b}", micros / 1_000_000, micros % 1_000_000)
}

#[expect(clippy::print_stdout, reason = "a replay is read by a person")]
fn say(line: &str) {
    println!("{line}");
}
