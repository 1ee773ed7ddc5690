//! The memory that strangers can make the broker hold, and the log lines they can make it write.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

use turno_e2e::{Broker, Peer, Place, process, wait};
use turno_proto::model::Slots;
use turno_proto::native::{Frame, HEADER_LEN, Header, MAGIC, Raw, RawOutgoing, encode};

const MIB: usize = 1 << 20;
const PIECE: usize = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(60);

/// The beginning of a SEND of so many bytes.
fn begun(bytes: usize, of: usize) -> Vec<u8> {
    let body = vec![7; of];
    let mut frame = Vec::new();
    encode(&Frame::Send(RawOutgoing::new(9, 0, Raw { headers: false, bytes: &body })), &mut frame);
    frame.truncate(bytes);
    frame
}

/// A hundred senders whose frames of nearly 16 MiB do not end: at a limit of 64 MiB the broker counts no more than that, takes
/// not much more, says so in its status, and serves others.
#[test]
fn unfinished_frames_are_part_of_the_limit() {
    let place = Place::new();
    place.file("turno.toml", "[limits]\nmemory = \"64MiB\"\n");
    let config = place.path().join("turno.toml").display().to_string();
    let mut broker = Broker::start_in(place, &["--memory", "--config", &config]);
    let id = broker.process().id();
    let mut bystander = Peer::client(broker.address(), "q");
    bystander.sync();
    let before = process::memory_now(id);
    let frame = begun(2 * PIECE, 16 * MIB - 1_024);
    let mut senders: Vec<Peer> = (0..100).map(|_| Peer::client(broker.address(), "q")).collect();
    for sender in &mut senders {
        sender.push_until_stuck(&frame[..PIECE], Duration::from_millis(200), 1);
        sender.push_until_stuck(&frame[PIECE..2 * PIECE], Duration::from_millis(200), 15 * MIB);
        let memory = bystander.status().memory;
        assert!(memory.used <= 64 * MIB as u64, "{memory:?}");
    }
    let memory = bystander.status().memory;
    assert!(memory.incoming > 0 && memory.waiting + memory.closed > 0, "{memory:?}");
    let grown = process::memory_now(id).saturating_sub(before);
    assert!(grown < 256 * MIB as u64, "{grown} bytes at a limit of 64 MiB");
    let told = broker.run(&["status"]).expect(0).text();
    assert!(told.contains("in-buffers"), "{told}");
    drop(senders);
    wait::until("what they began is gone", || bystander.status().memory.incoming == 0);
    bystander.ping();
}

/// Unfinished HELLOs of job workers that never greet hold a few MiB together, however many there are.
#[test]
fn unfinished_greetings_of_job_workers_hold_little() {
    let mut broker = Broker::start_with(&["--memory"]);
    let id = broker.process().id();
    let mut bystander = Peer::client(broker.address(), "q");
    bystander.sync();
    let before = process::memory_now(id);
    // HELLO has the same header; its length is all that is looked at before the body is complete.
    let header = Header {
        kind: turno_proto::foreman::ForemanKind::Hello.number(),
        flags: 0,
        seq: 0,
        word: 0,
        length: 4_000_000,
    };
    assert_eq!(header.to_bytes().len(), HEADER_LEN);
    let mut bytes = header.to_bytes().to_vec();
    assert_eq!(bytes[..2], MAGIC.to_le_bytes());
    bytes.resize(3_000_000, 0);
    let workers: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut worker = TcpStream::connect(broker.foreman()).expect("the foreman listens");
            worker.set_write_timeout(Some(PATIENCE)).expect("a socket");
            // Older ones are closed meanwhile.
            let _ = worker.write_all(&bytes);
            worker
        })
        .collect();
    let memory = bystander.status().memory;
    assert!(memory.incoming <= 17 * MIB as u64, "{memory:?}");
    let grown = process::memory_now(id).saturating_sub(before);
    assert!(grown < 128 * MIB as u64, "{grown} bytes of {} workers that have not greeted", workers.len());
}

