//! The ring node inside the engine, and its requests to the engine.

use turno_proto::model::ring::view::RingView;
use turno_proto::model::ring::{Origin, RingState};
use turno_proto::model::topic::EventRef;
use turno_proto::model::{ConnId, Mono, Seconds};

use super::node::{PassedPublication, RingNode};
use super::{PublicationRef, RingEffect, RingInput, RingSettings};
use crate::settings::Settings;

/// The address of the link that goes, and of the one that comes.
pub(crate) struct Relink {
    pub(crate) old: Option<String>,
    pub(crate) next: Option<String>,
}

/// The broker's place in a ring.
#[derive(Debug)]
pub(crate) struct RingHost {
    node: RingNode,
    /// A buffer for effects of the node; kept for its capacity only.
    effects: Vec<RingEffect>,
    /// The address of the next one, if the broker links with it for the ring's sake.
    linked: Option<String>,
}

impl RingHost {
    pub(crate) fn new(settings: RingSettings, now: Mono) -> Self {
        Self { node: RingNode::new(settings, now), effects: Vec::new(), linked: None }
    }

    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.node.next_deadline()
    }

    /// Bytes of publications that have not come round.
    pub(crate) const fn kept_bytes(&self) -> u64 {
        self.node.kept_bytes()
    }

    pub(crate) fn view(&self, now: Mono, settings: &Settings) -> RingView {
        let since = self.node.since();
        let view = RingView { since_at: settings.moment(since), ..self.node.view() };
        view.told(Seconds::from_millis(now.millis_since(since)))
    }

    /// Whether it has nothing to do with the ring any more.
    pub(crate) fn is_off(&self) -> bool {
        self.node.state() == RingState::Off
    }

    /// The broker's identity in the ring; `None` while it is out of it.
    pub(crate) fn origin(&self) -> Option<Origin> {
        (!self.is_off()).then_some(self.node.me().origin)
    }

    /// Whether events reach that one by the ring.
    pub(crate) fn carries_to(&self, origin: Origin) -> bool {
        self.node.is_in_circle(origin)
    }

    pub(crate) fn handle(&mut self, now: Mono, input: RingInput) {
        self.node.handle(now, input, &mut self.effects);
    }

    /// A publication came. Where it lies, it is lent.
    pub(crate) fn pass<'p>(
        &mut self,
        now: Mono,
        conn: ConnId,
        publication: PublicationRef<'p>,
    ) -> PassedPublication<'p> {
        self.node.pass(now, conn, publication, &mut self.effects)
    }

    /// An event that was published here goes round: to that connection, as that publication.
    pub(crate) fn publish<'p>(&mut self, now: Mono, event: EventRef<'p>) -> Option<(ConnId, PublicationRef<'p>)> {
        self.node.publish(now, event, &mut self.effects)
    }

    /// Whether the node wants something done.
    pub(crate) const fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// The effects of the node. The list is to be given back, for its capacity.
    pub(crate) fn take_effects(&mut self) -> Vec<RingEffect> {
        std::mem::take(&mut self.effects)
    }

    pub(crate) fn give_back(&mut self, effects: Vec<RingEffect>) {
        self.effects = effects;
    }

    /// With `--ring-links` a link leads wherever the ring does: which one goes, and which one comes.
    pub(crate) fn relink(&mut self) -> Option<Relink> {
        if !self.node.links() {
            return None;
        }
        let next = self.node.next_peer();
        // A neighbour that is lost for a moment stays linked: the link has a life of its own.
        let is_out = next.is_none() && !matches!(self.node.state(), RingState::Off | RingState::Alone);
        let next = next.map(|next| next.native.clone()).filter(|native| !native.is_empty());
        if self.linked == next || is_out {
            return None;
        }
        Some(Relink { old: std::mem::replace(&mut self.linked, next.clone()), next })
    }

    pub(crate) fn check(&self) {
        self.node.sanity_check();
    }
}
