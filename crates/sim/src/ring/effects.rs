//! Execution of the effects of ring nodes.

use turno_engine::ring::{RetConn, RingEffect, RingHostEffect, RingMessage, RingNews, RingPeerEffect};
use turno_proto::model::ring::ConnectPurpose;
use turno_proto::model::{Code, ConnId};

use super::wires::{BrokerPlace, Item};
use super::world::{RingHappening, RingWorld, place_of};

impl RingWorld {
    pub(super) fn carry_out(&mut self, place: BrokerPlace, effect: RingEffect) {
        let life = self.brokers[place].life;
        match effect {
            RingEffect::Peer(RingPeerEffect::Dial { target, address }) => {
                let to = place_of(&address).expect("only addresses of this world are dialled");
                self.brokers[place].dials.insert(target, to);
                let (at, millis) = (self.way(), if self.climate.fast { 300 } else { 1_500 });
                self.at(at, RingHappening::DialArrives(place, life, target, to));
                self.later(millis, RingHappening::DialFailed(place, life, target));
            }
            RingEffect::Peer(RingPeerEffect::Forget { target }) => drop(self.brokers[place].dials.remove(&target)),
            RingEffect::Peer(RingPeerEffect::Say { conn, message }) => {
                self.note_message(place, conn, &message);
                if let Some((wire, side)) = self.wires.find(place, conn) {
                    self.send(wire, side, Item::Message(message));
                }
            }
            RingEffect::Peer(RingPeerEffect::Close { conn, .. }) => {
                if let Some((wire, side)) = self.wires.find(place, conn) {
                    self.close(wire, side);
                }
            }
            RingEffect::Deliver { event } => self.oracle.delivered(life, &event),
            RingEffect::Peer(RingPeerEffect::Slow(is_slowed)) => {
                assert_ne!(self.brokers[place].is_slowed, is_slowed, "I21: {place} is told twice");
                self.brokers[place].is_slowed = is_slowed;
            }
            RingEffect::Host(RingHostEffect::Tell(news)) => self.note_news(place, &news),
            RingEffect::Host(RingHostEffect::Failed(code)) => {
                self.trace.note(self.now, "failed", place as u64, u64::from(code.number()));
                assert!(
                    self.climate.rogue || self.climate.has_lies() || !matches!(code, Code::DuplicateSid | Code::Fenced),
                    "S3.7: {place} is refused as a second one, {}",
                    code.name()
                );
                assert!(
                    code != Code::Fenced || self.climate.has_secret,
                    "S3.7: {place} is fenced, and nothing proves it"
                );
                self.brokers[place].refused = Some(code);
                // A broker that cannot join at its start ends; one that is fenced off goes on without the ring.
                if code != Code::Fenced {
                    self.kill(place, false);
                }
            }
            RingEffect::Host(RingHostEffect::Left) => (self.brokers[place].is_out, self.is_disturbed) = (true, true),
            RingEffect::Host(RingHostEffect::Stop) => {
                let is_proven = self.climate.has_secret || self.told_to_end.contains(&place);
                assert!(is_proven, "S3.42: {place} ends, and nobody has proven that it shall");
                self.oracle.stopped.insert(life);
                self.brokers[place].is_out = true;
            }
        }
    }

    fn note_message(&mut self, place: BrokerPlace, conn: ConnId, message: &RingMessage) {
        if let RingMessage::RetConn(RetConn::Open { purpose: ConnectPurpose::Heal }) = message
            && let (Some(to), Some(node)) = (self.wires.peer(place, conn), &self.brokers[place].node)
        {
            self.oracle.heals(self.brokers[place].life, to, node.next_sid());
        }
        let what = match message {
            RingMessage::NewConn(_) => "newconn",
            RingMessage::RetConn(_) => "retconn",
            RingMessage::ServOff { .. } => "servoff",
            RingMessage::Shutdown { .. } => "shutdwn",
            RingMessage::Have { .. } => "have",
            RingMessage::CaughtUp { .. } => "caught up",
            RingMessage::Refused { .. } => "refused",
            RingMessage::Merge { .. } => "merge",
            RingMessage::Publish(_) | RingMessage::RollCall { .. } => return,
            RingMessage::Probe(_) | RingMessage::Circle(_) | RingMessage::AskSid | RingMessage::FreeSid { .. } => {
                "question"
            }
        };
        let to = self.wires.peer(place, conn).map_or(99, |life| self.oracle.place(life) as u64);
        if self.trace.is_aloud() {
            let text = format!("{message:?}");
            self.trace.say(&format!("                       {place} to {to}: {}", &text[..text.len().min(200)]));
        }
        self.trace.note(self.now, what, place as u64, to);
    }

    fn note_news(&mut self, place: BrokerPlace, news: &RingNews) {
        if self.trace.is_aloud() {
            self.trace.say(&format!("                       {place}: {news:?}"));
        }
        match news {
            RingNews::Whole { members, .. } => {
                self.trace.note(self.now, "whole", place as u64, members.len() as u64);
            }
            RingNews::Refused { peer, code: Code::BadSequence } => {
                let lies = self.climate.has_lies();
                assert!(lies, "I16: nobody lies, and {place} hears {peer:?} out of sequence");
            }
            _ => {}
        }
    }
}
