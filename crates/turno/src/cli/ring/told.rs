//! Texts about the ring.

use turno_proto::model::Code;
use turno_proto::model::ring::RingState;
use turno_proto::model::ring::view::RingView;

use crate::cli::error::Failure;
use crate::cli::words::count;

/// Whether something is wrong that does not fix itself within moments of a usual change.
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
    match (&view.why, view.state) {
        (None, RingState::Alone) => format!("alone, sid {}", view.sid),
        (None, _) => {
            let members = count(view.members.len() as u64, "member", "members");
            match view.lost.len() {
                0 => format!("whole, {members}"),
                _ => format!("whole, {members}; lost: {}", view.lost_sids()),
            }
        }
        (Some(why), _) => why.clone(),
    }
}

/// Why a broker did not join at that address. What answers there may be no member of a ring at all, and says so in words that are
/// for others.
pub(crate) fn not_joined(code: Code, what: String, address: &str) -> Failure {
    match code {
        Code::BadMagic | Code::UnknownType | Code::ExpectedConnect | Code::BadFrame | Code::WrongDirection => {
            Failure::new(code, format!("{what}: no ring member listens at {address}"))
                .why("another service listens there, perhaps the broker's listener for clients or job workers")
                .fix("use the address that `turno ring show` shows on that broker; the default port is 8000 plus the sid")
        }
        code => Failure::new(code, format!("{what}: {}", code.text().what)),
    }
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
    use turno_proto::model::Seconds;
    use turno_proto::model::ring::Sid;
    use turno_proto::model::ring::view::MemberView;

    use super::*;
    use crate::cli::paint::Paint;

    fn ring(state: RingState, members: &[u16]) -> RingView {
        let member = |sid: &u16| MemberView { sid: Sid::new(*sid), incarnation: 1, ..MemberView::default() };
        let members: Vec<MemberView> = members.iter().map(member).collect();
        let (first, last) = (members.get(1).or_else(|| members.first()), members.last());
        RingView {
            sid: members.first().map_or(Sid::new(3), |member| member.sid),
            state,
            whole: true,
            previous: last.map(|member| member.sid),
            next: first.map(|member| member.sid),
            members,
            ..RingView::default()
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
            (RingView { whole: false, ..member() }, true, "not whole: the last roll call did not complete"),
            (ring(RingState::Rewiring, &[3, 5]), false, "whole, 2 members"),
            (RingView { whole: false, ..ring(RingState::Rewiring, &[3, 5]) }, true, "rewiring since 3.0s"),
            (RingView { previous: None, ..down() }, true, "broken since 3.0s: no contact with 9"),
            (RingView { next: None, ..down() }, true, "broken since 3.0s: no contact with 5"),
            (RingView { previous: None, next: None, ..down() }, true, "broken since 3.0s: no contact with 5, 9"),
            (RingView { next: None, lost: lost(&[5, 7]), ..down() }, true, "broken since 3.0s: no contact with 5, 7"),
            (down(), true, "broken since 3.0s"),
            (ring(RingState::Alone, &[3]), false, "alone, sid 3"),
            (RingView { lost: lost(&[5, 4]), ..ring(RingState::Alone, &[3]) }, true, "alone since 3.0s; lost: 4, 5"),
            (ring(RingState::Joining, &[]), false, "joining since 3.0s"),
            (
                RingView { code: Some("ring_down".to_owned()), ..ring(RingState::Joining, &[]) },
                false,
                "joining since 3.0s: no member of the ring answers at this address",
            ),
            (ring(RingState::Leaving, &[3, 5]), false, "leaving since 3.0s"),
            (off(None), false, "left 3.0s ago"),
            (
                off(Some("fenced")),
                true,
                "not in the ring since 3.0s: a newer incarnation of this broker is in the ring",
            ),
            (off(Some("of a\nlater version")), true, "not in the ring since 3.0s: of a later version"),
        ];
        for (view, broken, expected) in table {
            let view = view.told(Seconds::from_millis(3_000));
            assert_eq!((line(&view).as_str(), is_broken(&view)), (expected, broken), "{view:?}");
        }
    }

    /// In a ring of two the other one is both neighbours.
    #[test]
    fn what_members_are_to_the_broker_that_was_asked() {
        let roles = |members: &[u16]| {
            let view = RingView { lost: lost(&[4]), ..ring(RingState::Member, members) }.told(Seconds::default());
            view.members.iter().chain(&view.lost).map(|member| member.role.clone()).collect::<Vec<_>>()
        };
        assert_eq!(roles(&[3, 5, 9, 7]), ["me", "next", "", "previous", "lost"]);
        assert_eq!(roles(&[3, 5]), ["me", "previous,next", "lost"]);
        assert_eq!(roles(&[3]), ["me", "lost"]);
    }

    #[test]
    fn something_else_listens_there() {
        for (code, expected) in [
            (Code::ExpectedConnect, "error: it did not join: no ring member listens at h:8101\nwhy: another service"),
            (Code::UnknownType, "error: it did not join: no ring member listens at h:8101\nwhy: another service"),
            (
                Code::RingDown,
                "error: it did not join: no member of the ring answers at this address\nwhy: the other broker",
            ),
            (Code::RingRefused, "error: it did not join: the brokers do not share a ring secret"),
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
