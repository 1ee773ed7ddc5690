//! Inputs of the engine from frames of a link. This only translates; the session has refused what may not cross.

use tracing::warn;
use turno_engine::{BroadcastAnswer, CallerMessage, Input, RemoteMessage};
use turno_proto::model::{ClosingReason, Code, ConnId, Payload, QueueName};
use turno_proto::native::{Answer, Fault, Frame};

use crate::log_limit::{self, LogKind};

/// The input a frame means; `None` if it needs none.
pub(super) fn input_of(conn: ConnId, frame: Frame<'_>) -> Result<Option<Input>, Fault> {
    let far = |seq, message| Ok(Some(Input::Far { conn, seq, message }));
    match frame {
        Frame::Open { seq, handle, name } => {
            let queue = QueueName::from_bytes(name).map_err(|_| Fault::fatal(Code::BadName, seq))?;
            Ok(Some(Input::Open { conn, seq, handle, queue }))
        }
        Frame::Forward(forward) => Ok(Some(Input::Forwarded { conn, forward })),
        Frame::Link(message) => Ok(Some(Input::Link { conn, message })),
        Frame::Reply { seq, more, raw, .. } => {
            far(seq, RemoteMessage::Caller(CallerMessage::Reply { more, payload: raw.to_payload() }))
        }
        Frame::Progress { seq, raw, .. } => {
            far(seq, RemoteMessage::Caller(CallerMessage::Progress { payload: raw.to_payload() }))
        }
        Frame::Delivered { seq } => far(seq, RemoteMessage::Caller(CallerMessage::Delivered)),
        Frame::Ack { delivery } => far(delivery.stamp, RemoteMessage::Ack),
        Frame::Fail { delivery, again, raw } => {
            far(delivery.stamp, RemoteMessage::Fail { again, payload: raw.to_payload() })
        }
        Frame::Undelivered { seq, code, raw } => {
            far(seq, RemoteMessage::Caller(CallerMessage::Undelivered { code, payload: raw.to_payload() }))
        }
        Frame::Answer(Answer { seq, worker, name, more, failed, raw }) => {
            let (name, payload): (_, Payload) = (name.into(), raw.to_payload());
            far(
                seq,
                RemoteMessage::Caller(CallerMessage::BroadcastAnswer(BroadcastAnswer {
                    worker,
                    name,
                    more,
                    failed,
                    payload,
                })),
            )
        }
        Frame::BroadcastEnd { seq, end } => far(seq, RemoteMessage::Caller(CallerMessage::BroadcastEnd(end))),
        Frame::Cancel { seq, reason, .. } => {
            let reason = reason.unwrap_or(Code::Cancelled);
            Ok(Some(Input::FarCancel { conn, seq, reason }))
        }
        // A broker that goes on after its maintenance has offers again, which is how the engine knows.
        Frame::Closing { closing } if closing.reason == ClosingReason::Resumed => Ok(None),
        Frame::Closing { .. } => Ok(Some(Input::PeerClosing { conn })),
        Frame::Ok { .. } => Ok(None),
        Frame::Error { seq: handle, code, .. } => {
            if log_limit::admits(LogKind::LinkQueue) {
                warn!(conn = conn.index, handle, %code, "cannot open a queue over a link");
            }
            Ok(None)
        }
        other => {
            debug_assert!(false, "{:?} may not cross a link", other.kind());
            Err(Fault::fatal(Code::WrongDirection, 0))
        }
    }
}
