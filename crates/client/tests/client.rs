//! The client against a broker's double, over real sockets.

mod double;

use std::io::ErrorKind as IoErrorKind;
use std::time::Duration;

use bytes::Bytes;
use turno_client::{
    Address, Client, Code, Durability, ErrorKind, Message, Options, Outcome, ReplyPart, Slots, Worker, WorkerHandle,
};
use turno_proto::native::{ClosingReason, Kind};

use double::{Double, until};

async fn echo(broker: &Double, queue: &str) -> WorkerHandle {
    let worker = Worker::new(broker.options()).queue(queue).slots(Slots::Unlimited);
    worker.start(|delivery| async move { delivery.body }).await.expect("started")
}

/// The error of the system behind an error.
fn io_error(error: &dyn std::error::Error) -> &std::io::Error {
    error.source().and_then(|source| source.downcast_ref()).expect("an error of the system is the source")
}

#[tokio::test]
async fn a_request_gets_its_reply_and_a_send_its_answer() {
    let broker = Double::start().await;
    let _worker = echo(&broker, "q").await;
    let client = Client::connect(broker.url()).await.expect("connected");
    assert_eq!(client.config().broker, "double");
    assert_eq!(client.request("q", "hello").await, Ok(Message::new("hello")));
    assert_eq!(client.request("q", Bytes::new()).await, Ok(Message::default()));
    let stored = client.send("q", vec![1, 2, 3]).await.expect("stored");
    assert_eq!(stored.durability, Durability::Memory);
    let refused = client.admin().status().await.expect_err("a double has no admin");
    assert_eq!(refused.code(), Code::BadCall);
    assert_eq!(client.request("no name", "x").await.expect_err("a bad name").code(), Code::BadName);
    client.close().await;
    assert_eq!(client.request("q", "late").await.map_err(|error| error.kind()), Err(ErrorKind::Closed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_of_many_tasks_share_the_connection() {
    let broker = Double::start().await;
    let _worker = echo(&broker, "q").await;
    let client = Client::connect(broker.url()).await.expect("connected");
    let mut tasks = Vec::new();
    for task in 0..20 {
        let client = client.clone();
        tasks.push(tokio::spawn(async move {
            for n in 0..50 {
                let body = format!("{task}:{n}");
                assert_eq!(client.request("q", body.clone()).await, Ok(Message::from(body)));
            }
        }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(broker.count(Kind::Connect), 0, "greetings are not logged");
    assert_eq!(broker.count(Kind::Open), 2, "the queue was opened once a connection");
}

#[tokio::test]
async fn large_bodies_pass_in_both_directions() {
    let broker = Double::start().await;
    let _worker = echo(&broker, "q").await;
    let client = Client::connect(broker.url()).await.expect("connected");
    let body = Bytes::from(vec![7; 5 * 1024 * 1024]);
    let (one, two) = tokio::join!(client.request("q", body.clone()), client.request("q", body.clone()));
    assert_eq!(one.expect("replied").body, body);
    assert_eq!(two.expect("replied").body, body);
    let too_large = client.request("q", vec![0; 17 * 1024 * 1024]).await.expect_err("too large");
    assert_eq!(too_large.code(), Code::FrameTooLarge);
    assert_eq!(client.request("q", "still there").await, Ok(Message::new("still there")));
}

#[tokio::test]
async fn a_dropped_request_is_cancelled_at_the_broker() {
    let broker = Double::start().await;
    let client = Client::connect(broker.url()).await.expect("connected");
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.request("nobody", "x").await }
    });
    broker.wait_for(Kind::Request, 1).await;
    waiting.abort();
    broker.wait_for(Kind::Cancel, 1).await;

    let replies = client.request("nobody", "x").stream().await.expect("sent");
    broker.wait_for(Kind::Request, 2).await;
    drop(replies);
    broker.wait_for(Kind::Cancel, 2).await;
}

#[tokio::test]
async fn a_reply_comes_in_pieces_or_whole() {
    let broker = Double::start().await;
    let worker = Worker::new(broker.options()).queue("count");
    let _running = worker
        .start(|delivery| async move {
            delivery.progress("working").await.expect("told");
            for piece in ["a", "b"] {
                delivery.piece(piece).await.expect("told");
            }
            Outcome::Done
        })
        .await
        .expect("started");
    let client = Client::connect(broker.url()).await.expect("connected");
    assert_eq!(client.request("count", "").await, Ok(Message::new("ab")));

    let mut replies = client.request("count", "").stream().await.expect("sent");
    assert_eq!(replies.next().await, Some(Ok(Message::new("a"))));
    assert_eq!(replies.next().await, Some(Ok(Message::new("b"))));
    assert_eq!(replies.next().await, None);
    assert_eq!(replies.next().await, None);

    let mut replies = client.request("count", "").stream().await.expect("sent");
    assert_eq!(replies.next_part().await, Some(Ok(ReplyPart::Progress(Message::new("working")))));
    assert_eq!(replies.next_part().await, Some(Ok(ReplyPart::Piece(Message::new("a")))));
    assert_eq!(replies.next_part().await, Some(Ok(ReplyPart::Piece(Message::new("b")))));
    assert_eq!(replies.next_part().await, Some(Ok(ReplyPart::Last(Message::default()))));
    assert_eq!(replies.next_part().await, None);
}

/// One reader that stands still must not hold up the others: its stream ends instead.
#[tokio::test]
async fn a_stream_nobody_reads_is_ended() {
    let broker = Double::start().await;
    let worker = Worker::new(broker.options()).queue("flood").queue("q");
    let _running = worker
        .start(|delivery| async move {
            if delivery.queue == "flood" {
                while delivery.cancellation().reason().is_none() {
                    delivery.piece("x").await.expect("told");
                    tokio::task::yield_now().await;
                }
            }
            Outcome::Done
        })
        .await
        .expect("started");
    let client = Client::connect(broker.url()).await.expect("connected");
    let mut replies = client.request("flood", "").stream().await.expect("sent");
    broker.wait_for(Kind::Cancel, 1).await;
    client.request("q", "others go on").await.expect("replied");
    let mut last = None;
    while let Some(reply) = replies.next().await {
        last = Some(reply);
    }
    assert_eq!(last.expect("pieces came").expect_err("cut off").code(), Code::SlowReader);
}

/// Proves S1.5: nobody listens, so there is an error that names every broker.
#[tokio::test]
async fn without_a_broker_there_is_an_error() {
    let gone = Double::start().await;
    gone.drop_all(false);
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let place = silent.local_addr().expect("bound").to_string();
    until("nothing listens", || std::net::TcpStream::connect(gone.url().trim_start_matches("turno://")).is_err()).await;
    let options = Options::new([gone.url().parse().expect("an address"), Address::Tcp(place)])
        .connect_timeout(Duration::from_millis(50));
    let error = Client::connect(options).await.expect_err("it cannot connect");
    assert_eq!((error.kind(), error.attempts().len()), (ErrorKind::CannotConnect, 2));
    assert_eq!(error.attempts()[1].reason, "no answer within 50 ms");
    assert_eq!(io_error(&error.attempts()[0]).kind(), IoErrorKind::ConnectionRefused);
    assert_eq!(io_error(&error).to_string(), "no answer within 50 ms", "the last of them");
}

/// Proves S2.2 and I15: the next broker at once; what was flagged is made again, what was not fails.
#[tokio::test]
async fn a_lost_broker_is_replaced_by_the_next() {
    let (first, second) = (Double::start().await, Double::start().await);
    let _worker = echo(&second, "q").await;
    let client = Client::connect(format!("{},{}", first.url(), second.url())).await.expect("connected");
    let once = tokio::spawn(client.request("q", "x").into_future());
    let twice = tokio::spawn(client.request("q", "x").idempotent().into_future());
    first.wait_for(Kind::Request, 2).await;
    first.drop_all(false);
    let lost = once.await.expect("no panic").expect_err("the connection is lost");
    assert_eq!(lost.kind(), ErrorKind::ConnectionLost);
    let cause = io_error(&lost).kind();
    assert!(matches!(cause, IoErrorKind::UnexpectedEof | IoErrorKind::ConnectionReset), "{cause:?}");
    assert_eq!(twice.await.expect("no panic"), Ok(Message::new("x")));
    assert_eq!(client.request("q", "y").await, Ok(Message::new("y")));
}

#[tokio::test]
async fn a_closing_broker_is_left_without_losing_a_request() {
    let (first, second) = (Double::start().await, Double::start().await);
    let _worker = echo(&second, "q").await;
    let client = Client::connect(format!("{},{}", first.url(), second.url())).await.expect("connected");
    first.say_closing(ClosingReason::Shutdown);
    second.wait_for(Kind::Open, 1).await;
    assert_eq!(client.request("q", "y").await, Ok(Message::new("y")));
}

#[tokio::test]
async fn nonsense_from_the_broker_moves_to_the_next() {
    let (first, second) = (Double::start().await, Double::start().await);
    let _worker = echo(&second, "q").await;
    let client = Client::connect(format!("{},{}", first.url(), second.url())).await.expect("connected");
    first.say_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let reply = client.request("q", "y").idempotent().await;
    assert_eq!(reply, Ok(Message::new("y")));
}

/// Proves S1.4: the brokers that CONFIG tells of are kept for the next start.
#[tokio::test]
async fn the_group_is_kept_in_the_cache_file() {
    let second = Double::start().await;
    let first = Double::start_telling(vec![second.url()]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("brokers");
    let client = Client::connect(first.options().cache(&file)).await.expect("connected");
    until("the cache file", || std::fs::read_to_string(&file).is_ok_and(|text| text == second.url() + "\n")).await;
    client.close().await;
    first.drop_all(false);
    drop(first.options());
    let client = Client::connect(first.options().cache(&file)).await.expect("the cached one answers");
    client.close().await;
}

#[tokio::test]
async fn a_unix_socket_will_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("turno.sock");
    let listener = tokio::net::UnixListener::bind(&path).expect("bound");
    let broker = Double::start().await;
    let place = broker.url().trim_start_matches("turno://").to_owned();
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.expect("accepted");
        let mut far = tokio::net::TcpStream::connect(place).await.expect("connected");
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    });
    let client = Client::connect(Address::Unix(path)).await.expect("connected");
    client.send("q", "x").await.expect("stored");
    client.close().await;
}

#[test]
fn the_blocking_client_needs_no_runtime() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let broker = runtime.block_on(Double::start());
    let worker = runtime.block_on(echo(&broker, "q"));
    let client = turno_client::blocking::Client::connect(broker.url()).expect("connected");
    assert_eq!(client.request("q", "hi").wait(), Ok(Message::new("hi")));
    client.send("q", "hi").wait().expect("stored");
    assert_eq!(client.wait(client.admin().status()).expect_err("no admin").code(), Code::BadCall);
    client.close();
    drop(worker);
    runtime.block_on(async { broker.drop_all(false) });
    let refused = turno_client::blocking::Client::connect("127.0.0.1:1").expect_err("nobody there");
    assert_eq!(refused.code(), Code::CannotConnect);
}