/// Links that are refused, and garbage: a few lines of each kind, however often strangers come.
#[test]
fn strangers_cause_few_log_lines() {
    let mut broker = Broker::start_with(&["--memory"]);
    for _ in 0..300 {
        let mut stranger = TcpStream::connect(broker.address()).expect("the broker listens");
        let _ = stranger.write_all(b"GET / HTTP/1.1\r\n\r\n");
    }
    let mut last = Peer::client(broker.address(), "q");
    last.sync();
    let lines = |broker: &mut Broker| {
        let log = broker.process().stderr();
        log.iter().filter(|line| line.contains("closing a connection after a protocol error")).count()
    };
    wait::until("a line about one of them", || lines(&mut broker) > 0);
    // absence: the lines of all of them would be there by now.
    std::thread::sleep(Duration::from_millis(500));
    let written = lines(&mut broker);
    assert!((1..=20).contains(&written), "{written} lines");
    let counted = |broker: &mut Broker| {
        broker.process().stderr().iter().any(|line| line.contains("similar log lines suppressed"))
    };
    wait::until("a count of the others", || counted(&mut broker));
}

/// A low limit of open files is named at the start, with what to do; connections beyond it cause few lines, and the broker goes
/// on when they are gone.
#[test]
fn a_low_limit_of_open_files_is_named() {
    let place = Place::new();
    let mut broker = Broker::start_under(place, &["prlimit", "--nofile=160:160"], &["--memory"]);
    let named = |broker: &mut Broker| {
        broker.process().stderr().iter().any(|line| line.contains("the open-file limit is too low"))
    };
    wait::until("the limit is named", || named(&mut broker));
    let peers: Vec<TcpStream> = (0..300).map_while(|_| TcpStream::connect(broker.address()).ok()).collect();
    let refused = |broker: &mut Broker| {
        let log = broker.process().stderr();
        log.iter().filter(|line| line.contains("cannot accept a connection")).count()
    };
    wait::until("a line about the limit", || refused(&mut broker) > 0);
    // absence: ten attempts a second would be as many lines.
    std::thread::sleep(Duration::from_secs(3));
    assert!(refused(&mut broker) <= 10, "{} lines", refused(&mut broker));
    drop(peers);
    let mut late = Peer::client(broker.address(), "q");
    late.sync();
}

/// A worker with 100,000 slots that does not read is handed a window of what waits, not all of it. Others go on, it is told
/// who does not read, and when it reads everything arrives, once.
#[test]
fn unread_deliveries_are_part_of_the_limit() {
    const COUNT: u32 = 30_000;
    let place = Place::new();
    place.file("turno.toml", "[limits]\nmemory = \"64MiB\"\n");
    let config = place.path().join("turno.toml").display().to_string();
    let mut broker = Broker::start_in(place, &["--memory", "--config", &config]);
    let id = broker.process().id();
    let mut client = Peer::client(broker.address(), "q");
    let mut body = [7; 1_024];
    for number in 0..COUNT {
        body[..4].copy_from_slice(&number.to_le_bytes());
        client.say(&Frame::Send(RawOutgoing::new(number + 10, 0, Raw { headers: false, bytes: &body })));
        client.hear(|frame| assert!(matches!(frame, Frame::Stored { .. }), "{frame:?}"));
    }
    let before = process::memory_now(id);
    let mut slow = Peer::worker(broker.address(), "q", Slots::Limited(100_000), "slow");
    let shown = || broker.run(&["worker", "show", "slow", "--json"]).expect(0).json()["worker"].take();
    wait::until("it does not read", || shown()["unread_bytes"].as_u64() > Some(MIB as u64 / 2));
    let memory = client.status().memory;
    assert!(memory.outgoing < 4 * MIB as u64 && memory.used <= 64 * MIB as u64, "{memory:?}");
    let grown = process::memory_now(id).saturating_sub(before);
    assert!(grown < 16 * MIB as u64, "{grown} bytes for a worker that does not read");
    let told = broker.run(&["worker", "show", "slow"]).expect(0).text();
    assert!(told.contains("does not read") && told.contains("gets no more until it reads"), "{told}");
    assert!(shown()["used"].as_u64() < Some(u64::from(COUNT) / 2), "{told}");
    // Nobody else notices.
    let mut echo = Peer::worker(broker.address(), "echo", Slots::Limited(1), "echo");
    let mut bystander = Peer::client(broker.address(), "echo");
    let seq = bystander.request(b"quick");
    let (delivery, asked, _) = echo.delivery();
    echo.reply(delivery, &asked);
    assert_eq!(bystander.answer(), (seq, b"quick".to_vec()));
    // On a busy machine it may have been given up after 10 s: then another one gets what it has not settled.
    let mut got = vec![0_u8; COUNT as usize];
    let mut take = |worker: &mut Peer| {
        let mut left = COUNT - u32::try_from(got.iter().filter(|count| **count > 0).count()).expect("few");
        while left > 0 {
            let heard = worker.try_hear(|frame| match frame {
                Frame::Deliver(deliver) => {
                    let number = u32::from_le_bytes(deliver.raw.bytes[..4].try_into().expect("four bytes"));
                    Some((number, deliver.delivery, deliver.attempt))
                }
                _ => None,
            });
            match heard {
                Some(Some((number, delivery, attempt))) => {
                    assert_eq!(attempt, 1, "nothing counts as an attempt for that");
                    got[number as usize] += 1;
                    left -= 1;
                    worker.say(&Frame::Ack { delivery });
                }
                Some(None) => {}
                None => return false,
            }
        }
        true
    };
    if !take(&mut slow) {
        let mut other = Peer::worker(broker.address(), "q", Slots::Limited(100_000), "other");
        assert!(take(&mut other));
    }
    assert!(got.iter().all(|count| *count >= 1));
    wait::until("all is settled", || broker.queue("q")["in_flight"] == 0 && broker.queue("q")["ready"] == 0);
}

