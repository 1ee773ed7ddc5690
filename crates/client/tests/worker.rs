//! The worker against a broker's double, over real sockets.

mod double;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use turno_client::{
    Client, Code, Error, ErrorKind, Message, Options, Outcome, StopMode, Worker, WorkerEnd, WorkerEvent,
};
use turno_proto::native::{ClosingReason, Kind};

use double::{Double, LONG, until};

#[tokio::test]
async fn outcomes_reach_the_caller() {
    let broker = Double::start().await;
    let worker = Worker::new(broker.options()).queue("q");
    let running = worker
        .start(|delivery| async move {
            match &delivery.body[..] {
                b"reply" => Outcome::from(Message::new("ok").header("k", "v")),
                b"done" => Outcome::Done,
                b"panic" => panic!("dropped a plate"),
                _ => Outcome::failed("no idea"),
            }
        })
        .await
        .expect("started");
    let client = Client::connect(broker.url()).await.expect("connected");
    assert_eq!(client.request("q", "reply").await, Ok(Message::new("ok").header("k", "v")));
    assert_eq!(client.request("q", "done").await, Ok(Message::default()));
    let failed = |detail: &str| Err(Error::from_code(Code::Failed, detail));
    assert_eq!(client.request("q", "what").await, failed("no idea"));
    assert_eq!(client.request("q", "panic").await, failed("the handler panicked: dropped a plate"));
    assert_eq!(running.panics(), 1);
    assert_eq!(client.request("q", "done").await, Ok(Message::default()), "the worker goes on");
    client.send("q", "reply").await.expect("stored");
    broker.wait_for(Kind::Ack, 1).await;
    assert_eq!(running.resize(1).await, Ok(()));
    assert_eq!(running.stop(LONG).await, WorkerEnd::Stopped);
}

/// Proves S0.39: a worker that the broker does not take fails to start, and says why.
#[tokio::test]
async fn a_refused_worker_fails_to_start() {
    let broker = Double::start().await;
    broker.refuse_register(Code::TooManyConnections);
    let error = Worker::new(broker.options()).queue("q").start(|_| async {}).await.expect_err("refused");
    assert_eq!(error, Error::from_code(Code::TooManyConnections, "the double refuses"));
}

/// Proves S1.3 and S1.5 for workers.
#[tokio::test]
async fn a_worker_needs_a_broker_and_a_queue() {
    let start = |worker: Worker| worker.start(|_| async {});
    let invalid = |error: Error| (error.kind(), error.to_string());
    let no_broker = start(Worker::new([]).queue("q")).await.expect_err("no broker");
    let text = "the address of at least one broker is needed".to_owned();
    assert_eq!(invalid(no_broker), (ErrorKind::InvalidInput, text));
    let nowhere = Options::new("127.0.0.1:1");
    let no_queue = start(Worker::new(&nowhere)).await.expect_err("no queue");
    assert_eq!(invalid(no_queue), (ErrorKind::InvalidInput, "a worker needs at least one queue".to_owned()));
    let error = start(Worker::new(nowhere.clone()).queue("q")).await.expect_err("nobody there");
    assert_eq!(error.code(), Code::CannotConnect);
    assert_eq!(start(Worker::new(nowhere).queue("a b")).await.expect_err("no name").code(), Code::BadName);
}

/// Proves S0.40 and S0.15: DEREGISTER first, then what runs is finished and answered.
#[tokio::test]
async fn stopping_lets_what_runs_finish() {
    let broker = Double::start().await;
    let gate = Arc::new(Notify::new());
    let inside = Arc::clone(&gate);
    let worker = Worker::new(broker.options()).queue("q");
    let running = worker
        .start(move |delivery| {
            let gate = Arc::clone(&inside);
            async move {
                gate.notified().await;
                delivery.body
            }
        })
        .await
        .expect("started");
    let client = Client::connect(broker.url()).await.expect("connected");
    let waiting = tokio::spawn(async move { client.request("q", "x").await });
    until("the handler runs", || running.in_flight() == 1).await;
    let stopping = tokio::spawn(async move { running.stop(LONG).await });
    broker.wait_for(Kind::Deregister, 1).await;
    assert_eq!(broker.count(Kind::Reply), 0);
    gate.notify_one();
    assert_eq!(waiting.await.expect("no panic"), Ok(Message::new("x")));
    assert_eq!(stopping.await.expect("no panic"), WorkerEnd::Stopped);
    assert_eq!(broker.count(Kind::Closing), 1);
}

