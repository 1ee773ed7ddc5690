//! The start of a link, or its refusal.
//!
//! Two brokers have one link. Who dials asks here before it shows who it is, and leaves a link that is there alone, since
//! messages are on it. If both dialled at the same moment, that of the lower id stays; if one dialled twice, the newer takes
//! the place of the older, since the dialling broker knows what it lost.

use std::collections::BTreeMap;

use turno_proto::model::link::BrokerId;
use turno_proto::model::link::view::LinkState;
use turno_proto::model::{Code, ConnId, Slots, limits};

use super::Link;
use crate::effect::{LinkEffect, PeerEffect, Sink};
use crate::input::Neighbour;
use crate::messages::Messages;
use crate::messages::table::numbered::Numbered;
use crate::messages::workers::peer::Worker;

impl Messages {
    /// Somebody that was dialled showed who it is: is a link with it wanted?
    pub(crate) fn greeted(&mut self, conn: ConnId, target: u32, broker: BrokerId, out: &mut impl Sink) {
        let refusal = if self.links.targets.get(target).is_none() {
            Some((LinkState::Down, Code::Cancelled))
        } else if broker == self.links.me {
            Some((LinkState::Itself, Code::LinkToItself))
        } else if self.links.to_broker(broker).is_some() {
            Some((LinkState::Doubled, Code::AlreadyLinked))
        } else {
            None
        };
        match refusal {
            None => out.peer(PeerEffect::Link { conn, effect: LinkEffect::Prove }),
            Some((state, code)) => {
                self.links.targets.down(target, state, code, self.now);
                out.peer(PeerEffect::Link { conn, effect: LinkEffect::Unlink { code } });
            }
        }
    }

    /// The greeting is done.
    pub(crate) fn linked(&mut self, conn: ConnId, target: Option<u32>, neighbour: Neighbour, out: &mut impl Sink) {
        let Neighbour { broker, name, address, payload_max } = neighbour;
        if let Some(code) = self.is_too_much(target, broker) {
            if let Some(target) = target {
                self.links.targets.down(target, LinkState::Doubled, code, self.now);
            }
            return out.peer(PeerEffect::Link { conn, effect: LinkEffect::Unlink { code } });
        }
        if let Some(older) = self.links.to_broker(broker) {
            out.peer(PeerEffect::Link { conn: older, effect: LinkEffect::Unlink { code: Code::AlreadyLinked } });
            self.lost(older, out);
        }
        if let Some(target) = target {
            self.links.targets.up(target, self.now);
        }
        self.peers.insert(conn, name.clone(), address.clone());
        if let Some(peer) = self.peers.get_mut(conn) {
            peer.ready = true;
            let mut worker = Worker::new(0, name.clone(), Slots::Unlimited, self.now);
            worker.is_link = true;
            peer.worker = Some(Box::new(worker));
        }
        let link = Link {
            broker,
            name,
            address,
            target,
            since: self.now,
            payload_max,
            closing: false,
            round_trip_us: None,
            far: BTreeMap::new(),
            handles: 0,
            out: Numbered::default(),
            held: BTreeMap::new(),
            told: BTreeMap::new(),
            told_presence: Vec::new(),
            presence: Vec::new(),
            turn: 0,
            forwarded: 0,
            received: 0,
            returned: 0,
        };
        self.links.by_conn.insert(conn, link);
        self.links.were_up = true;
        self.links.presence_changed = true;
        self.tell_all_offers();
        if let Some(closing) = self.closing() {
            out.peer(PeerEffect::Closing { conn, closing });
        }
    }

    /// Why a link with that broker is not to be, though it greeted well.
    fn is_too_much(&self, target: Option<u32>, broker: BrokerId) -> Option<Code> {
        if broker == self.links.me {
            return Some(Code::LinkToItself);
        }
        match self.links.to_broker(broker) {
            Some(there) => {
                let mine = self.links.link(there).target.is_some();
                // Both dialled, and the one that is there is that of the lower id.
                let stays = mine != target.is_some() && mine == (self.links.me < broker);
                stays.then_some(Code::AlreadyLinked)
            }
            None => (self.links.by_conn.len() >= limits::LINKS_MAX).then_some(Code::TooManyLinks),
        }
    }

    /// Nobody answered, or would not greet.
    pub(crate) fn dial_failed(&mut self, target: u32, code: Code) {
        let dialling = self.links.targets.get(target).is_some_and(|target| target.state == LinkState::Dialling);
        if dialling {
            self.links.targets.down(target, LinkState::Down, code, self.now);
        }
    }

    pub(crate) fn round_trip(&mut self, conn: ConnId, micros: u64) {
        if let Some(link) = self.links.by_conn.get_mut(&conn) {
            link.round_trip_us = Some(micros);
        }
    }

    /// Dials all targets that are due.
    pub(in crate::messages) fn dial_links(&mut self, out: &mut impl Sink) {
        self.links.targets.dial(self.now, out);
    }
}
