//! Starting a broker where another one is, or was.

use std::fs;

use turno_e2e::{Broker, Peer, Place, process, wait};
use turno_proto::native::{Connect, Frame, VERSION};

/// Proves S1.16: one broker owns a data directory; a second one is refused, by its own fault and with a code, and the
/// first does not notice.
#[test]
fn a_data_directory_has_one_broker() {
    let broker = Broker::start();
    let second = broker.run(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    assert_ne!(second.code, 0);
    assert_eq!(second.json()["error"]["code"], "data_in_use");
    assert!(broker.unix().exists(), "the first one's socket is still there");
    Peer::silent_unix(&broker.unix()).greet(0);
}

/// Proves S1.18 and S1.19: a broker has the routers it is told to have; 1 shares the engine's thread. So a run of all
/// tests with more of them (TURNO_TEST_ROUTERS) is one.
#[test]
fn a_broker_has_as_many_routers_as_it_is_told() {
    for (routers, threads) in [("1", 0), ("2", 2), ("3", 3)] {
        let mut broker = Broker::start_with(&["--routers", routers]);
        // A thread gives itself its name.
        let broker_id = broker.process().id();
        wait::until("each router has its thread", || process::threads(broker_id, "turno-router-") == threads);
        // One connection more than there are routers, and all are served.
        let mut peers: Vec<Peer> = (0..4).map(|_| Peer::greeted(broker.address(), 0)).collect();
        assert_eq!(peers[3].status().connections, 4);
    }
    let told = std::env::var("TURNO_TEST_ROUTERS").map_or(0, |text| text.parse::<usize>().expect("a number"));
    let expected = if told > 1 { told } else { 0 };
    let mut broker = Broker::start();
    let broker_id = broker.process().id();
    wait::until("this very run", || process::threads(broker_id, "turno-router-") == expected);
}

/// Proves S1.15: an address has one broker.
#[test]
fn an_address_has_one_broker() {
    let broker = Broker::start();
    let other = Place::new();
    let second = other.run(["serve", "--listen", &broker.address().to_string(), "--json"]);
    assert_ne!(second.code, 0);
    let error = second.json()["error"].take();
    assert_eq!(error["code"], "address_in_use");
    assert!(error["hint"].as_str().expect("a hint").contains("127.0.0.1:0"), "{error}");
    assert!(!other.path().join("data/turno/turno.sock").exists(), "nothing is left of the second");
}

/// Proves I21: a broker that was killed leaves its lock and its socket behind, and the next one starts all the same, at
/// the same address.
#[test]
fn a_killed_broker_does_not_stand_in_the_way() {
    let mut broker = Broker::start();
    let (address, socket) = (broker.address(), broker.unix());
    // Connections that the dead broker's system still remembers.
    let _peers: Vec<Peer> = (0..10).map(|_| Peer::greeted(address, 0)).collect();
    broker.kill();
    assert!(socket.exists());
    assert!(socket.with_file_name("turno.lock").exists());
    let place = broker.place;
    let listen = address.to_string();
    let mut heir = Broker::start_in_at(place, &listen, &[]);
    assert_eq!((heir.address(), heir.unix()), (address, socket.clone()));
    Peer::silent_unix(&socket).greet(0);
    assert_eq!(heir.terminate(wait::PATIENCE), 0);
    assert!(!socket.exists());
}

/// Proves S1.15: the data directory is its owner's alone.
#[test]
fn the_data_directory_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let broker = Broker::start();
    let directory = broker.unix().parent().expect("the socket is in a directory").to_owned();
    assert_eq!(fs::metadata(directory).expect("it is there").permissions().mode() & 0o777, 0o700);
}

fn config_of(broker: &Broker) -> turno_proto::native::Config {
    let mut peer = Peer::silent(broker.address());
    let connect = Connect { version: VERSION, name: String::new(), program: String::new(), heartbeat_ms: 0 };
    peer.say(&Frame::Connect { seq: 1, connect });
    peer.hear(|frame| match frame {
        Frame::Config { config, .. } => *config,
        other => panic!("expected CONFIG: {other:?}"),
    })
}

/// Proves S1.6 and S2.1: CONFIG names the brokers that `--broker` names, in order; or the one that answers.
#[test]
fn config_tells_the_brokers() {
    let broker = Broker::start_with(&["--broker", "turno://127.0.0.1:1,turno://127.0.0.1:2", "--name", "rb-1"]);
    let config = config_of(&broker);
    assert_eq!(config.brokers, ["turno://127.0.0.1:1", "turno://127.0.0.1:2"]);
    assert_eq!((config.broker.as_str(), config.liveness, config.version), ("rb-1", 3, 1));
    assert_eq!((config.heartbeat_ms, config.request_deadline_ms, config.frame_bytes_max), (5_000, 30_000, 16 << 20));
    let alone = Broker::start();
    assert_eq!(config_of(&alone).brokers, [alone.url()]);
}

/// Proves I21: one connection more than allowed is turned away with its code; the others stay.
#[test]
fn one_connection_too_many_is_turned_away() {
    let mut place = Place::new();
    place.set_url(String::new());
    let file = place.file("turno.toml", "[limits]\nconnections = 3\n");
    let broker = Broker::start_in(place, &["--config", &file.display().to_string()]);
    let mut peers: Vec<Peer> = (0..3).map(|_| Peer::greeted(broker.address(), 0)).collect();
    let mut fourth = Peer::silent(broker.address());
    assert_eq!(fourth.closed_with(), turno_proto::model::Code::TooManyConnections);
    peers[0].sync();
    drop(peers.pop());
    wait::until("there is room again", || {
        let mut peer = Peer::silent(broker.address());
        let connect = Connect { version: VERSION, name: String::new(), program: String::new(), heartbeat_ms: 0 };
        peer.say(&Frame::Connect { seq: 1, connect });
        peer.hear(|frame| matches!(frame, Frame::Config { .. }))
    });
}
