//! `--sid auto`: a broker finds its number, also when somebody else has the one that it was told.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use rustix::process::Signal;
use serde_json::Value;
use turno_e2e::{Broker, Place, Port, Run, wait};
use turno_proto::model::ring::{Member, Origin, RingMessage, Sid};
use turno_proto::model::{Mono, limits};
use turno_proto::native::{Frame, GreetingCredentials, RingIdentity, RingSession, RingStep, encode};

/// Everywhere a free port.
const PORTS: [&str; 4] = ["--ring-port", "0", "--foreman-listen", "127.0.0.1:0"];

fn ring_address(broker: &Broker) -> SocketAddr {
    broker.ready()["ring"].as_str().and_then(|text| text.parse().ok()).expect("an address for other members")
}

fn ring(broker: &Broker) -> Value {
    broker.run(&["ring", "show", "--wait", "--json"]).expect(0).document("turno.ring/1")["ring"].clone()
}

fn circle(broker: &Broker) -> Vec<u64> {
    let ring = ring(broker);
    let members = ring["members"].as_array().expect("a list");
    members.iter().map(|member| member["sid"].as_u64().expect("a number")).collect()
}

/// Stands before a member: the first that comes is told, in that member's name, that `told` is free. Everyone after it talks to
/// the member itself. So a number is told that somebody else has by the time it is used, at no other moment than that.
fn in_front_of(member: SocketAddr, sid: u16, told: u16) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of our own");
    let address = listener.local_addr().expect("it listens");
    thread::spawn(move || {
        let mut comers = listener.incoming().map_while(Result::ok);
        if let Some(first) = comers.next() {
            tell(first, sid, told);
        }
        for comer in comers {
            let Ok(there) = TcpStream::connect(member) else { return };
            for (from, to) in [(&comer, &there), (&there, &comer)] {
                let (mut from, mut to) = (from.try_clone().expect("our own"), to.try_clone().expect("our own"));
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    address
}

/// What a member says to one that asks for a number.
fn tell(mut stream: TcpStream, sid: u16, told: u16) {
    let origin = Origin { sid: Sid::new(sid), incarnation: 1 };
    let member = Some(Member { origin, address: "127.0.0.1:9".to_owned(), native: String::new() });
    let identity = RingIdentity { member, program: "e2e".to_owned() };
    let me = GreetingCredentials { identity, secret: None };
    let mut session = RingSession::accept(Mono::ZERO, me, [7; 32], true, limits::RING_BEAT_MS);
    let (mut heard, mut said) = (Vec::new(), Vec::new());
    loop {
        let used = match session.step(Mono::ZERO, &heard, &mut said).expect("an honest broker") {
            (RingStep::NeedMore, _) => {
                let mut piece = [0; 4_096];
                match stream.read(&mut piece) {
                    Ok(count) if count > 0 => heard.extend_from_slice(&piece[..count]),
                    _ => return,
                }
                0
            }
            (RingStep::Frame(Frame::Ring(message)), used) if *message == RingMessage::AskSid => {
                encode(&RingMessage::FreeSid { sid: Sid::new(told) }.into(), &mut said);
                used
            }
            (_, used) => used,
        };
        heard.drain(..used);
        stream.write_all(&said).expect("it reads");
        said.clear();
    }
}

/// Proves S3.6 and S3.7: a broker that was told a number which another member has asks again, and says so; nobody hears that it is
/// ready before the ring has taken it in.
#[test]
fn a_number_that_is_taken_meanwhile_is_given_up_for_another() {
    let one = Broker::start_with(&[&["--sid", "1"][..], &PORTS].concat());
    let next = format!("1@{}", ring_address(&one));
    let two = Broker::start_with(&[&["--sid", "2", "--ring-next", &next][..], &PORTS].concat());
    assert_eq!(circle(&two), [2, 1]);
    for routers in ["1", "3"] {
        let front = format!("1@{}", in_front_of(ring_address(&one), 1, 2));
        let flags = ["--sid", "auto", "--ring-next", &front, "--routers", routers];
        let mut found = Broker::start_with(&[&flags[..], &PORTS].concat());
        let sid = ring(&found)["sid"].as_u64().expect("a number");
        assert!(sid > 2 && circle(&two).contains(&sid), "{sid}");
        let said = found.process().stderr().join("\n");
        assert!(said.contains("asking for another") && said.contains("cannot be broker 2 of the ring"), "{said}");
        assert_eq!(found.process().stdout().len(), 1, "it was ready once");
        found.run(&["pub", "news", "hello", "--confirm"]).expect(0);
        assert_eq!(found.terminate(wait::PATIENCE), 0);
    }
    assert_eq!(circle(&one), [1, 2], "the one that was there stays");
}

/// The same if what goes with the number is another's on this machine: here its directory.
#[test]
fn a_number_whose_directory_is_taken_is_given_up_for_another() {
    let place = Place::new();
    let serve = ["serve", "--json", "--listen", "127.0.0.1:0"];
    let elsewhere = place.start([&serve[..], &["--sid", "2"], &PORTS].concat());
    wait::until("it is ready", || !elsewhere.stdout().is_empty());
    let one = Broker::start_with(&[&["--sid", "1"][..], &PORTS].concat());
    let next = format!("1@{}", ring_address(&one));
    let mut found = Broker::start_in(place, &[&["--sid", "auto", "--ring-next", &next][..], &PORTS].concat());
    assert_eq!((circle(&one), circle(&found)), (vec![1, 3], vec![3, 1]));
    let said = found.process().stderr().join("\n");
    assert!(said.contains("asking for another") && said.contains("turno-2 is in use"), "{said}");
    drop(elsewhere);
}

/// What does not follow from the number is not fixed by another one.
#[test]
fn a_port_that_was_named_stays_taken() {
    let one = Broker::start_with(&[&["--sid", "1"][..], &PORTS].concat());
    let next = format!("1@{}", ring_address(&one));
    let port = ring_address(&one).port().to_string();
    let flags =
        ["serve", "--json", "--listen", "127.0.0.1:0", "--sid", "auto", "--ring-port", &port, "--ring-next", &next];
    let run = Run::finish(Place::new().turno(flags), b"", wait::PATIENCE).expect(1);
    assert_eq!((run.error_code().as_str(), run.stderr.matches("asking for another").count()), ("address_in_use", 1));
}

/// A broker that waits for somebody to tell it a number ends when it is asked to.
#[test]
fn anyone_who_waits_for_a_number_may_be_ended() {
    let (place, nobody) = (Place::new(), Port::reserve());
    let next = format!("1@{}", nobody.address());
    let flags = ["serve", "--json", "--listen", "127.0.0.1:0", "--sid", "auto", "--ring-wait", "--ring-next", &next];
    let mut waiting = place.start([&flags[..], &PORTS].concat());
    waiting.expect_line("retrying every second");
    waiting.signal(Signal::TERM);
    assert_eq!((waiting.end(wait::PATIENCE), waiting.stdout()), (0, vec![]));
}
