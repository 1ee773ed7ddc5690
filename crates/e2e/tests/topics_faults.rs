//! Topics under bad input and bad readers.

use turno_e2e::{Broker, Peer, Place, process, wait};
use turno_proto::model::{Code, Filter, limits};
use turno_proto::native::admin::AdminCall;
use turno_proto::native::{Frame, Raw, RawEvent};

/// What is no topic or no filter is told before a broker is asked, in short, and without what steers a terminal.
#[test]
fn what_is_no_topic_is_wrong_usage() {
    let place = Place::new();
    let (long, deep) = ("x".repeat(100_000), ["x"; 33].join("."));
    let neither = ["", "a b", "a\tb", "a\u{1b}[2J", "a..b", ".a", "a.", ".", "*x", "a.b*", "a>", &long, &deep];
    let no_topic = ["*", "a.*", ">", "a.>"];
    let no_filter = ["a.>.b", ">.a", ">.>"];
    let refused = |words: &[&str]| {
        let run = place.run(words).expect(2);
        assert_eq!(run.text(), "", "{words:?}");
        assert!(run.stderr.ends_with("code: bad_topic (turno explain bad_topic)\n"), "{}", run.stderr);
        assert!(run.stderr.len() < 1_000 && !run.stderr.contains('\u{1b}'), "{}", run.stderr);
        assert_eq!(place.run([words, &["--json"]].concat()).expect(2).error_code(), "bad_topic");
    };
    for text in neither.iter().chain(&no_topic).chain(&no_filter) {
        refused(&["pub", text, "x"]);
        refused(&["topic", "subscribers", text]);
        refused(&["topic", "ls", "--after", text]);
    }
    for text in neither.iter().chain(&no_filter) {
        refused(&["sub", "good", text]);
        refused(&["topic", "create", "shop", "good", text]);
    }
    refused(&["sub", "--prefix", &long]);
}

/// A frame by hand.
fn frame(kind: u8, flags: u8, seq: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x47, 0xC0, kind, flags];
    bytes.extend(seq.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(u32::try_from(rest.len()).expect("short enough").to_le_bytes());
    bytes.extend(rest);
    bytes
}

const SUBSCRIBE: u8 = 64;
const PUBLISH: u8 = 66;
const PREFIX: u8 = turno_proto::native::flags::PREFIX;

/// The same from a peer that writes frames by hand: refused, and the connection goes on.
#[test]
fn bad_frames_are_refused_and_nothing_more() {
    let broker = Broker::start();
    let mut peer = Peer::greeted(broker.address(), 0);
    peer.subscribe(">", false);
    let mebibyte = vec![b'x'; 1 << 20];
    let many_dots = vec![b'.'; 1 << 20];
    let table: [(u8, u8, &[u8], Code); 12] = [
        (SUBSCRIBE, 0, &mebibyte, Code::BadTopic),
        (SUBSCRIBE, 0, &many_dots, Code::BadTopic),
        (SUBSCRIBE, PREFIX, &mebibyte, Code::BadTopic),
        (SUBSCRIBE, 0, b"", Code::BadTopic),
        (SUBSCRIBE, 0, b"\xff\xfe", Code::BadTopic),
        (SUBSCRIBE, 0, b"a\0b", Code::BadTopic),
        (SUBSCRIBE, 0, b"a.>.b", Code::BadTopic),
        (SUBSCRIBE, 0, b"*x", Code::BadTopic),
        (PUBLISH, 0, b"\x00body", Code::BadTopic),
        (PUBLISH, 0, b"\x01\xffbody", Code::BadTopic),
        (PUBLISH, 0, b"\x03a.*body", Code::BadTopic),
        (PUBLISH, 0, b"\x03a\x1bbbody", Code::BadTopic),
    ];
    for (seq, (kind, flags, rest, code)) in (1_000..).zip(table) {
        peer.say_bytes(&frame(kind, flags, seq, rest));
        assert_eq!(peer.refused(), (seq, code), "{kind} {:?}", &rest[..rest.len().min(20)]);
    }
    peer.say(&Frame::Unsubscribe { seq: 7, filter: "never".parse::<Filter>().expect("a filter") });
    assert_eq!(peer.refused(), (7, Code::NotFound));
    for filter in ["x".repeat(1 << 20), "a.>.b".to_owned()] {
        let call = AdminCall::TopicCreate { id: "shop".to_owned(), filters: vec![filter] };
        peer.say(&Frame::AdminCall { seq: 8, call });
        assert_eq!(peer.refused(), (8, Code::BadTopic));
    }
    let call = AdminCall::TopicCreate { id: "shop".to_owned(), filters: vec!["t".to_owned(); limits::MAP_VALUES_MAX] };
    peer.say(&Frame::AdminCall { seq: 9, call });
    assert_eq!(peer.refused(), (9, Code::BadBody));
    peer.publish("still", b"there", false);
    assert_eq!(peer.event(), Ok(("still".to_owned(), b"there".to_vec())));
    assert_eq!(broker.subscribers().len(), 1);
}

