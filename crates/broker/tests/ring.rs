//! Brokers with real sockets that form a ring over loopback.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use turno_broker::Broker;
use turno_broker::{RingConfig, RingTiming, ServeError, ask_for_sid};
use turno_client::Received;
use turno_client::blocking::Client;
use turno_proto::model::Code;
use turno_proto::model::ring::view::RingView;
use turno_proto::model::ring::{RingState, Sid};
use turno_proto::native::{Connect, Frame, Raw, RawEvent, Secret, VERSION, encode};

const PATIENCE: Duration = Duration::from_secs(120);

fn secret() -> Option<Secret> {
    Secret::new(b"correct horse battery staple")
}

fn config(sid: u16, next: Option<String>) -> RingConfig {
    let mut ring = RingConfig::new(Sid::new(sid), SocketAddr::from(([127, 0, 0, 1], 0)));
    ring.next = next.map(|next| (None, next));
    ring.timing = RingTiming::Fast;
    ring.secret = secret();
    ring
}

fn start(ring: RingConfig, routers: usize) -> Broker {
    Broker::builder().ring(ring).routers(routers).start().expect("the broker listens")
}

fn address(broker: &Broker) -> String {
    broker.ring().expect("it is in a ring").to_string()
}

fn client(broker: &Broker) -> Client {
    Client::connect(broker.url().as_str()).expect("the broker takes clients")
}

fn view(client: &Client) -> RingView {
    client.wait(client.admin().ring()).expect("the broker answers")
}

/// Waits until the broker sees a whole ring of these, from itself on.
fn until_whole(client: &Client, sids: &[u16]) {
    until(|| {
        let view = view(client);
        let members: Vec<u16> = view.members.iter().map(|member| member.sid.get()).collect();
        view.whole && members == sids
    });
}

fn until(mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "it does not come about");
        // Each look is a call to a broker, which has other things to do in between.
        thread::yield_now();
    }
}

/// Three brokers, each with so many routers.
fn ring_of_three(routers: usize) -> [(Broker, Client); 3] {
    let first = start(config(1, None), routers);
    let at = address(&first);
    let with_client = |broker: Broker| {
        let client = client(&broker);
        (broker, client)
    };
    let one = with_client(first);
    let two = with_client(start(config(2, Some(at.clone())), routers));
    until_whole(&one.1, &[1, 2]);
    let three = with_client(start(config(3, Some(at)), routers));
    // It stands before the one that it asked.
    until_whole(&one.1, &[1, 2, 3]);
    until_whole(&two.1, &[2, 3, 1]);
    until_whole(&three.1, &[3, 1, 2]);
    [one, two, three]
}

