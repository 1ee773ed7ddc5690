//! Any frame at all: a handful of random parts, and every frame as a value that borrows from them.

mod archive;
mod job;
mod link;
mod reason;
mod ring;
mod ring_admin;
mod topic;
mod worker;

use proptest::prelude::*;
use turno_proto::headers;
use turno_proto::model::ring::RingMessage;
use turno_proto::model::view::{
    BrokerView, Counters, DeadView, DiskView, ExclusiveView, JobsView, MemoryView, MessageKind, MessageState,
    MessageView, QueueSettings, QueueView,
};
use turno_proto::model::{
    Again, BroadcastConsumer, BroadcastEnd, Code, Cost, DedupId, Delivery, Durability, MessageId, Moment, Payload,
    Seconds, Slots, Token, WorkerId,
};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{
    Answer, Closing, ClosingReason, Config, Connect, Deliver, Frame, Kind, Raw, RawBroadcast, RawOutgoing, Register,
};

/// The parts of one frame.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    kind: Kind,
    seq: u32,
    word: u32,
    number: u32,
    small: u16,
    long: u64,
    bits: [bool; 6],
    text: String,
    bytes: Vec<u8>,
    code: Code,
    payload: Payload,
    choice: u8,
}

/// Any seed.
pub(crate) fn any_seed() -> impl Strategy<Value = Seed> {
    let header = (prop::sample::select(Kind::ALL), any::<u32>(), any::<u32>());
    let numbers = (any::<u32>(), any::<u16>(), any::<u64>(), any::<[bool; 6]>(), any::<u8>());
    let texts = ("\\PC{0,40}", prop::collection::vec(any::<u8>(), 0..80), prop::sample::select(Code::ALL));
    (header, numbers, texts, any_payload()).prop_map(|(header, numbers, texts, payload)| {
        let (kind, seq, word) = header;
        let (number, small, long, bits, choice) = numbers;
        let (text, bytes, code) = texts;
        Seed { kind, seq, word, number, small, long, bits, text, bytes, code, payload, choice }
    })
}

fn any_payload() -> impl Strategy<Value = Payload> {
    let headers = prop::collection::btree_map("[a-z-]{1,8}", "\\PC{0,12}", 0..4);
    let body = prop::collection::vec(any::<u8>(), 0..200);
    (headers, body).prop_map(|(headers, body)| headers::encode(&headers, &body).expect("within the limits"))
}

