//! Any frame about topics.

use turno_proto::model::Filter;
use turno_proto::native::{Raw, RawEvent};

use super::Seed;

impl Seed {
    /// Any bytes as a prefix, or a pattern made of what numbers there are.
    pub(super) fn filter(&self) -> Filter {
        if self.bits[1] {
            return Filter::prefix(&self.bytes).expect("few bytes");
        }
        let rest = if self.bits[2] { ".>" } else { "" };
        let pattern = format!("t{}.*.{}{rest}", self.number, self.small);
        Filter::pattern(pattern.as_bytes()).expect("a sound pattern")
    }

    pub(super) fn event(&self) -> RawEvent<'_> {
        RawEvent { topic: &self.bytes, payload: Raw::from(&self.payload) }
    }
}
