//! The end of a link, closed or lost. A message that crossed it is a delivery of the link, as of any worker:
//! [`Messages::lose_deliveries`](crate::messages::Messages) gives it back to its queue without counting an attempt.

use turno_proto::model::link::view::LinkState;
use turno_proto::model::{Code, ConnId};

use crate::messages::Messages;

impl Messages {
    /// The other end takes nothing new. False if this is no link.
    pub(in crate::messages) fn close_link(&mut self, conn: ConnId) -> bool {
        let Some(link) = self.links.by_conn.get_mut(&conn) else { return false };
        link.closing = true;
        self.tell_all_offers();
        true
    }

    /// The connection was a link: what it offered is gone. What crossed it, and what came over it, ends with the
    /// connection as any worker's deliveries and any caller's requests do.
    pub(in crate::messages) fn lose_link(&mut self, conn: ConnId) {
        if !self.links.is_link(conn) {
            return;
        }
        self.tell_all_offers();
        let Some(link) = self.links.by_conn.remove(&conn) else { return };
        if let Some(target) = link.target {
            self.links.targets.down(target, LinkState::Down, Code::LinkDown, self.now);
        }
        self.links.targets.look_again(self.now);
        self.links.presence_changed = true;
        self.look_at_claims();
    }
}
