//! More that a raw peer says, and what it waits to hear.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use turno_proto::model::ring::view::RingView;
use turno_proto::model::view::{BrokerView, Explanation, QueueView, WorkerView};
use turno_proto::model::{Again, Code, Delivery, Durability, MessageId, Slots};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{ClosingReason, Frame, Raw, RawOutgoing, Register};

use crate::{Peer, wait};

impl Peer {
    pub(crate) fn next_seq(&mut self) -> u32 {
        self.seq += 1;
        self.seq
    }

    /// Sends a one-way message on handle 0 and waits until the broker has it.
    #[track_caller]
    pub fn send(&mut self, body: &[u8], options: impl FnOnce(&mut RawOutgoing<'_>)) {
        let seq = self.post(body, options);
        self.hear(|frame| assert!(matches!(frame, Frame::Stored { seq: of, .. } if of == seq), "{frame:?}"));
    }

    /// Sends a one-way message on handle 0 and waits for nothing; its number.
    pub fn post(&mut self, body: &[u8], options: impl FnOnce(&mut RawOutgoing<'_>)) -> u32 {
        let seq = self.next_seq();
        let mut message = RawOutgoing::new(seq, 0, Raw { headers: false, bytes: body });
        options(&mut message);
        self.say(&Frame::Send(message));
        seq
    }

    /// Sends a one-way message on handle 0 and waits until it is on the disk; its id.
    #[track_caller]
    pub fn store(&mut self, body: &[u8], options: impl FnOnce(&mut RawOutgoing<'_>)) -> MessageId {
        let seq = self.post(body, options);
        self.hear(|frame| match frame {
            Frame::Stored { seq: of, durability: Durability::Disk, id, .. } if of == seq => id,
            other => panic!("expected STORED on disk: {other:?}"),
        })
    }

    /// One queue.
    #[track_caller]
    pub fn queue(&mut self, name: &str) -> QueueView {
        match self.ask(AdminCall::QueueShow { queue: name.to_owned() }) {
            AdminAnswer::Queue { queue } => *queue,
            other => panic!("another answer: {other:?}"),
        }
    }

    /// One message, and why it is where it is.
    #[track_caller]
    pub fn explain(&mut self, id: MessageId) -> Explanation {
        match self.ask(AdminCall::MessageExplain { id: id.to_string() }) {
            AdminAnswer::Message { explanation } => *explanation,
            other => panic!("another answer: {other:?}"),
        }
    }

    /// Waits until the broker has dealt with everything said so far. Nothing else may come meanwhile.
    #[track_caller]
    pub fn sync(&mut self) {
        // Not by PING, which a router answers without the engine.
        self.status();
    }

    /// Says PING and hears PONG.
    #[track_caller]
    pub fn ping(&mut self) {
        let seq = self.next_seq();
        self.say(&Frame::Ping { seq });
        self.hear(|frame| assert_eq!(frame, Frame::Pong { seq }));
    }

    /// Registers, or registers again.
    #[track_caller]
    pub fn register(&mut self, slots: Slots, name: &str) {
        let seq = self.next_seq();
        self.say(&Frame::Register { seq, register: Register::new(slots, name) });
        self.hear(|frame| assert_eq!(frame, Frame::Ok { seq }));
    }

    /// Settles a delivery without a reply.
    pub fn ack(&mut self, delivery: Delivery) {
        self.say(&Frame::Ack { delivery });
    }

    /// Says that a delivery failed.
    pub fn fail(&mut self, delivery: Delivery, why: &[u8]) {
        self.say(&Frame::Fail { delivery, again: Again::AsSet, raw: Raw { headers: false, bytes: why } });
    }

    /// A piece of a reply; more follow.
    pub fn piece(&mut self, delivery: Delivery, body: &[u8]) {
        let raw = Raw { headers: false, bytes: body };
        self.say(&Frame::Reply { seq: delivery.stamp, word: delivery.index, more: true, raw });
    }

    /// Tells the caller that the work goes on.
    pub fn progress(&mut self, delivery: Delivery, body: &[u8]) {
        let raw = Raw { headers: false, bytes: body };
        self.say(&Frame::Progress { seq: delivery.stamp, word: delivery.index, raw });
    }

    /// Gives a request up.
    pub fn cancel(&mut self, seq: u32) {
        self.say(&Frame::Cancel { seq, word: 0, reason: None });
    }

    /// Waits for UNDELIVERED; returns its request's number and why.
    #[track_caller]
    pub fn undelivered(&mut self) -> (u32, Code) {
        self.hear(|frame| match frame {
            Frame::Undelivered { seq, code, .. } => (seq, code),
            other => panic!("expected UNDELIVERED: {other:?}"),
        })
    }

    /// Waits for CANCEL of a delivery; returns which and why.
    #[track_caller]
    pub fn cancelled(&mut self) -> (Delivery, Code) {
        self.hear(|frame| match frame {
            Frame::Cancel { seq, word, reason: Some(code) } => (Delivery { index: word, stamp: seq }, code),
            other => panic!("expected CANCEL: {other:?}"),
        })
    }

    /// Waits for a refusal that ends nothing; returns what was refused and why.
    #[track_caller]
    pub fn refused(&mut self) -> (u32, Code) {
        self.hear(|frame| match frame {
            Frame::Error { seq, code, fatal: false, .. } => (seq, code),
            other => panic!("expected a refusal: {other:?}"),
        })
    }

    /// Waits for the broker's farewell.
    #[track_caller]
    pub fn closing(&mut self) -> ClosingReason {
        self.hear(|frame| match frame {
            Frame::Closing { closing } => closing.reason,
            other => panic!("expected CLOSING: {other:?}"),
        })
    }

    /// Asks the broker about itself.
    #[track_caller]
    pub fn ask(&mut self, call: AdminCall) -> AdminAnswer {
        let seq = self.next_seq();
        self.say(&Frame::AdminCall { seq, call });
        self.hear(|frame| match frame {
            Frame::AdminAnswer { seq: of, answer } if of == seq => answer,
            other => panic!("expected ADMIN_ANSWER: {other:?}"),
        })
    }

    /// The broker as a whole.
    #[track_caller]
    pub fn status(&mut self) -> BrokerView {
        match self.ask(AdminCall::Status) {
            AdminAnswer::Status { broker } => *broker,
            other => panic!("another answer: {other:?}"),
        }
    }

    /// The ring as the broker sees it.
    #[track_caller]
    pub fn ring(&mut self) -> RingView {
        match self.ask(AdminCall::Ring {}) {
            AdminAnswer::Ring { ring } => *ring,
            other => panic!("another answer: {other:?}"),
        }
    }

    /// The workers, in the order in which they registered.
    #[track_caller]
    pub fn workers(&mut self) -> Vec<WorkerView> {
        match self.ask(AdminCall::WorkerLs { after: None, limit: 1_000 }) {
            AdminAnswer::Workers { workers, .. } => workers,
            other => panic!("another answer: {other:?}"),
        }
    }

    /// Fails the test if the broker says anything, or closes, within this time.
    #[track_caller]
    pub fn hears_nothing(&mut self, within: Duration) {
        assert!(self.buffer.is_empty(), "something was said already");
        self.stream.patience(within);
        let read = self.stream.read(&mut [0; 1]);
        self.stream.patience(wait::PATIENCE);
        let error = read.expect_err("the broker said something, or closed");
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    }

    /// Whether the broker says anything within this time; it is kept for [`Peer::hear`].
    #[track_caller]
    pub fn hears_within(&mut self, time: Duration) -> bool {
        if !self.buffer.is_empty() {
            return true;
        }
        self.stream.patience(time);
        let mut more = vec![0; 65_536];
        let read = self.stream.read(&mut more);
        self.stream.patience(wait::PATIENCE);
        match read {
            Ok(count) => self.buffer.extend_from_slice(&more[..count]),
            Err(error) => assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}"),
        }
        !self.buffer.is_empty()
    }

    /// Takes at most so many bytes off the connection and keeps them for [`Peer::hear`]; how many came.
    #[track_caller]
    pub fn take(&mut self, bytes_max: usize) -> usize {
        let mut more = vec![0; bytes_max];
        let count = self.stream.read(&mut more).expect("the broker says something");
        assert!(count > 0, "the broker closed");
        self.buffer.extend_from_slice(&more[..count]);
        count
    }

    /// Sends bytes over and over until the broker takes no more for this long; how many went out.
    pub fn push_until_stuck(&mut self, bytes: &[u8], within: Duration, bytes_max: usize) -> usize {
        self.stream.push(within);
        let mut said = 0;
        while said < bytes_max {
            match self.stream.write(bytes) {
                Ok(count) => said += count,
                Err(_) => break,
            }
        }
        said
    }
}
