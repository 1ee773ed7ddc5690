//! What a peer may get wrong about the rules of queues, with real frames: each has the outcome that the protocol's page
//! states, and everything else goes on.

use turno_e2e::{Broker, Peer};
use turno_proto::model::{Again, Code, Delivery, Slots};
use turno_proto::native::{Deliver, FencedFrame, Frame, Raw};

fn body(bytes: &[u8]) -> Raw<'_> {
    Raw { headers: false, bytes }
}

/// A worker that is registered, and consumes nothing yet.
fn idle(broker: &Broker) -> Peer {
    let mut peer = Peer::client(broker.address(), "q");
    peer.register(Slots::Limited(3), "w");
    peer
}

/// CONSUME that is accepted; the token if the queue is the peer's alone.
fn consume(peer: &mut Peer, seq: u32, exclusive: bool) -> Option<u64> {
    peer.say(&Frame::Consume { seq, handle: 0, exclusive });
    peer.hear(|frame| match frame {
        Frame::Ok { seq: of } if of == seq => None,
        Frame::Fenced { token, frame: FencedFrame::Ok { seq: of } } if of == seq => Some(token),
        other => panic!("{other:?} accepts no CONSUME"),
    })
}

fn delivery(peer: &mut Peer, token: Option<u64>) -> Delivery {
    peer.hear(|frame| match frame {
        Frame::Deliver(Deliver { delivery, token: with, .. }) if with == token => delivery,
        other => panic!("{other:?} is no delivery with the token {token:?}"),
    })
}

/// Proves S2.20, S2.21, S2.22 and S2.23: a second CONSUME is `already_consuming` whichever way, a wish without a refusal
/// is `not_refused`, and the first CONSUME holds as it is.
#[test]
fn a_queue_is_consumed_once() {
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let broker = Broker::start_with(&["--memory"]);
        let mut worker = idle(&broker);
        worker.say(&Frame::QueueAvailableNotify { seq: 9, handle: 0 });
        assert_eq!(worker.refused(), (9, Code::NotRefused), "nothing was asked for");
        let token = consume(&mut worker, 10, first);
        assert_eq!(token.is_some(), first);
        worker.say(&Frame::Consume { seq: 11, handle: 0, exclusive: second });
        assert_eq!(worker.refused(), (11, Code::AlreadyConsuming), "{first} {second}");
        worker.say(&Frame::QueueAvailableNotify { seq: 12, handle: 0 });
        assert_eq!(worker.refused(), (12, Code::NotRefused), "it has the queue");
        let mut client = Peer::client(broker.address(), "q");
        client.request(b"x");
        let delivery = delivery(&mut worker, token);
        worker.reply(delivery, b"y");
        assert_eq!(client.answer().1, b"y");
    }
}

/// Proves I12 and I13: CANCEL of a number that was never used, is another's, or is over, and a second one, have no answer
/// and no effect.
#[test]
fn there_is_nothing_to_cancel() {
    let broker = Broker::start_with(&["--memory"]);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(2), "w");
    let (mut client, mut other) = (Peer::client(broker.address(), "q"), Peer::client(broker.address(), "q"));
    client.cancel(77);
    client.sync();
    let seq = client.request(b"a");
    let (first, ..) = worker.delivery();
    other.cancel(seq);
    other.sync();
    worker.cancel(seq);
    worker.sync();
    worker.reply(first, b"A");
    assert_eq!(client.answer(), (seq, b"A".to_vec()), "nobody else can cancel it");
    client.cancel(seq);
    client.sync();
    let seq = client.request(b"b");
    let (second, ..) = worker.delivery();
    client.cancel(seq);
    client.cancel(seq);
    assert_eq!(client.undelivered(), (seq, Code::Cancelled));
    client.sync();
    assert_eq!(worker.cancelled(), (second, Code::Cancelled));
    worker.fail(second, b"stopped");
    worker.sync();
    let status = client.status();
    assert_eq!((status.counters.cancelled, status.in_flight, status.slots_used), (1, 0, 0));
}

