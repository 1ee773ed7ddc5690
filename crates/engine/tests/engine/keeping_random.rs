//! Random peers of workers that give slots back themselves: a delivery takes a slot, and only giving back frees one.

use std::collections::BTreeMap;

use proptest::prelude::*;
use turno_engine::{CallerMessage, Deliver, Effect, Input, Outgoing, PeerEffect, WorkerMessage};
use turno_proto::model::{ConnId, Delivery, Slots};

use crate::harness::Harness;
use crate::seen::body;

/// The engine, and what is known of it from outside.
struct World {
    harness: Harness,
    client: ConnId,
    workers: Vec<ConnId>,
    /// All deliveries, with the workers that got them.
    given: Vec<(ConnId, Delivery)>,
    /// How many slots of each worker are in use.
    used: BTreeMap<ConnId, u64>,
    /// How many outcomes each request had.
    outcomes: BTreeMap<u32, u32>,
    seq: u32,
}

impl World {
    fn new() -> Self {
        let mut harness = Harness::new();
        let client = harness.client();
        harness.handle(client, "q");
        let (given, used, outcomes) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let mut world = Self { harness, client, workers: Vec::new(), given, used, outcomes, seq: 0 };
        world.join();
        world.join();
        world
    }

    fn join(&mut self) {
        let conn = self.harness.client();
        let handle = self.harness.handle(conn, "q");
        self.workers.push(conn);
        self.used.insert(conn, 0);
        self.register(conn, 2);
        self.step(Input::Consume { conn, seq: 1, handle, exclusive: false });
    }

    fn register(&mut self, conn: ConnId, slots: u32) {
        let slots = Slots::Limited(slots);
        self.step(Input::RegisterKeeping { conn, seq: 1, slots, name: String::new() });
    }

    fn step(&mut self, input: Input) {
        for effect in self.harness.step(input) {
            self.note(&effect);
        }
        self.agrees();
    }

    fn note(&mut self, effect: &Effect) {
        match effect {
            Effect::Peer(PeerEffect::Deliver(Deliver { conn, delivery, .. })) => {
                self.given.push((*conn, *delivery));
                *self.used.get_mut(conn).expect("only workers get work") += 1;
            }
            Effect::Peer(PeerEffect::Caller { seq, message, .. }) => {
                let ends = !matches!(message, CallerMessage::Reply { more: true, .. } | CallerMessage::Progress { .. });
                *self.outcomes.get_mut(seq).expect("only what was asked is answered") += u32::from(ends);
            }
            _ => {}
        }
    }

    fn agrees(&mut self) {
        assert_eq!(self.harness.status().slots_used, self.used.values().sum::<u64>());
        assert!(self.outcomes.values().all(|count| *count <= 1), "{:?}", self.outcomes);
    }

    fn act(&mut self, what: u8, which: u8) {
        let conn = self.workers[usize::from(which) % self.workers.len()];
        match what % 8 {
            0 | 1 => {
                self.seq += 1;
                let no_reply = which % 4 == 3;
                self.outcomes.insert(self.seq, 0);
                let message = Outgoing { retries: Some(1), no_reply, ..Outgoing::new(self.seq, 0, body("x")) };
                self.step(Input::Request { conn: self.client, message });
            }
            2 => {
                self.seq += 1;
                let message = Outgoing { retries: Some(9), ..Outgoing::new(self.seq, 0, body("x")) };
                self.step(Input::Send { conn: self.client, message });
            }
            3 if !self.given.is_empty() => {
                let (conn, delivery) = self.given[usize::from(which) % self.given.len()];
                let reply = WorkerMessage::Reply { more: which % 5 == 4, payload: body("y") };
                self.step(Input::worker(conn, delivery, reply));
            }
            3 | 4 => self.give_back(conn),
            5 => self.step(Input::Cancel { conn: self.client, seq: u32::from(which) % (self.seq + 1) }),
            6 if which.is_multiple_of(4) => {
                self.workers.retain(|other| *other != conn);
                self.used.remove(&conn);
                self.harness.forget_handles(conn);
                self.step(Input::Disconnected { conn });
                self.join();
            }
            6 => self.register(conn, u32::from(which % 5)),
            _ => {
                let now = self.harness.now().plus_millis(u64::from(which) * 400);
                self.harness.clock(now);
                self.step(Input::Tick);
            }
        }
    }

    fn give_back(&mut self, conn: ConnId) {
        let used = self.used.get_mut(&conn).expect("a worker");
        *used = used.saturating_sub(1);
        self.step(Input::GiveBack { conn });
    }

    /// Everybody gets slots, answers what there is, and gives all back.
    fn end(&mut self) {
        for conn in self.workers.clone() {
            self.register(conn, 1_000);
            // The queue dropped it if too many of its deliveries expired in a row.
            let handle = self.harness.handle(conn, "q");
            self.step(Input::Consume { conn, seq: 1, handle, exclusive: false });
        }
        let mut answered = 0;
        // Time passes too: workers that came after lost ones get one delivery after the other.
        for _ in 0..60 {
            while answered < self.given.len() {
                let (conn, delivery) = self.given[answered];
                answered += 1;
                if self.workers.contains(&conn) {
                    let reply = WorkerMessage::Reply { more: false, payload: body("y") };
                    self.step(Input::worker(conn, delivery, reply));
                }
            }
            for conn in self.workers.clone() {
                while self.used[&conn] > 0 {
                    self.give_back(conn);
                }
            }
            self.harness.clock(self.harness.now().plus_millis(5_000));
            self.step(Input::Tick);
        }
        let status = self.harness.status();
        assert_eq!((status.slots_used, status.in_flight), (0, 0));
        assert!(self.outcomes.values().all(|count| *count == 1), "{:?}", self.outcomes);
    }
}

proptest! {
    /// Proves S0.16 and S0.17: whatever peers do, a worker's slots are those of its deliveries that it has not given back, each request
    /// has one outcome, and in the end nothing is left.
    #[test]
    fn slots_come_back_one_by_one(acts in prop::collection::vec(any::<(u8, u8)>(), 0..120)) {
        let mut world = World::new();
        for (what, which) in acts {
            world.act(what, which);
        }
        world.end();
    }
}