/// Only a broker says EVENT, and a frame has what it announces.
#[test]
fn a_peer_that_makes_no_sense_is_closed() {
    let broker = Broker::start();
    for rest in [&b""[..], b"\xffshort", b"\x05four"] {
        let mut peer = Peer::greeted(broker.address(), 0);
        peer.say_bytes(&frame(PUBLISH, 0, 9, rest));
        assert_eq!(peer.closed_with(), Code::BadFrame);
    }
    for frame in [
        Frame::Event(RawEvent { topic: b"t", payload: Raw { headers: false, bytes: b"x" } }),
        Frame::EventsDropped { count: u32::MAX },
    ] {
        let mut peer = Peer::greeted(broker.address(), 0);
        peer.say(&frame);
        assert_eq!(peer.closed_with(), Code::WrongDirection);
    }
}

/// Headers that make no sense reach their reader as part of the body, as all that a publisher says.
#[test]
fn headers_that_cannot_be_read_hold_nobody_up() {
    let broker = Broker::start();
    broker.run(&["topic", "create", "shop", "t"]).expect(0);
    let listener = broker.listen(&["t"]);
    let mut peer = Peer::greeted(broker.address(), 0);
    // A block of four bytes that is no map.
    let event = RawEvent { topic: b"t", payload: Raw { headers: true, bytes: b"\x04\x00junk body" } };
    peer.say(&Frame::Publish { seq: 5, confirm: true, event });
    peer.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 5 }));
    peer.publish("t", b"good", false);
    let expected = ["t \u{4}\0junk body", "t good"];
    wait::until("both are heard", || listener.stdout() == expected);
    assert_eq!(broker.run(&["topic", "recv", "shop"]).expect(0).text().lines().collect::<Vec<_>>(), expected);
}

/// One connection has so many filters and no more; they end with it.
#[test]
fn too_many_filters_are_refused() {
    let broker = Broker::start();
    let mut peer = Peer::greeted(broker.address(), 0);
    let filter = |number: usize| format!("t.{number}").parse::<Filter>().expect("a filter");
    for number in 0..limits::SUBSCRIPTIONS_MAX {
        let seq = u32::try_from(number).expect("few") + 1_000;
        peer.say(&Frame::Subscribe { seq, filter: filter(number), or_close: false });
        peer.hear(|frame| assert_eq!(frame, Frame::Ok { seq }));
    }
    peer.say(&Frame::Subscribe { seq: 7, filter: filter(limits::SUBSCRIPTIONS_MAX), or_close: false });
    assert_eq!(peer.refused(), (7, Code::TooManySubscriptions));
    broker.publish("t.9999", "still heard");
    assert_eq!(peer.event(), Ok(("t.9999".to_owned(), b"still heard".to_vec())));
    assert_eq!(broker.subscribers()[0]["filters_all"], limits::SUBSCRIPTIONS_MAX);
    drop(peer);
    broker.await_subscribers(0);
    assert_eq!(broker.run(&["topic", "ls", "--json"]).expect(0).json()["topics"][0]["subscribers"], 0);
}

const LARGE: usize = 1 << 20;
const MANY: u8 = 40;

