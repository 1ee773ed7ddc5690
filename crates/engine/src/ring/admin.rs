//! What an admin may ask of the ring, and change.

use std::net::SocketAddr;

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::ring::Sid;
use turno_proto::model::ring::view::RingView;
use turno_proto::model::{Code, ConnId};

use super::{Host, RingInput};
use crate::effect::{Effect, Sink};
use crate::engine::Engine;

impl Engine {
    /// Whether a call is about the ring.
    pub(crate) const fn is_about_the_ring(call: &AdminCall) -> bool {
        matches!(
            call,
            AdminCall::Ring {} | AdminCall::RingJoin { .. } | AdminCall::RingLeave {} | AdminCall::RingShutdown {}
        )
    }

    pub(crate) fn ring_call(&mut self, conn: ConnId, seq: u32, call: AdminCall, out: &mut impl Sink) {
        match call {
            AdminCall::RingJoin { next, sid } => self.ring_join(conn, seq, (next, sid), out),
            AdminCall::RingLeave {} => self.ring_leave(conn, seq, out),
            AdminCall::RingShutdown {} if !self.is_local(conn) => {
                out.effect(Effect::Error { conn, seq, code: Code::NotLocal });
            }
            AdminCall::RingShutdown {} => self.ring_shutdown(conn, seq, out),
            _ => self.show_ring(conn, seq, out),
        }
    }

    /// The ring as this broker sees it; `None`: it has no place in any.
    pub(crate) fn ring_view(&self) -> Option<RingView> {
        self.ring.as_deref().map(Host::view)
    }

    /// Joins at that member. Answered at once: the view tells how far it is.
    pub(crate) fn ring_join(
        &mut self,
        conn: ConnId,
        seq: u32,
        (next, sid): (String, Option<Sid>),
        out: &mut impl Sink,
    ) {
        self.ring(RingInput::Join { next, sid }, out);
        self.show_ring(conn, seq, out);
    }

    /// Leaves, and goes on alone. Answered at once: the view tells how far it is.
    pub(crate) fn ring_leave(&mut self, conn: ConnId, seq: u32, out: &mut impl Sink) {
        self.ring(RingInput::Leave, out);
        self.show_ring(conn, seq, out);
    }

    /// Ends every broker of the ring. Answered at once, before the last words are written.
    pub(crate) fn ring_shutdown(&mut self, conn: ConnId, seq: u32, out: &mut impl Sink) {
        self.ring(RingInput::Shutdown, out);
        self.show_ring(conn, seq, out);
    }

    fn show_ring(&self, conn: ConnId, seq: u32, out: &mut impl Sink) {
        out.effect(match self.ring_view() {
            Some(ring) => Effect::Answer { conn, seq, answer: Box::new(AdminAnswer::Ring { ring: Box::new(ring) }) },
            None => Effect::Error { conn, seq, code: Code::NotInRing },
        });
    }

    /// Whether somebody is on the broker's own machine: at its Unix socket, or by loopback.
    fn is_local(&self, conn: ConnId) -> bool {
        self.peers.get(conn).is_some_and(|peer| is_local(&peer.address))
    }
}

/// An address as the shell tells it: `unix`, `unix:PROCESS` or HOST:PORT.
fn is_local(address: &str) -> bool {
    match address.parse::<SocketAddr>() {
        Ok(address) => address.ip().to_canonical().is_loopback(),
        Err(_) => address == "unix" || address.starts_with("unix:"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_on_this_machine() {
        let table = [
            ("unix", true),
            ("unix:4711", true),
            ("127.0.0.1:50000", true),
            ("127.9.9.9:1", true),
            ("[::1]:50000", true),
            ("[::ffff:127.0.0.1]:50000", true),
            ("10.0.0.7:50000", false),
            ("[::ffff:10.0.0.7]:50000", false),
            ("0.0.0.0:50000", false),
            ("unixes", false),
            ("localhost", false),
            ("", false),
        ];
        for (address, local) in table {
            assert_eq!(is_local(address), local, "{address:?}");
        }
    }
}
