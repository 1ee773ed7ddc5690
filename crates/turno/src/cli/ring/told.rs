//! The ring in words.

use std::time::Duration;

use turno_proto::model::Code;
use turno_proto::model::ring::view::RingView;
use turno_proto::model::ring::{RingState, Sid};

use crate::cli::error::Failure;
use crate::cli::time::short;
use crate::cli::words::{count, one_line};

/// Whether something is wrong that does not mend itself within moments of a usual change.
pub(crate) fn is_broken(view: &RingView) -> bool {
    match view.state {
        RingState::LinkDown => true,
        RingState::Off => view.code.is_some(),
        RingState::Member | RingState::Rewiring => !view.whole,
        RingState::Alone => !view.lost.is_empty(),
        RingState::Joining | RingState::Leaving => false,
    }
}

/// One line: `whole, 5 members`, `broken since 3.0s: no word from 4`.
pub(crate) fn line(view: &RingView) -> String {
    match (why_not_whole(view), view.state) {
        (None, RingState::Alone) => format!("alone, sid {}", view.sid),
        (None, _) => {
            let members = count(view.members.len() as u64, "member", "members");
            match view.lost.len() {
                0 => format!("whole, {members}"),
                _ => format!("whole, {members}; lost: {}", sids(view.lost.iter().map(|member| member.sid))),
            }
        }
        (Some(why), _) => why,
    }
}

/// Why it is no circle now; `None`: it is one, if only of one member.
pub(crate) fn why_not_whole(view: &RingView) -> Option<String> {
    let since = short(Duration::from_millis(view.since_ms));
    let code = || view.code.as_deref().and_then(|code| code.parse::<Code>().ok());
    match view.state {
        RingState::LinkDown => Some(match sids(silent(view)) {
            who if who.is_empty() => format!("broken since {since}"),
            who => format!("broken since {since}: no word from {who}"),
        }),
        RingState::Joining => Some(match code() {
            Some(code) => format!("joining since {since}: {}", code.text().what),
            None => format!("joining since {since}"),
        }),
        RingState::Leaving => Some(format!("leaving since {since}")),
        RingState::Off => Some(match (code(), view.code.as_deref()) {
            (Some(code), _) => format!("not in the ring since {since}: {}", code.text().what),
            (None, Some(other)) => format!("not in the ring since {since}: {}", one_line(other)),
            (None, None) => format!("left {since} ago"),
        }),
        RingState::Alone if view.lost.is_empty() => None,
        RingState::Alone => {
            Some(format!("alone since {since}; lost: {}", sids(view.lost.iter().map(|member| member.sid))))
        }
        RingState::Member | RingState::Rewiring if view.whole => None,
        RingState::Rewiring => Some(format!("being rewired since {since}")),
        RingState::Member => Some("not whole: the last roll call has not come round".to_owned()),
    }
}

/// Why a broker did not join at that address. What answers there may be no member of a ring at all, and says so in words that are
/// for others.
pub(crate) fn not_joined(code: Code, what: String, address: &str) -> Failure {
    match code {
        Code::BadMagic | Code::UnknownType | Code::ExpectedConnect | Code::BadFrame | Code::WrongDirection => {
            Failure::new(code, format!("{what}: no member of a ring listens at {address}"))
                .why("something else does, perhaps the same broker for its clients or its job workers")
                .fix("give the address that `turno ring show` tells there; the usual one is 8000 plus the sid")
        }
        code => Failure::new(code, format!("{what}: {}", code.text().what)),
    }
}

/// Neighbours that it had in the last whole circle and has not now.
fn silent(view: &RingView) -> impl Iterator<Item = Sid> {
    let others = || view.members.iter().map(|member| member.sid).filter(|sid| *sid != view.sid);
    let previous = others().next_back().filter(|_| view.previous.is_none());
    let next = others().next().filter(|_| view.next.is_none());
    let lost = view.lost.iter().map(|member| member.sid);
    previous.into_iter().chain(next).chain(lost)
}

