//! Messages of peers become inputs, and effects become messages for peers.

use bytes::Bytes;
use turno_engine::{Event, EventRef, WorkerMessage};
use turno_proto::headers::{self, Headers};
use turno_proto::model::{Cost, Durability, Filter, MessageId, Payload, Topic, limits};

use super::super::endpoint::Endpoints;
use super::super::event_frames;
use super::super::settings::ZmqEndpoint;
use super::*;

pub(crate) const CONN: ConnId = ConnId { index: 3, generation: 9 };

/// The frames of a message.
type Parts = &'static [&'static [u8]];

/// A dialect, and what it said to the engine.
pub(crate) struct World {
    pub(crate) dialect: Dialect,
    endpoints: Endpoints,
    now: Mono,
    inputs: VecDeque<Input>,
    says: Vec<PeerMessage<'static>>,
    pub(crate) memory: MessageMemory,
    /// Seats that were taken.
    seats: u32,
}

impl World {
    pub(crate) fn new(theirs: SocketType, settings: ZmqEndpoint) -> Self {
        let endpoints = Endpoints::new(&[settings], 1 << 20, 0);
        let (now, mut inputs, mut says) = (Mono::ZERO, VecDeque::new(), Vec::new());
        let endpoint = endpoints.get(0).unwrap();
        let memory = MessageMemory { free: 1 << 20, most: 1 << 20 };
        let dialect = {
            let (conn, inputs, says, seat) = (CONN, &mut inputs, &mut says, &mut None);
            Dialect::begin(theirs, &mut DialectOutput { conn, endpoint, now, memory, inputs, says, seat })
        };
        Self { dialect, endpoints, now, inputs, says, memory, seats: 0 }
    }

    fn of(theirs: SocketType) -> Self {
        Self::new(theirs, settings())
    }

