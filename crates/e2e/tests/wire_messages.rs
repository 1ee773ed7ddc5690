//! What a message carries, and the ways a request can end.

use std::time::Duration;

use turno_e2e::{Broker, Peer};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{Code, Slots};
use turno_proto::native::{Deliver, Frame, Raw, RawOutgoing, encode};

/// A request, to the worker and back; the worker answers with what it got.
#[track_caller]
fn echo(client: &mut Peer, worker: &mut Peer, body: &[u8]) {
    let seq = client.request(body);
    let (delivery, arrived, _) = worker.delivery();
    assert!(arrived == body, "{} bytes arrived as {}", body.len(), arrived.len());
    worker.reply(delivery, &arrived);
    let (of, answer) = client.answer();
    assert_eq!(of, seq);
    assert!(answer == body, "{} bytes came back as {}", body.len(), answer.len());
}

/// Proves S1.34, S1.23, S0.35 and I4: bodies are bytes; empty, every value, long, and up to the last byte allowed.
#[test]
fn any_bytes_are_a_body() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::client(broker.address(), "q");
    let all: Vec<u8> = (0..=255).collect();
    let long: Vec<u8> = (0_u32..1 << 18).flat_map(|number| number.wrapping_mul(0x9E37_79B9).to_le_bytes()).collect();
    let longest: Vec<u8> = long.iter().copied().cycle().take(16 * 1024 * 1024 - 16).collect();
    for body in [&b""[..], b"\0", b"\x47\xC0", &all, &long, &longest] {
        echo(&mut client, &mut worker, body);
    }
    // The broker's own word for how long a frame may be is the truth to the byte.
    let mut over = Peer::client(broker.address(), "q");
    over.request(&[longest.as_slice(), b"!"].concat());
    assert_eq!(over.closed_with(), Code::FrameTooLarge);
    echo(&mut client, &mut worker, b"others go on");
}

/// Proves S1.17, S1.23 and S0.35: the header block is passed on as it is, whatever is in it.
#[test]
fn headers_are_forwarded_untouched() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::client(broker.address(), "q");
    let blocks: [&[u8]; 4] = [
        b"\x00\x00body",
        b"\x05\x00\x81\xA1k\xA1v",
        // Not even a map: the reader refuses it, not the broker.
        b"\x03\x00\xC1\xFF\x00body",
        b"\x09\x00\x82\xA1k\xA1v\xA1k\xA1wtwice the same key",
    ];
    for bytes in blocks {
        let seq = client.request_with(b"", |message| message.payload = Raw { headers: true, bytes });
        let delivery = worker.hear(|frame| match frame {
            Frame::Deliver(Deliver { delivery, raw, .. }) => {
                assert_eq!(raw, Raw { headers: true, bytes });
                delivery
            }
            other => panic!("expected DELIVER: {other:?}"),
        });
        let raw = Raw { headers: true, bytes };
        worker.say(&Frame::Reply { seq: delivery.stamp, word: delivery.index, more: false, raw });
        client.hear(|frame| assert_eq!(frame, Frame::Reply { seq, word: 0, more: false, raw }));
    }
}

fn piece(seq: u32, more: bool, bytes: &[u8]) -> Frame<'_> {
    Frame::Reply { seq, word: 0, more, raw: Raw { headers: false, bytes } }
}

/// Proves I5, I12 and S0.28: the pieces of a reply come in order, with word of progress between them, and the last one
/// is the outcome. What the worker says afterwards reaches nobody.
#[test]
fn a_streamed_reply_comes_in_order() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(2), "w");
    let mut client = Peer::client(broker.address(), "q");
    let seqs = [client.request(b"a"), client.request(b"b")];
    let deliveries = [worker.delivery().0, worker.delivery().0];
    for number in 0..100_u8 {
        for delivery in deliveries {
            worker.piece(delivery, &[number]);
        }
        worker.progress(deliveries[0], &[number]);
    }
    for delivery in deliveries {
        worker.reply(delivery, b"end");
        worker.piece(delivery, b"after the end");
    }
    for number in 0..100_u8 {
        let bytes = [number];
        for seq in seqs {
            client.hear(|frame| assert_eq!(frame, piece(seq, true, &bytes)));
        }
        let raw = Raw { headers: false, bytes: &bytes };
        client.hear(|frame| assert_eq!(frame, Frame::Progress { seq: seqs[0], word: 0, raw }));
    }
    for seq in seqs {
        client.hear(|frame| assert_eq!(frame, piece(seq, false, b"end")));
    }
    worker.sync();
    client.sync();
    assert_eq!(client.status().counters.doubled, 2);
}

