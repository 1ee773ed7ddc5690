//! Messages of several parts through the client and the worker, against a real broker.

use std::time::Duration;

use bytes::Bytes;
use turno_broker::Broker;
use turno_client::{AnswerPart, Client, Code, Delivery, ErrorKind, Message, Outcome, Worker, WorkerHandle, blocking};

/// Longest wait for a reply: far beyond what a loaded machine needs, so that hitting it is a failure.
const LONG: Duration = Duration::from_secs(120);

/// A worker that replies with the parts in reverse order, each of them a piece if there are three.
async fn reverser(broker: &Broker) -> WorkerHandle {
    let handler = |delivery: Delivery| async move {
        let mut parts = delivery.parts();
        parts.reverse();
        if parts.len() == 3 {
            for part in &parts {
                delivery.piece(Message::from_parts([&b"piece"[..], part])?).await?;
            }
            return Ok(Outcome::Done);
        }
        Message::from_parts(parts).map(Outcome::from)
    };
    Worker::new(broker.url()).queue("q").name("w").start(handler).await.expect("started")
}

async fn client(broker: &Broker) -> Client {
    Client::connect(broker.url()).await.expect("connected")
}

#[tokio::test]
async fn parts_go_there_and_come_back() {
    let broker = Broker::start_loopback().expect("a broker");
    let _worker = reverser(&broker).await;
    let client = client(&broker).await;
    let table: [Vec<Bytes>; 5] = [
        vec!["a".into(), "bc".into()],
        vec![Bytes::new(), Bytes::new()],
        (0..100_u8).map(|at| vec![at; at.into()].into()).collect(),
        vec![Bytes::from_static(b"\xff\0"); 1_024],
        vec!["head".into(), vec![7; 8 << 20].into(), Bytes::new(), "tail".into()],
    ];
    for mut parts in table {
        let message = Message::from_parts(&parts).expect("few parts").header("k", "v");
        let reply = client.request("q", message).timeout(LONG).await.expect("replied");
        parts.reverse();
        assert_eq!(reply.parts(), parts);
        assert_eq!(reply.headers.keys().collect::<Vec<_>>(), ["parts"]);
    }
    let one = client.request("q", Message::from_parts(["one"]).expect("one")).timeout(LONG).await;
    assert_eq!(one, Ok(Message::new("one")), "as without parts");
}

/// A worker that answers with too many parts has failed, and its caller learns why.
#[tokio::test]
async fn too_many_parts_are_refused_before_they_are_sent() {
    let broker = Broker::start_loopback().expect("a broker");
    let worker = Worker::new(broker.url()).queue("q");
    let _worker = worker.start(|_| async { Message::from_parts(vec!["x"; 1_025]) }).await.expect("started");
    let error = client(&broker).await.request("q", "").timeout(LONG).await.expect_err("failed");
    assert_eq!((error.code(), error.detail()), (Code::Failed, "a message has at most 1024 parts"));
    let error = Message::from_parts(vec!["x"; 1_025]).expect_err("too many");
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, Code::TooManyParts));
}

#[tokio::test]
async fn a_list_that_does_not_fit_is_one_part_for_every_receiver() {
    let broker = Broker::start_loopback().expect("a broker");
    let worker = Worker::new(broker.url()).queue("q");
    let handler = |delivery: Delivery| async move {
        let count = delivery.parts().len().to_string();
        Message::new(count).headers(delivery.headers.clone())
    };
    let _worker = worker.start(handler).await.expect("started");
    let client = client(&broker).await;
    let mut events = client.subscribe("t").await.expect("subscribed");
    let too_many = ["0"; 1_025].join(" ");
    for list in ["1 1", "3 1", "-1 4", "", "two one", "18446744073709551615 4", &too_many] {
        let bad = Message::new("abc").header("parts", list);
        let reply = client.request("q", bad.clone()).timeout(LONG).await.expect("replied");
        assert_eq!((reply.text(), reply.parts().len()), (Ok("1"), 1), "{list}");
        client.publish("t", bad).await.expect("published");
        let event = events.next_event().await.expect("it goes on").expect("an event");
        assert_eq!(event.parts(), ["abc"], "{list}");
    }
}

#[tokio::test]
async fn sends_broadcasts_and_events_have_parts() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    client.send("later", Message::from_parts(["x", "", "yz"]).expect("few")).await.expect("stored");
    let mut deliveries = Worker::new(broker.url()).queue("later").deliveries().await.expect("started");
    let delivery = deliveries.next().await.expect("a delivery");
    assert_eq!(delivery.parts(), ["x", "", "yz"]);
    delivery.ack();

    let _worker = reverser(&broker).await;
    let broadcast = client.broadcast("q", Message::from_parts(["a", "b"]).expect("few")).timeout(LONG);
    let (answers, _) = broadcast.await.expect("out").finish().await.expect("over");
    let [AnswerPart::Last(answer)] = &answers.iter().map(|answer| answer.part.clone()).collect::<Vec<_>>()[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(answer.parts(), ["b", "a"]);

    let mut events = client.subscribe("t").await.expect("subscribed");
    client.publish("t", Message::from_parts(["a", ""]).expect("few")).await.expect("published");
    let event = events.next_event().await.expect("it goes on").expect("an event");
    assert_eq!(event.parts(), ["a", ""]);
}

/// Each piece has parts of its own; a caller that takes the reply as a whole has the parts of all of them.
#[tokio::test]
async fn pieces_of_a_reply_have_parts() {
    let broker = Broker::start_loopback().expect("a broker");
    let _worker = reverser(&broker).await;
    let client = client(&broker).await;
    let three = Message::from_parts(["a", "", "c"]).expect("few");
    let mut pieces = client.request("q", three.clone()).timeout(LONG).stream().await.expect("sent");
    for last in ["c", "", "a"] {
        let piece = pieces.next().await.expect("a piece").expect("no error");
        assert_eq!(piece.parts(), ["piece", last]);
    }
    assert!(pieces.next().await.is_none());
    let whole = client.request("q", three).timeout(LONG).await.expect("replied");
    assert_eq!(whole.parts(), ["piece", "c", "piece", "", "piece", "a"]);
}

#[test]
fn the_blocking_client_and_worker_have_parts() {
    let broker = Broker::start_loopback().expect("a broker");
    let worker = blocking::Worker::new(broker.url()).queue("q");
    let running = worker
        .start(|delivery| {
            delivery.piece(Message::from_parts(["a", "b"])?)?;
            Message::from_parts(delivery.parts())
        })
        .expect("started");
    let client = blocking::Client::connect(broker.url()).expect("connected");
    let reply = client.request("q", Message::from_parts(["c", ""]).expect("few")).timeout(LONG).wait();
    assert_eq!(reply.expect("replied").parts(), ["a", "b", "c", ""]);
    running.stop(LONG);
}
