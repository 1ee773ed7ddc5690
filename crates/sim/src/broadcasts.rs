//! Broadcasts: to every consumer, with one definite end, and nothing left behind.

use std::collections::{BTreeMap, BTreeSet};

use turno_client::core::{Ask, Core, CoreEvent, Ticket};
use turno_proto::model::{BroadcastEnd, Code, Mono, QueueName, limits};

use crate::body;
use crate::cancels::judge_stop;
use crate::client::Client;
use crate::rng::Rng;
use crate::world::{Actor, World};

/// Numbers of broadcasts have this bit.
const MARK: u64 = 1 << 40;
/// Deadlines travel in whole milliseconds.
const CLOCK_GRAIN_MS: u64 = 1;

/// Whether the message with that number is one.
pub(crate) const fn is_one(number: u64) -> bool {
    number & MARK != 0
}

/// The state of one broadcast.
#[derive(Debug)]
struct BroadcastState {
    client: usize,
    at: Mono,
    deadline: Mono,
    no_reply: bool,
    ended: bool,
    /// Its caller closed its connection then.
    farewell: Option<Mono>,
    forgotten: bool,
    /// The wires of the workers that got it.
    handed: BTreeSet<usize>,
    /// The workers that have settled it.
    answered: BTreeSet<u64>,
    failed: BTreeSet<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Broadcasts {
    casts: BTreeMap<u64, BroadcastState>,
    /// When a link between brokers was lost last; `None`: there are no links.
    pub(crate) links_lost: Option<Mono>,
}

impl Broadcasts {
    fn asks(&mut self, now: Mono, number: u64, client: usize, timeout_ms: u64, no_reply: bool) {
        let cast = BroadcastState {
            client,
            at: now,
            deadline: now.plus_millis(timeout_ms),
            no_reply,
            ended: false,
            farewell: None,
            forgotten: false,
            handed: BTreeSet::new(),
            answered: BTreeSet::new(),
            failed: BTreeSet::new(),
        };
        self.casts.insert(number, cast);
    }

    /// When it was asked for, and its deadline.
    pub(crate) fn times_of(&self, number: u64) -> Option<(Mono, Mono)> {
        self.casts.get(&number).map(|cast| (cast.at, cast.deadline))
    }

    /// A worker got it: once on a connection. Rogues do not count what they get.
    pub(crate) fn handed(&mut self, number: Option<u64>, wire: Option<usize>, wants_reply: bool) {
        let cast = number.and_then(|number| self.casts.get_mut(&number));
        let cast = cast.expect("I4: a worker got a broadcast that nobody made");
        assert_eq!(cast.no_reply, !wants_reply, "S2.11: a broadcast wants replies or it does not");
        if let Some(wire) = wire {
            assert!(cast.handed.insert(wire), "S2.9: a broadcast came twice to one consumer");
        }
    }

    /// A worker is told to stop with it.
    pub(crate) fn stopped(&self, number: u64, reason: Code, link_ms: u64) {
        if let Some(BroadcastState { farewell: Some(farewell), deadline, .. }) = self.casts.get(&number) {
            judge_stop(number, reason, farewell.plus_millis(link_ms), *deadline);
        }
    }

    /// A client hears of it.
    pub(crate) fn hear(&mut self, now: Mono, client: usize, event: &CoreEvent) {
        let (CoreEvent::Answer { ticket, .. }
        | CoreEvent::BroadcastEnd { ticket, .. }
        | CoreEvent::Failed { ticket, .. }) = event
        else {
            return;
        };
        let number = ticket.0;
        let cast = self.casts.get_mut(&number).expect("I12: a message about a broadcast that nobody made");
        assert!(cast.client == client && !cast.ended, "I12: a message about {number} after its end, or to another");
        match event {
            CoreEvent::Answer { worker, more, failed, payload, .. } => {
                assert!(!cast.no_reply, "S2.11: an answer to {number}, which wants none");
                let over = cast.answered.contains(worker) || cast.failed.contains(worker);
                assert!(!over, "S2.10: worker {worker} answers {number} twice");
                match (more, failed) {
                    (true, _) => {
                        assert_eq!(body::number(body::raw(payload)), Some(number), "I12: a piece of another's")
                    }
                    (false, true) => drop(cast.failed.insert(*worker)),
                    (false, false) => {
                        assert!(body::is_answer(body::raw(payload), number), "I12: an answer to something else");
                        cast.answered.insert(*worker);
                    }
                }
                return;
            }
            CoreEvent::BroadcastEnd { end, .. } => cast.judge_end(now, number, end, self.links_lost),
            _ => {}
        }
        cast.ended = true;
        let late = now.millis_since(cast.deadline);
        assert!(late <= 1_100, "I13: {number} ended {late} ms after its deadline");
    }

    /// A connection carries an answer.
    pub(crate) fn overhears(&self, client: usize, number: u64) {
        let cast = self.casts.get(&number).expect("I12: an answer to a broadcast that nobody made");
        assert!(cast.client == client && !cast.forgotten, "I12: the answer to {number} goes to another than asked it");
    }

