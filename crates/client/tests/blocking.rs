//! The worker without async, against a real broker.

use std::sync::mpsc;
use std::time::Duration;

use turno_broker::Broker;
use turno_client::blocking::{Client, Worker};
use turno_client::{Code, ErrorKind, Outcome, WorkerEnd};

const LONG: Duration = Duration::from_secs(120);

/// Handlers block their threads, and there are as many as slots.
#[test]
fn handlers_run_beside_each_other() {
    let broker = Broker::start_loopback().expect("a broker");
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(3));
    let inside = std::sync::Arc::clone(&barrier);
    let worker = Worker::new(broker.url()).queue("q").slots(3);
    let running = worker
        .start(move |delivery| {
            inside.wait();
            delivery.body.clone()
        })
        .expect("started");
    let client = Client::connect(broker.url()).expect("connected");
    std::thread::scope(|scope| {
        for number in 0..3 {
            let client = &client;
            scope.spawn(move || {
                let reply = client.request("q", number.to_string()).timeout(LONG).wait().expect("replied");
                assert_eq!(reply.text(), Ok(number.to_string().as_str()));
            });
        }
    });
    assert_eq!(running.stop(LONG), WorkerEnd::Stopped);
}

#[test]
fn pieces_failures_and_panics_reach_the_caller() {
    let broker = Broker::start_loopback().expect("a broker");
    let worker = Worker::new(broker.url()).queue("q").name("plain");
    let running = worker
        .start(|delivery| match &delivery.body[..] {
            b"panic" => panic!("dropped a plate"),
            b"fail" => Outcome::failed_permanently("no"),
            _ => {
                delivery.piece("a").expect("told");
                Outcome::reply("b")
            }
        })
        .expect("started");
    let client = Client::connect(broker.url()).expect("connected");
    let pieces: Result<Vec<_>, _> = client.request("q", "").stream().expect("made").collect();
    assert_eq!(pieces.expect("whole").iter().map(|piece| piece.body.clone()).collect::<Vec<_>>(), ["a", "b"]);
    let error = client.request("q", "fail").wait().expect_err("it fails");
    assert_eq!((error.kind(), error.detail()), (ErrorKind::Failed, "no"));
    let error = client.request("q", "panic").wait().expect_err("it panics");
    assert_eq!(error.detail(), "the handler panicked: dropped a plate");
    assert_eq!((running.panics(), running.config().broker.is_empty()), (1, false));
    running.resize(2).expect("resized");
    let (answers, end) = client.broadcast("q", "").wait().expect("made").finish().expect("over");
    assert_eq!((answers.len(), end.answered), (2, 1));
    client.request("q", "").no_reply().wait().expect("written");
}

/// The handler learns that the worker stops, and the worker waits for it.
#[test]
fn a_stopping_worker_cancels_its_handlers() {
    let broker = Broker::start_loopback().expect("a broker");
    let (tell, told) = mpsc::sync_channel(2);
    let worker = Worker::new(broker.url()).queue("q");
    let running = worker
        .start(move |delivery| {
            tell.send(None).expect("the test waits");
            let reason = delivery.cancelled();
            assert_eq!(delivery.cancellation().reason(), Some(reason));
            tell.send(Some(reason)).expect("the test waits");
            Outcome::failed("stopped")
        })
        .expect("started");
    let client = Client::connect(broker.url()).expect("connected");
    client.send("q", "x").wait().expect("stored");
    assert_eq!(told.recv_timeout(LONG), Ok(None));
    assert_eq!(running.stop(Duration::ZERO), WorkerEnd::Stopped);
    assert_eq!(told.recv_timeout(LONG), Ok(Some(Code::Cancelled)));
}

#[test]
fn a_worker_needs_a_broker() {
    let error = Worker::new("127.0.0.1:1").queue("q").start(|_| ()).expect_err("nobody there");
    assert_eq!(error.kind(), ErrorKind::CannotConnect);
    let error = Worker::new("no address").queue("q").run(|_| ()).expect_err("no address");
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, Code::BadUsage));
}
