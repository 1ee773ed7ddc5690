//! The ring node inside the engine: publications, neighbours and admin calls.

use std::net::SocketAddr;

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::ring::view::RingView;
use turno_proto::model::topic::EventRef;
use turno_proto::model::{Code, ConnId, Mono};

use super::Engine;
use crate::effect::{HostEffect, PeerEffect, Sink};
use crate::ring::{PassedPublication, PublicationRef, Relink, RingEffect, RingInput};

impl Engine {
    /// A publication of the ring came: as [`Input::Ring`] with that message, but nobody has to own it.
    ///
    /// [`Input::Ring`]: crate::Input::Ring
    pub fn pass(&mut self, now: Mono, conn: ConnId, publication: PublicationRef<'_>, out: &mut impl Sink) {
        self.messages.begin(now);
        let now = self.messages.now();
        let Some(host) = &mut self.ring else { return };
        let PassedPublication { is_new, on } = host.pass(now, conn, publication);
        if is_new {
            self.topics.deliver(now, publication.event, out);
        }
        if let Some((next, publication)) = on {
            out.publication(next, publication);
        }
        self.follow_if_more(out);
        self.follow_up(out);
    }

    /// Something happened to the ring.
    pub(super) fn ring(&mut self, input: RingInput, out: &mut impl Sink) {
        let Some(host) = &mut self.ring else { return };
        host.handle(self.messages.now(), input);
        self.follow_the_node(out);
    }

    /// An event that was published here goes round.
    pub(super) fn send_round(&mut self, event: EventRef<'_>, out: &mut impl Sink) {
        let Some(host) = &mut self.ring else { return };
        if let Some((next, publication)) = host.publish(self.messages.now(), event) {
            out.publication(next, publication);
        }
        self.follow_if_more(out);
    }

    /// A publication mostly is all there is.
    fn follow_if_more(&mut self, out: &mut impl Sink) {
        if self.ring.as_ref().is_some_and(|host| host.has_effects()) {
            self.follow_the_node(out);
        }
    }

    /// Does what the node wants done.
    fn follow_the_node(&mut self, out: &mut impl Sink) {
        let Some(host) = &mut self.ring else { return };
        self.messages.set_ring(host.origin());
        let mut effects = host.take_effects();
        for effect in effects.drain(..) {
            match effect {
                RingEffect::Deliver { event } => self.topics.deliver(self.messages.now(), EventRef::from(&*event), out),
                RingEffect::Peer(effect) => out.peer(PeerEffect::Ring(effect)),
                RingEffect::Host(effect) => out.host(HostEffect::Ring(effect)),
            }
        }
        if let Some(host) = &mut self.ring {
            host.give_back(effects);
        }
        self.link_with_next(out);
    }

    pub(super) fn tick_ring(&mut self, out: &mut impl Sink) {
        let due = self.ring.as_ref().and_then(|host| host.next_deadline());
        if due.is_some_and(|at| at <= self.messages.now()) {
            self.ring(RingInput::Tick, out);
        }
    }

    /// With `--ring-links`: a link leads wherever the ring does.
    fn link_with_next(&mut self, out: &mut impl Sink) {
        let Some(Relink { old, next }) = self.ring.as_mut().and_then(|host| host.relink()) else { return };
        if let Some(old) = old {
            self.messages.unlink_from(&old, out);
        }
        if let Some(next) = next {
            self.messages.link_to(next, out);
        }
    }

    /// An admin asks. What it changes is answered at once: the view tells how far it is.
    pub(super) fn ring_call(
        &mut self,
        conn: ConnId,
        call: AdminCall,
        out: &mut impl Sink,
    ) -> Result<AdminAnswer, Code> {
        match call {
            AdminCall::RingJoin { next, sid } => self.ring(RingInput::Join { next, sid }, out),
            AdminCall::RingLeave {} => self.ring(RingInput::Leave, out),
            // Answered before the last frames are written.
            AdminCall::RingShutdown {} if self.is_local(conn) => self.ring(RingInput::Shutdown, out),
            AdminCall::RingShutdown {} => return Err(Code::NotLocal),
            _ => {}
        }
        let ring = self.ring_view().ok_or(Code::NotInRing)?;
        Ok(AdminAnswer::Ring { ring: Box::new(ring) })
    }

    /// The ring as this broker sees it; `None`: it has no place in any.
    pub(super) fn ring_view(&self) -> Option<RingView> {
        self.ring.as_deref().map(|host| host.view(self.messages.now(), self.messages.settings()))
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
