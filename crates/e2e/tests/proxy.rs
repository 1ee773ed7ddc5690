//! The proxy of the tests itself: what it promises the tests that use it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use turno_e2e::{Cut, Port, Proxy, Way, wait};

const PATIENCE: Duration = wait::PATIENCE;

/// Both ends of a connection through the proxy.
struct Pair {
    client: TcpStream,
    server: TcpStream,
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("our own socket");
    stream
}

fn target() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

fn connect(proxy: &Proxy, listener: &TcpListener) -> Pair {
    let client = patient(TcpStream::connect(proxy.address()).expect("the proxy accepts"));
    let server = patient(listener.accept().expect("the proxy dials").0);
    Pair { client, server }
}

/// Takes what comes and checks it.
#[track_caller]
fn hears(stream: &mut TcpStream, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).expect("it comes");
    assert!(bytes == expected, "other bytes");
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at % 251).expect("below 251")).collect()
}

#[test]
fn bytes_pass_both_ways_to_the_end() {
    let (listener, address) = target();
    let proxy = Proxy::to(address);
    let Pair { mut client, mut server } = connect(&proxy, &listener);
    let echo = thread::spawn(move || {
        let mut all = Vec::new();
        server.read_to_end(&mut all).expect("all comes");
        server.write_all(&all).expect("the client is there");
    });
    let sent = pattern(3_000_000);
    client.write_all(&sent).expect("the proxy takes all");
    client.shutdown(Shutdown::Write).expect("our own socket");
    let mut back = Vec::new();
    client.read_to_end(&mut back).expect("all comes back");
    assert!(back == sent, "other bytes");
    echo.join().expect("no panic");
    assert_eq!((proxy.passed(Way::There), proxy.passed(Way::Back)), (3_000_000, 3_000_000));
    wait::until("the connection is over", || proxy.open() == 0);
    assert_eq!(proxy.taken(), 1);
}

#[test]
fn a_way_is_stalled_and_flows_again() {
    let (listener, address) = target();
    let proxy = Proxy::to(address);
    let Pair { mut client, mut server } = connect(&proxy, &listener);
    proxy.stall(Way::There);
    client.write_all(b"held").expect("taken");
    wait::until("the proxy has it", || proxy.heard(Way::There) == 4);
    server.write_all(b"the other way").expect("taken");
    hears(&mut client, b"the other way");
    assert_eq!(proxy.passed(Way::There), 0);
    proxy.flow(Way::There);
    hears(&mut server, b"held");
    proxy.stall(Way::Back);
    client.write_all(b"on").expect("taken");
    hears(&mut server, b"on");
    server.write_all(b"held").expect("taken");
    wait::until("the proxy has it", || proxy.heard(Way::Back) == 17);
    assert_eq!(proxy.passed(Way::Back), 13);
    proxy.flow(Way::Back);
    hears(&mut client, b"held");
}

#[test]
fn a_stalled_way_takes_only_so_much() {
    let (listener, address) = target();
    let proxy = Proxy::to(address);
    let Pair { mut client, mut server } = connect(&proxy, &listener);
    proxy.stall(Way::There);
    client.set_write_timeout(Some(Duration::from_millis(500))).expect("our own socket");
    let sent = pattern(64 << 20);
    let mut said = 0;
    // absence: nothing is taken for half a second.
    while let Ok(count) = client.write(&sent[said..]) {
        said += count;
        assert!(said < sent.len(), "all of it was taken");
    }
    assert!(proxy.heard(Way::There) <= 18 * 16 * 1024, "{} wait inside", proxy.heard(Way::There));
    proxy.flow(Way::There);
    hears(&mut server, &sent[..said]);
}

