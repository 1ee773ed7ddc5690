//! Everything a node knows agrees.

use super::{Node, Role};

impl Node {
    /// Panics if something does not.
    pub fn sanity_check(&self) {
        let of = |role: Role| self.conns.iter().filter(move |(_, conn)| conn.role == role).map(|(id, _)| *id);
        assert_eq!(of(Role::Next).collect::<Vec<_>>(), Vec::from_iter(self.next), "ring: one next");
        assert_eq!(of(Role::Previous).collect::<Vec<_>>(), Vec::from_iter(self.previous), "ring: one predecessor");
        let opening = self.attempt.as_ref().and_then(|attempt| attempt.conn());
        assert_eq!(of(Role::Opening).collect::<Vec<_>>(), Vec::from_iter(opening), "ring: one attempt");
        let mut joiners: Vec<_> = self.joiners.iter().map(|joiner| joiner.conn).collect();
        joiners.sort_unstable();
        assert_eq!(of(Role::Joiner).collect::<Vec<_>>(), joiners, "ring: joiners");
        assert!(!(self.is_off && self.is_alone), "ring: off or alone");
        if self.is_off {
            assert!(
                self.attempt.is_none() && self.next.is_none() && self.previous.is_none(),
                "ring: off has no neighbours"
            );
        }
        self.publications.check(self.settings.me.origin);
    }
}
