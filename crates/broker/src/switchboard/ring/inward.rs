//! Frames of the ring to words. Only words are changed here; the session has refused what may not come.

use turno_engine::EventRef;
use turno_engine::ring::{Circle, JoinVerdict, NewConn, PublicationRef, RetConn, RingWord};
use turno_proto::model::{Code, Topic};
use turno_proto::native::{
    CaughtUp, Frame, JoinVerdict as WireVerdict, NewConn as NewConnFrame, RetConn as RetConnFrame, RingCircle,
    RingMerge, RingPublish, RingRefused, RollCall, ServOff, ShutDwn,
};

/// A publication where it lies, about that topic.
pub(super) const fn publication<'a>(publish: &RingPublish<'a>, topic: &'a Topic) -> PublicationRef<'a> {
    let RingPublish { origin, seq, after, round, hops, event } = *publish;
    let event = EventRef::passing(topic, event.raw.headers, event.raw.bytes);
    PublicationRef { origin, seq, after, round, hops, event }
}

/// The word that a frame is, unless it is a publication.
pub(super) fn word_of(frame: Frame<'_>) -> Result<RingWord, Code> {
    Ok(match frame {
        Frame::NewConn(newconn) => RingWord::NewConn(new_conn(*newconn)),
        Frame::RetConn(retconn) => RingWord::RetConn(match *retconn {
            RetConnFrame::Open { errand } => RetConn::Open { errand },
            RetConnFrame::Call { caller, content, hops } => RetConn::Call { caller, content, hops },
        }),
        Frame::ServOff(servoff) => {
            let ServOff { leaver, content, hops } = *servoff;
            RingWord::ServOff { leaver, content: content.map(Box::new), hops }
        }
        Frame::ShutDwn(ShutDwn { origin, hops }) => RingWord::Shutdown { origin, hops },
        Frame::RollCall(roll_call) => {
            let RollCall { origin, number, round, members } = *roll_call;
            RingWord::RollCall { origin, number, round, members }
        }
        Frame::RingHave(have) => RingWord::Have { had: have.had },
        Frame::CaughtUp(CaughtUp { members }) => RingWord::CaughtUp { members },
        Frame::RingRefused(refused) => {
            let RingRefused { code, instead } = *refused;
            RingWord::Refused { code, instead }
        }
        Frame::RingProbe(circle) => RingWord::Probe(circle_of(circle)),
        Frame::RingCircle(circle) => RingWord::Circle(circle_of(circle)),
        Frame::RingMerge(merge) => {
            let RingMerge { origin, contact, hops } = *merge;
            RingWord::Merge { origin, contact, hops }
        }
        Frame::RingSid { free: None } => RingWord::AskSid,
        Frame::RingSid { free: Some(sid) } => RingWord::FreeSid { sid },
        other => {
            debug_assert!(false, "{:?} is no word of the ring", other.kind());
            return Err(Code::WrongDirection);
        }
    })
}

fn new_conn(newconn: NewConnFrame) -> NewConn {
    let NewConnFrame { joiner, content, gap, verdict, hops } = newconn;
    let verdict = verdict.map(|verdict| match verdict {
        WireVerdict::Claimed => JoinVerdict::Claimed,
        WireVerdict::Refused(code) => JoinVerdict::Refused(code),
    });
    NewConn { joiner, content, gap, verdict, hops }
}

fn circle_of(circle: RingCircle) -> Circle {
    let RingCircle { whole, members } = circle;
    Circle { whole, members }
}
