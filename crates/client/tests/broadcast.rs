//! Broadcasts through the client, against a real broker.

use std::time::Duration;

use turno_broker::Broker;
use turno_client::{
    Answer, AnswerPart, BroadcastConsumer, BroadcastEnd, Client, Message, Options, Outcome, Slots, Worker,
    WorkerHandle, WorkerId, blocking,
};

fn options(broker: &Broker) -> Options {
    Options::new(broker.url())
}

/// A worker with one slot: it echoes, fails, or takes its time, as the body says.
async fn worker(broker: &Broker, name: &str) -> WorkerHandle {
    let worker = Worker::new(options(broker)).queue("q").slots(Slots::Limited(1)).name(name);
    let handler = |delivery: turno_client::Delivery| async move {
        match &delivery.body[..] {
            b"fail" => Outcome::failed("no"),
            b"hang" => {
                let reason = delivery.cancelled().await;
                Outcome::failed(reason.name())
            }
            b"pieces" => {
                let _ = delivery.piece("one").await;
                Outcome::reply("two")
            }
            _ => Outcome::reply(delivery.body),
        }
    };
    worker.start(handler).await.expect("started")
}

/// Who answered what.
fn rows(answers: &[Answer]) -> Vec<(u64, &str, AnswerPart)> {
    answers.iter().map(|answer| (answer.worker, answer.name.as_str(), answer.part.clone())).collect()
}

fn last(body: &'static str) -> AnswerPart {
    AnswerPart::Last(Message::new(body))
}

/// Proves S2.9, S2.13 and S2.15: answers by name, the end after the last, busy workers among them.
#[tokio::test]
async fn every_worker_answers_by_name() {
    let broker = Broker::start_loopback().expect("a broker");
    let (_a, _b) = (worker(&broker, "a").await, worker(&broker, "b").await);
    let client = Client::connect(options(&broker)).await.expect("connected");
    let (mut answers, end) = client.broadcast("q", "hi").await.expect("out").finish().await.expect("over");
    answers.sort_by_key(|answer| answer.worker);
    assert_eq!(rows(&answers), [(1, "a", last("hi")), (2, "b", last("hi"))]);
    assert_eq!(end, BroadcastEnd { consumers: 2, answered: 2, ..BroadcastEnd::default() });

    // Every slot is taken, and broadcasts overtake them all.
    let busy = [
        client.request("q", "hang").stream().await.expect("out"),
        client.request("q", "hang").stream().await.expect("out"),
    ];
    let mut pieces = client.broadcast("q", "pieces").await.expect("out");
    let mut seen = 0;
    while let Some(answer) = pieces.next().await {
        seen += usize::from(answer.is_ok());
    }
    assert_eq!((seen, pieces.end().map(|end| end.answered)), (4, Some(2)));
    assert_eq!(pieces.next().await, None, "the end stays the end");
    drop(busy);
}

/// Proves S2.13: failures say why; those that hang are named, and stop when they are told to.
#[tokio::test]
async fn failures_and_hangers_are_told_apart() {
    let broker = Broker::start_loopback().expect("a broker");
    let running = worker(&broker, "a").await;
    let client = Client::connect(options(&broker)).await.expect("connected");
    let (answers, end) = client.broadcast("q", "fail").await.expect("out").finish().await.expect("over");
    assert_eq!(rows(&answers), [(1, "a", AnswerPart::Failed("no".to_owned()))]);
    assert_eq!((end.consumers, end.failed), (1, 1));

    let hang = client.broadcast("q", "hang").timeout(Duration::from_millis(500));
    let (answers, end) = hang.await.expect("out").finish().await.expect("over");
    let who_expired = vec![BroadcastConsumer { worker: WorkerId(1), name: "a".to_owned() }];
    assert_eq!(answers, []);
    assert_eq!(end, BroadcastEnd { consumers: 1, expired: 1, who_expired, ..BroadcastEnd::default() });

    // Given up, it stops at the worker too: its end is all that the worker's own end waits for.
    drop(client.broadcast("q", "hang").await.expect("out"));
    running.stop(Duration::from_secs(120)).await;
}

/// Proves S2.11, S2.12 and S2.15: no reply, and nobody there. The builder has no options of other messages.
#[tokio::test]
async fn without_replies_and_without_workers() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = Client::connect(options(&broker)).await.expect("connected");
    let (answers, end) = client.broadcast("q", "hi").await.expect("out").finish().await.expect("over");
    assert_eq!((answers, end), (vec![], BroadcastEnd::default()));
    let _worker = worker(&broker, "a").await;
    let quiet = client.broadcast("q", "hang").no_reply().skip_self();
    let (_, end) = quiet.await.expect("out").finish().await.expect("over");
    assert_eq!(end, BroadcastEnd { consumers: 1, ..BroadcastEnd::default() });
}

/// The facade gives all answers and the end at once.
#[test]
fn the_blocking_client_waits_for_the_end() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = blocking::Client::connect(options(&broker)).expect("connected");
    let (answers, end) = client.broadcast("q", "hi").wait().expect("out").finish().expect("over");
    assert_eq!((answers, end.consumers), (vec![], 0));
}
