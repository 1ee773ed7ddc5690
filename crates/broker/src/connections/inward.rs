//! Inputs of the engine from frames. This only translates; the engine decides whether a thing may be done.

use turno_engine::{Input, WorkerMessage};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{Code, ConnId, DedupId, Delivery, QueueName};
use turno_proto::native::{Answer, Fault, Frame, RawOutgoing, Register, encode};
use turno_proto::submission;

use super::{Connections, EngineHandle};

/// The input a frame means, or why it means none. [`Connections`](super::Connections) handles PUBLISH itself.
pub(super) fn input_of(conn: ConnId, frame: Frame<'_>) -> Result<Input, Fault> {
    Ok(match frame {
        Frame::Open { seq, handle, name } => {
            let queue = QueueName::from_bytes(name).map_err(|_| Fault::refusal(Code::BadName, seq))?;
            Input::Open { conn, seq, handle, queue }
        }
        Frame::Register { seq, register } => registration(conn, seq, register)?,
        Frame::Resize { seq, register } => {
            let slots = register.slots().map_err(|code| Fault::refusal(code, seq))?;
            Input::Resize { conn, seq, slots }
        }
        Frame::Deregister { seq } => Input::Deregister { conn, seq },
        Frame::Consume { seq, handle, exclusive } => Input::Consume { conn, seq, handle, exclusive },
        Frame::QueueAvailableNotify { seq, handle } => Input::QueueAvailableNotify { conn, seq, handle },
        Frame::Fenced { token, frame } => input_of(conn, frame.into())?.fenced(token),
        Frame::CancelQueue { seq, handle, .. } => Input::CancelQueue { conn, seq, handle },
        Frame::Request(message) => Input::Request { conn, message: outgoing(message)? },
        Frame::Send(message) => Input::Send { conn, message: outgoing(message)? },
        Frame::Broadcast(broadcast) => {
            Input::Broadcast { conn, broadcast: broadcast.with(broadcast.payload.to_payload()) }
        }
        Frame::Reply { seq, word, more, raw } => Input::worker(
            conn,
            Delivery { index: word, stamp: seq },
            WorkerMessage::Reply { more, payload: raw.to_payload() },
        ),
        Frame::Ack { delivery } => Input::worker(conn, delivery, WorkerMessage::Ack),
        Frame::Fail { delivery, again, raw } => {
            Input::worker(conn, delivery, WorkerMessage::Fail { again, payload: raw.to_payload() })
        }
        Frame::Progress { seq, word, raw } => Input::worker(
            conn,
            Delivery { index: word, stamp: seq },
            WorkerMessage::Progress { payload: raw.to_payload() },
        ),
        Frame::Extend { delivery, lease_ms } => Input::worker(conn, delivery, WorkerMessage::Extend { lease_ms }),
        Frame::Cancel { seq, .. } => Input::Cancel { conn, seq },
        Frame::Closing { .. } => Input::PeerClosing { conn },
        Frame::Subscribe { seq, filter, or_close } => Input::Subscribe { conn, seq, filter, or_close },
        Frame::Unsubscribe { seq, filter } => Input::Unsubscribe { conn, seq, filter },
        Frame::AdminCall { seq, call } => Input::Admin { conn, seq, call },
        // No peer's to send here: the session answers these itself, or refuses them for their direction.
        Frame::Connect { seq, .. }
        | Frame::Ping { seq }
        | Frame::Config { seq, .. }
        | Frame::Pong { seq }
        | Frame::Error { seq, .. }
        | Frame::QueueFull { seq, .. }
        | Frame::QueueAvailable { seq, .. }
        | Frame::Delivered { seq }
        | Frame::Undelivered { seq, .. }
        | Frame::Ok { seq }
        | Frame::Stored { seq, .. }
        | Frame::Answer(Answer { seq, .. })
        | Frame::BroadcastEnd { seq, .. }
        | Frame::Publish { seq, .. }
        | Frame::AdminAnswer { seq, .. } => return Err(Fault::fatal(Code::WrongDirection, seq)),
        Frame::Deliver(deliver) => return Err(Fault::fatal(Code::WrongDirection, deliver.delivery.stamp)),
        Frame::Event(_)
        | Frame::EventsDropped { .. }
        | Frame::RingHello { .. }
        | Frame::RingChallenge { .. }
        | Frame::RingProof { .. }
        | Frame::RingPublish(_)
        | Frame::Ring(_)
        | Frame::LinkHello { .. }
        | Frame::LinkChallenge { .. }
        | Frame::LinkProof { .. }
        | Frame::Forward(_)
        | Frame::Link(_) => return Err(Fault::fatal(Code::WrongDirection, 0)),
    })
}

/// REGISTER, of a worker that may be a foreman's worker as well.
fn registration(conn: ConnId, seq: u32, register: Register) -> Result<Input, Fault> {
    let slots = register.slots().map_err(|code| Fault::refusal(code, seq))?;
    Ok(match register.key {
        key if key.is_empty() => Input::Register { conn, seq, slots, name: register.name },
        key => Input::RegisterAs { conn, seq, slots, name: register.name, key },
    })
}

impl<D: EngineHandle> Connections<D> {
    /// A job's command is parsed where it is given to workers: a job that breaks a rule is refused here, and the
    /// submitter is told which.
    pub(super) fn may_be_submitted(&mut self, id: ConnId, frame: &Frame<'_>) -> bool {
        let Frame::AdminCall { seq, call: AdminCall::JobSubmit { spec } } = frame else { return true };
        let Err(rule) = submission::check(spec) else { return true };
        let (detail, code, fatal) = (&*rule.to_string(), Code::BadJob, false);
        self.table.write(id, |out| encode(&Frame::Error { seq: *seq, code, fatal, detail }, out));
        false
    }
}

/// A message of the broker's own, out of the buffer it was read into.
fn outgoing(message: RawOutgoing<'_>) -> Result<turno_engine::Outgoing, Fault> {
    let RawOutgoing { seq, dedup_id, payload, .. } = message;
    let dedup_id = dedup_id.map(DedupId::new).transpose().map_err(|_| Fault::refusal(Code::BadOption, seq))?;
    Ok(message.with(dedup_id, payload.to_payload()))
}
