//! Workers that crash: what they cost the messages they held.

use std::time::Duration;

use rustix::process::Signal;
use turno_e2e::{Broker, Peer, wait};
use turno_proto::model::Slots;
use turno_proto::native::{Frame, Register};

const LONG: Duration = Duration::from_secs(60);

fn send(broker: &Broker, bodies: impl IntoIterator<Item = String>) {
    for body in bodies {
        broker.run(&["send", "q", &body, "--retries", "2"]).expect(0);
    }
}

/// Proves I1 and I2: a worker that closes its connection before it reads its delivery costs no attempt, however often.
#[test]
fn a_delivery_that_was_never_read_costs_nothing() {
    let mut broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    client.send(b"x", |message| message.retries = Some(0));
    for _ in 0..6 {
        let mut worker = Peer::client(broker.address(), "q");
        worker.say(&Frame::Register { seq: 4, register: Register::new(Slots::Unlimited, "w") });
        worker.say(&Frame::Consume { seq: 5, handle: 0, exclusive: false });
        wait::until("it has the message", || client.status().in_flight == 1);
        drop(worker);
        wait::until("it is lost", || client.status().in_flight == 0);
    }
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    assert_eq!(worker.delivery().2, 1);
    assert_eq!(client.status().dead, 0);
    broker.process().expect_line("workers of this queue were lost in a row");
}

/// Proves I1 and I2: `turno work` is killed again and again while it has work; no order is lost, none counts an attempt,
/// and the next worker does all of them.
#[test]
fn a_killed_worker_costs_no_order() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    send(&broker, (0..12).map(|order| order.to_string()));
    for _ in 0..6 {
        let mut worker = broker.worker(&["q", "--slots", "4", "--", "sleep", "60"]);
        wait::until("it has work", || client.status().in_flight > 0);
        worker.signal(Signal::KILL);
        worker.end(LONG);
        wait::until("it is lost", || client.status().in_flight == 0);
    }
    let status = client.status();
    assert_eq!((status.ready, status.dead, status.counters.retried), (12, 0, 0));
    let _worker = broker.worker(&["q", "--", "true"]);
    wait::until("all are done", || client.status().counters.acked == 12);
}

/// Proves I2: an order that kills its worker each time is a dead letter in the end; the others are done.
#[test]
fn a_poison_order_ends_and_the_others_are_done() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    let others = (0..8).map(|order| order.to_string());
    send(&broker, others.clone().take(4).chain(["poison".to_owned()]).chain(others.skip(4)));
    let program = broker.place.script("program", "read order; [ \"$order\" = poison ] && kill -9 $PPID; true");
    let program = program.display().to_string();
    let mut deaths = 0;
    while client.status().dead == 0 || client.status().counters.acked < 8 {
        assert!(deaths < 20, "{:?}", client.status());
        let mut worker = broker.start_turno(&["work", "q", "--slots", "3", "--", &program]);
        wait::until("it died, or all is done", || {
            !worker.runs() || (client.status().dead == 1 && client.status().counters.acked == 8)
        });
        deaths += u32::from(!worker.runs());
    }
    let status = client.status();
    assert_eq!((status.dead, status.ready, status.in_flight, status.counters.acked), (1, 0, 0, 8));
    assert!(deaths >= 3, "three attempts, {deaths} deaths");
}
