//! After the calm: a costly message beside many cheap ones, and the same dedup id again, within its hour and after it.

use turno_client::core::{Ask, Ticket};
use turno_proto::model::limits::DEDUP_WINDOW_MS;
use turno_proto::model::{DedupId, MessageId, Payload, QueueName};

use crate::client::Client;
use crate::clocks::Span;
use crate::net::Direction;
use crate::worker::Worker;
use crate::world::{Actor, World};

/// Slots of the worker, all of which the costly one takes.
const SLOTS: u32 = 4;
/// Cheap messages that come before the costly one, and those that come after it.
const CHEAP_BEFORE: u64 = 20;
const CHEAP_AFTER: u64 = 40;
/// Tickets of what is sent again after a while. No message of a world has such a number.
pub(crate) const LATER: u64 = 1 << 50;
/// Longer than clocks and sweeps need.
const MARGIN_MS: u64 = 60_000;

/// Whether a ticket is not one of the oracle's messages.
pub(crate) const fn is_later(ticket: Ticket) -> bool {
    ticket.0 >= LATER
}

impl World {
    /// I21: a message that needs all slots of a worker is not passed by for ever by those that need one, in another queue.
    pub(crate) fn crowd_out(&mut self) {
        if !self.links.is_empty() {
            return;
        }
        let broker = self.rng.index(self.brokers.len());
        let [cheap, costly]: [QueueName; 2] = ["cheap", "costly"].map(|name| name.parse().expect("a name"));
        let first = self.queues.len();
        self.queues.extend([cheap.clone(), costly.clone()]);
        let queues = vec![cheap.clone(), costly.clone()];
        self.add_peer(Actor::Worker(Worker::new(SLOTS, true)), SLOTS, queues, Some(broker));
        let asker = self.add_peer(Actor::Client(Client::default()), 0, Vec::new(), Some(broker));
        self.pass(2_000);
        let cost = u16::try_from(SLOTS).expect("small");
        for (queue, cost, count) in [(&cheap, 1, CHEAP_BEFORE), (&costly, cost, 1), (&cheap, 1, CHEAP_AFTER)] {
            for _ in 0..count {
                self.ask_once(asker, queue, cost);
            }
        }
        self.pass(15_000);
        self.oracle.order.judge_costly(first, first + 1, SLOTS as usize);
    }

    /// I6: one dedup id within an hour is one message, and after it another, also if the broker was restarted meanwhile and its
    /// clock was set: ahead, it may forget the id at once; back, it knows the id for no longer than an hour.
    pub(crate) fn send_again_later(&mut self) {
        if !self.links.is_empty() {
            return;
        }
        let broker = self.rng.index(self.brokers.len());
        let early_ms = self.rng.range(0, DEDUP_WINDOW_MS - MARGIN_MS);
        let from = self.now;
        let first = self.send_named(broker, 1);
        let known = Span { from, until: self.now, ms: DEDUP_WINDOW_MS };
        self.leave_alone_for(early_ms);
        self.restart(broker);
        let second = self.send_named(broker, 2);
        let clocks = &self.oracle.clocks;
        let may_be_over = clocks.may_be_over(broker, known);
        assert!(second == first || may_be_over, "I6: the same dedup id, {early_ms} ms later, is another message");
        let is_over = clocks.over_for_ms(broker, self.brokers[broker].run, known) > MARGIN_MS;
        assert!(second != first || !is_over, "I6: a dedup id is remembered, and the clock shows that its hour is over");
        self.leave_alone_for(DEDUP_WINDOW_MS + MARGIN_MS);
        let third = self.send_named(broker, 3);
        assert!(third != first && third != second, "I6: a dedup id is remembered for more than its hour");
    }

    /// A broker with a store is restarted, in order or not.
    fn restart(&mut self, broker: usize) {
        if self.brokers[broker].disks.is_none() {
            return;
        }
        if self.rng.once_in(2) {
            self.kill_broker(broker)
        } else {
            self.end_broker(broker)
        }
        self.pass(5_000);
        assert!(self.brokers[broker].connections.is_some(), "I21: a broker did not come back");
    }

    /// Sends something that always has the same dedup id; returns the id it is stored under.
    fn send_named(&mut self, broker: usize, nth: u64) -> MessageId {
        let sender = self.add_peer(Actor::Client(Client::default()), 0, Vec::new(), Some(broker));
        self.pass(2_000);
        let now = self.now;
        let mut ask = Ask::new("later".parse().expect("a name"), Payload::body("later"));
        ask.dedup_id = DedupId::new(b"later").ok();
        if let Some(core) = &mut self.peers[sender].core {
            core.send(now, Ticket(LATER + nth), ask);
        }
        self.pump_peer(sender);
        // A store that failed in the storm may show it only now.
        for _ in 0..30 {
            self.pass(1_000);
            let Actor::Client(client) = &self.peers[sender].actor else { unreachable!("a client was added") };
            if let Some(id) = client.stored_later {
                return id;
            }
        }
        panic!("I13: a send is never answered")
    }

    /// Everyone goes, and time passes.
    fn leave_alone_for(&mut self, ms: u64) {
        for index in 0..self.peers.len() {
            self.job_worker_dies(index);
            self.drop_draining(index, false);
            let peer = &mut self.peers[index];
            peer.life += 1;
            peer.core = None;
            if let Some(wire) = peer.wire.take() {
                self.close(wire, Direction::ToBroker);
            }
        }
        self.pass(5_000);
        self.set_now(self.now.plus_millis(ms));
        self.pass(5_000);
    }
}
