//! The ring of a broker that runs on the directory.

use turno_proto::model::ring::view::RingView;

use super::Report;
use crate::cli::ring::told;

pub(super) fn look(ring: &RingView, report: &mut Report) {
    match told::is_broken(ring) {
        true => report.warn("ring", told::line(ring), "the ring heals automatically if it can: turno ring show"),
        false => report.ok("ring", told::line(ring)),
    };
}