    pub(crate) fn with<R>(&mut self, with: impl FnOnce(&mut Dialect, &mut DialectOutput<'_>) -> R) -> R {
        let endpoint = self.endpoints.get(0).unwrap();
        let Self { dialect, now, inputs, says, memory, seats, .. } = self;
        let mut seat = Some(ConnId { index: 100 + *seats, generation: 1 });
        let (conn, now, memory) = (CONN, *now, *memory);
        let result = with(dialect, &mut DialectOutput { conn, endpoint, now, memory, inputs, says, seat: &mut seat });
        *seats += u32::from(seat.is_none());
        result
    }

    pub(crate) fn hear(&mut self, frames: &[&[u8]]) {
        let message = Message::of(frames);
        self.try_hear(&message).unwrap();
    }

    pub(crate) fn try_hear(&mut self, message: &Message<'_>) -> Result<(), Code> {
        self.with(|dialect, out| dialect.hear(message, out))
    }

    /// So much time passes.
    pub(crate) fn tick(&mut self, millis: u64) -> Result<(), Code> {
        self.now = self.now.plus_millis(millis);
        self.with(|dialect, out| dialect.tick(true, out))
    }

    /// The messages that were sent to the peer without an effect.
    pub(crate) fn said(&mut self) -> Vec<Frames> {
        std::mem::take(&mut self.says).iter().map(frames_of).collect()
    }

    pub(crate) fn delivery(&self, payload: &Payload) -> Frames {
        frames_of(&self.dialect.delivery(&deliver(payload)).unwrap())
    }

    pub(crate) fn caller_message(&mut self, seq: u32, message: CallerMessage) -> Option<Frames> {
        self.with(|dialect, out| dialect.caller_message(seq, message, out)).as_ref().map(frames_of)
    }

    pub(crate) fn take(&mut self) -> Vec<Input> {
        self.inputs.drain(..).collect()
    }

    /// The numbers and payloads of requests.
    fn requests(&mut self) -> Vec<(u32, Payload)> {
        let requests = self.take().into_iter().filter_map(|input| match input {
            Input::Request { message, .. } => Some((message.seq, message.payload)),
            Input::Open { .. } => None,
            other => panic!("{other:?}"),
        });
        requests.collect()
    }

    /// The numbers and payloads of sends.
    fn sends(&mut self) -> Vec<(u32, Payload)> {
        let sends = self.take().into_iter().map(|input| match input {
            Input::Send { message, .. } => (message.seq, message.payload),
            other => panic!("{other:?}"),
        });
        sends.collect()
    }

    fn stored(&mut self, seq: u32) {
        let id = MessageId::new(1, 1, 0);
        let stored = NativeEffect::Stored { seq, id, durability: Durability::Memory, duplicate: false };
        self.with(|dialect, out| dialect.native(&stored, out)).unwrap();
    }

    pub(crate) fn counted(&self, what: Count) -> u64 {
        self.endpoints.get(0).unwrap().counted(what)
    }
}

/// All frames of a message; those of its envelope are short.
pub(crate) fn frames_of(said: &PeerMessage<'_>) -> Frames {
    let (mut frames, mut rest) = (Frames::new(), said.envelope.encoded());
    while let [more, len, behind @ ..] = rest {
        assert_eq!(*more, 1, "others follow");
        let (frame, behind) = behind.split_at(usize::from(*len));
        frames.push(Bytes::copy_from_slice(frame));
        rest = behind;
    }
    frames.extend(said.behind().map(Bytes::copy_from_slice));
    frames
}

pub(crate) fn settings() -> ZmqEndpoint {
    ZmqEndpoint::new("127.0.0.1:1".parse().unwrap(), "q".parse().unwrap())
}

pub(crate) fn reply(body: &'static [u8], more: bool) -> CallerMessage {
    CallerMessage::Reply { more, payload: Payload::body(body) }
}

pub(crate) fn parted(lengths: &str, body: &[u8]) -> Payload {
    headers::encode(&Headers::from([("parts".to_owned(), lengths.to_owned())]), body).unwrap()
}

pub(crate) fn deliver(payload: &Payload) -> Deliver<BorrowedPayload<'_>> {
    Deliver {
        conn: CONN,
        delivery: Delivery { index: 5, stamp: 6 },
        handle: HANDLE,
        id: MessageId::new(1, 2, 0),
        attempt: 1,
        cost: Cost::ONE,
        deadline_ms: None,
        wants_reply: true,
        token: None,
        payload: BorrowedPayload { headers: payload.headers, bytes: &payload.bytes },
    }
}

#[test]
fn a_request_goes_to_the_queue_and_its_envelope_comes_back() {
    let delimiter: Parts = &[b""];
    let table: [(SocketType, Parts, Parts); 6] = [
        (SocketType::Req, &[b"", b"hi"], delimiter),
        (SocketType::Req, &[b"\0\0\0\x07", b"", b"hi"], &[b"\0\0\0\x07", b""]),
        (SocketType::Dealer, &[b"hi"], &[]),
        (SocketType::Dealer, &[b"", b"hi"], delimiter),
        (SocketType::Dealer, &[b""], &[]),
        (SocketType::Dealer, &[b"id", b"", b"hi"], &[]),
    ];
    for (theirs, message, envelope) in table {
        let mut world = World::of(theirs);
        assert_eq!(world.take(), [], "a queue is opened for who asks");
        world.hear(message);
        let requests = world.requests();
        assert_eq!(requests.len(), 1, "{message:?}");
        assert!(world.dialect.held_bytes() > 0 && world.dialect.unended() == 1);
        let (seq, payload) = &requests[0];
        let body = &message[envelope.len()..];
        assert_eq!((payload.split().1, payload.headers), (Bytes::from(body.concat()), body.len() > 1));
        let frames =
            world.caller_message(*seq, CallerMessage::Reply { more: false, payload: payload.clone() }).unwrap();
        assert_eq!(frames, message, "{theirs}");
        assert_eq!((world.dialect.held_bytes(), world.dialect.unended()), (0, 0));
        assert_eq!(world.caller_message(*seq, reply(b"again", false)), None, "one answer");
    }
}