#[test]
fn a_delay_is_for_one_way_and_keeps_the_order() {
    let (listener, address) = target();
    let proxy = Proxy::to(address);
    let Pair { mut client, mut server } = connect(&proxy, &listener);
    let delay = Duration::from_millis(300);
    proxy.delay(Way::There, delay);
    let begun = Instant::now();
    client.write_all(b"first ").expect("taken");
    wait::until("the proxy has it", || proxy.heard(Way::There) == 6);
    proxy.delay(Way::There, Duration::ZERO);
    client.write_all(b"second").expect("taken");
    server.write_all(b"at once").expect("taken");
    hears(&mut client, b"at once");
    hears(&mut server, b"first second");
    assert!(begun.elapsed() >= delay);
}

#[test]
fn a_cut_is_a_reset_or_an_end() {
    let (listener, address) = target();
    let proxy = Proxy::to(address);
    for how in [Cut::Reset, Cut::Fin] {
        let mut pairs = [connect(&proxy, &listener), connect(&proxy, &listener)];
        proxy.stall(Way::There);
        pairs[0].client.write_all(b"lost").expect("taken");
        proxy.cut(how);
        assert_eq!(proxy.open(), 0);
        proxy.flow(Way::There);
        for Pair { client, server } in &mut pairs {
            for stream in [client, server] {
                let read = stream.read(&mut [0; 1]).map_err(|error| error.kind());
                let expected = if how == Cut::Reset { Err(ErrorKind::ConnectionReset) } else { Ok(0) };
                assert_eq!(read, expected);
            }
        }
    }
    let Pair { mut client, mut server } = connect(&proxy, &listener);
    client.write_all(b"new").expect("taken");
    hears(&mut server, b"new");
}

#[test]
fn a_reset_and_an_end_of_one_side_reach_the_other() {
    let (listener, address) = target();
    let proxy = Proxy::to(address);
    let Pair { client, mut server } = connect(&proxy, &listener);
    drop(client);
    assert_eq!(server.read(&mut [0; 1]).expect("an end"), 0);
    let Pair { mut client, mut server } = connect(&proxy, &listener);
    client.write_all(b"unread").expect("taken");
    wait::until("it is there", || server.peek(&mut [0; 6]).expect("it comes") == 6);
    server.write_all(b"x").expect("taken");
    // Closing with something unread is a reset.
    drop(server);
    hears(&mut client, b"x");
    let end = client.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
}

#[test]
fn new_connections_are_refused_and_old_ones_stay() {
    let (listener, address) = target();
    let proxy = Proxy::to(address);
    let Pair { mut client, mut server } = connect(&proxy, &listener);
    for _ in 0..3 {
        proxy.refuse();
        let refused = TcpStream::connect(proxy.address()).expect_err("nobody listens");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        client.write_all(b"old").expect("taken");
        hears(&mut server, b"old");
        proxy.accept();
        let mut new = connect(&proxy, &listener);
        new.client.write_all(b"new").expect("taken");
        hears(&mut new.server, b"new");
    }
}

#[test]
fn small_pieces_are_the_same_bytes() {
    let (listener, address) = target();
    let proxy = Proxy::to(address);
    proxy.pieces(Way::There, 1);
    proxy.pieces(Way::Back, 7);
    let Pair { mut client, mut server } = connect(&proxy, &listener);
    let bytes = pattern(10_000);
    client.write_all(&bytes).expect("taken");
    hears(&mut server, &bytes);
    server.write_all(&bytes).expect("taken");
    hears(&mut client, &bytes);
}

#[test]
fn a_target_that_is_down_hangs_up() {
    let nobody = Port::reserve();
    let proxy = Proxy::to(nobody.address());
    let mut client = patient(TcpStream::connect(proxy.address()).expect("the proxy accepts"));
    let end = client.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
}

#[test]
fn connections_end_with_the_proxy() {
    let (listener, address) = target();
    let proxy = Proxy::to(address);
    let Pair { mut client, mut server } = connect(&proxy, &listener);
    let place = proxy.address();
    drop(proxy);
    for stream in [&mut client, &mut server] {
        assert_eq!(stream.read(&mut [0; 1]).expect("an end"), 0);
    }
    TcpStream::connect(place).expect_err("nobody listens");
}
