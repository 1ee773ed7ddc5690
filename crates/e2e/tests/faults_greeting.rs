//! Peers that are slow to greet, or never do.

use std::time::{Duration, Instant};

use turno_e2e::{Broker, Peer, process, wait};
use turno_proto::model::{Code, Slots};
use turno_proto::native::{Connect, Frame, Raw, RawOutgoing, VERSION, encode};

/// Proves I21: a greeting that comes a byte at a time is given up after 5 s, not 5 s after its last byte: that would
/// never come to pass.
#[test]
fn a_dribbled_greeting_times_out() {
    let broker = Broker::start();
    let mut bytes = Vec::new();
    let connect = Connect { version: VERSION, name: "slow".into(), program: String::new(), heartbeat_ms: 0 };
    encode(&Frame::Connect { seq: 1, connect }, &mut bytes);
    let begun = Instant::now();
    let mut peer = Peer::silent(broker.address());
    // One byte each second, until the broker has something to say. A whole greeting would be answered with CONFIG.
    for byte in bytes {
        peer.say_bytes(&[byte]);
        if peer.hears_within(Duration::from_secs(1)) {
            break;
        }
    }
    assert_eq!(peer.closed_with(), Code::GreetingTimeout);
    assert!(begun.elapsed() >= Duration::from_secs(5));
}

/// Proves I21: after the greeting a frame may come in pieces of any size.
#[test]
fn a_dribbled_frame_is_a_frame() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::client(broker.address(), "q");
    let mut bytes = Vec::new();
    encode(&Frame::Request(RawOutgoing::new(7, 0, Raw { headers: false, bytes: b"in pieces" })), &mut bytes);
    encode(&Frame::Ping { seq: 8 }, &mut bytes);
    for byte in &bytes {
        client.say_bytes(&[*byte]);
    }
    client.hear(|frame| assert_eq!(frame, Frame::Pong { seq: 8 }));
    let (delivery, body, _) = worker.delivery();
    assert_eq!(body, b"in pieces");
    for byte in reply_bytes(delivery) {
        worker.say_bytes(&[byte]);
    }
    assert_eq!(client.answer(), (7, b"whole".to_vec()));
}

fn reply_bytes(delivery: turno_proto::model::Delivery) -> Vec<u8> {
    let mut bytes = Vec::new();
    let raw = Raw { headers: false, bytes: b"whole" };
    encode(&Frame::Reply { seq: delivery.stamp, word: delivery.index, more: false, raw }, &mut bytes);
    bytes
}

/// Proves I21: 2,000 sockets that say nothing cost little memory, the oldest of them are closed, and a real client
/// is served at once.
#[test]
fn silent_sockets_keep_nobody_out() {
    let mut broker = Broker::start();
    let id = broker.process().id();
    let before = process::memory_now(id);
    let mut silent: Vec<Peer> = (0..2_000).map(|_| Peer::silent(broker.address())).collect();
    // The newest may still greet.
    silent[1_999].greet(0);
    let mut client = Peer::client(broker.address(), "q");
    assert_eq!(client.status().connections, 2, "only greeted peers are connections to the engine");
    for oldest in &mut silent[..1_400] {
        assert_eq!(oldest.closed_with(), Code::GreetingTimeout);
    }
    let grown = process::memory_now(id).saturating_sub(before);
    assert!(grown < 16 << 20, "2,000 silent sockets cost {grown} bytes");
    drop(silent);
    wait::until("the sockets are gone", || process::sockets(id) < 20);
}

/// Proves I21: only those that have not greeted count: however many came and greeted after it, a slow greeter has its
/// time.
#[test]
fn greeted_peers_push_no_slow_greeter_out() {
    let broker = Broker::start();
    let mut slow = Peer::silent(broker.address());
    // Many at a time, because all of them must have greeted before the time of the slow one is over.
    for _ in 0..6 {
        let mut peers: Vec<Peer> = (0..100).map(|_| Peer::silent(broker.address())).collect();
        for peer in &mut peers {
            let connect = Connect { version: VERSION, name: String::new(), program: String::new(), heartbeat_ms: 0 };
            peer.say(&Frame::Connect { seq: 1, connect });
            peer.say(&Frame::Ping { seq: 2 });
        }
        for peer in &mut peers {
            peer.hear(|frame| assert!(matches!(frame, Frame::Config { seq: 1, .. }), "{frame:?}"));
            peer.hear(|frame| assert_eq!(frame, Frame::Pong { seq: 2 }));
        }
    }
    slow.greet(0);
    slow.sync();
}
