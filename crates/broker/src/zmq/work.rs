//! Sockets of workers: REP, DEALER and ROUTER reply; a PULL socket has done its work when it was written to. REP,
//! DEALER and ROUTER reply; a PULL socket has done its work when it was written to.

use std::collections::VecDeque;

use turno_engine::{BorrowedPayload, Deliver, Input, WorkerMessage};
use turno_proto::model::{Code, Delivery};
use turno_proto::zmtp::Message;

use super::dialect::DialectOutput;
use super::endpoint::Count;
use super::frames::{Envelope, Frames, PeerMessage, delimited, delivery_of, payload_behind};

/// A worker that replies. The number of a delivery is its envelope, so that nothing has to be kept.
#[derive(Debug)]
pub(crate) struct RepWorker;

impl RepWorker {
    #[expect(clippy::unused_self, reason = "what a worker is told is its own business")]
    pub(super) fn delivery<'a>(&self, deliver: &Deliver<BorrowedPayload<'a>>) -> PeerMessage<'a> {
        PeerMessage::with_borrowed(Envelope::numbered(deliver.delivery), Frames::new(), deliver.payload)
    }

    #[expect(clippy::unused_self, reason = "as above")]
    pub(super) fn hear(&self, message: &Message<'_>, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let delivery = message.part(0).and_then(delivery_of);
        let (Some(delivery), Some(skip)) = (delivery, delimited(message)) else {
            return out.drop_message(Count::BadEnvelope);
        };
        let payload = payload_behind(message, skip)?.unwrap_or_default();
        // The engine knows whether it is this worker's, and counts it if not.
        out.put(Input::worker(out.conn, delivery, WorkerMessage::Reply { more: false, payload }));
        Ok(())
    }
}

/// A PULL socket.
#[derive(Debug, Default)]
pub(crate) struct PullSocket {
    /// Bytes that were written to it.
    written: u64,
    /// Deliveries that are not written, and how many bytes are when they are.
    unwritten: VecDeque<(u64, Delivery)>,
}

impl PullSocket {
    pub(super) fn delivery<'a>(deliver: &Deliver<BorrowedPayload<'a>>) -> PeerMessage<'a> {
        PeerMessage::with_borrowed(Envelope::None, Frames::new(), deliver.payload)
    }

    pub(super) fn queued(&mut self, delivery: Delivery, waiting: usize) {
        self.unwritten.push_back((self.written + waiting as u64, delivery));
    }

    pub(super) fn wrote(&mut self, bytes: usize, out: &mut DialectOutput<'_>) {
        self.written += bytes as u64;
        while let Some((end, delivery)) = self.unwritten.front().copied()
            && end <= self.written
        {
            self.unwritten.pop_front();
            out.put(Input::worker(out.conn, delivery, WorkerMessage::Ack));
        }
    }
}