#[tokio::test]
async fn stopping_cancels_what_takes_too_long() {
    let broker = Double::start().await;
    let worker = Worker::new(broker.options()).queue("q");
    let handler = |delivery: turno_client::Delivery| async move {
        let reason = delivery.cancelled().await;
        Outcome::failed(reason.name())
    };
    let running = worker.start(handler).await.expect("started");
    let client = Client::connect(broker.url()).await.expect("connected");
    let waiting = tokio::spawn(async move { client.request("q", "x").await });
    until("the handler runs", || running.in_flight() == 1).await;
    assert_eq!(running.stop(Duration::ZERO).await, WorkerEnd::Stopped);
    assert_eq!(waiting.await.expect("no panic").expect_err("given back").code(), Code::WorkerLost);
    assert_eq!((broker.count(Kind::Deregister), broker.count(Kind::Fail)), (1, 0), "given back, not failed");
}

#[tokio::test]
async fn a_dropped_worker_is_gone() {
    let broker = Double::start().await;
    let stuck = |_| std::future::pending::<Outcome>();
    let running = Worker::new(broker.options()).queue("q").start(stuck).await.expect("started");
    let client = Client::connect(broker.url()).await.expect("connected");
    let waiting = tokio::spawn(async move { client.request("q", "x").await });
    until("the handler runs", || running.in_flight() == 1).await;
    drop(running);
    assert_eq!(waiting.await.expect("no panic").expect_err("nobody answers").code(), Code::WorkerLost);
    assert_eq!(broker.count(Kind::Deregister), 1);
}

/// The caller gives up; the handler learns of it and settles all the same.
#[tokio::test]
async fn a_cancelled_delivery_reaches_its_handler() {
    let broker = Double::start().await;
    let worker = Worker::new(broker.options()).queue("q");
    let running = worker
        .start(|delivery| async move {
            let token = delivery.cancellation();
            assert_eq!(token.reason(), None);
            Outcome::failed(token.cancelled().await.name())
        })
        .await
        .expect("started");
    let client = Client::connect(broker.url()).await.expect("connected");
    let waiting = tokio::spawn(async move { client.request("q", "x").await });
    until("the handler runs", || running.in_flight() == 1).await;
    waiting.abort();
    broker.wait_for(Kind::Fail, 1).await;
    until("the handler ended", || running.in_flight() == 0).await;
}

#[tokio::test]
async fn the_broker_may_ask_a_worker_to_end() {
    for (reason, mode) in [(ClosingReason::Stop, StopMode::Drain), (ClosingReason::Now, StopMode::Now)] {
        let broker = Double::start().await;
        let running = Worker::new(broker.options()).queue("q").start(|_| async {}).await.expect("started");
        broker.say_closing(reason);
        assert_eq!(running.wait().await, WorkerEnd::StoppedByBroker(mode));
    }
}

/// Proves S0.41 and S2.2: after a lost connection the worker is registered with the next broker, and its owner
/// is told.
#[tokio::test]
async fn a_worker_moves_to_the_next_broker_and_registers_again() {
    let (first, second) = (Double::start().await, Double::start().await);
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&told);
    let options = Options::new(format!("{},{}", first.url(), second.url()));
    let worker =
        Worker::new(options).queue("q").on_event(move |event| notes.lock().expect("no panic before").push(event));
    let running = worker.start(|delivery| async move { delivery.body }).await.expect("started");
    first.drop_all(false);
    second.wait_for(Kind::Consume, 1).await;
    let client = Client::connect(second.url()).await.expect("connected");
    assert_eq!(client.request("q", "x").await, Ok(Message::new("x")));
    let connected = |broker: &Double| WorkerEvent::Connected {
        address: broker.url().parse().expect("an address"),
        broker: "double".to_owned(),
    };
    let events = told.lock().expect("no panic before").clone();
    assert_eq!(events.first(), Some(&connected(&first)));
    assert!(matches!(&events[1], WorkerEvent::Lost { .. }), "{events:?}");
    assert_eq!(events.last(), Some(&connected(&second)));
    running.stop(LONG).await;
}

/// A broker that shuts down is left after the last reply, which still arrives.
#[tokio::test]
async fn a_worker_finishes_its_work_at_a_closing_broker() {
    let (first, second) = (Double::start().await, Double::start().await);
    let gate = Arc::new(Notify::new());
    let inside = Arc::clone(&gate);
    let options = Options::new(format!("{},{}", first.url(), second.url()));
    let running = Worker::new(options)
        .queue("q")
        .start(move |delivery| {
            let gate = Arc::clone(&inside);
            async move {
                gate.notified().await;
                delivery.body
            }
        })
        .await
        .expect("started");
    let client = Client::connect(first.url()).await.expect("connected");
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.request("q", "x").await }
    });
    until("the handler runs", || running.in_flight() == 1).await;
    first.say_closing(ClosingReason::Shutdown);
    gate.notify_one();
    assert_eq!(waiting.await.expect("no panic"), Ok(Message::new("x")));
    second.wait_for(Kind::Consume, 1).await;
}
