//! A worker: slots, cancellation, connection events, and a stop that lets running handlers finish.
//!
//! Runs against a broker of its own: `cargo run -p turno-client --example worker`.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::time::Duration;

use turno_broker::Broker;
use turno_client::{Client, Delivery, Outcome, Worker, WorkerEnd};

async fn handle(delivery: Delivery) -> Outcome {
    tokio::select! {
        // The caller gave up, the deadline passed, or the worker stops.
        reason = delivery.cancelled() => Outcome::failed(format!("stopped: {reason}")),
        size = resize(&delivery.body) => Outcome::reply(format!("{size} bytes")),
    }
}

async fn resize(image: &[u8]) -> usize {
    tokio::task::yield_now().await;
    image.len() / 2
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let broker = Broker::start_loopback()?;
    let worker = Worker::new(broker.url())
        .queue("resize")
        .slots(4)
        .name("pixel-1")
        .on_event(|event| println!("worker: {event:?}"))
        .start(handle)
        .await?;

    let client = Client::connect(broker.url()).await?;
    let requests: Vec<_> = (1..=20).map(|size| client.request("resize", vec![0; 2 * size])).collect();
    for (at, request) in requests.into_iter().enumerate() {
        assert_eq!(request.await?.text()?, format!("{} bytes", at + 1));
    }
    println!("{} handlers run, {} panicked", worker.in_flight(), worker.panics());

    assert_eq!(worker.stop(Duration::from_secs(60)).await, WorkerEnd::Stopped);
    Ok(())
}
