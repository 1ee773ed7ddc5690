//! The typed calls for queues, jobs and the broker, and the streams, against a real broker.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_core::Stream;
use turno_broker::Broker;
use turno_client::admin::{Reason, WorkerState};
use turno_client::jobs::{AfterWhen, JobId, JobState, TaskState};
use turno_client::{
    Client, Code, Durability, Error, ErrorKind, Filter, MessageId, Outcome, StopMode, Worker, WorkerEnd,
};

/// Longest wait for a condition: far beyond what a loaded machine needs, so that hitting it is a failure.
const LONG: Duration = Duration::from_secs(120);

async fn client(broker: &Broker) -> Client {
    Client::connect(broker.url()).await.expect("connected")
}

/// The next item by the trait, not by the method of the same name.
async fn polled<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

#[tokio::test]
async fn queues_are_listed_configured_and_purged() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let queues = client.queues();
    for name in ["b", "a"] {
        for number in 0..3 {
            client.send(name, format!("{number}")).await.expect("stored");
        }
    }
    let all = queues.list().collect().await.expect("listed");
    assert_eq!(all.iter().map(|queue| (queue.name.as_str(), queue.ready)).collect::<Vec<_>>(), [("a", 3), ("b", 3)]);

    let set = queues.configure("a").weight(7).drop_after(9).await.expect("set");
    assert_eq!((set.weight, set.drop_after, set.durable), (7, 9, false));
    let again = queues.configure("b").settings(set.settings.expect("its own")).durability(Durability::Memory).weight(8);
    let expected = (8, 9, Some(false));
    let settings = again.await.expect("set").settings.expect("its own");
    assert_eq!((settings.weight, settings.drop_after, settings.durable), (Some(8), Some(9), expected.2));
    assert_ne!(queues.reset("a").await.expect("reset").weight, 7);
    assert_eq!(queues.purge("a").await, Ok(3));
    assert_eq!(queues.get("b").await.expect("there").ready, 3);
    assert_eq!(queues.get("none").await.expect_err("not there").code(), Code::NotFound);

    let worker = Worker::new(broker.url()).queue("b").name("w").slots(1);
    let running = worker.start(|_| std::future::pending::<Outcome>()).await.expect("started");
    let consumers = queues.consumers("b").await.expect("listed");
    assert_eq!((consumers.consumers.len(), consumers.consumers[0].name.as_str(), consumers.more), (1, "w", 0));
    running.stop_now().await;
}

#[tokio::test]
async fn dead_letters_are_read_retried_and_removed() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let queues = client.queues();
    let worker = Worker::new(broker.url()).queue("q");
    let running = worker.start(|_| async { Outcome::failed_permanently("no") }).await.expect("started");
    let mut ids: Vec<MessageId> = Vec::new();
    for number in 0..3 {
        let stored = client.send("q", format!("{number}")).header("n", number.to_string()).await;
        ids.push(stored.expect("stored").id);
    }
    let (start, mut look) = (Instant::now(), tokio::time::interval(Duration::from_millis(2)));
    while queues.get("q").await.expect("there").dead < 3 {
        assert!(start.elapsed() < LONG, "waited too long for dead letters");
        look.tick().await;
    }
    running.stop_now().await;
    let dead = queues.dead_letters("q").collect().await.expect("listed");
    assert_eq!(dead.iter().map(|letter| letter.failure.as_str()).collect::<Vec<_>>(), ["no"; 3]);
    let letter = queues.dead_letter("q", ids[1]).await.expect("there");
    assert_eq!((letter.message.text(), letter.message.headers["n"].as_str()), (Ok("1"), "1"));

    assert_eq!(queues.retry_dead("q", [ids[1]]).await, Ok(1));
    assert_eq!(queues.retry_dead("q", [ids[1]]).await.expect_err("dead no more").code(), Code::NotFound);
    assert_eq!(queues.purge_dead("q", [ids[0]]).await, Ok(1));
    assert_eq!(queues.retry_all_dead("q").await, Ok(1));
    let view = queues.get("q").await.expect("there");
    assert_eq!((view.ready, view.dead), (2, 0));
    assert_eq!(queues.purge_all_dead("q").await, Ok(0));
}