#[test]
fn many_requests_are_told_apart() {
    let mut world = World::of(SocketType::Dealer);
    world.hear(&[b"", b"one"]);
    world.hear(&[b"two"]);
    let requests = world.requests();
    let [(one, _), (two, _)] = requests[..] else { panic!("{requests:?}") };
    assert_ne!(one, two);
    assert_eq!(world.caller_message(two, reply(b"2", false)).unwrap(), ["2"]);
    assert_eq!(world.caller_message(one, reply(b"1", false)).unwrap(), ["", "1"]);
    assert_eq!(world.dialect.held_bytes(), 0);
}

#[test]
fn a_reply_in_pieces_is_one_message() {
    let mut world = World::of(SocketType::Req);
    world.hear(&[b"", b"x"]);
    let (seq, _) = world.requests()[0];
    assert_eq!(world.caller_message(seq, reply(b"a", true)), None);
    let two = CallerMessage::Reply { more: true, payload: parted("1 1", b"bc") };
    assert_eq!(world.caller_message(seq, two), None);
    assert_eq!(world.caller_message(seq, CallerMessage::Progress { payload: Payload::default() }), None);
    assert_eq!(world.caller_message(seq, reply(b"d", false)).unwrap(), ["", "a", "b", "c", "d"]);
    assert_eq!(world.dialect.held_bytes(), 0);
}

#[test]
fn a_failure_is_withheld_and_counted_or_told_by_a_frame() {
    let failed = || CallerMessage::Undelivered { code: Code::TimedOut, payload: Payload::default() };
    let mut world = World::of(SocketType::Req);
    world.hear(&[b"", b"x"]);
    let (seq, _) = world.requests()[0];
    assert_eq!(world.caller_message(seq, failed()), None);
    assert_eq!((world.counted(Count::Withheld), world.dialect.unended()), (1, 0));
    let told = ZmqEndpoint { error_frame: Some("ERROR".to_owned()), ..settings() };
    let mut world = World::new(SocketType::Req, told);
    world.hear(&[b"", b"x"]);
    world.hear(&[b"", b"y"]);
    let requests = world.requests();
    assert_eq!(world.caller_message(requests[0].0, failed()).unwrap(), ["", "ERROR", "timed_out"]);
    let payload = parted("2 1", b"why");
    let message = CallerMessage::Undelivered { code: Code::Failed, payload };
    assert_eq!(world.caller_message(requests[1].0, message).unwrap(), ["", "ERROR", "failed", "wh", "y"]);
    assert_eq!(world.counted(Count::Withheld), 0);
}

#[test]
fn what_has_no_valid_envelope_is_dropped_and_counted() {
    let long = vec![7; limits::ZMQ_ENVELOPE_BYTES_MAX + 1];
    let bad: [&[&[u8]]; 3] = [&[b"no delimiter"], &[b""], &[&long, b"", b"x"]];
    let mut world = World::of(SocketType::Req);
    bad.iter().for_each(|message| world.hear(message));
    assert_eq!((world.take(), world.counted(Count::BadEnvelope)), (vec![], 3));
    let mut worker = World::of(SocketType::Rep);
    worker.take();
    let bad: [&[&[u8]]; 4] = [&[b"12345678"], &[b"1234567", b"", b"x"], &[b"", b"x"], &[b"x", b"12345678", b"", b"y"]];
    bad.iter().for_each(|message| worker.hear(message));
    assert_eq!((worker.take(), worker.counted(Count::BadEnvelope)), (vec![], 4));
}

