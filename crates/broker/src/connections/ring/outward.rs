//! Effects of the ring node: frames, dials and disconnects.

use turno_engine::ring::RingPeerEffect;
use turno_proto::model::ring::{Circle, RingMessage};
use turno_proto::model::{Code, ConnId, limits};
use turno_proto::native::encode_ring_message;

use super::super::FAREWELL_MS;
use super::super::table::{ConnectionPhase, ConnectionTable, PeerProtocol};
use super::RingDial;
use crate::turn::UnfinishedWork;

impl ConnectionTable {
    /// Carries out an effect of the node.
    pub(in super::super) fn for_the_ring(&mut self, effect: RingPeerEffect) {
        match effect {
            RingPeerEffect::Say { conn, message } => self.write(conn, |out| write_message(message, out)),
            RingPeerEffect::Dial { target, address } => {
                let until = self.now.plus_millis(self.ring.dial_ms);
                self.ring.wanted.insert(target, None);
                self.ring.dials.push(RingDial { target, address, until });
            }
            RingPeerEffect::Forget { target } => {
                self.ring.dials.retain(|dial| dial.target != target);
                if let Some(Some(conn)) = self.ring.wanted.remove(&target) {
                    self.end_ring(conn, None);
                }
            }
            RingPeerEffect::Close { conn, code } => self.end_ring(conn, code),
            RingPeerEffect::Slow(slow) => {
                self.ring.eased |= self.ring.slowed && !slow;
                self.ring.slowed = slow;
            }
        }
    }

    /// All that waits is written, and the reason, if there is one; then the connection is closed. The node hears nothing more
    /// of it.
    fn end_ring(&mut self, conn: ConnId, code: Option<Code>) {
        if let Some(code) = code {
            self.say_last(conn, code);
        }
        let until = self.now.plus_millis(FAREWELL_MS);
        let Some(connection) = self.get_mut(conn).filter(|connection| !connection.is_doomed()) else { return };
        let PeerProtocol::Ring(protocol) = &mut connection.protocol else { return };
        protocol.target = None;
        connection.phase = ConnectionPhase::Doomed { until };
        connection.leftover = UnfinishedWork::default();
        connection.reading = None;
        self.count_in(conn);
        self.mark_dirty(conn);
    }
}

/// Lists are cut to what the other end reads.
fn write_message(mut message: RingMessage, out: &mut Vec<u8>) {
    match &mut message {
        RingMessage::RollCall { members, .. }
        | RingMessage::CaughtUp { members }
        | RingMessage::Probe(Circle { members, .. })
        | RingMessage::Circle(Circle { members, .. }) => members.truncate(limits::RING_MEMBERS_MAX),
        RingMessage::Have { had } => had.truncate(limits::RING_ORIGINS_MAX),
        RingMessage::NewConn(_)
        | RingMessage::RetConn(_)
        | RingMessage::Publish(_)
        | RingMessage::ServOff { .. }
        | RingMessage::Shutdown { .. }
        | RingMessage::Refused { .. }
        | RingMessage::Merge { .. }
        | RingMessage::AskSid
        | RingMessage::FreeSid { .. } => {}
    }
    encode_ring_message(&message, out);
}
