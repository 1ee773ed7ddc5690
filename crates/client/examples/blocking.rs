//! The client and the worker without async.
//!
//! Runs against a broker of its own: `cargo run -p turno-client --example blocking`.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::time::Duration;

use turno_broker::Broker;
use turno_client::blocking::{Client, Worker};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let broker = Broker::start_loopback()?;
    // The handler is a plain function and may block: each slot has a thread.
    let worker = Worker::new(broker.url()).queue("shout").slots(2).start(|delivery| {
        delivery.progress("shouting")?;
        Ok::<_, turno_client::Error>(delivery.body.to_ascii_uppercase())
    })?;

    let client = Client::connect(broker.url())?;
    let reply = client.request("shout", "good morning").timeout(Duration::from_secs(60)).wait()?;
    println!("{}", reply.text()?);
    assert_eq!(reply.text()?, "GOOD MORNING");

    let mut events = client.subscribe("news.*").wait()?;
    client.publish("news.sport", "1:0").wait()?;
    let event = events.next_event().expect("the client is open")?;
    assert_eq!((event.topic.as_str(), &event.body[..]), ("news.sport", &b"1:0"[..]));

    let status = client.wait(client.admin().status())?;
    println!("{} has {} connections", status.name, status.connections);

    worker.stop(Duration::from_secs(60));
    Ok(())
}
