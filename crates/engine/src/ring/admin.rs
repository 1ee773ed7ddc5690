//! What an admin may ask of the ring, and change.

use std::net::SocketAddr;

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::ring::view::RingView;
use turno_proto::model::{Code, ConnId};

use super::{Host, RingInput};
use crate::effect::Sink;
use crate::engine::Engine;

impl Engine {
    /// An admin asks. What it changes is answered at once: the view tells how far it is.
    pub(crate) fn ring_call(
        &mut self,
        conn: ConnId,
        call: AdminCall,
        out: &mut impl Sink,
    ) -> Result<AdminAnswer, Code> {
        match call {
            AdminCall::RingJoin { next, sid } => self.ring(RingInput::Join { next, sid }, out),
            AdminCall::RingLeave {} => self.ring(RingInput::Leave, out),
            // Answered before the last words are written.
            AdminCall::RingShutdown {} if self.is_local(conn) => self.ring(RingInput::Shutdown, out),
            AdminCall::RingShutdown {} => return Err(Code::NotLocal),
            _ => {}
        }
        let ring = self.ring_view().ok_or(Code::NotInRing)?;
        Ok(AdminAnswer::Ring { ring: Box::new(ring) })
    }

    /// The ring as this broker sees it; `None`: it has no place in any.
    pub(crate) fn ring_view(&self) -> Option<RingView> {
        self.ring.as_deref().map(Host::view)
    }

    /// Whether somebody is on the broker's own machine: at its Unix socket, or by loopback.
    fn is_local(&self, conn: ConnId) -> bool {
        self.messages.address_of(conn).is_some_and(is_local)
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
