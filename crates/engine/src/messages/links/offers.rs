//! Offers to neighbours: free slots here and behind other links.
//!
//! A neighbour that has slots taken here counts them itself, so what it is told only changes when somebody else takes
//! or gives back slots. While something of a queue waits here, its free slots are promised to nobody.

use std::collections::BTreeMap;

use turno_proto::model::link::{BrokerId, LinkMessage, Offer, Path, Room};
use turno_proto::model::{ConnId, QueueName, limits};

use super::{Links, RemoteQueue};
use crate::effect::{LinkEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::dispatch::DispatchStep;
use crate::messages::queues::exclusive::plausible;

impl Links {
    /// Something changed in that queue.
    pub(in crate::messages) fn queue_changed(&mut self, queue: &QueueName) {
        if !self.changed.contains(queue) {
            self.changed.insert(queue.clone());
        }
    }

    /// Something changed for all queues of that shared rota.
    pub(in crate::messages) fn shared_rota_changed(&mut self, shared_rota: u32) {
        self.changed_shared_rotas.insert(shared_rota);
    }

    /// Whether somebody here listens to topics; if that is news, everyone is told.
    pub(in crate::messages) fn note_listening(&mut self, listens: bool) {
        if self.listens != listens {
            self.listens = listens;
            self.presence_changed = true;
        }
    }
}

impl Messages {
    /// Everything is looked at again: a link came or went, or the broker takes nothing any more, or again.
    pub(in crate::messages) fn tell_all_offers(&mut self) {
        let own = self.queues.after(None).filter(|(_, queue)| queue.consumers_len() > 0);
        self.links.changed.extend(own.map(|(_, queue)| queue.name.clone()));
        let links = self.links.by_conn.values();
        let names = links.flat_map(|link| link.far.keys().chain(link.told.keys())).cloned();
        self.links.changed.extend(names.collect::<Vec<QueueName>>());
    }

    /// Tells neighbours what changed, if it is time. `listening`: somebody here listens to topics.
    #[inline]
    pub(crate) fn tell_links_if_due(&mut self, listening: bool, out: &mut impl Sink) {
        if !self.links.is_empty() {
            self.links.note_listening(listening);
            if self.links.are_due(self.now) {
                self.tell_links(out);
            }
        }
    }

    /// Tells every neighbour what changed for it.
    fn tell_links(&mut self, out: &mut impl Sink) {
        self.links.tell_at = self.now.plus_millis(limits::OFFER_PAUSE_MS);
        if std::mem::take(&mut self.links.presence_changed) {
            self.tell_presence(out);
        }
        for shared_rota in std::mem::take(&mut self.links.changed_shared_rotas) {
            for queue in self.shared_rotas.queues_of(shared_rota) {
                let name = self.queues.at(queue).name.clone();
                self.links.changed.insert(name);
            }
        }
        let names = std::mem::take(&mut self.links.changed);
        let conns: Vec<ConnId> = self.links.by_conn.keys().copied().collect();
        for conn in conns {
            let mut offers = Vec::new();
            for name in &names {
                offers.extend(self.news(conn, name));
                if offers.len() == limits::OFFERS_MAX {
                    tell(conn, std::mem::take(&mut offers), out);
                }
            }
            if !offers.is_empty() {
                tell(conn, offers, out);
            }
        }
    }

    /// Tells one neighbour at once what it may count on in that queue.
    pub(super) fn tell_offer(&mut self, conn: ConnId, name: &QueueName, out: &mut impl Sink) {
        if let Some(offer) = self.news(conn, name) {
            tell(conn, vec![offer], out);
        }
    }

    /// The offer that a neighbour does not know yet.
    fn news(&mut self, conn: ConnId, name: &QueueName) -> Option<Offer> {
        let offer = self.offer_for(conn, name);
        let me = self.links.me;
        let link = self.links.link_mut(conn);
        if link.told.get(name).map_or(offer.rooms.is_empty(), |told| counts_the_same(told, &offer, me)) {
            return None;
        }
        if offer.rooms.is_empty() {
            link.told.remove(name);
        } else {
            link.told.insert(name.clone(), offer.clone());
        }
        Some(offer)
    }

    fn offer_for(&self, conn: ConnId, name: &QueueName) -> Offer {
        let link = self.links.link(conn);
        let held = link.held.get(name).copied().unwrap_or(0);
        let mut offer = Offer { queue: name.to_string(), held, rooms: Vec::new() };
        if self.drain.is_some() {
            return offer;
        }
        let number = self.queues.number_of(name);
        let waits = number.is_some_and(|number| !self.queues.at(number).backlog.is_empty());
        if let Some(free) = number.and_then(|number| self.own_free_slots(number)) {
            let path = Path::default().then(self.links.me).expect("one is not too many");
            let token = number.and_then(|number| self.queues.at(number).token());
            offer.rooms.push(Room { path, free: if waits { 0 } else { free }, token });
        }
        // By the broker that has the slots: the shortest way to it.
        let mut best = BTreeMap::new();
        for (other, through) in &self.links.by_conn {
            let Some(far) = through.far.get(name).filter(|_| *other != conn && !through.closing) else { continue };
            for room in far.rooms_now().filter(|room| !room.path.has(link.broker)) {
                let Some(path) = room.path.after(self.links.me) else { continue };
                let Some(last) = path.brokers().last().copied() else { continue };
                let found = Room { path, free: if waits { 0 } else { room.free }, token: room.token };
                let better = |there: &Room| found.path.len() < there.path.len();
                if best.get(&last).is_none_or(better) {
                    best.insert(last, found);
                }
            }
        }
        offer.rooms.extend(best.into_values().take(limits::BROKERS_MAX));
        offer
    }

    /// Free slots of a queue's own workers; `None` if it has none that take work.
    fn own_free_slots(&self, number: u32) -> Option<u32> {
        let mut free: Option<u32> = None;
        for consumer in self.queues.at(number).consumers() {
            let Some(peer) = self.peers.get(consumer.worker) else { continue };
            if !peer.ready || !peer.worker.as_deref().is_some_and(|worker| worker.takes_work()) {
                continue;
            }
            let sum = free.unwrap_or(0).saturating_add(self.room_in(consumer.worker, number));
            free = Some(sum.min(limits::ROOM_SLOTS_MAX));
            if sum >= limits::ROOM_SLOTS_MAX {
                break;
            }
        }
        free
    }

    /// OFFER came: what waits may cross now, and others may be told.
    pub(super) fn offered(&mut self, conn: ConnId, offers: Vec<Offer>, out: &mut impl Sink) {
        let (me, term) = (self.links.me, self.settings.term);
        for offer in offers {
            let Ok(name) = offer.queue.parse::<QueueName>() else { continue };
            let queues_max = self.settings.limits.queues_max;
            let link = self.links.link_mut(conn);
            let neighbour = link.broker;
            let honest = |room: &Room| room.path.brokers().first() == Some(&neighbour) && !room.path.has(me);
            let true_tokens = |room: &Room| room.token.is_none_or(|token| plausible(token, term));
            let given = offer.rooms.into_iter().filter(honest).filter(true_tokens);
            let mut rooms: Vec<Room> = given.take(limits::BROKERS_MAX).collect();
            rooms.iter_mut().for_each(|room| room.free = room.free.min(limits::ROOM_SLOTS_MAX));
            let holders: Vec<(u64, BrokerId)> =
                rooms.iter().filter_map(|room| Some((room.token?, *room.path.brokers().last()?))).collect();
            let known = link.far.contains_key(&name);
            if !known && (rooms.is_empty() || link.far.len() >= queues_max) {
                continue;
            }
            link.closing &= rooms.is_empty();
            let far = link.far.entry(name.clone()).or_default();
            *far = RemoteQueue { held: offer.held.min(far.in_flight), rooms, ..std::mem::take(far) };
            for (token, broker) in &holders {
                // Also of a queue that nobody here knows yet: its next holder here must have a higher one.
                self.heard_of_token(*token);
                self.note_holder(&name, *broker);
            }
            if let Some(number) = self.queues.number_of(&name) {
                self.agenda.push_back(DispatchStep::Queue(number));
                for (token, broker) in holders {
                    self.meet_holder(number, token, broker, out);
                }
            }
            self.links.queue_changed(&name);
        }
        self.look_at_claims();
    }

    /// Whether some broker that can be reached has workers of that queue.
    pub(in crate::messages) fn has_far_workers(&self, queue: u32) -> bool {
        let name = &self.queues.at(queue).name;
        self.links.by_conn.values().any(|link| link.far.get(name).is_some_and(|far| !far.rooms.is_empty()))
    }
}

fn tell(conn: ConnId, offers: Vec<Offer>, out: &mut impl Sink) {
    out.peer(PeerEffect::Link { conn, effect: LinkEffect::Message(Box::new(LinkMessage::Offers(offers))) });
}

/// Whether a neighbour that was told the one need not be told the other: slots that its own messages take or give back are
/// counted at both ends.
fn counts_the_same(told: &Offer, offer: &Offer, me: BrokerId) -> bool {
    let own = |offer: &Offer| {
        let own = offer.rooms.iter().find(|room| room.path.brokers() == [me]);
        (own.map(|room| room.token), own.map_or(0, |room| room.free) + offer.held)
    };
    let others = |offer: &Offer| -> Vec<Room> {
        offer.rooms.iter().filter(|room| room.path.brokers() != [me]).cloned().collect()
    };
    own(told) == own(offer) && others(told) == others(offer)
}
