//! Judges the bytes that leave a client: nothing that has ended or was cancelled is asked again, and calls that are written
//! again after a lost connection keep their order.

use std::collections::BTreeSet;

use turno_proto::native::Frame;

use crate::body;
use crate::frames::arrive;

/// One client's side of its connections.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    /// The beginning of a frame.
    partial: Vec<u8>,
    /// Calls that its program cancelled while they were open.
    cancelled: BTreeSet<u64>,
    /// The last that was written on this connection.
    last: u64,
    /// A broker gave something back: that is written behind what came later.
    gave_back: bool,
}

impl Asking {
    /// A new connection.
    pub(crate) fn connected(&mut self) {
        self.partial.clear();
        (self.last, self.gave_back) = (0, false);
    }

    pub(crate) fn cancels(&mut self, number: u64) {
        self.cancelled.insert(number);
    }

    /// A broker that closes gave something back, on this connection or on one that was left behind.
    pub(crate) const fn gave_back(&mut self) {
        self.gave_back = true;
    }

    /// These bytes are about to be written; `open` are the calls whose outcome the program has not heard.
    pub(crate) fn writes(&mut self, bytes: &[u8], open: &[u64]) {
        let Self { partial, cancelled, last, gave_back } = self;
        arrive(partial, bytes, |frame| {
            let (Frame::Request(message) | Frame::Send(message)) = frame else { return };
            let Some(number) = body::number(message.payload) else { return };
            assert!(open.contains(&number), "I12: {number} has ended, and its client asks again");
            assert!(!cancelled.contains(&number), "I12: {number} was cancelled, and its client asks again");
            assert!(*gave_back || number > *last, "I5: {number} is written behind {last}");
            *last = number;
        });
    }
}