/// Proves I8: word of every kind under a token from the future is dropped and counted as forged; the delivery stays its
/// holder's, and the connection goes on.
#[test]
fn a_token_from_the_future() {
    let broker = Broker::start_with(&["--memory"]);
    let mut worker = idle(&broker);
    let token = consume(&mut worker, 10, true).expect("a token");
    let mut client = Peer::client(broker.address(), "q");
    client.request(b"x");
    let delivery = delivery(&mut worker, Some(token));
    let (seq, word) = (delivery.stamp, delivery.index);
    let words = [
        Frame::Reply { seq, word, more: false, raw: body(b"no") },
        Frame::Reply { seq, word, more: true, raw: body(b"no") },
        Frame::Ack { delivery },
        Frame::Fail { delivery, again: Again::Never, raw: body(b"no") },
        Frame::Progress { seq, word, raw: body(b"no") },
        Frame::Extend { delivery, lease_ms: 1 },
    ];
    for future in [token + 1, u64::MAX] {
        for frame in &words {
            worker.say(&Frame::fenced(future, frame.clone()));
        }
    }
    worker.sync();
    let counters = worker.status().counters;
    assert_eq!((counters.forged, counters.late, counters.replied, counters.failed), (12, 0, 0, 0));
    worker.say(&Frame::fenced(token, Frame::Reply { seq, word, more: false, raw: body(b"y") }));
    assert_eq!(client.answer().1, b"y");
}

/// A frame with a map in it, as bytes.
fn queue_set(seq: u8, key: &str, value: &[u8]) -> Vec<u8> {
    let text = |text: &str| [&[0xA0 + u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
    let settings = [vec![0x81], text(key), value.to_vec()].concat();
    let map =
        [vec![0x83], text("op"), text("queue.set"), text("queue"), text("q"), text("settings"), settings].concat();
    let head = [0x47, 0xC0, 112, 0, seq, 0, 0, 0, 0, 0, 0, 0, u8::try_from(map.len()).expect("short"), 0, 0, 0];
    [head.to_vec(), map].concat()
}

/// Weights and patience out of range are `bad_call`, also those that fit into no number of ours, and change nothing.
#[test]
fn settings_out_of_range() {
    let broker = Broker::start_with(&["--memory"]);
    let mut peer = Peer::client(broker.address(), "q");
    peer.say_bytes(&queue_set(9, "weight", b"\x07"));
    peer.hear(|frame| assert!(matches!(frame, Frame::AdminAnswer { seq: 9, .. }), "{frame:?}"));
    let table: [(&str, &[u8]); 8] = [
        ("weight", b"\x00"),
        ("weight", b"\x65"),
        ("weight", b"\xCD\x01\x01"),
        ("weight", b"\xFF"),
        ("weight", b"\xA1x"),
        ("drop_after", b"\xCD\x03\xE9"),
        ("drop_after", b"\xCE\x00\x01\x00\x02"),
        ("drop_after", b"\xFF"),
    ];
    for (key, value) in table {
        peer.say_bytes(&queue_set(10, key, value));
        assert_eq!(peer.refused(), (10, Code::BadCall), "{key} {value:?}");
    }
    let view = peer.queue("q");
    assert_eq!((view.weight, view.drop_after), (7, 2));
}

/// Proves S2.16 and S2.17: `drain` twice and `resume` without a drain are done, and nobody is told a second time. A message
/// that is over, or never was, cannot be cancelled by its id.
#[test]
fn drained_twice_resumed_for_nothing_cancelled_too_late() {
    let broker = Broker::start();
    let mut peer = Peer::greeted(broker.address(), 0);
    for (word, says) in [("resume", "accepts work"), ("drain", "is drained"), ("drain", "is drained")] {
        let run = broker.run(&[word]).expect(0).text();
        assert!(run.contains(says), "{run}");
    }
    assert_eq!(peer.closing(), turno_proto::native::ClosingReason::Maintenance);
    for _ in 0..2 {
        broker.run(&["resume"]).expect(0);
    }
    assert_eq!(peer.closing(), turno_proto::native::ClosingReason::Resumed);
    peer.sync();
    let id = broker.run(&["send", "q", "x", "-o", "name"]).expect(0).text().trim().to_owned();
    broker.run(&["message", "cancel", &id, "--yes"]).expect(0);
    let run = broker.run(&["message", "cancel", &id, "--yes", "--json"]).expect(4);
    assert_eq!(run.error_code(), "not_found");
}
