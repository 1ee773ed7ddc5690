//! Sends: stored before they are answered, sent twice and stored once, and dead letters when nothing helps.
//!
//! Runs against a broker of its own: `cargo run -p turno-client --example send`.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::time::Duration;

use turno_broker::Broker;
use turno_client::{Client, Outcome, Worker};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let broker = Broker::start_loopback()?;
    let client = Client::connect(broker.url()).await?;

    let stored = client.send("emails", "to: you").dedup_id("order-17").await?;
    println!("{} is stored in {}", stored.id, stored.durability.name());
    let again = client.send("emails", "to: you").dedup_id("order-17").await?;
    assert!(again.duplicate && again.id == stored.id, "it is stored once");

    // No attempt succeeds: after its retries the message becomes a dead letter.
    let worker = Worker::new(broker.url())
        .queue("emails")
        .start(|_| async { Outcome::failed_permanently("no such address") })
        .await?;
    while client.queues().get("emails").await?.dead == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.stop(Duration::from_secs(60)).await;

    let letter = client.queues().dead_letter("emails", stored.id).await?;
    println!("dead: {} ({})", letter.message.text()?, letter.view.failure);
    assert_eq!(letter.message.text()?, "to: you");
    assert_eq!(client.queues().retry_all_dead("emails").await?, 1);
    assert_eq!(client.queues().get("emails").await?.ready, 1);
    Ok(())
}
