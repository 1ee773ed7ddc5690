//! The networks of the tests themselves: what they promise the tests that use them.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use turno_e2e::{Broker, Net, Peer, wait};
use turno_proto::model::Slots;

/// One end at each of two hosts.
fn connect(net: &Net, from: usize, to: usize) -> (TcpStream, TcpStream) {
    let listener = net.host(to).within(|| TcpListener::bind(net.host(to).address()).expect("its own port"));
    let way = net.way(from, to);
    let near = net.host(from).within(|| TcpStream::connect(way).expect("somebody listens"));
    let far = listener.accept().expect("somebody dials").0;
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(wait::PATIENCE)).expect("our own socket");
    }
    (near, far)
}

#[track_caller]
fn hears(stream: &mut TcpStream, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).expect("it comes");
    assert_eq!(bytes, expected);
}

#[track_caller]
fn hears_nothing(stream: &mut TcpStream) {
    // absence: on a cable that is there a byte takes far less.
    stream.set_read_timeout(Some(Duration::from_millis(300))).expect("our own socket");
    let silence = stream.read(&mut [0; 1]).expect_err("nothing comes");
    assert_eq!(silence.kind(), ErrorKind::WouldBlock);
    stream.set_read_timeout(Some(wait::PATIENCE)).expect("our own socket");
}

fn kinds(hosts: usize) -> [Net; 2] {
    [Net::new(hosts), Net::on_loopback(hosts)]
}

/// The one test whose output is always shown: it tells on which kind of network the others of this run were.
#[test]
fn which_network_the_tests_of_this_machine_use() {
    let net = Net::new(2);
    assert_eq!(net.len(), 2);
    assert_eq!(net.has_namespaces(), !net.host(0).ip().is_loopback());
    assert!(net.kind().contains(if net.has_namespaces() { "2 network namespaces" } else { "no namespaces" }));
}

#[test]
fn a_cable_is_pulled_and_put_back() {
    for net in kinds(3) {
        let (mut one, mut two) = connect(&net, 0, 1);
        one.write_all(b"before").expect("taken");
        hears(&mut two, b"before");
        net.unplug(1);
        one.write_all(b"there").expect("taken");
        two.write_all(b"back").expect("taken");
        hears_nothing(&mut one);
        hears_nothing(&mut two);
        let (mut three, mut four) = connect(&net, 2, 0);
        three.write_all(b"others").expect("taken");
        hears(&mut four, b"others");
        net.plug(1);
        hears(&mut two, b"there");
        hears(&mut one, b"back");
    }
}

#[test]
fn one_direction_is_muted() {
    for net in kinds(2) {
        for (from, to) in [(0, 1), (1, 0)] {
            let (near, far) = connect(&net, 0, 1);
            let (mut from_end, mut to_end) = if from == 0 { (near, far) } else { (far, near) };
            to_end.write_all(b"warm").expect("taken");
            hears(&mut from_end, b"warm");
            net.mute(from, to);
            from_end.write_all(b"unheard").expect("taken");
            hears_nothing(&mut to_end);
            to_end.write_all(b"heard").expect("taken");
            hears(&mut from_end, b"heard");
            net.unmute(from, to);
            hears(&mut to_end, b"unheard");
        }
    }
}

/// A broker, a worker and a client, each on a host of its own, and the broker again at the same address.
#[test]
fn a_broker_on_a_host() {
    for net in kinds(3) {
        let mut place = net.host(0).place();
        for body in ["first", "second"] {
            let broker = Broker::start_on(net.host(0), place, &[]);
            assert_eq!(broker.address(), net.host(0).address());
            let at = net.way(1, 0);
            let mut worker = net.host(1).within(|| Peer::worker(at, "q", Slots::Limited(1), "w"));
            let client = net.host(2).place();
            let mut request = client.start(["request", "q", body, "--timeout", "1m", "--url", &net.url(2, 0)]);
            let (delivery, said, _) = worker.delivery();
            worker.reply(delivery, &said);
            assert_eq!(request.end(wait::PATIENCE), 0, "{:?}", request.stderr());
            assert_eq!(request.stdout(), [body]);
            assert_eq!(broker.status()["counters"]["replied"], 1);
            place = broker.into_place();
        }
    }
}