/// A worker with 100,000 slots reads whatever it gets and settles nothing, and the backlog on disk is three times the limit: what is
/// read back is within the limit, and new sends are still taken. When the worker settles, all the rest arrives, once.
#[test]
fn what_is_read_back_from_the_disk_is_part_of_the_limit() {
    const COUNT: u32 = 6_000;
    const LIMIT: u64 = 32 * MIB as u64;
    let place = Place::new();
    place.file("turno.toml", "[limits]\nmemory = \"32MiB\"\n");
    let config = place.path().join("turno.toml").display().to_string();
    let mut broker = Broker::start_in(place, &["--config", &config]);
    let id = broker.process().id();
    let mut client = Peer::client(broker.address(), "q");
    let mut body = vec![7; 16 * 1_024];
    let mut send = |client: &mut Peer, numbers: Range<u32>| {
        for number in numbers.clone() {
            body[..4].copy_from_slice(&number.to_le_bytes());
            client.say(&Frame::Send(RawOutgoing::new(number + 10, 0, Raw { headers: false, bytes: &body })));
        }
        for _ in numbers {
            client.next(|frame| assert!(matches!(frame, Frame::Stored { .. }), "{frame:?}"));
        }
    };
    for first in (0..COUNT).step_by(100) {
        send(&mut client, first..first + 100);
    }
    let before = process::memory_now(id);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(100_000), "large");
    let (mut got, mut held, mut quiet) = (vec![0_u8; COUNT as usize + 1], VecDeque::new(), 0);
    let mut take = |worker: &mut Peer| {
        let (number, delivery) = worker.next(|frame| match frame {
            Frame::Deliver(deliver) => {
                let number = u32::from_le_bytes(deliver.raw.bytes[..4].try_into().expect("four bytes"));
                (number, deliver.delivery)
            }
            other => panic!("expected DELIVER: {other:?}"),
        });
        got[number as usize] += 1;
        delivery
    };
    while quiet < 20 {
        let view = client.queue("q");
        quiet = if view.in_flight > held.len() as u64 { 0 } else { quiet + 1 };
        while (held.len() as u64) < view.in_flight {
            held.push_back(take(&mut worker));
        }
        let memory = client.status().memory;
        assert!(memory.used <= LIMIT, "{memory:?}");
        // absence: what is on its way from the disk would be there by now.
        std::thread::sleep(Duration::from_millis(50));
    }
    let view = client.queue("q");
    assert!(view.in_flight > 100 && view.ready > u64::from(COUNT) / 2, "{} and {}", view.in_flight, view.ready);
    let grown = process::memory_now(id).saturating_sub(before);
    assert!(grown < 3 * LIMIT, "{grown} bytes at a limit of 32 MiB");
    send(&mut client, COUNT..COUNT + 1);
    for _ in 0..=COUNT {
        let delivery = held.pop_front().unwrap_or_else(|| take(&mut worker));
        worker.say(&Frame::Ack { delivery });
    }
    assert!(got.iter().all(|count| *count == 1));
    wait::until("all is settled", || broker.queue("q")["in_flight"] == 0 && broker.queue("q")["ready"] == 0);
}