/// Proves S2.35 and I12: a stream that was begun is not begun again elsewhere, even with retries left.
#[test]
fn a_stream_cut_short_is_not_begun_again() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::client(broker.address(), "q");
    let seq = client.request_with(b"x", |message| message.retries = Some(5));
    let (delivery, ..) = worker.delivery();
    worker.piece(delivery, b"first");
    let raw = Raw { headers: false, bytes: b"first" };
    client.hear(|frame| assert_eq!(frame, Frame::Reply { seq, word: 0, more: true, raw }));
    drop(worker);
    assert_eq!(client.undelivered(), (seq, Code::WorkerLost));
}

/// Proves S2.11, S2.12 and S2.36: a request that wants no reply is done when it is written to a worker, is never
/// delivered twice, and holds its slot until the worker settles it.
#[test]
fn no_reply_is_answered_delivered() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    let no_reply = |message: &mut RawOutgoing<'_>| {
        message.no_reply = true;
        message.retries = Some(3);
    };
    let seq = client.request_with(b"1", no_reply);
    client.sync();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    client.hear(|frame| assert_eq!(frame, Frame::Delivered { seq }));
    let (delivery, ..) = worker.delivery();
    let second = client.request_with(b"2", no_reply);
    client.sync();
    worker.ack(delivery);
    client.hear(|frame| assert_eq!(frame, Frame::Delivered { seq: second }));
    assert_eq!(worker.delivery().1, b"2");
    drop(worker);
    let mut other = Peer::worker(broker.address(), "q", Slots::Limited(1), "other");
    other.sync();
    let status = client.status();
    assert_eq!((status.ready, status.in_flight, status.counters.deliveries), (0, 0, 2));
}

/// Proves S1.33, S0.27 and S2.39: with fail_fast a queue without workers is told at once; without it the request waits.
#[test]
fn fail_fast_fails_only_without_a_worker() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    let seq = client.request_with(b"x", |message| message.fail_fast = true);
    assert_eq!(client.undelivered(), (seq, Code::NoResponder));
    let patient = client.request(b"patient");
    client.sync();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let (delivery, body, _) = worker.delivery();
    assert_eq!(body, b"patient");
    // The worker is busy, but it is there: fail_fast waits for it.
    let waits = client.request_with(b"waits", |message| message.fail_fast = true);
    client.sync();
    worker.reply(delivery, b"1");
    assert_eq!(client.answer().0, patient);
    let (delivery, body, _) = worker.delivery();
    assert_eq!(body, b"waits");
    worker.reply(delivery, b"2");
    assert_eq!(client.answer().0, waits);
}

/// Proves I12 and I9: a caller gives up a waiting request and a running one; the worker is told, and its slot is
/// free when it has stopped.
#[test]
fn a_caller_cancels_what_waits_and_what_runs() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::client(broker.address(), "q");
    let running = client.request(b"running");
    let waiting = client.request(b"waiting");
    let next = client.request(b"next");
    let (delivery, ..) = worker.delivery();
    client.cancel(waiting);
    assert_eq!(client.undelivered(), (waiting, Code::Cancelled));
    client.cancel(running);
    assert_eq!(client.undelivered(), (running, Code::Cancelled));
    assert_eq!(worker.cancelled(), (delivery, Code::Cancelled));
    let status = client.status();
    assert_eq!((status.ready, status.slots_used), (1, 1), "the slot is the worker's to free");
    worker.fail(delivery, b"stopped");
    let (delivery, body, _) = worker.delivery();
    assert_eq!(body, b"next");
    worker.reply(delivery, b"done");
    assert_eq!(client.answer().0, next);
    // Over is over: no answer to a second CANCEL, nor to one of nothing.
    for seq in [waiting, running, next, 77] {
        client.cancel(seq);
    }
    client.sync();
    assert_eq!(client.status().counters.cancelled, 2);
}

