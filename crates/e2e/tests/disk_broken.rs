//! A disk that fails under the broker: it stops at once, says why, and what it had confirmed is there.

use std::time::Duration;

use turno_e2e::{Broker, Peer, Place, Run, wait};
use turno_proto::model::Slots;

const SOON: Duration = wait::PATIENCE;
const CONFIRMED: usize = 20;
const UNANSWERED: usize = 5;

/// Errors of the system by their numbers on Linux.
const EIO: u32 = 5;
const EROFS: u32 = 30;

fn body(number: usize) -> Vec<u8> {
    format!("message {number}").into_bytes()
}

/// After a failed sync or write nobody knows what is on the disk: nothing more is answered, the broker ends with
/// `store_failed`, and its next run has all that was confirmed, in order.
#[test]
fn a_broker_stops_when_its_disk_fails() {
    let table = [
        ("posix/io/sync/fdatasync", EIO, "cannot sync segment-000001: Input/output error"),
        ("posix/io/rw/pwrite", EIO, "cannot write segment-000001: Input/output error"),
        ("posix/io/rw/pwrite", EROFS, "cannot write segment-000001: Read-only file system"),
    ];
    for (call, error, what) in table {
        let mut broker = Broker::start_faulty(Place::new(), &[]);
        let mut client = Peer::client(broker.address(), "q");
        for number in 0..CONFIRMED {
            client.store(&body(number), |_| {});
        }
        broker.inject(&format!("enable name={call},failinfo={error}"));
        for number in CONFIRMED..CONFIRMED + UNANSWERED {
            client.post(&body(number), |_| {});
        }
        assert_eq!(client.try_hear(|frame| format!("{frame:?}")), None, "{call}: nothing unconfirmed is answered");
        assert_eq!(broker.process().end(SOON), 1, "{call}");
        let said = broker.process().stderr().join("\n");
        let store = broker.data().join("store");
        assert!(said.contains(&format!("error: the store in {} failed", store.display())), "{said}");
        assert!(said.contains(what), "the injected error is named: {said}");
        assert!(said.contains("code: store_failed (turno explain store_failed)"), "{said}");

        let broker = Broker::start_in(broker.into_place(), &[]);
        let mut worker = Peer::client(broker.address(), "q");
        let ready = usize::try_from(worker.queue("q").ready).expect("few");
        assert!((CONFIRMED..=CONFIRMED + UNANSWERED).contains(&ready), "{call}: {ready} of {CONFIRMED}");
        worker.work(Slots::Unlimited, "w");
        for number in 0..ready {
            let (_, found, attempt) = worker.delivery();
            assert_eq!((found, attempt), (body(number), 1), "{call}");
        }
    }
}

/// A disk that fails at the start: no broker, and what the system said.
#[test]
fn a_broker_does_not_start_on_a_disk_that_fails() {
    let mut broker = Broker::start();
    Peer::client(broker.address(), "q").store(b"kept", |_| {});
    assert_eq!(broker.terminate(SOON), 0);
    let place = broker.into_place();
    for (call, what) in [
        ("posix/io/sync/fdatasync", "cannot sync segment-000001: Input/output error"),
        ("posix/io/sync/fsync", "cannot sync the directory of segment-000001: Input/output error"),
        ("posix/io/rw/pread", "cannot read segment-000001: Input/output error"),
    ] {
        let by = ["fiu-run", "-x", "-f", "", "-c", &format!("enable name={call},failinfo={EIO}")];
        let refused = Run::finish(place.turno_under(&by, ["serve", "--listen", "127.0.0.1:0"]), b"", SOON).expect(1);
        assert!(refused.stderr.contains(what), "{}", refused.stderr);
        assert!(refused.stderr.contains("code: io "), "{}", refused.stderr);
    }
    let broker = Broker::start_in(place, &[]);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    assert_eq!(worker.delivery().1, b"kept");
}
