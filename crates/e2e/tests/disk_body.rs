//! Bodies that a store cannot take.

use turno_e2e::{Broker, Peer, Place};
use turno_proto::model::{Code, Slots};

const MIB: usize = 1 << 20;

/// A message has to fit into a batch of the store, whatever the broker's own limit is. The sender is told, nothing of
/// it stays, and the broker goes on; what just fits outlives a crash.
#[test]
fn a_body_that_no_batch_can_hold_is_refused() {
    let place = Place::new();
    place.file("config/turno/turno.toml", "[limits]\nmessage = \"40MiB\"\n");
    let mut broker = Broker::start_in(place, &[]);
    let mut client = Peer::client(broker.address(), "q");
    let fits = vec![b'f'; 24 * MIB - 1_000];
    for long in [24 * MIB, 39 * MIB] {
        let seq = client.post(&vec![b'x'; long], |_| {});
        assert_eq!(client.undelivered(), (seq, Code::FrameTooLarge), "{long}");
    }
    client.store(&fits, |_| {});
    client.store(b"short", |_| {});
    assert_eq!(client.queue("q").ready, 2);
    broker.kill();

    let broker = Broker::start_in(broker.into_place(), &[]);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(9), "w");
    assert!(worker.delivery().1 == fits);
    assert_eq!(worker.delivery().1, b"short");
}