/// Each once, in order.
fn sids(all: impl Iterator<Item = Sid>) -> String {
    let mut all: Vec<Sid> = all.collect();
    all.sort_unstable();
    all.dedup();
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The circle, drawn: `3 → 5 → 9 → 3`.
pub(crate) fn circle(view: &RingView) -> String {
    let mut stops: Vec<String> = view.members.iter().map(|member| member.sid.to_string()).collect();
    if stops.len() > 1 {
        stops.extend(stops.first().cloned());
    }
    stops.join(" → ")
}

#[cfg(test)]
mod tests {
    use turno_proto::model::ring::view::{MemberView, RingCounters};

    use super::*;
    use crate::cli::paint::Paint;

    fn ring(state: RingState, members: &[u16]) -> RingView {
        let member = |sid: &u16| {
            let address = |base: u16| format!("127.0.0.1:{}", base + sid);
            MemberView { sid: Sid::new(*sid), incarnation: 1, address: address(8_000), native: address(8_100) }
        };
        let members: Vec<MemberView> = members.iter().map(member).collect();
        let (first, last) = (members.get(1).or_else(|| members.first()), members.last());
        RingView {
            sid: members.first().map_or(Sid::new(3), |member| member.sid),
            incarnation: 1,
            address: "127.0.0.1:8003".to_owned(),
            has_secret: false,
            state,
            since_ms: 3_000,
            whole: true,
            previous: last.map(|member| member.sid),
            next: first.map(|member| member.sid),
            members,
            lost: Vec::new(),
            round_trip_us: None,
            not_round: 0,
            oldest_ms: None,
            buffered: 0,
            buffer_bytes: 0,
            slowed: false,
            counters: RingCounters::default(),
            code: None,
        }
    }

    fn lost(sids: &[u16]) -> Vec<MemberView> {
        ring(RingState::Member, sids).members
    }

    #[test]
    fn the_ring_in_one_line() {
        let member = || ring(RingState::Member, &[3, 5, 9]);
        let down = || RingView { whole: false, ..ring(RingState::LinkDown, &[3, 5, 9]) };
        let off = |code: Option<&str>| RingView { code: code.map(str::to_owned), ..ring(RingState::Off, &[]) };
        let table = [
            (member(), false, "whole, 3 members"),
            (RingView { lost: lost(&[4]), ..member() }, false, "whole, 3 members; lost: 4"),
            (RingView { whole: false, ..member() }, true, "not whole: the last roll call has not come round"),
            (ring(RingState::Rewiring, &[3, 5]), false, "whole, 2 members"),
            (RingView { whole: false, ..ring(RingState::Rewiring, &[3, 5]) }, true, "being rewired since 3.0s"),
            (RingView { previous: None, ..down() }, true, "broken since 3.0s: no word from 9"),
            (RingView { next: None, ..down() }, true, "broken since 3.0s: no word from 5"),
            (RingView { previous: None, next: None, ..down() }, true, "broken since 3.0s: no word from 5, 9"),
            (RingView { next: None, lost: lost(&[5, 7]), ..down() }, true, "broken since 3.0s: no word from 5, 7"),
            (down(), true, "broken since 3.0s"),
            (ring(RingState::Alone, &[3]), false, "alone, sid 3"),
            (RingView { lost: lost(&[5, 4]), ..ring(RingState::Alone, &[3]) }, true, "alone since 3.0s; lost: 4, 5"),
            (ring(RingState::Joining, &[]), false, "joining since 3.0s"),
            (
                RingView { code: Some("ring_down".to_owned()), ..ring(RingState::Joining, &[]) },
                false,
                "joining since 3.0s: nobody answers at that place of the ring",
            ),
            (ring(RingState::Leaving, &[3, 5]), false, "leaving since 3.0s"),
            (off(None), false, "left 3.0s ago"),
            (off(Some("fenced")), true, "not in the ring since 3.0s: a later life of this broker is known in the ring"),
            (off(Some("of a\nlater version")), true, "not in the ring since 3.0s: of a later version"),
        ];
        for (view, broken, expected) in table {
            assert_eq!((line(&view).as_str(), is_broken(&view)), (expected, broken), "{view:?}");
        }
    }

    #[test]
    fn something_else_listens_there() {
        for (code, expected) in [
            (
                Code::ExpectedConnect,
                "error: it did not join: no member of a ring listens at h:8101\nwhy: something else",
            ),
            (Code::UnknownType, "error: it did not join: no member of a ring listens at h:8101\nwhy: something else"),
            (Code::RingDown, "error: it did not join: nobody answers at that place of the ring\nwhy: the other broker"),
            (Code::RingRefused, "error: it did not join: the other broker does not know the secret"),
        ] {
            let failure = not_joined(code, "it did not join".to_owned(), "h:8101");
            let text = failure.render(Paint::plain());
            assert!(failure.code() == code && text.starts_with(expected), "{text}");
        }
    }

    #[test]
    fn the_circle_is_drawn() {
        for (members, expected) in [(&[3, 5, 9][..], "3 → 5 → 9 → 3"), (&[3, 5], "3 → 5 → 3"), (&[3], "3"), (&[], "")]
        {
            assert_eq!(circle(&ring(RingState::Member, members)), expected);
        }
    }
}