#[tokio::test]
async fn jobs_are_submitted_held_cancelled_retried_and_removed() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let jobs = client.jobs();
    let first = jobs.submit(["echo", "{}"]).tasks(1..=5).tag("t").priority(9).hold().await.expect("taken");
    assert_eq!((first.state, first.counts.waiting, first.name.as_str()), (JobState::Held, 5, "echo"));
    assert_eq!(jobs.release(first.id).await.expect("released").state, JobState::Waiting);
    assert_eq!(jobs.hold(first.id).await.expect("held").state, JobState::Held);
    let second = jobs.submit(["true"]).after(first.id, AfterWhen::Any).key("once");
    let again = second.clone();
    let second = second.await.expect("taken");
    assert_eq!(again.await.expect("known").id, second.id);
    assert_eq!(jobs.submit(["false"]).key("once").await.expect_err("another job").code(), Code::KeyTaken);
    assert_eq!(jobs.latest().await.expect("there").id, second.id);
    let all = jobs.list().collect().await.expect("listed");
    assert_eq!(all.iter().map(|job| job.id).collect::<Vec<_>>(), [second.id, first.id]);

    jobs.cancel_tasks(first.id, [2..=3]).await.expect("cancelled");
    let cancelled = jobs.tasks_in(first.id, TaskState::Cancelled).collect().await.expect("listed");
    assert_eq!(cancelled.iter().map(|task| task.task).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(jobs.retry_tasks(first.id, [3..=3]).await, Ok(1));
    assert_eq!(jobs.tasks(first.id).collect().await.expect("listed").len(), 5);
    let why = jobs.explain_task(first.id, 1).await.expect("explained");
    assert_eq!((why.job.id, why.task.task), (first.id, 1));
    assert_eq!(jobs.explain(first.id).await.expect("explained").task.state, TaskState::Waiting);

    assert_eq!(jobs.cancel(first.id).await.expect("cancelled").state, JobState::Cancelled);
    assert_eq!(jobs.wait(first.id).await.expect("ended").state, JobState::Cancelled);
    assert_eq!(jobs.output(first.id).collect().await, Ok(Vec::new()));
    assert_eq!(jobs.files(first.id).collect().await, Ok(Vec::new()));
    jobs.remove(first.id).await.expect("removed");
    assert_eq!(jobs.get(first.id).await.expect_err("gone").code(), Code::NotFound);
    assert_eq!(jobs.retry(JobId(99)).await.expect_err("never there").code(), Code::NotFound);
}

/// Files for tasks are stored once, in pieces, and named by the job.
#[tokio::test]
async fn uploads_are_stored_read_and_named() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let jobs = client.jobs();
    let long: Vec<u8> = (0..700_000_u32).map(|at| at.to_le_bytes()[1]).collect();
    let mut ids = Vec::new();
    for content in [long.as_slice(), b"", b"short"] {
        let upload = jobs.upload(content.to_vec()).await.expect("stored");
        assert_eq!(jobs.upload(content.to_vec()).await, Ok(upload), "the same again");
        assert_eq!(jobs.upload_from(std::io::Cursor::new(content)).await, Ok(upload));
        assert_eq!(jobs.upload_content(upload).await.expect("there"), content);
        ids.push(upload);
    }
    let submit = jobs.submit(["sh", "-c", "./run < data"]).file("data", ids[0]).executable("run", ids[2]).stdin(ids[0]);
    let job = submit.collect("*.png").await.expect("taken");
    let spec = jobs.get(job.id).await.expect("there").spec.expect("its spec");
    assert_eq!(spec.uploads.len(), 2, "each is named once");
    let command = spec.command().expect("readable");
    assert_eq!((command.collect, command.stdin), (vec!["*.png".to_owned()], Some(ids[0].to_string())));
    let files: Vec<_> = command.files.iter().map(|file| (file.name.as_str(), file.executable)).collect();
    assert_eq!(files, [("data", false), ("run", true)]);

    let follower = jobs.follow_output(job.id);
    jobs.cancel(job.id).await.expect("cancelled");
    assert_eq!(follower.collect().await, Ok(Vec::new()), "it ends with the job");
    let none = jobs.follow_task_output(JobId(99), [1..=1]).collect().await;
    assert_eq!(none.expect_err("never there").code(), Code::NotFound);
}

