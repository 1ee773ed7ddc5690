//! The node inside the engine: topics go round, neighbours link.

use turno_proto::model::ring::view::RingView;
use turno_proto::model::ring::{Origin, RingState};
use turno_proto::model::topic::EventRef;
use turno_proto::model::{ConnId, Mono};

use super::node::{Node, Passed};
use super::{PublicationRef, RingEffect, RingInput, RingSettings};
use crate::effect::{Effect, Sink};
use crate::engine::Engine;

/// The broker's place in a ring.
#[derive(Debug)]
pub(crate) struct Host {
    node: Node,
    /// What the node says; kept for its room only.
    effects: Vec<RingEffect>,
    /// The address of the next one, if the broker links with it for the ring's sake.
    linked: Option<String>,
}

impl Host {
    pub(crate) fn new(settings: RingSettings, now: Mono) -> Self {
        Self { node: Node::new(settings, now), effects: Vec::new(), linked: None }
    }

    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.node.next_deadline()
    }

    /// Bytes of publications that have not come round.
    pub(crate) const fn kept_bytes(&self) -> u64 {
        self.node.kept_bytes()
    }

    pub(super) fn view(&self) -> RingView {
        self.node.view()
    }

    /// Whether it has nothing to do with the ring any more.
    pub(crate) fn is_off(&self) -> bool {
        self.node.state() == RingState::Off
    }

    /// Who this broker is in the ring; `None` while it is out of it.
    pub(crate) fn origin(&self) -> Option<Origin> {
        (!self.is_off()).then_some(self.node.me().origin)
    }

    /// Whether events reach that one by the ring.
    pub(crate) fn carries_to(&self, origin: Origin) -> bool {
        self.node.is_in_circle(origin)
    }

    pub(crate) fn check(&self) {
        self.node.sanity_check();
    }
}

impl Engine {
    /// A publication of the ring came: as [`Input::Ring`] with that word, but nobody has to own it.
    ///
    /// [`Input::Ring`]: crate::Input::Ring
    pub fn pass(&mut self, now: Mono, conn: ConnId, publication: PublicationRef<'_>, out: &mut impl Sink) {
        self.begin(now);
        let now = self.messages.now();
        let Some(host) = &mut self.ring else { return };
        let Passed { is_new, on } = host.node.pass(now, conn, publication, &mut host.effects);
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
    pub(crate) fn ring(&mut self, input: RingInput, out: &mut impl Sink) {
        let Some(host) = &mut self.ring else { return };
        host.node.handle(self.messages.now(), input, &mut host.effects);
        self.follow_the_node(out);
    }

    /// An event that was published here goes round.
    pub(crate) fn send_round(&mut self, event: EventRef<'_>, out: &mut impl Sink) {
        let Some(host) = &mut self.ring else { return };
        if let Some((next, publication)) = host.node.publish(self.messages.now(), event, &mut host.effects) {
            out.publication(next, publication);
        }
        self.follow_if_more(out);
    }

    /// A publication mostly is all there is.
    fn follow_if_more(&mut self, out: &mut impl Sink) {
        if self.ring.as_ref().is_some_and(|host| !host.effects.is_empty()) {
            self.follow_the_node(out);
        }
    }

    /// Does what the node wants done.
    fn follow_the_node(&mut self, out: &mut impl Sink) {
        let Some(host) = &mut self.ring else { return };
        self.messages.set_ring(host.origin());
        let mut effects = std::mem::take(&mut host.effects);
        for effect in effects.drain(..) {
            match effect {
                RingEffect::Deliver { event } => self.topics.deliver(self.messages.now(), EventRef::from(&*event), out),
                effect => out.effect(Effect::Ring { effect }),
            }
        }
        if let Some(host) = &mut self.ring {
            host.effects = effects;
        }
        self.link_with_next(out);
    }

    pub(crate) fn tick_ring(&mut self, out: &mut impl Sink) {
        let due = self.ring.as_ref().and_then(|host| host.next_deadline());
        if due.is_some_and(|at| at <= self.messages.now()) {
            self.ring(RingInput::Tick, out);
        }
    }

    /// With `--ring-links`: a link leads wherever the ring does.
    fn link_with_next(&mut self, out: &mut impl Sink) {
        let Some(host) = self.ring.as_mut().filter(|host| host.node.links()) else { return };
        let next = host.node.next_peer();
        // A neighbour that is lost for a moment stays linked: the link has a life of its own.
        let is_out = next.is_none() && !matches!(host.node.state(), RingState::Off | RingState::Alone);
        let next = next.map(|next| next.native.clone()).filter(|native| !native.is_empty());
        if host.linked == next || is_out {
            return;
        }
        let old: Option<String> = std::mem::replace(&mut host.linked, next.clone());
        if let Some(old) = old {
            self.messages.unlink_from(&old, out);
        }
        if let Some(next) = next {
            self.messages.link_to(next, out);
        }
    }
}