/// The parts behind the envelope count, whatever the socket is.
#[test]
fn a_message_of_too_many_parts_ends_the_connection() {
    let number: &[u8] = &[0; 8];
    let table: [(SocketType, &[&[u8]]); 6] = [
        (SocketType::Req, &[b""]),
        (SocketType::Dealer, &[]),
        (SocketType::Dealer, &[b""]),
        (SocketType::Rep, &[number, b""]),
        (SocketType::Push, &[]),
        (SocketType::Pub, &[b"topic"]),
    ];
    for (theirs, envelope) in table {
        let mut world = World::of(theirs);
        world.take();
        for (parts, end) in
            [(limits::MESSAGE_PARTS_MAX, Ok(())), (limits::MESSAGE_PARTS_MAX + 1, Err(Code::TooManyParts))]
        {
            let message = Message::of(&[envelope, &vec![&b"x"[..]; parts]].concat());
            assert_eq!(world.try_hear(&message), end, "{theirs} {parts}");
            assert_eq!(world.take().is_empty(), end.is_err());
        }
    }
}

/// REP has one slot, DEALER and ROUTER those of the endpoint; the reply settles.
#[test]
fn workers_register_and_settle_by_their_reply() {
    let worker = |slots| ZmqEndpoint { role: ZmqRole::Worker, slots: Some(slots), ..settings() };
    let table = [
        (SocketType::Rep, settings(), 1),
        (SocketType::Router, settings(), limits::ZMQ_SLOTS),
        (SocketType::Dealer, worker(3), 3),
    ];
    for (theirs, settings, slots) in table {
        let mut world = World::new(theirs, settings);
        let (conn, seq) = (CONN, SETUP);
        let setup = [
            Input::Open { conn, seq, handle: HANDLE, queue: "q".parse().unwrap() },
            Input::Register { conn, seq, slots: Slots::Limited(slots), name: String::new() },
            Input::Consume { conn, seq, handle: HANDLE, exclusive: false },
        ];
        assert_eq!(world.take(), setup, "{theirs}");
        let payload = parted("1 2", b"abc");
        let frames = world.delivery(&payload);
        assert_eq!(frames[1..], ["", "a", "bc"]);
        world.hear(&[&frames[0], b"", b"x", b"", b"y"]);
        let payload = parted("1 0 1", b"xy");
        let delivery = Delivery { index: 5, stamp: 6 };
        assert_eq!(world.take(), [Input::worker(conn, delivery, WorkerMessage::Reply { more: false, payload })]);
        world.hear(&[&frames[0], b""]);
        let empty = Input::worker(conn, delivery, WorkerMessage::Reply { more: false, payload: Payload::default() });
        assert_eq!(world.take(), [empty], "an envelope alone is an empty reply");
        assert!(world.dialect.settles());
        assert_eq!(
            world.with(|dialect, out| dialect.answer(SETUP, Err(Code::TooManyQueues), out)),
            Err(Code::TooManyQueues)
        );
    }
}

/// A worker waits for a queue that another has to itself; one that was dropped from its queue begins anew.
#[test]
fn a_queue_that_is_taken_is_waited_for() {
    let mut world = World::of(SocketType::Rep);
    world.take();
    let (conn, seq, handle) = (CONN, SETUP, HANDLE);
    let full = NativeEffect::QueueFull { seq, handle };
    assert_eq!(world.with(|dialect, out| dialect.native(&full, out)), Ok(()));
    assert_eq!(world.take(), [Input::QueueAvailableNotify { conn, seq, handle }]);
    let free = NativeEffect::QueueAvailable { seq, handle };
    assert_eq!(world.with(|dialect, out| dialect.native(&free, out)), Ok(()));
    assert_eq!(world.take(), [Input::Consume { conn, seq, handle, exclusive: false }]);
    let dropped = NativeEffect::CancelQueue { handle, reason: Code::TimedOut };
    assert_eq!(world.with(|dialect, out| dialect.native(&dropped, out)), Err(Code::TimedOut));
}