/// What cannot be a job is refused before anything is sent.
#[tokio::test]
async fn a_job_is_checked_here() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let submit = || client.jobs().submit(["echo", "{}"]);
    let backwards = std::ops::RangeInclusive::new(2, 1);
    let table = [
        submit().priority(10),
        submit().tasks(backwards).priority(9),
        submit().array("1-"),
        submit().items(["a\0b"]),
        submit().items([] as [&str; 0]),
        submit().label("a=b", "c"),
    ];
    for job in table {
        let error = job.spec().expect_err("no job");
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, Code::BadJob), "{error}");
    }
    let spec = submit().items(["x", "y"]).time_limit(Duration::from_secs(1)).backoff(Duration::from_secs(2)).spec();
    let spec = spec.expect("a job");
    assert_eq!((spec.array.count, spec.time_limit_ms, spec.backoff_ms), (2, Some(1_000), 2_000));
    assert_eq!((spec.item_count(), spec.item(1), spec.item(2)), (2, Some(vec!["y"]), None));
    assert_eq!(spec.command().expect("readable").argv, ["echo", "{}"]);
}

#[tokio::test]
async fn the_broker_and_its_workers_are_looked_at_and_changed() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let admin = client.admin();
    let stored = client.send("q", "x").await.expect("stored");
    let why = admin.explain_message(stored.id).await.expect("explained");
    assert!(matches!(*why.because, Reason::NoWorker), "{why:?}");
    assert_eq!(why.because.to_string(), "no worker consumes the queue");
    admin.cancel_message(stored.id).await.expect("cancelled");
    assert_eq!(admin.explain_message(stored.id).await.expect_err("gone").code(), Code::NotFound);

    let running = Worker::new(broker.url()).queue("q").name("w").slots(3).start(|_| async {}).await.expect("started");
    assert_eq!(admin.status().await.expect("told").workers, 1);
    let id = admin.workers().collect().await.expect("listed")[0].id.to_string();
    assert_eq!(admin.resize_worker("w", 5).await.expect("resized").slots, 5.into());
    assert_eq!(admin.drain_worker(&id).await.expect("drained").state, WorkerState::Draining);
    admin.resume_worker(&id).await.expect("resumed");
    assert_ne!(admin.worker("w").await.expect("there").state, WorkerState::Draining);
    admin.stop_worker("w", StopMode::Drain).await.expect("asked");
    assert_eq!(running.wait().await, WorkerEnd::StoppedByBroker(StopMode::Drain));

    assert!(admin.drain().await.expect("drained").maintenance);
    assert!(!admin.resume().await.expect("resumed").maintenance);
    assert_eq!(admin.links().await, Ok(Vec::new()));
    assert_eq!(admin.link_graph().await.expect("told").len(), 1);
    assert_eq!(admin.ring().await.expect_err("it is in none").code(), Code::NotInRing);
}

