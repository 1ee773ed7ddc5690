//! Exclusive queues over links (S2.27).
//!
//! Every broker knows by its offers who has such a queue, and under which token. Who may have a free one is decided by one
//! broker, its home: the first in the configured order that can be reached. If home is lost the next one decides, with
//! higher tokens. On two sides of a cut two workers may have a queue, never under one token; when the sides meet again
//! the higher token stays.
//!
//! Standbys at the broker that had the queue come first; elsewhere a queue that became free is left alone for a
//! moment.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::link::{BrokerId, Claim, LinkMessage, Path, Relay};
use turno_proto::model::{Code, ConnId, Mono, QueueName, limits};

use super::Links;
use crate::effect::{LinkEffect, NativeEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::queues::exclusive::plausible;

/// Claims of exclusive queues that are under way.
#[derive(Debug, Default)]
pub(super) struct Claims {
    numbers: u64,
    /// CONSUMEs that wait for home's answer.
    asked: BTreeMap<u64, PendingClaim>,
    /// Given out by this broker as home, and not yet to be seen in offers.
    granted: BTreeMap<QueueName, (BrokerId, Mono)>,
    /// Messages that somebody here waits for while they are somebody's elsewhere.
    elsewhere: BTreeSet<QueueName>,
    /// Messages that nobody here is offered before that time.
    not_before: BTreeMap<QueueName, Mono>,
}

#[derive(Debug)]
struct PendingClaim {
    conn: ConnId,
    seq: u32,
    handle: u32,
    queue: QueueName,
    until: Mono,
}

impl Claims {
    pub(super) fn next_deadline(&self) -> Option<Mono> {
        let asked = self.asked.values().map(|asked| asked.until);
        let granted = self.granted.values().map(|(_, until)| *until);
        asked.chain(granted).chain(self.not_before.values().copied()).min()
    }
}

impl Links {
    /// Whether somebody at another broker has that queue to itself.
    fn is_held_elsewhere(&self, queue: &QueueName) -> bool {
        self.by_conn
            .values()
            .filter_map(|link| link.far.get(queue))
            .flat_map(|far| &far.rooms)
            .any(|room| room.token.is_some())
    }

    /// Whether anybody at another broker, that one left out, consumes it.
    fn is_used_elsewhere(&self, queue: &QueueName, but: Option<BrokerId>) -> bool {
        let rooms = self.by_conn.values().filter_map(|link| link.far.get(queue)).flat_map(|far| &far.rooms);
        rooms.filter_map(|room| room.path.brokers().last()).any(|broker| Some(*broker) != but)
    }

    /// As home: whether it was given to somebody a moment ago.
    fn is_granted(&self, queue: &QueueName, but: Option<BrokerId>, now: Mono) -> bool {
        self.claims.granted.get(queue).is_some_and(|(broker, until)| Some(*broker) != but && *until > now)
    }
}

/// Asking for a queue.
impl Messages {
    /// Whether those at other brokers leave room for one more consumer here.
    pub(in crate::messages) fn is_taken_elsewhere(&self, queue: u32, exclusive: bool) -> bool {
        if self.links.is_empty() {
            return false;
        }
        let name = &self.queues.at(queue).name;
        match exclusive {
            true => self.links.is_used_elsewhere(name, None) || self.links.is_granted(name, None, self.now),
            false => self.links.is_held_elsewhere(name) || self.links.is_granted(name, None, self.now),
        }
    }

    /// Nobody here is to be offered the queue yet, because it is, or was a moment ago, somebody's elsewhere.
    pub(in crate::messages) fn is_kept_elsewhere(&self, queue: u32) -> bool {
        let name = &self.queues.at(queue).name;
        !self.links.is_empty() && self.links.is_held_elsewhere(name) || self.links.claims.not_before.contains_key(name)
    }

    /// The broker that decides who may have a free queue.
    fn home(&self) -> BrokerId {
        let rank = |name: &str| {
            let at = self.settings.link_order.iter().position(|wanted| wanted == name);
            at.unwrap_or(usize::MAX)
        };
        let own = (rank(&self.settings.name), self.settings.name.as_str(), self.links.me);
        let reachable = self.links.reachable().into_iter();
        let others = reachable.map(|(broker, (_, presence))| (rank(&presence.name), presence.name.as_str(), broker));
        others.chain([own]).min().map_or(self.links.me, |(_, _, broker)| broker)
    }

    /// Asks home whether the worker may have the queue to itself. `None`: home is here, and this broker decides.
    pub(in crate::messages) fn ask_home(
        &mut self,
        conn: ConnId,
        seq: u32,
        handle: u32,
        queue: u32,
        out: &mut impl Sink,
    ) -> Option<()> {
        if self.links.is_empty() {
            return None;
        }
        let home = self.home();
        if home == self.links.me {
            return None;
        }
        let queue = self.queues.at(queue).name.clone();
        let claims = &mut self.links.claims;
        claims.numbers += 1;
        let (number, until) = (claims.numbers, self.now.plus_millis(limits::CLAIM_MS));
        claims.asked.insert(number, PendingClaim { conn, seq, handle, queue: queue.clone(), until });
        self.relay(home, Path::default(), Claim::Ask { queue: queue.to_string(), number }, out);
        Some(())
    }

    /// Whether the worker waits for home's answer about that queue.
    pub(in crate::messages) fn has_asked(&self, conn: ConnId, queue: u32) -> bool {
        let name = &self.queues.at(queue).name;
        self.links.claims.asked.values().any(|asked| asked.conn == conn && asked.queue == *name)
    }

    /// Passes a claim on towards the broker it is for. Without a way it is lost; the broker that asked stops waiting in time.
    fn relay(&mut self, to: BrokerId, path: Path, claim: Claim, out: &mut impl Sink) {
        let Some(path) = path.then(self.links.me) else { return };
        let reachable = self.links.reachable();
        let Some((conn, presence)) = reachable.get(&to) else { return };
        if presence.path.meets(&path) {
            return;
        }
        out.peer(PeerEffect::Link {
            conn: *conn,
            effect: LinkEffect::Message(Box::new(LinkMessage::Relay(Relay { to, path, claim }))),
        });
    }

    /// RELAY came: for this broker, or for another one.
    pub(super) fn relayed(&mut self, conn: ConnId, relay: Relay, out: &mut impl Sink) {
        let Relay { to, path, claim } = relay;
        let neighbour = self.links.link(conn).broker;
        let Some(from) = path.brokers().first().copied() else { return };
        if path.has(self.links.me) || path.brokers().last() != Some(&neighbour) {
            return;
        }
        if to != self.links.me {
            return self.relay(to, path, claim, out);
        }
        match claim {
            Claim::Ask { queue, number } => {
                let token = queue.parse().ok().and_then(|queue| self.grant(&queue, from));
                let claim = match token {
                    Some(token) => Claim::Granted { number, token },
                    None => Claim::Refused { number },
                };
                self.relay(from, Path::default(), claim, out);
            }
            Claim::Granted { number, token } => self.granted(number, token, out),
            Claim::Refused { number } => self.not_granted(number, out),
        }
    }

    /// As home: a token for a worker at that broker, if the queue is nobody's, and kept for nobody here.
    fn grant(&mut self, queue: &QueueName, to: BrokerId) -> Option<u64> {
        let used_here = self
            .queues
            .number_of(queue)
            .is_some_and(|number| !self.queues.at(number).is_unused() || self.kept_for(number).is_some());
        let taken = used_here
            || self.home() != self.links.me
            || self.links.is_used_elsewhere(queue, Some(to))
            || self.links.is_granted(queue, Some(to), self.now);
        if taken {
            return None;
        }
        let until = self.now.plus_millis(limits::CLAIM_MS);
        self.links.claims.granted.insert(queue.clone(), (to, until));
        Some(self.next_linked_token())
    }

    /// A token that no other broker gives out: the lowest bits tell brokers apart.
    pub(in crate::messages) fn next_linked_token(&mut self) -> u64 {
        let rank = self.settings.link_order.iter().position(|name| *name == self.settings.name);
        let own = rank.map_or_else(|| 128 + self.links.me.get() % 128, |rank| rank.min(127) as u64);
        self.exclusives.next_token_of(own)
    }

    /// Home says yes: if nothing came in between, the worker has the queue.
    fn granted(&mut self, number: u64, token: u64, out: &mut impl Sink) {
        let Some(asked) = self.links.claims.asked.remove(&number) else { return };
        let PendingClaim { conn, seq, handle, queue, .. } = asked;
        let wanted = self.queues.number_of(&queue).filter(|number| {
            self.peers.get(conn).and_then(|peer| peer.queue_of(handle)) == Some(*number)
                && plausible(token, self.settings.term)
        });
        let Some(number) = wanted else { return };
        if self.registered(conn).is_err()
            || self.peers.worker(conn).is_none_or(|worker| worker.position_of(number).is_ok())
        {
            return;
        }
        if !self.may_consume(conn, number, true) || self.is_taken_elsewhere(number, true) {
            return self.turn_down(asked_again(conn, seq, handle, queue), out);
        }
        // Home may never have heard of what was given out here while it was away: tokens rise here all the same.
        let token = if self.exclusives.is_news(token) { token } else { self.next_linked_token() };
        self.heard_of_token(token);
        self.begin_to_consume(conn, number, handle, Some(token));
        out.peer(PeerEffect::Native { conn, effect: NativeEffect::Consuming { seq, token } });
    }

    fn not_granted(&mut self, number: u64, out: &mut impl Sink) {
        if let Some(asked) = self.links.claims.asked.remove(&number) {
            self.turn_down(asked, out);
        }
    }

    /// The queue is another's: QUEUE_FULL, and nobody here asks again for a moment.
    fn turn_down(&mut self, asked: PendingClaim, out: &mut impl Sink) {
        let PendingClaim { conn, seq, handle, queue, .. } = asked;
        let Some(number) = self.queues.number_of(&queue) else { return };
        if self.peers.get(conn).and_then(|peer| peer.queue_of(handle)) != Some(number) || self.registered(conn).is_err()
        {
            return;
        }
        self.links.claims.not_before.insert(queue, self.now.plus_millis(limits::PROMOTION_MS));
        self.refuse_queue(conn, number, handle);
        out.peer(PeerEffect::Native { conn, effect: NativeEffect::QueueFull { seq, handle } });
    }

    /// The worker does not want the queue any more that it asked home for. False if it did not ask.
    pub(in crate::messages) fn forget_claim(&mut self, conn: ConnId, queue: u32) -> bool {
        let name = &self.queues.at(queue).name;
        let asked = &mut self.links.claims.asked;
        let before = asked.len();
        asked.retain(|_, asked| asked.conn != conn || asked.queue != *name);
        asked.len() < before
    }

    /// The worker wants nothing any more that it asked home for.
    pub(in crate::messages) fn forget_claims(&mut self, conn: ConnId) {
        self.links.claims.asked.retain(|_, asked| asked.conn != conn);
    }
}

/// Exclusive queues in offers.
impl Messages {
    /// Offers changed, or somebody began to wait: what somebody here waits for may have become free elsewhere, or somebody's.
    pub(in crate::messages) fn look_at_claims(&mut self) {
        if self.links.is_empty() && self.links.claims.elsewhere.is_empty() {
            return;
        }
        let waited: Vec<u32> = self.exclusives.waited_for().collect();
        for number in waited {
            let name = self.queues.at(number).name.clone();
            if self.links.is_held_elsewhere(&name) {
                self.links.claims.elsewhere.insert(name);
            } else if self.links.claims.elsewhere.remove(&name) {
                self.links.claims.not_before.insert(name, self.now.plus_millis(limits::PROMOTION_MS));
            }
        }
    }

    /// A grant can be seen in offers: from now on these tell whose the queue is.
    pub(super) fn note_holder(&mut self, queue: &QueueName, broker: BrokerId) {
        let granted = &mut self.links.claims.granted;
        if granted.get(queue).is_some_and(|(to, _)| *to == broker) {
            granted.remove(queue);
        }
    }

    /// Somebody else has a queue to itself that a worker here has as well: they were apart. The higher token stays.
    pub(super) fn meet_holder(&mut self, queue: u32, token: u64, broker: BrokerId, out: &mut impl Sink) {
        let Some(own) = self.queues.at(queue).exclusive else { return };
        if (token, std::cmp::Reverse(broker)) < (own.token, std::cmp::Reverse(self.links.me)) {
            return;
        }
        let holder = own.holder;
        let Some(worker) = self.peers.worker(holder) else { return };
        let Ok(at) = worker.position_of(queue) else { return };
        let handle = self.queues.at(queue).consumer(worker.consumes[at].number).handle;
        if self.cancel_queue(holder, handle).is_ok() {
            out.peer(PeerEffect::Native {
                conn: holder,
                effect: NativeEffect::CancelQueue { handle, reason: Code::QueueFull },
            });
        }
    }

    /// Time passed.
    pub(in crate::messages) fn tick_claims(&mut self, out: &mut impl Sink) {
        let now = self.now;
        let late = self.links.claims.asked.iter().filter(|(_, asked)| asked.until <= now).map(|(number, _)| *number);
        for number in late.collect::<Vec<u64>>() {
            self.not_granted(number, out);
        }
        self.links.claims.granted.retain(|_, (_, until)| *until > now);
        let due = self.links.claims.not_before.iter().filter(|(_, at)| **at <= now).map(|(name, _)| name.clone());
        for name in due.collect::<Vec<QueueName>>() {
            self.links.claims.not_before.remove(&name);
            if let Some(number) = self.queues.number_of(&name) {
                self.note_unused(number);
            }
        }
    }
}

const fn asked_again(conn: ConnId, seq: u32, handle: u32, queue: QueueName) -> PendingClaim {
    PendingClaim { conn, seq, handle, queue, until: Mono::ZERO }
}