impl Seed {
    /// The frame made of these parts, with a token if it may have one.
    pub(crate) fn frame(&self) -> Frame<'_> {
        let frame = self.plain_frame();
        let fenced = self.bits[5] && self.kind.may_be_fenced();
        if fenced { Frame::fenced(self.long, frame) } else { frame }
    }

    fn plain_frame(&self) -> Frame<'_> {
        let &Self { seq, word, code, .. } = self;
        let raw = Raw::from(&self.payload);
        let [first, ..] = self.bits;
        match self.kind {
            Kind::Connect => Frame::Connect { seq, connect: self.connect() },
            Kind::Config => Frame::Config { seq, config: Box::new(self.config()) },
            Kind::Ping => Frame::Ping { seq },
            Kind::Pong => Frame::Pong { seq },
            Kind::Closing => Frame::Closing { closing: self.closing() },
            Kind::Error => Frame::Error { seq, code, fatal: first, detail: &self.text },
            Kind::Register => Frame::Register { seq, register: self.register() },
            Kind::Deregister => Frame::Deregister { seq },
            Kind::Resize => Frame::Resize { seq, register: self.register() },
            Kind::Consume => Frame::Consume { seq, handle: word, exclusive: first },
            Kind::QueueFull => Frame::QueueFull { seq, handle: word },
            Kind::QueueAvailableNotify => Frame::QueueAvailableNotify { seq, handle: word },
            Kind::QueueAvailable => Frame::QueueAvailable { seq, handle: word },
            Kind::CancelQueue => Frame::CancelQueue { seq, handle: word, reason: first.then_some(code) },
            Kind::Request => Frame::Request(self.outgoing()),
            Kind::Send => Frame::Send(self.outgoing()),
            Kind::Broadcast => Frame::Broadcast(self.broadcast()),
            Kind::Deliver => Frame::Deliver(self.deliver()),
            Kind::Reply => Frame::Reply { seq, word, more: first, raw },
            Kind::Ack => Frame::Ack { delivery: self.delivery() },
            Kind::Fail => Frame::Fail { delivery: self.delivery(), again: self.again(), raw },
            Kind::Progress => Frame::Progress { seq, word, raw },
            Kind::Extend => Frame::Extend { delivery: self.delivery(), lease_ms: self.number },
            Kind::Cancel => Frame::Cancel { seq, word, reason: first.then_some(code) },
            Kind::Delivered => Frame::Delivered { seq },
            Kind::Undelivered => Frame::Undelivered { seq, code, raw },
            Kind::Ok => Frame::Ok { seq },
            Kind::Stored => Frame::Stored { seq, durability: Durability::Memory, id: self.id(), duplicate: first },
            Kind::Answer => Frame::Answer(self.one_answer()),
            Kind::BroadcastEnd => Frame::BroadcastEnd { seq, end: Box::new(self.broadcast_end()) },
            Kind::Open => Frame::Open { seq, handle: word, name: &self.bytes },
            Kind::Subscribe => Frame::Subscribe { seq, filter: self.filter(), or_close: first },
            Kind::Unsubscribe => Frame::Unsubscribe { seq, filter: self.filter() },
            Kind::Publish => Frame::Publish { seq, confirm: first, event: self.event() },
            Kind::Event => Frame::Event(self.event()),
            Kind::EventsDropped => Frame::EventsDropped { count: word },
            Kind::RingHello => Frame::RingHello { hello: Box::new(self.ring_hello()) },
            Kind::RingChallenge => Frame::RingChallenge { challenge: Box::new(self.ring_challenge()) },
            Kind::RingProof => Frame::RingProof { proof: self.link_proof() },
            Kind::NewConn => self.newconn(code).into(),
            Kind::RetConn => self.retconn().into(),
            Kind::RingPublish => Frame::RingPublish(self.ring_publish()),
            Kind::ServOff => self.servoff().into(),
            Kind::ShutDwn => self.shutdwn().into(),
            Kind::RollCall => self.roll_call().into(),
            Kind::RingHave => self.ring_have().into(),
            Kind::CaughtUp => self.caught_up().into(),
            Kind::RingRefused => self.ring_refused(code).into(),
            Kind::RingProbe => RingMessage::Probe(self.circle()).into(),
            Kind::RingCircle => RingMessage::Circle(self.circle()).into(),
            Kind::RingMerge => self.merge().into(),
            Kind::RingSid if first => RingMessage::FreeSid { sid: self.sid() }.into(),
            Kind::RingSid => RingMessage::AskSid.into(),
            Kind::LinkHello => Frame::LinkHello { hello: Box::new(self.link_hello()) },
            Kind::LinkChallenge => Frame::LinkChallenge { challenge: Box::new(self.link_challenge()) },
            Kind::LinkProof => Frame::LinkProof { proof: self.link_proof() },
            Kind::Offer => self.offers().into(),
            Kind::Presence => self.presences().into(),
            Kind::Relay => self.relay().into(),
            Kind::Forward => Frame::Forward(Box::new(self.forward())),
            Kind::ForwardBroadcast => self.forward_broadcast().into(),
            Kind::ForwardEvent => self.forward_event().into(),
            Kind::AdminCall => Frame::AdminCall { seq, call: self.call() },
            Kind::AdminAnswer => Frame::AdminAnswer { seq, answer: self.answer() },
        }
    }

    fn delivery(&self) -> Delivery {
        Delivery { index: self.word, stamp: self.seq }
    }

    fn id(&self) -> MessageId {
        MessageId::new(self.long, self.long.rotate_left(17), self.number)
    }

    fn slots(&self) -> Slots {
        if self.bits[1] { Slots::Unlimited } else { Slots::Limited(self.number) }
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn connect(&self) -> Connect {
        Connect { version: self.small, name: self.text(), program: self.text(), heartbeat_ms: self.number }
    }

    fn config(&self) -> Config {
        Config {
            version: self.small,
            broker: self.text(),
            program: self.text(),
            heartbeat_ms: self.number,
            liveness: self.word,
            frame_bytes_max: self.long,
            request_deadline_ms: self.number,
            brokers: vec![self.text(); usize::from(self.choice % 4)],
        }
    }

    fn closing(&self) -> Closing {
        let reasons = [
            ClosingReason::Shutdown,
            ClosingReason::Stop,
            ClosingReason::Now,
            ClosingReason::Maintenance,
            ClosingReason::Resumed,
        ];
        Closing { reason: reasons[usize::from(self.choice) % reasons.len()], within_ms: self.long }
    }

    fn register(&self) -> Register {
        Register { slots: self.bits[1].then_some(self.long.cast_signed()), name: self.text(), key: self.text() }
    }

    fn outgoing(&self) -> RawOutgoing<'_> {
        let [deadline, retries, priority, cost, no_reply, fail_fast] = self.bits;
        RawOutgoing {
            seq: self.seq,
            handle: self.word,
            deadline_ms: deadline.then_some(self.number),
            retries: retries.then_some(self.choice),
            priority: priority.then_some(self.choice),
            cost: cost.then_some(self.small),
            dedup_id: Some(self.bytes.as_slice()).filter(|id| self.kind == Kind::Send && DedupId::check(id).is_ok()),
            delay_ms: if self.kind == Kind::Send { self.long } else { 0 },
            no_reply,
            fail_fast: fail_fast && self.kind == Kind::Request,
            cancel_on_disconnect: no_reply != fail_fast && self.kind == Kind::Request,
            payload: Raw::from(&self.payload),
        }
    }

    fn broadcast(&self) -> RawBroadcast<'_> {
        let [deadline, no_reply, skip_self, ..] = self.bits;
        let deadline_ms = deadline.then_some(self.number);
        RawBroadcast {
            seq: self.seq,
            handle: self.word,
            deadline_ms,
            no_reply,
            skip_self,
            payload: Raw::from(&self.payload),
        }
    }

    fn one_answer(&self) -> Answer<'_> {
        let [more, failed, ..] = self.bits;
        let name = self.text.as_str();
        Answer { seq: self.seq, worker: self.long, name, more, failed, raw: Raw::from(&self.payload) }
    }

    fn broadcast_end(&self) -> BroadcastEnd {
        let parties =
            vec![BroadcastConsumer { worker: WorkerId(self.long), name: self.text() }; usize::from(self.choice % 5)];
        BroadcastEnd {
            consumers: self.number,
            answered: self.word,
            failed: self.number.rotate_left(7),
            expired: self.word.rotate_left(7),
            left: u32::from(self.small),
            who_expired: parties.clone(),
            who_left: parties,
        }
    }

    fn deliver(&self) -> Deliver<'_> {
        let [deadline, wants_reply, ..] = self.bits;
        Deliver {
            delivery: self.delivery(),
            handle: self.number,
            id: self.id(),
            attempt: self.small,
            cost: Cost::from_word(self.small.rotate_left(3)),
            deadline_ms: deadline.then_some(self.number),
            wants_reply,
            token: self.bits[2].then_some(self.long),
            raw: Raw::from(&self.payload),
        }
    }

    fn call(&self) -> AdminCall {
        let [some, now, ..] = self.bits;
        let limit = self.number;
        let worker = self.text();
        match self.choice % 48 {
            0 => AdminCall::Status,
            1 => AdminCall::QueueLs { after: some.then(|| self.text()), limit },
            2 => AdminCall::QueueShow { queue: self.text() },
            3 => AdminCall::QueueConsumers { queue: self.text() },
            4 => AdminCall::WorkerLs { after: some.then_some(self.long), limit },
            5 => AdminCall::WorkerShow { worker },
            6 => AdminCall::WorkerResize { worker, slots: self.slots() },
            7 => AdminCall::WorkerDrain { worker },
            8 => AdminCall::WorkerResume { worker },
            9 => AdminCall::WorkerStop { worker, now },
            10 => AdminCall::MessageExplain { id: self.text() },
            11 => AdminCall::MessageCancel { id: self.text() },
            12 => AdminCall::QueueSet { queue: self.text(), settings: self.settings() },
            13 => AdminCall::QueuePurge { queue: self.text(), limit },
            14 => AdminCall::DeadLs { queue: self.text(), after: some.then(|| self.text()), limit },
            15 => AdminCall::DeadShow { queue: self.text(), id: self.text(), from: self.long },
            16 => AdminCall::DeadRetry { queue: self.text(), ids: self.texts(), oldest: limit },
            17 => AdminCall::Drain,
            18 => AdminCall::Resume,
            47 => AdminCall::MessageRetry { id: self.text() },
            19 => AdminCall::DeadPurge { queue: self.text(), ids: self.texts(), oldest: limit },
            other @ 20..31 => self.job_call(other - 20),
            other @ 31..39 => self.archive_call(other - 31),
            other @ 39..43 => self.link_call(other - 39),
            other => self.ring_call(other - 43),
        }
    }

    #[allow(dead_code, reason = "not every test that has seeds reads answers")]
    pub(crate) fn answer(&self) -> AdminAnswer {
        let some = self.bits[0];
        let rows = usize::from(self.small % 22);
        match self.choice % 23 {
            0 => AdminAnswer::Status { broker: Box::new(self.broker()) },
            1 => AdminAnswer::Queues { queues: vec![self.queue(); rows], next: some.then(|| self.text()) },
            2 => AdminAnswer::Queue { queue: Box::new(self.queue()) },
            3 => AdminAnswer::Consumers { consumers: vec![self.consumer(); rows], more: self.long },
            4 => AdminAnswer::Workers { workers: vec![self.worker(); rows], next: some.then_some(WorkerId(self.long)) },
            5 => AdminAnswer::Worker { worker: Box::new(self.worker()) },
            6 => AdminAnswer::DeadLetters { dead: vec![self.dead(); rows], next: some.then(|| self.text()) },
            7 => AdminAnswer::DeadLetter {
                dead: Box::new(self.dead()),
                headers: some,
                piece: self.payload.bytes.clone(),
            },
            8 => AdminAnswer::Portion { done: self.long, left: self.number.into() },
            9 => AdminAnswer::Message { explanation: Box::new(self.explanation()) },
            other @ 10..15 => self.job_answer(other - 10),
            other @ 15..20 => self.archive_answer(other - 15),
            other @ 20..22 => self.link_answer(other - 20),
            _ => AdminAnswer::Ring { ring: Box::new(self.ring()) },
        }
    }

    /// Within the years that a calendar has.
    fn moment(&self) -> Moment {
        Moment::from_unix_ms(self.long % 253_000_000_000_000)
    }

    /// Within what a number of seconds tells to the microsecond.
    fn seconds(&self) -> Seconds {
        Seconds::from_micros(self.long % (1 << 50))
    }

    fn settings(&self) -> Option<QueueSettings> {
        self.bits[0].then_some(QueueSettings {
            durable: self.bits[1].then_some(self.bits[2]),
            drop_after: self.bits[2].then_some(self.small),
            weight: self.bits[3].then_some(self.choice),
            retry_delay_seconds: self.bits[4].then(|| self.seconds()),
            retry_delay_max_seconds: self.bits[5].then(|| self.seconds()),
        })
    }

    fn texts(&self) -> Vec<String> {
        vec![self.text(); usize::from(self.choice % 4)]
    }

    fn dead(&self) -> DeadView {
        DeadView { message: self.message(), failure: self.text() }
    }

    fn counters(&self) -> Counters {
        Counters { requests: self.long, unclaimed: self.number.into(), late: 1, ..Counters::default() }
    }

    fn again(&self) -> Again {
        match self.choice % 5 {
            0 => Again::AsSet,
            1 => Again::After(self.number),
            2 => Again::Uncounted(None),
            3 => Again::Uncounted(Some(self.word)),
            _ => Again::Never,
        }
    }

    fn broker(&self) -> BrokerView {
        BrokerView {
            name: self.text(),
            version: self.text(),
            started_at: self.moment(),
            up_seconds: self.seconds(),
            draining: self.bits[1],
            maintenance: self.bits[2],
            foreman: self.bits[3].then(|| self.text()),
            connections: self.number.into(),
            workers: self.word.into(),
            slots: self.long,
            slots_used: self.small.into(),
            queues: self.seq.into(),
            ready: 0,
            delayed: self.long,
            in_flight: 1,
            dead: 127,
            jobs: JobsView {
                known: self.long,
                unfinished: self.word.into(),
                tasks_running: self.number.into(),
                tasks_lost: self.small.into(),
            },
            data: self.bits[4].then(|| self.text()),
            disk: self.bits[5].then_some(DiskView { free: self.long, total: u64::MAX }),
            bytes: 128,
            bytes_max: u64::MAX,
            memory: MemoryView { incoming: self.long, refused: self.small.into(), ..MemoryView::default() },
            links_up: self.small.into(),
            links_wanted: self.choice.into(),
            links_down: self.word.into(),
            ring: self.bits[0].then(|| Box::new(self.ring())),
            counters: self.counters(),
        }
    }

    fn queue(&self) -> QueueView {
        QueueView {
            name: self.text(),
            ready: self.long,
            delayed: self.small.into(),
            delayed_until: self.bits[4].then(|| self.moment()),
            in_flight: self.number.into(),
            dead: self.word.into(),
            dead_bytes: self.long,
            bytes: self.small.into(),
            oldest_seconds: self.bits[1].then(|| self.seconds()),
            consumers: 0,
            slots_free: 65_536,
            durable: self.bits[2],
            drop_after: self.small,
            weight: self.choice,
            retry_delay_seconds: self.seconds(),
            retry_delay_max_seconds: self.seconds(),
            settings: self.settings(),
            exclusive: self.bits[3]
                .then_some(ExclusiveView { token: Token(self.long), worker: Some(WorkerId(self.word.into())) }),
            waiters: self.small.into(),
            counters: self.counters(),
            head: self.bits[0].then(|| vec![self.message(); usize::from(self.choice % 3)]),
        }
    }

    fn message(&self) -> MessageView {
        use MessageState::{Answered, Dead, Delayed, InFlight, Ready, Stopping};
        let states = [Ready, Delayed, InFlight, Stopping, Answered, Dead];
        MessageView {
            id: self.id().to_string(),
            queue: self.text(),
            kind: [MessageKind::Request, MessageKind::Send, MessageKind::Broadcast][usize::from(self.choice % 3)],
            state: states[usize::from(self.small) % states.len()],
            attempts: self.small,
            attempts_max: 256,
            priority: self.choice,
            cost: self.small,
            bytes: self.long,
            received_at: self.moment(),
            age_seconds: self.seconds(),
            deadline_at: self.bits[4].then(|| self.moment()),
            delayed_until: self.bits[3].then(|| self.moment()),
            worker: self.bits[5].then_some(WorkerId(self.long)),
            came_by: vec![self.text(); usize::from(self.choice % 9)],
        }
    }
}