#[tokio::test]
async fn a_subscriber_at_the_broker_is_fetched_from() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let admin = client.admin();
    let filter: Filter = "t.*".parse().expect("a filter");
    assert_eq!(admin.create_subscriber("box", [filter]).await.expect("created").name, "box");
    client.publish("t.x", "hi").header("k", "v").confirmed().await.expect("published");
    let fetched = admin.fetch_events("box", 10).await.expect("fetched");
    assert_eq!((fetched.events.len(), fetched.missed, fetched.left), (1, 0, 0));
    assert_eq!((fetched.events[0].topic.as_str(), fetched.events[0].headers["k"].as_str()), ("t.x", "v"));
    assert_eq!(admin.subscribers_of("t.y").collect().await.expect("listed").len(), 1);
    assert_eq!(admin.subscribers_of("u").collect().await.expect("listed").len(), 0);
    assert_eq!(admin.topics().collect().await.expect("listed")[0].topic, "t.x");
    admin.remove_subscriber("box").await.expect("removed");
    assert_eq!(admin.subscribers().collect().await, Ok(Vec::new()));
}

/// Replies, broadcasts, subscriptions and lists are streams.
#[tokio::test]
async fn everything_that_comes_in_parts_is_a_stream() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let worker = Worker::new(broker.url()).queue("q");
    let handler = |delivery: turno_client::Delivery| async move {
        delivery.piece("a").await?;
        Ok::<_, Error>("b")
    };
    let _running = worker.start(handler).await.expect("started");

    let mut reply = client.request("q", "").stream().await.expect("made");
    assert_eq!(polled(&mut reply).await.expect("a piece").expect("whole").body, "a");
    assert_eq!(polled(&mut reply).await.expect("a piece").expect("whole").body, "b");
    assert_eq!(polled(&mut reply).await, None);

    let mut broadcast = client.broadcast("q", "").await.expect("made");
    assert!(polled(&mut broadcast).await.is_some_and(|answer| answer.is_ok()));
    assert!(polled(&mut broadcast).await.is_some_and(|answer| answer.is_ok()));
    assert_eq!(polled(&mut broadcast).await, None);

    let mut events = client.subscribe("t").await.expect("begun");
    client.publish("t", "x").await.expect("published");
    let event = polled(&mut events).await.expect("open").expect("no error").into_event().expect("an event");
    assert_eq!(event.body, "x");

    let mut queues = client.queues().list();
    assert_eq!(polled(&mut queues).await.expect("one").expect("told").name, "q");
    assert_eq!(polled(&mut queues).await, None);
}

/// Deliveries as a stream: each is settled by a call, and one that is dropped has failed.
#[tokio::test]
async fn deliveries_are_settled_by_calls() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let mut deliveries = Worker::new(broker.url()).queue("q").slots(2).deliveries().await.expect("started");
    let ask = |body: &'static str| tokio::spawn(client.request("q", body).retries(0).into_future());
    let asked = ["reply", "ack", "fail", "reject", "drop"].map(ask);
    for _ in &asked {
        let delivery = polled(&mut deliveries).await.expect("running");
        match &delivery.body[..] {
            b"reply" => delivery.reply("ok"),
            b"ack" => delivery.ack(),
            b"fail" => delivery.fail("once"),
            b"reject" => delivery.reject("never"),
            _ => drop(delivery),
        }
    }
    let mut ends = Vec::new();
    for end in asked {
        let end = end.await.expect("no panic");
        ends.push(end.map_or_else(|error| error.detail().to_owned(), |reply| format!("{:?}", reply.body)));
    }
    assert_eq!(ends, ["b\"ok\"", "b\"\"", "once", "never", "the worker dropped the delivery"]);
    let end = deliveries.worker().stop(LONG).await;
    assert_eq!((end, deliveries.next().await.is_none()), (WorkerEnd::Stopped, true));
}

/// A request without reply ends when a worker has it.
#[tokio::test]
async fn a_request_without_reply_ends_early() {
    let broker = Broker::start_loopback().expect("a broker");
    let client = client(&broker).await;
    let stuck = |_| std::future::pending::<Outcome>();
    let running = Worker::new(broker.url()).queue("q").start(stuck).await.expect("started");
    client.request("q", "x").no_reply().await.expect("written to the worker");
    running.stop_now().await;
}
