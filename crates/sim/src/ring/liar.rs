//! A member that lies: what it says beside the truth goes to its next one. It lies about publications and roll calls, in the
//! names of others; in a ring without a secret also that others shall end.

use std::sync::Arc;

use turno_engine::Event;
use turno_engine::ring::{Publication, RingMessage};
use turno_proto::model::ring::{Origin, Sid};
use turno_proto::model::{Code, Payload};

use super::wires::{BrokerPlace, DIALLED, Item, WireId};
use super::world::{RingHappening, RingWorld};

impl RingWorld {
    pub(super) fn lie(&mut self) {
        let Some(liar) = self.climate.liar.filter(|_| !self.is_calm) else { return };
        let after = self.rng.range(100, 2_000);
        self.later(after, RingHappening::Lie);
        let Some((wire, side, _)) = self.outward(liar) else { return };
        self.trace.note(self.now, "lie", liar as u64, u64::from(wire));
        // With a secret a member is believed, and such a message would end others.
        if !self.climate.has_secret && self.rng.once_in(4) {
            self.end_others(liar, (wire, side));
            return;
        }
        let message = self.a_lie();
        self.send(wire, side, Item::Message(message));
    }

    /// SHUTDWN to the next one, or `fenced` to the member that sends here.
    fn end_others(&mut self, liar: BrokerPlace, outward: (WireId, usize)) {
        let life = self.brokers[liar].life;
        let inward = self.wires.of(liar).into_iter().find(|(wire, side)| {
            let from = self.wires.all[wire].lives[1 - side];
            *side == DIALLED && self.oracle.next(from) == Some(life)
        });
        match inward {
            Some((wire, side)) if self.rng.once_in(2) => {
                let message = RingMessage::Refused { code: Code::Fenced, instead: None };
                self.send(wire, side, Item::Message(message));
            }
            _ => {
                let origin = self.brokers[liar].node.as_ref().map(|node| node.me().origin);
                let origin = origin.unwrap_or_else(|| self.nobody());
                self.send(outward.0, outward.1, Item::Message(RingMessage::Shutdown { origin, hops: 0 }));
            }
        }
    }

    /// The connection over which a broker sends.
    fn outward(&self, place: BrokerPlace) -> Option<(WireId, usize, BrokerPlace)> {
        self.brokers[place].node.as_ref()?;
        let next = self.oracle.next(self.brokers[place].life)?;
        let ends = self.wires.of(place).into_iter().rev();
        let mut ends = ends.map(|(wire, side)| (wire, side, &self.wires.all[&wire]));
        let (wire, side, open) = ends.find(|(_, side, open)| open.lives[1 - side] == next)?;
        Some((wire, side, open.places[1 - side]))
    }

    pub(super) fn a_lie(&mut self) -> RingMessage {
        let victim = self.rng.index(self.brokers.len());
        let origin = self.brokers[victim].node.as_ref().map(|node| node.me().clone());
        let origin = origin.map_or_else(|| self.nobody(), |member| member.origin);
        let seq = [1, 5, 100, 1_000_000, u64::MAX][self.rng.index(5)];
        let after = [0, seq - 1, seq, u64::MAX][self.rng.index(4)];
        let round = [0, seq, u64::MAX][self.rng.index(3)];
        let hops = [0, 127, 128, 255][self.rng.index(4)];
        if self.rng.once_in(3) {
            let number = [0, 1, 50, u64::MAX][self.rng.index(4)];
            return RingMessage::RollCall { origin, number, round, members: Vec::new() };
        }
        let topic = "news".parse().expect("a topic");
        let event = Arc::new(Event { topic, payload: Payload::body(b"a lie".to_vec()) });
        RingMessage::Publish(Publication { origin, seq, after, round, hops, event })
    }

    pub(super) fn nobody(&mut self) -> Origin {
        let sid = u16::try_from(self.rng.range(500, 600)).expect("a small number");
        Origin { sid: Sid::new(sid), incarnation: self.rng.next() }
    }
}
