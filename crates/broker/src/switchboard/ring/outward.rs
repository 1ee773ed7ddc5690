//! What the node wants done: words to frames, connections to make and to end.

use turno_engine::EventRef;
use turno_engine::ring::{Circle, JoinVerdict, NewConn, PublicationRef, RetConn, RingEffect, RingWord};
use turno_proto::model::{Code, ConnId, limits};
use turno_proto::native::{
    CaughtUp, Event, Frame, JoinVerdict as WireVerdict, NewConn as NewConnFrame, Raw, RetConn as RetConnFrame,
    RingCircle, RingHave, RingMerge, RingPublish, RingRefused, RollCall, ServOff, ShutDwn, encode, encode_ring_publish,
};

use super::super::FAREWELL_MS;
use super::super::lines::{Lines, Phase, Talk};
use super::{RingDial, log_news, report_of};
use crate::turn::Leftover;

impl Lines {
    /// What the node wants done.
    pub(in super::super) fn for_the_ring(&mut self, effect: RingEffect) {
        match effect {
            RingEffect::Say { conn, word } => self.write(conn, |out| write_word(word, out)),
            RingEffect::Dial { target, address } => {
                let until = self.now.plus_millis(self.ring.dial_ms);
                self.ring.wanted.insert(target, None);
                self.ring.dials.push(RingDial { target, address, until });
            }
            RingEffect::Forget { target } => {
                self.ring.dials.retain(|dial| dial.target != target);
                if let Some(Some(conn)) = self.ring.wanted.remove(&target) {
                    self.end_ring(conn, None);
                }
            }
            RingEffect::Close { conn, code } => self.end_ring(conn, code),
            RingEffect::Slow(slow) => {
                self.ring.eased |= self.ring.slowed && !slow;
                self.ring.slowed = slow;
            }
            // What is published goes to the topics, inside the engine.
            RingEffect::Deliver { .. } => {}
            other => {
                if let RingEffect::Tell(news) = &other {
                    log_news(news);
                }
                self.ring.reports.extend(report_of(&other));
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
        let Some(line) = self.get_mut(conn).filter(|line| !line.is_doomed()) else { return };
        let Talk::Ring(talk) = &mut line.talk else { return };
        talk.target = None;
        line.phase = Phase::Doomed { until };
        line.leftover = Leftover::default();
        line.reading = None;
        self.count_in(conn);
        self.mark_dirty(conn);
    }
}

pub(in super::super) fn write_publication(publication: PublicationRef<'_>, out: &mut Vec<u8>) {
    let PublicationRef { origin, seq, after, round, hops, event } = publication;
    let EventRef { topic, headers, bytes, .. } = event;
    let event = Event { topic: topic.as_str().as_bytes(), raw: Raw { headers, bytes } };
    encode_ring_publish(&RingPublish { origin, seq, after, round, hops, event }, out);
}

fn write_word(word: RingWord, out: &mut Vec<u8>) {
    let frame = match word {
        RingWord::Publish(publication) => return write_publication(PublicationRef::from(&publication), out),
        RingWord::NewConn(newconn) => Frame::NewConn(Box::new(new_conn(newconn))),
        RingWord::RetConn(retconn) => Frame::RetConn(Box::new(match retconn {
            RetConn::Open { errand } => RetConnFrame::Open { errand },
            RetConn::Call { caller, content, hops } => RetConnFrame::Call { caller, content, hops },
        })),
        RingWord::ServOff { leaver, content, hops } => {
            Frame::ServOff(Box::new(ServOff { leaver, content: content.map(|content| *content), hops }))
        }
        RingWord::Shutdown { origin, hops } => Frame::ShutDwn(ShutDwn { origin, hops }),
        RingWord::RollCall { origin, number, round, mut members } => {
            members.truncate(limits::RING_MEMBERS_MAX);
            Frame::RollCall(Box::new(RollCall { origin, number, round, members }))
        }
        RingWord::Have { mut had } => {
            had.truncate(limits::RING_ORIGINS_MAX);
            Frame::RingHave(RingHave { had })
        }
        RingWord::CaughtUp { mut members } => {
            members.truncate(limits::RING_MEMBERS_MAX);
            Frame::CaughtUp(CaughtUp { members })
        }
        RingWord::Refused { code, instead } => Frame::RingRefused(Box::new(RingRefused { code, instead })),
        RingWord::Probe(circle) => Frame::RingProbe(circle_of(circle)),
        RingWord::Circle(circle) => Frame::RingCircle(circle_of(circle)),
        RingWord::Merge { origin, contact, hops } => Frame::RingMerge(Box::new(RingMerge { origin, contact, hops })),
        RingWord::AskSid => Frame::RingSid { free: None },
        RingWord::FreeSid { sid } => Frame::RingSid { free: Some(sid) },
    };
    encode(&frame, out);
}

fn new_conn(newconn: NewConn) -> NewConnFrame {
    let NewConn { joiner, content, gap, verdict, hops } = newconn;
    let verdict = verdict.map(|verdict| match verdict {
        JoinVerdict::Claimed => WireVerdict::Claimed,
        JoinVerdict::Refused(code) => WireVerdict::Refused(code),
    });
    NewConnFrame { joiner, content, gap, verdict, hops }
}

fn circle_of(circle: Circle) -> RingCircle {
    let Circle { whole, mut members } = circle;
    members.truncate(limits::RING_MEMBERS_MAX);
    RingCircle { whole, members }
}