/// PULL has no acknowledgement: done when all bytes are written, and not earlier.
#[test]
fn a_pull_socket_has_done_its_work_when_it_was_written() {
    let mut world = World::of(SocketType::Pull);
    assert_eq!(world.take().len(), 3);
    let payload = parted("1 2", b"abc");
    assert_eq!(world.delivery(&payload), ["a", "bc"]);
    let delivery = |stamp| Delivery { index: 1, stamp };
    world.with(|dialect, out| dialect.wrote(50, out));
    world.dialect.queued(delivery(1), 10);
    world.dialect.queued(delivery(2), 25);
    for (bytes, acked) in [(9, None), (1, Some(1)), (14, None), (1, Some(2))] {
        world.with(|dialect, out| dialect.wrote(bytes, out));
        let acked = acked.map(|stamp| Input::worker(CONN, delivery(stamp), WorkerMessage::Ack));
        assert_eq!(world.take(), acked.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn what_is_pushed_is_sent_and_counts_until_it_is_stored() {
    let mut world = World::of(SocketType::Push);
    assert_eq!(world.take().len(), 1);
    for frames in [&[&b"one"[..]][..], &[b"", b"two"]] {
        world.hear(frames);
    }
    let inputs = world.take();
    let [Input::Send { message: one, .. }, Input::Send { message: two, .. }] = &inputs[..] else {
        panic!("{inputs:?}")
    };
    assert_eq!((&one.payload, &two.payload), (&Payload::body("one"), &parted("0 3", b"two")));
    assert_eq!((one.handle, world.dialect.unended()), (HANDLE, 2));
    world.stored(one.seq);
    assert_eq!(world.caller_message(two.seq, CallerMessage::undelivered(Code::UnknownHandle)), None);
    assert_eq!((world.dialect.unended(), world.counted(Count::Refused)), (0, 1));
}

/// A message that the engine has no room for is tried again, one after the other and in order; nothing comes between.
#[test]
fn what_is_refused_for_lack_of_room_is_kept() {
    for code in [Code::OverMemory, Code::OverDisk, Code::Closing] {
        let mut world = World::of(SocketType::Push);
        world.take();
        [&b"1"[..], b"2", b"3"].iter().for_each(|body| world.hear(&[body]));
        let sends = world.sends();
        world.stored(sends[0].0);
        for (seq, _) in &sends[1..] {
            assert_eq!(world.caller_message(*seq, CallerMessage::undelivered(code)), None);
        }
        assert!(world.dialect.held() > 0 && world.dialect.held_bytes() > 0);
        world.hear(&[b"4"]);
        assert_eq!(world.take(), [], "it waits behind them");
        world.memory.free = 0;
        world.tick(1).unwrap();
        assert_eq!(world.take(), [], "the engine would refuse it");
        world.memory.free = 1 << 20;
        for body in [&b"2"[..], b"3", b"4"] {
            world.tick(1).unwrap();
            let sends = world.sends();
            assert_eq!((sends.len(), &sends[0].1), (1, &Payload::body(body)));
            world.caller_message(sends[0].0, CallerMessage::undelivered(code));
            world.tick(1).unwrap();
            let again = world.sends();
            assert_eq!((again.len(), &again[0].1), (1, &Payload::body(body)));
            world.stored(again[0].0);
            // The next one went out with that, and is refused.
            for (seq, _) in world.sends() {
                world.caller_message(seq, CallerMessage::undelivered(code));
            }
        }
        assert_eq!((world.dialect.held(), world.dialect.unended(), world.dialect.held_bytes()), (0, 0, 0));
        assert_eq!(world.counted(Count::Refused), 0);
    }
}

/// A message that is longer than all memory for messages can never be stored.
#[test]
fn what_never_has_room_is_refused() {
    let mut world = World::of(SocketType::Push);
    world.take();
    world.memory = MessageMemory { free: 0, most: 1_000 };
    world.hear(&[b"short"]);
    world.hear(&[&[1; 2_000]]);
    assert_eq!((world.take(), world.dialect.unended()), (vec![], 2));
    world.memory.free = 1_000;
    world.tick(1).unwrap();
    let short = world.sends();
    world.memory.free = 0;
    world.stored(short[0].0);
    let long = world.sends();
    world.caller_message(long[0].0, CallerMessage::undelivered(Code::OverMemory));
    assert_eq!((world.dialect.unended(), world.counted(Count::Refused)), (0, 1));
}

fn published(message: &[&[u8]], prefix: &str) -> Option<Event> {
    let mut world = World::new(SocketType::Pub, ZmqEndpoint { topic: prefix.to_owned(), ..settings() });
    world.hear(message);
    let inputs = world.take();
    assert_eq!(world.counted(Count::BadTopic) == 1, inputs.is_empty());
    inputs.into_iter().next().map(|input| match input {
        Input::Publish { event, confirm: false, .. } => event,
        other => panic!("{other:?}"),
    })
}

/// An event of one socket reaches another of the same endpoint, frame by frame.
#[test]
fn what_is_published_comes_out_as_it_was() {
    let table: [(&[&[u8]], &str, &str); 6] = [
        (&[b"news.a", b"body"], "", "news.a"),
        (&[b"news.a", b"x", b"", b"y"], "", "news.a"),
        (&[b"news.a", b"body"], "plant-1.", "plant-1.news.a"),
        (&[b"10001 80 20"], "", "10001"),
        (&[b"status"], "p.", "p.status"),
        (&["wetter.köln".as_bytes(), b""], "", "wetter.köln"),
    ];
    for (message, prefix, topic) in table {
        let event = published(message, prefix).unwrap();
        assert_eq!(event.topic.as_str(), topic);
        assert_eq!(event_frames(EventRef::from(&event), prefix), message);
    }
    let bad: [&[&[u8]]; 6] =
        [&[b""], &[b"", b"x"], &[b"two words", b"x"], &[b"a..b", b"x"], &[b"\xff\xfe", b"x"], &[b"a.*", b"x"]];
    for message in bad {
        assert_eq!(published(message, ""), None, "{message:?}");
    }
    let topic: Topic = "a.b".parse().unwrap();
    assert_eq!(event_frames(EventRef::passing(&topic, false, b"x"), ""), ["a.b", "x"], "of a native publisher");
}

#[test]
fn subscriptions_are_prefixes() {
    let mut world = World::new(SocketType::Sub, ZmqEndpoint { topic: "p.".to_owned(), ..settings() });
    let mut said = |prefix: &[u8], wants| {
        world.with(|dialect, out| dialect.hear_subscription(prefix, wants, out));
        let told = world.take().into_iter().map(|input| match input {
            Input::Subscribe { filter: Filter::Prefix(prefix), or_close: false, .. } => {
                format!("+{}", prefix.escape_ascii())
            }
            Input::Unsubscribe { filter: Filter::Prefix(prefix), .. } => format!("-{}", prefix.escape_ascii()),
            other => panic!("{other:?}"),
        });
        told.collect::<Vec<_>>().concat()
    };
    let table: [(&[u8], bool, &str); 11] = [
        (b"a", true, "+p.a"),
        (b"a", true, ""),
        (b"a 8", true, ""),
        (b"", true, "+p."),
        (b"\xff", true, "+p.\\xff"),
        (b"a", false, ""),
        (b"a", false, ""),
        (b"a 9", false, "-p.a"),
        (b"a", false, ""),
        (b"", false, "-p."),
        (&[b'x'; limits::TOPIC_BYTES_MAX], true, ""),
    ];
    for (prefix, wants, expected) in table {
        assert_eq!(said(prefix, wants), expected, "{} {wants}", prefix.escape_ascii());
    }
    assert_eq!(world.counted(Count::BadTopic), 1);
    world.hear(&[b"an XSUB socket may say this"]);
    assert_eq!((world.take(), world.counted(Count::Refused)), (vec![], 1));
}

/// 100,000 subscriptions of one peer: as many as a connection may have, the others are counted.
#[test]
fn subscriptions_have_a_limit() {
    let mut world = World::of(SocketType::Sub);
    for number in 0..100_000_u32 {
        world.with(|dialect, out| dialect.hear_subscription(number.to_string().as_bytes(), true, out));
    }
    assert_eq!(world.take().len() + usize::try_from(world.counted(Count::Refused)).unwrap(), 100_000);
    assert!(world.dialect.held_bytes() <= limits::SUBSCRIPTIONS_MAX * 128);
}