/// Proves S2.38, I13 and I9: a deadline ends a request that waits and one that runs; CANCEL reaches the worker, and the
/// slot comes back when it settles, not before.
#[test]
fn a_deadline_ends_what_waits_and_what_runs() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::client(broker.address(), "q");
    let running = client.request_with(b"running", |message| message.deadline_ms = Some(800));
    let waiting = client.request_with(b"waiting", |message| message.deadline_ms = Some(100));
    let (delivery, ..) = worker.delivery();
    assert_eq!(client.undelivered(), (waiting, Code::TimedOut));
    assert_eq!(client.undelivered(), (running, Code::TimedOut));
    assert_eq!(worker.cancelled(), (delivery, Code::TimedOut));
    let last = client.request(b"last");
    client.sync();
    assert_eq!(client.status().slots_used, 1);
    worker.reply(delivery, b"too late");
    let (second, body, _) = worker.delivery();
    assert_eq!(body, b"last");
    worker.reply(second, b"in time");
    assert_eq!(client.answer(), (last, b"in time".to_vec()));
    let counters = client.status().counters;
    assert_eq!((counters.expired, counters.late, counters.replied), (2, 1, 1));
}

/// Proves S1.35 and I12: the caller goes away. What waited ends, what ran goes on, and its reply reaches nobody, not
/// even a client that uses the same numbers.
#[test]
fn a_caller_that_vanishes_leaves_nothing_behind() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut gone = Peer::client(broker.address(), "q");
    let running = gone.request(b"running");
    gone.request(b"waiting");
    gone.sync();
    let (delivery, ..) = worker.delivery();
    drop(gone);
    let mut heir = Peer::client(broker.address(), "q");
    turno_e2e::wait::until("the waiting request is gone", || heir.status().ready == 0);
    let own = heir.request(b"own");
    assert!(own > running, "the numbers of both overlap");
    worker.reply(delivery, b"for nobody");
    let (delivery, body, _) = worker.delivery();
    assert_eq!(body, b"own");
    heir.sync();
    worker.reply(delivery, b"mine");
    assert_eq!(heir.answer(), (own, b"mine".to_vec()));
    let status = heir.status();
    assert_eq!((status.counters.unclaimed, status.in_flight, status.bytes), (1, 0, 0));
}

/// Proves S1.15: the Unix socket in the data directory speaks the same protocol, and only its owner may.
#[test]
fn the_unix_socket_works() {
    use std::os::unix::fs::PermissionsExt as _;
    let broker = Broker::start();
    let mode = std::fs::metadata(broker.unix()).expect("the socket is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut worker = Peer::silent_unix(&broker.unix());
    worker.greet(0);
    worker.open("q");
    worker.work(Slots::Limited(1), "local");
    let mut client = Peer::silent_unix(&broker.unix());
    client.greet(0);
    client.open("q");
    echo(&mut client, &mut worker, &vec![b'x'; 1 << 20]);
    let address = client.workers()[0].address.clone();
    assert_eq!(address, format!("unix:{}", std::process::id()));
    let url = format!("unix:{}", broker.unix().display());
    let answered = broker.start_turno(&["request", "q", "hi", "--timeout", "1m", "--url", &url]);
    let (delivery, body, _) = worker.delivery();
    assert_eq!(body, b"hi");
    worker.reply(delivery, b"hello");
    assert_eq!(answered.expect_line("hello"), "hello");
    // absence: nobody else was asked.
    worker.hears_nothing(Duration::from_millis(100));
}

/// Frames that a peer sends at once are all handled, in many turns and without another byte of its; and others are
/// answered meanwhile.
#[test]
fn many_calls_at_once_are_all_answered() {
    const CALLS: u32 = 5_000;
    let broker = Broker::start();
    let (mut many, mut other) = (Peer::greeted(broker.address(), 0), Peer::greeted(broker.address(), 0));
    let mut bytes = Vec::new();
    for seq in 1..=CALLS {
        encode(&Frame::AdminCall { seq, call: AdminCall::MessageCancel { id: "none".into() } }, &mut bytes);
    }
    many.say_bytes(&bytes);
    other.say(&Frame::Ping { seq: 9 });
    other.hear(|frame| assert_eq!(frame, Frame::Pong { seq: 9 }));
    for number in 1..=CALLS {
        many.hear(|frame| {
            assert!(matches!(frame, Frame::Error { seq, code: Code::NotFound, .. } if seq == number), "{frame:?}");
        });
    }
}
