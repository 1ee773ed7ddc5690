//! Broadcasts frame by frame.

use std::time::Duration;

use turno_e2e::{Broker, Peer};
use turno_proto::model::{Again, BroadcastEnd, Code, Delivery, Slots};
use turno_proto::native::{Answer, Frame, HEADER_LEN, Header, Kind, Raw, RawBroadcast, flags};

fn body(bytes: &[u8]) -> Raw<'_> {
    Raw { headers: false, bytes }
}

/// A broadcast on handle 0 with no options.
fn call(seq: u32, bytes: &[u8]) -> RawBroadcast<'_> {
    RawBroadcast { seq, handle: 0, deadline_ms: None, no_reply: false, skip_self: false, payload: body(bytes) }
}

#[track_caller]
fn answer(peer: &mut Peer) -> (String, bool, Vec<u8>) {
    peer.hear(|frame| match frame {
        Frame::Answer(Answer { name, failed, raw, more: false, .. }) => (name.to_owned(), failed, raw.bytes.to_vec()),
        other => panic!("expected ANSWER: {other:?}"),
    })
}

#[track_caller]
fn end(peer: &mut Peer, of: u32) -> BroadcastEnd {
    peer.hear(|frame| match frame {
        Frame::BroadcastEnd { seq, end } if seq == of => *end,
        other => panic!("expected BROADCAST_END of {of}: {other:?}"),
    })
}

/// Proves S2.14: the sender that consumes the queue gets its own broadcast, unless it says SKIP_SELF.
#[test]
fn the_sender_hears_itself_unless_it_says_otherwise() {
    let broker = Broker::start();
    let mut own = Peer::worker(broker.address(), "q", Slots::Limited(1), "own");
    let mut other = Peer::worker(broker.address(), "q", Slots::Limited(1), "other");
    own.say(&Frame::Broadcast(call(20, b"hi")));
    let (to_own, ..) = own.delivery();
    let (to_other, ..) = other.delivery();
    own.reply(to_own, b"me");
    assert_eq!(answer(&mut own), ("own".to_owned(), false, b"me".to_vec()));
    other.reply(to_other, b"you");
    assert_eq!(answer(&mut own), ("other".to_owned(), false, b"you".to_vec()));
    assert_eq!(end(&mut own, 20), BroadcastEnd { consumers: 2, answered: 2, ..BroadcastEnd::default() });

    own.say(&Frame::Broadcast(RawBroadcast { skip_self: true, ..call(21, b"ho") }));
    let (to_other, ..) = other.delivery();
    other.reply(to_other, b"alone");
    assert_eq!(answer(&mut own).2, b"alone");
    assert_eq!(end(&mut own, 21).consumers, 1);
}

/// Proves S2.15: options that a broadcast does not have are refused with `bad_option`, and nobody hears of it. The
/// connection goes on.
#[test]
fn a_retry_limit_is_refused() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::client(broker.address(), "q");
    for option in [flags::RETRIES, flags::PRIORITY, flags::COST, flags::DEDUP] {
        let rest = b"\x02\x00\x00body";
        let header = Header { kind: Kind::Broadcast.number(), flags: option, seq: 9, word: 0, length: 7 };
        assert_eq!(rest.len() + HEADER_LEN, 23);
        client.say_bytes(&[&header.to_bytes()[..], rest].concat());
        assert_eq!(client.refused(), (9, Code::BadOption));
    }
    worker.hears_nothing(Duration::from_millis(100));
    client.say(&Frame::Broadcast(RawBroadcast { handle: 5, ..call(10, b"x") }));
    client.hear(|frame| assert_eq!(frame, Frame::Undelivered { seq: 10, code: Code::UnknownHandle, raw: body(b"") }));
    client.say(&Frame::Broadcast(call(11, b"x")));
    assert_eq!(worker.delivery().1, b"x");
}

/// Proves I12 and I13: a hundred consumers, of which every third answers, every third fails and every third goes: one end, and
/// the numbers add up. Word for somebody else's delivery changes nothing.
#[test]
fn a_hundred_consumers_end_as_they_end() {
    let broker = Broker::start();
    let mut workers: Vec<Peer> =
        (0..99).map(|n| Peer::worker(broker.address(), "q", Slots::Limited(1), &format!("w{n}"))).collect();
    let mut client = Peer::client(broker.address(), "q");
    client.say(&Frame::Broadcast(call(30, b"hi")));
    let deliveries: Vec<Delivery> = workers.iter_mut().map(|worker| worker.delivery().0).collect();
    workers[0].reply(deliveries[1], b"forged");
    workers[0].sync();
    let mut failed = 0;
    for (n, (mut worker, delivery)) in workers.drain(..).zip(deliveries).enumerate() {
        match n % 3 {
            0 => worker.reply(delivery, b"fine"),
            1 => worker.say(&Frame::Fail {
                delivery,
                again: if n % 2 == 0 { Again::Never } else { Again::AsSet },
                raw: body(b"no"),
            }),
            _ => continue,
        }
        let (name, was_failed, _) = answer(&mut client);
        assert_eq!(name, format!("w{n}"));
        failed += u32::from(was_failed);
    }
    let end = end(&mut client, 30);
    assert_eq!((end.consumers, end.answered, end.failed, failed, end.expired, end.left), (99, 33, 33, 33, 0, 33));
    assert_eq!(end.who_left.len(), 33);
    assert_eq!((client.status().in_flight, client.status().bytes, client.status().counters.forged), (0, 0, 1));
}

/// Proves S2.12: a worker that does not read is given up, however many broadcasts there are; the broker keeps to its
/// bound of what waits for one peer, and others go on.
#[test]
fn a_consumer_that_does_not_read_is_given_up() {
    let broker = Broker::start();
    let _deaf = Peer::worker(broker.address(), "q", Slots::Limited(1), "deaf");
    let mut client = Peer::client(broker.address(), "q");
    let large = vec![b'x'; 1024 * 1024];
    for seq in 1..=200 {
        client.say(&Frame::Broadcast(RawBroadcast { no_reply: true, ..call(seq, &large) }));
        if end(&mut client, seq).consumers == 0 {
            return;
        }
    }
    panic!("200 MiB wait for a worker that does not read");
}
