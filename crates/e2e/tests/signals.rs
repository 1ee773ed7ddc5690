//! Ending a broker: in order, in time, at once, and by SIGKILL.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use turno_e2e::{Broker, Peer, wait};
use turno_proto::model::{Code, Slots};
use turno_proto::native::{ClosingReason, Frame};

const SOON: Duration = wait::PATIENCE;

fn said(broker: &mut Broker) -> String {
    broker.process().stderr().join("\n")
}

/// Proves S2.16 and S2.17: everyone is told, waiting requests come back, new ones are refused, questions are answered,
/// and what runs may finish and is answered.
#[test]
fn a_broker_that_ends_finishes_what_runs() {
    let mut broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::client(broker.address(), "q");
    let mut idle = Peer::greeted(broker.address(), 0);
    let running = client.request(b"running");
    let waiting = [client.request(b"waiting"), client.request(b"too")];
    let (delivery, ..) = worker.delivery();
    client.sync();
    broker.process().signal(Signal::TERM);
    for peer in [&mut worker, &mut client, &mut idle] {
        assert_eq!(peer.closing(), ClosingReason::Shutdown);
    }
    for seq in waiting {
        assert_eq!(client.undelivered(), (seq, Code::Closing));
    }
    let new = client.request(b"new");
    assert_eq!(client.undelivered(), (new, Code::Closing));
    assert!(idle.status().draining);
    // A new client may ask, but is told to go elsewhere.
    let status = broker.run(&["status", "--json"]).expect(0).json();
    assert_eq!((&status["broker"]["draining"], &status["broker"]["in_flight"]), (&true.into(), &1.into()));
    // Its client goes round until another broker takes the request, or its time is over.
    let refused = broker.run(&["request", "q", "x", "--json", "--timeout", wait::SHORT]).expect(5);
    assert_eq!(refused.json()["error"]["code"], "closing");
    worker.reply(delivery, b"finished");
    assert_eq!(client.answer(), (running, b"finished".to_vec()));
    assert_eq!(broker.process().end(SOON), 0);
    for peer in [&mut worker, &mut client, &mut idle] {
        assert_eq!(peer.try_hear(|frame| format!("{frame:?}")), None);
    }
    assert!(said(&mut broker).contains("2 waiting requests were returned"), "{}", said(&mut broker));
}

/// Proves S2.17: what still runs when the time is over is cut, its caller is told, and views show it.
#[test]
fn the_drain_deadline_cuts() {
    let mut broker = Broker::start_with(&["--drain-timeout", "300ms"]);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::client(broker.address(), "q");
    let seq = client.request(b"x");
    worker.delivery();
    let begun = Instant::now();
    broker.process().signal(Signal::TERM);
    assert_eq!(client.closing(), ClosingReason::Shutdown);
    // Not `closing`: a worker has begun with it, so a client must not ask again unasked.
    assert_eq!(client.undelivered(), (seq, Code::CutShort));
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!(broker.process().end(SOON), 0);
    assert!(begun.elapsed() < Duration::from_secs(30), "that is the default");
    assert!(said(&mut broker).contains("1 delivery was cut short"), "{}", said(&mut broker));
}

/// Proves S2.17: a second signal ends the broker at once, and it says what was cut. The exit code is that of the
/// signal.
#[test]
fn a_second_signal_ends_at_once() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut broker = Broker::start();
        let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(2), "w");
        let mut client = Peer::client(broker.address(), "q");
        client.request(b"1");
        client.request(b"2");
        worker.delivery();
        worker.delivery();
        broker.process().signal(Signal::TERM);
        assert_eq!(client.closing(), ClosingReason::Shutdown);
        broker.process().signal(signal);
        assert_eq!(broker.process().end(SOON), code);
        assert!(said(&mut broker).contains("2 deliveries were cut short"), "{}", said(&mut broker));
        assert_eq!(client.try_hear(|frame| format!("{frame:?}")), None);
    }
}

/// Proves S2.17: a broker with nothing to finish ends at once with either signal, and takes its socket with it.
#[test]
fn an_idle_broker_ends_at_once() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut broker = Broker::start();
        let mut peer = Peer::greeted(broker.address(), 0);
        let socket = broker.unix();
        assert!(socket.exists());
        broker.process().signal(signal);
        assert_eq!(peer.closing(), ClosingReason::Shutdown);
        assert_eq!(broker.process().end(SOON), 0);
        assert!(!socket.exists());
    }
}

/// Proves S2.17: sends that were confirmed for memory only end with the broker, and that is told.
#[test]
fn what_is_lost_with_the_broker_is_told() {
    let mut broker = Broker::start_with(&["--memory"]);
    let mut client = Peer::client(broker.address(), "q");
    for _ in 0..3 {
        client.send(b"x", |_| {});
    }
    assert_eq!(broker.terminate(SOON), 0);
    assert!(said(&mut broker).contains("3 messages in memory were discarded"), "{}", said(&mut broker));
}

/// Proves S2.17, S2.18 and S0.42: with real processes: the request that runs is answered although the broker ends.
#[test]
fn a_running_request_outlives_the_signal() {
    let mut broker = Broker::start();
    let program = "while [ -d \"$PWD\" ] && [ ! -e go ]; do sleep 0.02; done; echo done";
    let _worker = broker.worker(&["q", "--", "sh", "-c", program]);
    let mut request = broker.start_turno(&["request", "q", "x", "--timeout", "1m"]);
    let mut admin = Peer::greeted(broker.address(), 0);
    wait::until("the worker has it", || admin.status().in_flight == 1);
    broker.process().signal(Signal::TERM);
    assert_eq!(admin.closing(), ClosingReason::Shutdown);
    broker.place.file("go", "");
    assert_eq!(request.end(SOON), 0, "{:?}", request.stderr());
    assert_eq!(request.stdout(), ["done"]);
    assert_eq!(broker.process().end(SOON), 0);
}

/// Proves S2.17: during the drain a request that fails is not tried again, whatever its limit; its caller hears of
/// the failure.
#[test]
fn a_failure_during_the_drain_is_the_last() {
    let mut broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::client(broker.address(), "q");
    let seq = client.request_with(b"x", |message| message.retries = Some(5));
    let (delivery, ..) = worker.delivery();
    broker.process().signal(Signal::TERM);
    assert_eq!(client.closing(), ClosingReason::Shutdown);
    worker.fail(delivery, b"no");
    assert_eq!(client.undelivered(), (seq, Code::Failed));
    assert_eq!(broker.process().end(SOON), 0);
}

/// Proves S2.18: a worker that says CLOSING gets nothing new and may settle what it has.
#[test]
fn closing_from_a_worker_works_the_same_way() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(5), "w");
    let mut client = Peer::client(broker.address(), "q");
    let held = client.request(b"held");
    let (delivery, ..) = worker.delivery();
    let closing = turno_proto::native::Closing { reason: ClosingReason::Shutdown, within_ms: 0 };
    worker.say(&Frame::Closing { closing });
    worker.sync();
    client.request(b"waits");
    client.sync();
    assert_eq!(client.status().ready, 1);
    worker.reply(delivery, b"done");
    assert_eq!(client.answer(), (held, b"done".to_vec()));
    worker.sync();
    assert_eq!(client.status().ready, 1);
}
