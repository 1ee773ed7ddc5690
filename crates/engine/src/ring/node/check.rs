//! Invariants of a ring node.

use super::sending::Attempt;
use super::states::NodeState;
use super::{ConnectionRole, RingNode};

impl RingNode {
    /// Panics if something does not.
    pub fn sanity_check(&self) {
        let of = |role: ConnectionRole| self.conns.iter().filter(move |(_, conn)| conn.role == role).map(|(id, _)| *id);
        assert_eq!(of(ConnectionRole::Next).collect::<Vec<_>>(), Vec::from_iter(self.state.next()), "ring: one next");
        assert_eq!(
            of(ConnectionRole::Previous).collect::<Vec<_>>(),
            Vec::from_iter(self.previous.conn),
            "ring: one predecessor"
        );
        let opening = self.state.attempt().and_then(Attempt::conn);
        assert_eq!(of(ConnectionRole::Opening).collect::<Vec<_>>(), Vec::from_iter(opening), "ring: one attempt");
        let mut joiners: Vec<_> = self.joiners().map(|joiner| joiner.conn).collect();
        joiners.sort_unstable();
        assert_eq!(of(ConnectionRole::Joiner).collect::<Vec<_>>(), joiners, "ring: joiners");
        if matches!(self.state, NodeState::Alone(None) | NodeState::Off) {
            assert!(self.previous.conn.is_none(), "ring: nobody sends to one that is alone or off");
        }
        self.publications.check(self.settings.me.origin);
    }
}