    pub(crate) fn forgets(&mut self, client: usize, farewell: Option<Mono>) {
        for cast in self.casts.values_mut().filter(|cast| cast.client == client && !cast.forgotten) {
            cast.farewell = farewell.filter(|_| !cast.ended);
            cast.ended = true;
            cast.forgotten = true;
        }
    }

    pub(crate) fn judge(&self) {
        for (number, cast) in &self.casts {
            assert!(cast.ended, "I13: {number} never ended");
        }
    }
}

impl BroadcastState {
    /// The numbers add up, and are what its caller was told before (S2.13).
    fn judge_end(&self, now: Mono, number: u64, end: &BroadcastEnd, links_lost: Option<Mono>) {
        let BroadcastEnd { consumers, answered, failed, expired, left, .. } = *end;
        let sum = answered + failed + expired + left;
        // A link that is lost before it said that a no-reply is written counts as one who left.
        let quiet = self.no_reply && (sum == 0 || links_lost.is_some());
        assert!(quiet || sum == consumers, "S2.13: the end of {number} does not add up: {end:?}");
        let told = (self.answered.len(), self.failed.len());
        assert_eq!(told, (answered as usize, failed as usize), "S2.13: the end of {number} tells of other answers");
        let seen = self.handed.len();
        // Of those behind a link that was lost, or that said nothing in time, nobody knows how many they are.
        let known = links_lost.is_none_or(|lost| lost < self.at && expired + left == 0);
        assert!(
            seen <= consumers as usize || !known,
            "S2.13: {seen} consumers got {number}, and it tells of {consumers}"
        );
        let left_ms = self.deadline.millis_left(now);
        // Behind each link a broadcast has a little less time.
        let hops = links_lost.map_or(0, |_| limits::PATH_MAX as u64);
        let most_ms = CLOCK_GRAIN_MS + hops * limits::BROADCAST_CROSSING_MS;
        assert!(expired == 0 || left_ms <= most_ms, "I13: {number} expired {left_ms} ms before its deadline");
    }
}

/// A broadcast to a queue, at random.
pub(crate) fn some(queue: QueueName, number: u64, rng: &mut Rng) -> Ask {
    let mut ask = plain(queue, number);
    ask.timeout_ms = Some(u32::try_from(rng.range(100, 8_000)).expect("small"));
    ask.no_reply = rng.once_in(4);
    ask
}

fn plain(queue: QueueName, number: u64) -> Ask {
    let mut ask = Ask::new(queue, body::payload(number | MARK));
    ask.timeout_ms = Some(30_000);
    ask
}

impl Client {
    /// Says something to every consumer of some queue.
    pub(crate) fn shout(
        &mut self,
        now: Mono,
        me: usize,
        core: &mut Core,
        ask: Ask,
        number: u64,
        oracle: &mut Broadcasts,
    ) {
        let timeout_ms = ask.timeout_ms.map_or(0, u64::from);
        oracle.asks(now, number | MARK, me, timeout_ms, ask.no_reply);
        self.opened(number | MARK);
        core.broadcast(now, Ticket(number | MARK), ask);
    }
}

impl World {
    /// All is quiet: a broadcast to each queue of a broker reaches every worker that is there or behind links, also those that were
    /// dropped from another queue (S2.9, S2.32).
    pub(crate) fn shout_to_all(&mut self, asker: usize, queues: &[QueueName]) {
        for queue in queues {
            let now = self.now;
            let brokers = self.links.component_of(0);
            let expected: Vec<usize> = brokers.iter().flat_map(|broker| self.consumers_of(*broker, queue)).collect();
            self.number += 1;
            let number = self.number;
            let peer = &mut self.peers[asker];
            let (Some(core), Actor::Client(client)) = (&mut peer.core, &mut peer.actor) else { return };
            let ask = plain(queue.clone(), number);
            client.shout(now, asker, core, ask, number, &mut self.oracle.broadcasts);
            self.pump_peer(asker);
            // A large one takes its time through a narrow wire.
            for _ in 0..20 {
                self.pass(500);
                if self.oracle.broadcasts.casts[&(number | MARK)].ended {
                    break;
                }
            }
            let cast = &self.oracle.broadcasts.casts[&(number | MARK)];
            for wire in expected {
                assert!(cast.handed.contains(&wire), "S2.9: {number} did not come to the worker on wire {wire}");
            }
        }
    }

    /// The wires of the workers that consume a queue of a broker, as far as they know. Of one that is for one at a time
    /// the others only wait.
    fn consumers_of(&self, broker: usize, queue: &QueueName) -> impl Iterator<Item = usize> {
        self.peers.iter().filter_map(move |peer| {
            let wire = peer.wire.filter(|wire| self.wires[*wire].broker == broker)?;
            let Actor::Worker(worker) = &peer.actor else { return None };
            let shared = !self.oracle.fences.names.contains(queue);
            let there =
                shared && worker.is_registered() && peer.queues.contains(queue) && peer.asleep_until <= self.now;
            let sound = self.wires[wire].is_sound() && !self.oracle.drops.is_away(wire, queue);
            (there && sound).then_some(wire)
        })
    }
}