/// What is published at one is heard at all, in order and once. Proves S3.9 to S3.14, S3.33 and S3.36.
fn publications_go_round(routers: usize) {
    let ring = ring_of_three(routers);
    let heard: Vec<_> =
        ring.iter().map(|(_, client)| client.subscribe("news.>").wait().expect("it may listen")).collect();
    for number in 0..500_u32 {
        ring[0].1.publish("news.art", number.to_string()).wait().expect("it is published");
    }
    for subscription in heard {
        let bodies: Vec<String> = subscription
            .take(500)
            .map(|heard| match heard.expect("it goes on") {
                Received::Event(event) => String::from_utf8(event.body.to_vec()).expect("a number"),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(bodies, (0..500).map(|number: u32| number.to_string()).collect::<Vec<_>>());
    }
    until(|| view(&ring[0].1).counters.came_round == 500);
}

#[test]
fn publications_go_round_with_one_router() {
    publications_go_round(1);
}

#[test]
fn publications_go_round_with_several_routers() {
    publications_go_round(3);
}

/// A broker that ends leaves first: the others close the circle without it. Proves S3.26, S3.27,
/// S3.28, S3.29 and S3.30.
#[test]
fn a_broker_that_ends_leaves() {
    for routers in [1, 3] {
        let [one, two, three] = ring_of_three(routers);
        drop(two.1);
        two.0.stop().expect("it ends in order");
        until_whole(&one.1, &[1, 3]);
        until_whole(&three.1, &[3, 1]);
        drop(three.1);
        three.0.stop().expect("it ends in order");
        until(|| view(&one.1).state == RingState::Alone);
    }
}

/// All of them end. Proves S3.42.
#[test]
fn the_whole_ring_ends() {
    for routers in [1, 3] {
        let ring = ring_of_three(routers);
        ring[1].1.wait(ring[1].1.admin().shutdown_ring()).expect("from this machine");
        for (broker, client) in ring {
            drop(client);
            broker.wait().expect("it ends in order");
        }
    }
}

/// Proves S3.6.
#[test]
fn a_free_number_is_asked_for() {
    let [one, two, _three] = ring_of_three(1);
    assert_eq!(ask_for_sid(None, &address(&one.0), secret()), Ok(Sid::new(4)));
    assert_eq!(ask_for_sid(None, &address(&two.0), secret()), Ok(Sid::new(4)));
    assert_eq!(ask_for_sid(None, &address(&one.0), None), Err(Code::RingRefused));
    assert_eq!(ask_for_sid(None, &address(&one.0), Secret::new(&[7; 32])), Err(Code::RingRefused));
    // The one that is there is another than the one that is meant.
    let at = |sid| ask_for_sid(Some(Sid::new(sid)), &address(&one.0), secret());
    assert_eq!((at(1), at(2)), (Ok(Sid::new(5)), Err(Code::WrongSid)));
    // A broker's own port is no member's.
    assert_eq!(ask_for_sid(None, &one.0.addresses()[0].to_string(), secret()), Err(Code::ExpectedConnect));
    // Nobody is there.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(ask_for_sid(None, &free.to_string(), secret()), Err(Code::RingDown));
}

/// Why a broker was never ready.
fn refused(ring: RingConfig, routers: usize) -> Code {
    match Broker::builder().ring(ring).routers(routers).start() {
        Err(ServeError::Ring { code, .. }) => code,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was ready"),
    }
}

/// A broker that cannot join ends with the reason, before it is ready. Proves S3.7, S3.17 and S3.51.
#[test]
fn anyone_who_cannot_join_ends() {
    for routers in [1, 3] {
        let first = start(config(1, None), routers);
        let next = || Some(address(&first));
        assert_eq!(refused(config(1, next()), routers), Code::DuplicateSid);
        let mut stranger = config(2, next());
        stranger.secret = Secret::new(&[7; 32]);
        assert_eq!(refused(stranger, routers), Code::RingRefused);
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(refused(config(3, Some(free.to_string())), routers), Code::RingDown);
        let client = client(&first);
        assert_eq!(view(&client).state, RingState::Alone);
    }
}

/// A taken port names the number. Proves S3.7.
#[test]
fn a_port_that_is_taken_is_told_with_the_number() {
    let first = start(config(1, None), 1);
    let mut ring = config(1, None);
    ring.listen = first.ring().unwrap();
    let error = Broker::builder().ring(ring).start().unwrap_err();
    assert_eq!(error.code(), Code::AddressInUse);
    let text = error.to_string();
    assert!(text.contains("broker 1 ") && text.contains(&address(&first)), "{text}");
}

/// A member that left on request goes on by itself, and joins again on request.
#[test]
fn a_member_leaves_and_joins_again() {
    let [one, two, three] = ring_of_three(1);
    two.1.wait(two.1.admin().leave_ring()).expect("it is in a ring");
    until_whole(&one.1, &[1, 3]);
    until(|| view(&two.1).state == RingState::Off);
    two.1.wait(two.1.admin().join_ring(address(&one.0))).expect("it has a number");
    until_whole(&one.1, &[1, 3, 2]);
    until_whole(&three.1, &[3, 2, 1]);
}

/// A publisher that is faster than the ring is slowed down until what it said has come round, and then goes on. Nothing is lost.
#[test]
fn a_fast_publisher_is_slowed_down() {
    const COUNT: u32 = 10_000;
    let connect = Connect { version: VERSION, name: String::new(), program: String::new(), heartbeat_ms: 0 };
    let event = RawEvent { topic: b"news.art", payload: Raw { headers: false, bytes: &[b'x'; 8_192] } };
    let mut bytes = Vec::new();
    encode(&Frame::Connect { seq: 1, connect }, &mut bytes);
    for seq in 1..=COUNT {
        encode(&Frame::Publish { seq, confirm: false, event }, &mut bytes);
    }
    for routers in [1, 3] {
        let ring = ring_of_three(routers);
        // All at once, as fast as the broker takes it.
        let mut publisher = TcpStream::connect(ring[0].0.addresses()[0]).expect("it takes clients");
        publisher.write_all(&bytes).expect("it takes all of it");
        let count = u64::from(COUNT);
        until(|| view(&ring[0].1).counters.came_round == count);
        for (_, client) in &ring[1..] {
            let counters = view(client).counters;
            assert_eq!((counters.received, counters.duplicates, counters.missed), (count, 0, 0));
        }
        let view = view(&ring[0].1);
        assert_eq!((view.counters.published, view.not_round, view.slowed), (count, 0, false));
    }
}