/// Proves I21 for events: who reads nothing misses the oldest, which is counted where everybody can see it and told where
/// they are missing; its memory is bounded, and everyone else hears everything at once.
#[test]
fn who_reads_nothing_misses_events_and_holds_nobody_up() {
    let mut broker = Broker::start();
    let id = broker.process().id();
    let mut slow = Peer::greeted(broker.address(), 0);
    slow.subscribe("t", false);
    let mut quick = Peer::greeted(broker.address(), 0);
    quick.subscribe("t", false);
    let mut publisher = Peer::greeted(broker.address(), 0);
    let before = process::memory_now(id);
    for number in 0..MANY {
        publisher.publish("t", &vec![number; LARGE], false);
        let (_, body) = quick.event().expect("nothing is missing");
        assert_eq!((body.len(), body[0]), (LARGE, number));
    }
    let grown = process::memory_peak(id).saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes for {MANY} MiB of events");
    let dropped = || {
        let rows = broker.subscribers();
        assert!(rows.len() == 2 && rows.iter().all(|row| row["events"] == MANY), "{rows:?}");
        rows.iter().filter_map(|row| row["dropped"].as_u64()).sum::<u64>()
    };
    wait::until("what it missed is counted", || dropped() > 0);
    let (mut heard, mut missing, mut last) = (0, 0, None);
    while last != Some(MANY - 1) {
        match slow.event() {
            Ok((_, body)) => {
                assert_eq!(body.len(), LARGE);
                assert!(last < Some(body[0]), "{} after {last:?}", body[0]);
                (heard, last) = (heard + 1, Some(body[0]));
            }
            Err(count) => missing += u64::from(count),
        }
    }
    assert_eq!(heard + missing, u64::from(MANY));
    wait::until("all that it missed is counted", || dropped() == missing);
    publisher.publish("t", b"after", false);
    assert_eq!(slow.event(), Ok(("t".to_owned(), b"after".to_vec())), "it goes on");
}

/// Who would rather be closed than miss something is, with the reason; the others hear everything.
#[test]
fn who_reads_nothing_may_rather_be_closed() {
    let broker = Broker::start();
    let mut slow = Peer::greeted(broker.address(), 0);
    slow.subscribe("t", true);
    let mut quick = Peer::greeted(broker.address(), 0);
    quick.subscribe("t", true);
    let mut publisher = Peer::greeted(broker.address(), 0);
    for number in 0..MANY {
        publisher.publish("t", &vec![number; LARGE], false);
        assert_eq!(quick.event().map(|(_, body)| body[0]), Ok(number));
    }
    broker.await_subscribers(1);
    let mut next = 0;
    let code = loop {
        let last = slow.hear(|frame| match frame {
            Frame::Event(event) => {
                assert_eq!(event.payload.bytes[0], next, "without a gap");
                None
            }
            Frame::Error { code, fatal: true, .. } => Some(code),
            other => panic!("expected EVENT or the end: {other:?}"),
        });
        match last {
            None => next += 1,
            Some(code) => break code,
        }
    };
    assert_eq!((code, next < MANY), (Code::SlowReader, true));
    assert_eq!(slow.try_hear(|frame| format!("{frame:?}").len()), None, "nothing comes after the last frame");
    publisher.publish("t", b"after", false);
    assert_eq!(quick.event(), Ok(("t".to_owned(), b"after".to_vec())));
}

/// Answers are not held up behind events that wait: who is slow with those can still ask.
#[test]
fn events_that_wait_hold_no_answer_up() {
    let broker = Broker::start();
    let mut slow = Peer::greeted(broker.address(), 0);
    slow.subscribe("t", false);
    let mut publisher = Peer::greeted(broker.address(), 0);
    for number in 0..MANY {
        publisher.publish("t", &vec![number; LARGE], false);
    }
    publisher.sync();
    slow.say(&Frame::Ping { seq: 77 });
    let mut before = 0;
    loop {
        let pong = slow.hear(|frame| match frame {
            Frame::Event(_) | Frame::EventsDropped { .. } => false,
            Frame::Pong { seq: 77 } => true,
            other => panic!("expected EVENT or PONG: {other:?}"),
        });
        if pong {
            break;
        }
        before += 1;
    }
    // What the broker kept apart comes behind the answer.
    assert!(slow.hears_within(wait::PATIENCE), "{before} frames came before the answer and none after it");
}
