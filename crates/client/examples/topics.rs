//! Topics: publish events, subscribe with filters, and notice gaps.
//!
//! Runs against a broker of its own: `cargo run -p turno-client --example topics`.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use turno_broker::Broker;
use turno_client::{Client, Received};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let broker = Broker::start_loopback()?;
    let client = Client::connect(broker.url()).await?;
    let mut events = client.subscribe("sensor.*").filter("alarm.>").await?;

    client.publish("sensor.kitchen", "21.5").header("unit", "C").await?;
    client.publish("door.front", "open").await?;
    client.publish("alarm.fire.kitchen", "smoke").confirmed().await?;

    let mut topics = Vec::new();
    while topics.len() < 2 {
        match events.next().await.expect("the client is open")? {
            Received::Event(event) => {
                println!("{}: {}", event.topic, String::from_utf8_lossy(&event.body));
                topics.push(event.topic.to_string());
            }
            Received::Dropped(count) => println!("{count} events are missing: this program reads too slowly"),
            Received::Reconnected => println!("events may be missing: the connection was lost"),
            _ => {}
        }
    }
    assert_eq!(topics, ["sensor.kitchen", "alarm.fire.kitchen"]);
    Ok(())
}
