//! In the same world: the first job worker has a native connection as well, with deliveries that take from the same slots.

use turno_engine::{CallerMessage, Deliver, Effect, Input, NativeEffect, Outgoing, PeerEffect, WorkerMessage};
use turno_proto::model::{ConnId, Delivery, Payload, Slots};

use super::property::{SLOTS, World};

/// The native connection of the first job worker.
#[derive(Default)]
pub(super) struct Pair {
    connections: u32,
    conn: Option<ConnId>,
    held: Vec<Delivery>,
    requests: u32,
}

impl Pair {
    /// Slots that deliveries take.
    pub(super) fn used(&self) -> u16 {
        u16::try_from(self.held.len()).expect("few")
    }

    pub(super) fn gone(&mut self) {
        self.conn = None;
        self.held.clear();
    }

    fn queue() -> turno_proto::model::QueueName {
        "q".parse().expect("a good name")
    }
}

impl World {
    pub(super) fn pair_does(&mut self, what: u8) {
        match what {
            0 => self.pair_goes(),
            1 | 2 => self.pair_comes(),
            3..=5 => self.pair_is_asked(),
            _ => self.pair_replies(),
        }
    }

    fn pair_comes(&mut self) {
        if self.pair.conn.is_some() {
            return;
        }
        self.pair.connections += 1;
        let conn = ConnId { index: 1_000, generation: self.pair.connections };
        self.pair.conn = Some(conn);
        let (name, address) = (String::new(), String::new());
        let slots = Slots::Limited(u32::from(SLOTS[0]));
        for input in [
            Input::Connected { conn, name: name.clone(), address },
            Input::Ready { conn },
            Input::Open { conn, seq: 1, handle: 0, queue: Pair::queue() },
            Input::RegisterAs { conn, seq: 2, slots, name, key: "worker0".to_owned() },
            Input::Consume { conn, seq: 3, handle: 0, exclusive: false },
        ] {
            let said = self.farm.step(input);
            self.hear(said);
        }
    }

    fn pair_goes(&mut self) {
        if let Some(conn) = self.pair.conn {
            self.pair.gone();
            let said = self.farm.step(Input::Disconnected { conn });
            self.hear(said);
        }
    }

    fn pair_is_asked(&mut self) {
        self.pair.requests += 1;
        let conn = self.farm.admin;
        let said = self.farm.step(Input::Open { conn, seq: 1, handle: 5, queue: Pair::queue() });
        self.hear(said);
        let seq = 1_000_000 + self.pair.requests;
        let message = Outgoing { deadline_ms: Some(50_000), ..Outgoing::new(seq, 5, Payload::default()) };
        let said = self.farm.step(Input::Request { conn, message: Outgoing { fail_fast: true, ..message } });
        self.hear(said);
    }

    fn pair_replies(&mut self) {
        let Some((conn, delivery)) = self.pair.conn.zip(self.pair.held.pop()) else { return };
        let said = self.farm.step(Input::worker(
            conn,
            delivery,
            WorkerMessage::Reply { more: false, payload: Payload::default() },
        ));
        self.hear(said);
    }

    /// An effect about messages.
    pub(super) fn hear_of_messages(&mut self, effect: &Effect) {
        match effect {
            Effect::Peer(PeerEffect::Deliver(Deliver { conn, delivery, .. })) => {
                assert_eq!(Some(*conn), self.pair.conn, "deliveries go to who is there");
                self.pair.held.push(*delivery);
                let fits = self.taken(0) + self.pair.used() <= SLOTS[0];
                assert!(fits || self.is_strained(0), "one account over both connections");
            }
            // It stops at once, and says nothing: the broker counts its slots for a while.
            Effect::Peer(PeerEffect::Stop { delivery, .. }) => self.pair.held.retain(|held| held != delivery),
            // It was too slow too often, and gets no more.
            Effect::Peer(PeerEffect::Native { effect: NativeEffect::CancelQueue { .. }, .. })
            | Effect::Peer(PeerEffect::Caller { message: CallerMessage::Undelivered { .. }, .. })
            | Effect::Peer(PeerEffect::Caller { message: CallerMessage::Reply { .. }, .. })
            | Effect::Peer(PeerEffect::Answer { result: Ok(()), .. }) => {}
            other => panic!("{other:?} is not for anyone here"),
        }
    }

    /// What it still has is done.
    pub(super) fn pair_ends(&mut self) {
        while !self.pair.held.is_empty() {
            self.pair_replies();
        }
    }
}
