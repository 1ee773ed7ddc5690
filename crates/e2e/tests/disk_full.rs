//! A full disk: sends are refused, the broker lives, and what workers finish makes room.

use std::time::Duration;

use turno_e2e::{Background, Broker, Peer, Place, wait};
use turno_proto::model::{Code, Slots};
use turno_proto::native::Frame;

const SOON: Duration = wait::PATIENCE;
/// The error of a full disk on Linux.
const ENOSPC: u32 = 28;

/// A disk that is full for a while: the send is refused, with nothing lost, and the next one is stored.
#[test]
fn a_full_disk_refuses_sends_until_it_has_room() {
    let mut broker = Broker::start_faulty(Place::new(), &[]);
    let mut client = Peer::client(broker.address(), "q");
    client.store(b"before", |_| {});
    broker.inject(&format!("enable name=posix/io/rw/pwrite,failinfo={ENOSPC}"));
    for _ in 0..3 {
        let seq = client.post(b"no room", |_| {});
        assert_eq!(client.undelivered(), (seq, Code::OverDisk), "the injected error is what the sender hears");
    }
    let refused = broker.run(&["send", "q", "no room", "--json"]).expect(1);
    assert_eq!(refused.json()["error"]["code"], "over_disk");
    assert_eq!(client.queue("q").ready, 1);
    broker.inject("disable name=posix/io/rw/pwrite");
    client.store(b"after", |_| {});
    broker.kill();

    let broker = Broker::start_in(broker.into_place(), &[]);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(9), "w");
    assert_eq!([worker.delivery().1, worker.delivery().1], [b"before".to_vec(), b"after".to_vec()]);
    worker.sync();
    assert_eq!(worker.queue("q").ready, 0, "what was refused is nowhere");
}

/// A file system of its own with this many bytes, for as long as this lives.
struct SmallDisk {
    holder: Background,
    at: String,
}

impl SmallDisk {
    fn new(place: &Place, bytes: u64) -> Self {
        let at = place.path().join("disk").display().to_string();
        let mut command = place.command("unshare");
        let script =
            format!("mkdir {at} && mount -t tmpfs -o size={bytes} tmpfs {at} && echo there && exec sleep 1000");
        command.args(["--map-root-user", "--mount", "sh", "-c", &script]);
        let holder = Background::start(command);
        holder.expect_line("there");
        Self { holder, at }
    }

    /// Its path for those outside: only the holder sees it where it is mounted.
    fn data(&self) -> String {
        format!("/proc/{}/root{}/data", self.holder.id(), self.at)
    }
}

fn body(number: usize) -> Vec<u8> {
    let mut body = vec![7; 50_000];
    body[..8].copy_from_slice(&number.to_le_bytes());
    body
}

/// A disk that is really full: acks still work, they make room, later sends are stored, and a restart has exactly what
/// is left.
#[test]
fn acks_make_room_on_a_full_disk() {
    let outer = Place::new();
    let disk = SmallDisk::new(&outer, 40 << 20);
    let data = disk.data();
    let mut broker = Broker::start_in(Place::new(), &["--data", &data]);
    let mut client = Peer::client(broker.address(), "q");
    let mut stored = 0;
    loop {
        let seq = client.post(&body(stored), |_| {});
        let refused = client.hear(|frame| match frame {
            Frame::Stored { .. } => None,
            Frame::Undelivered { seq: of, code, .. } if of == seq => Some(code),
            other => panic!("expected STORED or UNDELIVERED: {other:?}"),
        });
        if let Some(code) = refused {
            assert_eq!(code, Code::OverDisk, "after {stored}");
            break;
        }
        stored += 1;
    }
    assert!(stored > 100, "{stored}");
    assert_eq!(client.queue("q").ready, stored as u64, "the broker lives, and has all that it confirmed");

    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let kept = 10;
    for number in 0..stored - kept {
        let (delivery, found, _) = worker.delivery();
        assert!(found == body(number), "message {number}");
        worker.ack(delivery);
    }
    let (delivery, ..) = worker.delivery();
    let mut later = 0;
    wait::until("a send finds room", || {
        let seq = client.post(&body(stored), |_| {});
        let is_stored = client.hear(|frame| matches!(frame, Frame::Stored { seq: of, .. } if of == seq));
        later += usize::from(is_stored);
        is_stored
    });
    // As many as went before: the room is really back.
    for number in stored + 1..stored + 100 {
        client.store(&body(number), |_| {});
        later += 1;
    }
    worker.ack(delivery);
    drop(worker.delivery());
    drop(worker);
    assert_eq!(broker.terminate(SOON), 0);

    let broker = Broker::start_in(broker.into_place(), &["--data", &data]);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    for number in stored - kept + 1..stored + later {
        let (delivery, found, _) = worker.delivery();
        assert!(found == body(number), "message {number}");
        worker.ack(delivery);
    }
    worker.sync();
    assert_eq!(worker.queue("q").ready, 0);
}
