//! Any frame between brokers.

use std::sync::Arc;

use bytes::Bytes;
use turno_proto::model::link::view::{BrokerNode, LinkState, LinkView};
use turno_proto::model::link::{
    BrokerId, Claim, Forward, ForwardBroadcast, ForwardEvent, ForwardWants, LinkMessage, Offer, Path, Presence, Relay,
    Room,
};
use turno_proto::model::topic::Event;
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{LinkChallenge, LinkHello, Proof};

use super::Seed;

/// Brokers that frames may name.
const IDS: &[BrokerId] = &[
    BrokerId::new(0),
    BrokerId::new(1),
    BrokerId::new(u64::MAX),
    BrokerId::new(0x1234_5678_9abc),
    BrokerId::new(4),
    BrokerId::new(5),
    BrokerId::new(6),
    BrokerId::new(7),
];

impl Seed {
    /// Not none of them.
    fn ids(&self) -> &'static [BrokerId] {
        &IDS[..1 + usize::from(self.choice) % IDS.len()]
    }

    fn path(&self) -> Path {
        Path::new(self.ids().to_vec()).expect("few, and none twice")
    }

    pub(super) fn link_hello(&self) -> LinkHello {
        LinkHello {
            version: self.small,
            broker: BrokerId::new(self.long),
            name: self.text(),
            program: self.text(),
            frame_bytes_max: self.long,
            nonce: Bytes::copy_from_slice(&self.bytes),
        }
    }

    pub(super) fn link_challenge(&self) -> LinkChallenge {
        let LinkHello { version, broker, name, program, frame_bytes_max, nonce } = self.link_hello();
        LinkChallenge { version, broker, name, program, frame_bytes_max, nonce, proof: self.link_proof().proof }
    }

    pub(super) fn link_proof(&self) -> Proof {
        Proof { proof: self.payload.bytes.clone() }
    }

    pub(super) fn offers(&self) -> LinkMessage {
        let room = Room { path: self.path(), free: self.number, token: self.bits[1].then_some(u64::from(self.word)) };
        let rooms = vec![room; usize::from(self.small % 65)];
        let offer = Offer { queue: format!("q{}", self.small), held: self.word, rooms };
        LinkMessage::Offers(vec![offer; usize::from(self.choice % 65)])
    }

    pub(super) fn relay(&self) -> LinkMessage {
        let (number, token) = (u64::from(self.number), u64::from(self.word));
        let claim = match self.choice % 3 {
            0 => Claim::Ask { queue: format!("q{}", self.small), number },
            1 => Claim::Granted { number, token },
            _ => Claim::Refused { number },
        };
        LinkMessage::Relay(Relay { to: BrokerId::new(token), path: self.path(), claim })
    }

    pub(super) fn presences(&self) -> LinkMessage {
        let neighbours = self.ids().to_vec();
        let name = self.text.chars().take(20).collect();
        let presence = Presence { path: self.path(), name, neighbours, listens: self.bits[0], ring: None };
        LinkMessage::Presence(vec![presence; usize::from(self.choice % 65)])
    }

    pub(super) fn forward(&self) -> Forward {
        let wants = [ForwardWants::Reply, ForwardWants::Nothing, ForwardWants::Settling];
        Forward {
            seq: self.seq,
            handle: self.word,
            id: self.id(),
            wants: wants[usize::from(self.small) % wants.len()],
            attempt: self.small.max(1),
            cost: self.small.rotate_left(3).max(1),
            priority: self.choice % 10,
            deadline_ms: self.bits[0].then_some(self.number),
            alone: self.bits[1],
            path: self.path(),
            payload: self.payload.clone(),
        }
    }

    pub(super) fn forward_broadcast(&self) -> LinkMessage {
        LinkMessage::Broadcast(ForwardBroadcast {
            seq: self.seq,
            handle: self.word,
            deadline_ms: self.number,
            no_reply: self.bits[0],
            targets: IDS.to_vec(),
            path: self.path(),
            payload: self.payload.clone(),
        })
    }

    pub(super) fn forward_event(&self) -> LinkMessage {
        let path = Path::new(IDS.to_vec()).expect("few, and none twice");
        let topic = format!("t{}.{}", self.number, self.small).parse().expect("it is one");
        let event = Arc::new(Event { topic, payload: self.payload.clone() });
        LinkMessage::Event(ForwardEvent { number: self.long, targets: self.ids().to_vec(), path, event })
    }

    pub(super) fn link_call(&self, choice: u8) -> AdminCall {
        match choice {
            0 => AdminCall::LinkLs {},
            1 => AdminCall::LinkAdd { address: self.text() },
            2 => AdminCall::LinkRm { link: self.text() },
            _ => AdminCall::LinkGraph {},
        }
    }

    pub(super) fn link_answer(&self, choice: u8) -> AdminAnswer {
        let some = || self.bits[1].then(|| self.text());
        let states = [
            LinkState::Up,
            LinkState::Closing,
            LinkState::Dialling,
            LinkState::Down,
            LinkState::Itself,
            LinkState::Doubled,
        ];
        match choice {
            0 => AdminAnswer::Links {
                links: vec![
                    LinkView {
                        target: some(),
                        name: some(),
                        broker: some(),
                        address: some(),
                        state: states[usize::from(self.small) % states.len()],
                        since_at: self.moment(),
                        round_trip_seconds: self.bits[2].then(|| self.seconds()),
                        offered: self.long,
                        backlog: self.number.into(),
                        forwarded: self.word.into(),
                        received: self.small.into(),
                        returned: 1,
                        code: some(),
                    };
                    usize::from(self.choice % 4)
                ],
            },
            _ => AdminAnswer::LinkGraph {
                brokers: vec![
                    BrokerNode {
                        broker: self.text(),
                        name: self.text(),
                        hops: self.long,
                        way: self.texts(),
                        neighbours: self.texts(),
                        way_ids: self.texts(),
                        neighbour_ids: self.texts(),
                    };
                    usize::from(self.small % 4)
                ],
            },
        }
    }
}
