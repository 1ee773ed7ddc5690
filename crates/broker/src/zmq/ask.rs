//! REQ and DEALER sockets that send requests.

use turno_engine::{CallerMessage, Input};
use turno_proto::model::{Code, Outgoing};
use turno_proto::zmtp::Message;

use super::calls::{Call, Calls};
use super::dialect::{DialectOutput, HANDLE, SETUP};
use super::endpoint::Count;
use super::frames::{Envelope, PeerMessage, delimited, part, payload_behind};

/// The requests of one socket.
#[derive(Debug)]
pub(crate) struct RequestSocket {
    /// A REQ socket: the envelope ends with the first empty frame, and there must be one.
    is_req: bool,
    /// The engine knows the queue.
    opened: bool,
    calls: Calls,
}

impl RequestSocket {
    pub(super) fn new(is_req: bool) -> Self {
        Self { is_req, opened: false, calls: Calls::default() }
    }

    /// Nothing came yet: the first message shows whether it is of another dialect.
    pub(super) const fn is_new(&self) -> bool {
        !self.opened
    }

    pub(super) fn hear(&mut self, message: &Message<'_>, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let Some(skip) = self.envelope_of(message) else { return out.drop_message(Count::BadEnvelope) };
        let Some(payload) = payload_behind(message, skip)? else { return out.drop_message(Count::BadEnvelope) };
        if !self.opened {
            self.opened = true;
            out.open(SETUP, HANDLE, out.endpoint.settings().queue.clone());
        }
        let seq = self.calls.insert(Call::new(Envelope::of(message, skip), None));
        let retries = Some(out.endpoint.settings().retries);
        let message = Outgoing { retries, ..Outgoing::new(seq, HANDLE, payload) };
        out.put(Input::Request { conn: out.conn, message });
        Ok(())
    }

    /// How many frames the envelope has.
    fn envelope_of(&self, message: &Message<'_>) -> Option<usize> {
        if self.is_req {
            return delimited(message);
        }
        // A lone empty frame is a body.
        let is_delimiter = message.part_count() > 1 && message.part(0).is_some_and(<[u8]>::is_empty);
        Some(usize::from(is_delimiter))
    }

    pub(super) fn caller_message(
        &mut self,
        seq: u32,
        message: CallerMessage,
        out: &DialectOutput<'_>,
    ) -> Option<PeerMessage<'static>> {
        match message {
            // A plain socket gets one answer.
            CallerMessage::Reply { more: true, payload } => {
                self.calls.add_piece(seq, part(&payload).frames);
                None
            }
            CallerMessage::Reply { more: false, payload } => {
                let call = self.calls.take(seq)?;
                Some(PeerMessage::with(call.envelope, call.pieces, payload))
            }
            CallerMessage::Undelivered { code, payload } => {
                let envelope = self.calls.take(seq)?.envelope;
                Some(PeerMessage::frames(envelope, out.failure(code, &payload)?))
            }
            CallerMessage::Progress { .. }
            | CallerMessage::Delivered
            | CallerMessage::BroadcastAnswer(_)
            | CallerMessage::BroadcastEnd(_) => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) const fn held_bytes(&self) -> usize {
        self.calls.held_bytes()
    }
}
