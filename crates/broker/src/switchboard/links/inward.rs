//! Frames of a link to inputs. Only words are changed here; the session has refused what may not cross.

use std::sync::Arc;

use tracing::warn;
use turno_engine::{Event, FarWord, Forward, ForwardBroadcast, ForwardEvent, Input, LinkWord};
use turno_proto::model::link::{BrokerId, Path};
use turno_proto::model::{ClosingReason, Code, ConnId, Payload, QueueName, Topic};
use turno_proto::native::{
    Answer, Brokers, Fault, Forward as ForwardFrame, ForwardBroadcast as BroadcastFrame, ForwardEvent as EventFrame,
    Frame,
};

use crate::log_limit::{self, Kind};

/// The input a frame means; `None` if it needs none.
pub(super) fn input_of(conn: ConnId, frame: Frame<'_>) -> Result<Option<Input>, Fault> {
    let far = |seq, word| Ok(Some(Input::Far { conn, seq, word }));
    let link = |word| Ok(Some(Input::Link { conn, word: Box::new(word) }));
    match frame {
        Frame::Open { seq, handle, name } => {
            let queue = QueueName::from_bytes(name).map_err(|_| Fault::fatal(Code::BadName, seq))?;
            Ok(Some(Input::Open { conn, seq, handle, queue }))
        }
        Frame::Forward(frame) => Ok(Some(Input::Forwarded { conn, forward: Box::new(forward(&frame)?) })),
        Frame::ForwardBroadcast(frame) => link(LinkWord::Broadcast(broadcast(&frame)?)),
        Frame::ForwardEvent(frame) => link(LinkWord::Event(event(&frame)?)),
        Frame::Offer(offers) => link(LinkWord::Offers(offers.offers)),
        Frame::Relay(relay) => link(LinkWord::Relay(*relay)),
        Frame::Presence(presences) => link(LinkWord::Presence(presences.brokers)),
        Frame::Reply { seq, more, raw, .. } => far(seq, FarWord::Reply { more, payload: raw.to_payload() }),
        Frame::Progress { seq, raw, .. } => far(seq, FarWord::Progress { payload: raw.to_payload() }),
        Frame::Delivered { seq } => far(seq, FarWord::Delivered),
        Frame::Ack { delivery } => far(delivery.stamp, FarWord::Ack),
        Frame::Fail { delivery, permanent, raw } => {
            far(delivery.stamp, FarWord::Fail { permanent, payload: raw.to_payload() })
        }
        Frame::Undelivered { seq, code, raw } => far(seq, FarWord::Undelivered { code, payload: raw.to_payload() }),
        Frame::Answer(Answer { seq, worker, name, more, failed, raw }) => {
            let (name, payload): (_, Payload) = (name.into(), raw.to_payload());
            far(seq, FarWord::BroadcastAnswer { worker, name, more, failed, payload })
        }
        Frame::BroadcastEnd { seq, end } => far(seq, FarWord::BroadcastEnd { end }),
        Frame::Cancel { seq, reason, .. } => {
            let reason = reason.unwrap_or(Code::Cancelled);
            Ok(Some(Input::FarCancel { conn, seq, reason }))
        }
        // A broker that goes on after its maintenance has offers again, which is how the engine knows.
        Frame::Closing { closing } if closing.reason == ClosingReason::Resumed => Ok(None),
        Frame::Closing { .. } => Ok(Some(Input::PeerClosing { conn })),
        Frame::Ok { .. } => Ok(None),
        Frame::Error { seq: handle, code, .. } => {
            if log_limit::admits(Kind::LinkQueue) {
                warn!(conn = conn.index, handle, %code, "a queue cannot be opened at the other end of a link");
            }
            Ok(None)
        }
        other => {
            debug_assert!(false, "{:?} may not cross a link", other.kind());
            Err(Fault::fatal(Code::WrongDirection, 0))
        }
    }
}

fn forward(frame: &ForwardFrame<'_>) -> Result<Forward, Fault> {
    let ForwardFrame { seq, handle, id, wants, attempt, cost, priority, deadline_ms, alone, path, raw } = *frame;
    let (path, payload) = (way(seq, path)?, raw.to_payload());
    Ok(Forward { seq, handle, id, wants, attempt, cost, priority, deadline_ms, alone, path, payload })
}

fn broadcast(frame: &BroadcastFrame<'_>) -> Result<ForwardBroadcast, Fault> {
    let BroadcastFrame { seq, handle, deadline_ms, no_reply, targets, path, raw } = *frame;
    let targets: Vec<BrokerId> = targets.iter().collect();
    Ok(ForwardBroadcast {
        seq,
        handle,
        deadline_ms,
        no_reply,
        targets,
        path: way(seq, path)?,
        payload: raw.to_payload(),
    })
}

fn event(frame: &EventFrame<'_>) -> Result<ForwardEvent, Fault> {
    let EventFrame { number, targets, path, event } = *frame;
    let topic = Topic::from_bytes(event.topic).map_err(|_| Fault::fatal(Code::BadTopic, 0))?;
    let event = Arc::new(Event { topic, payload: event.raw.to_payload() });
    Ok(ForwardEvent { number, targets: targets.iter().collect(), path: way(0, path)?, event })
}

fn way(seq: u32, path: Brokers<'_>) -> Result<Path, Fault> {
    path.to_path().ok_or_else(|| Fault::fatal(Code::BadBody, seq))
}
