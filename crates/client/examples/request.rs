//! Requests: one reply, a reply in pieces, and the errors to expect.
//!
//! Runs against a broker of its own: `cargo run -p turno-client --example request`.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::time::Duration;

use turno_broker::Broker;
use turno_client::{Client, ErrorKind, Outcome, Worker};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let broker = Broker::start_loopback()?;
    let worker = Worker::new(broker.url())
        .queue("count")
        .start(|delivery| async move {
            let Ok(Ok(end)) = str::from_utf8(&delivery.body).map(str::parse::<u32>) else {
                return Outcome::failed_permanently("the body is a number");
            };
            for number in 1..end {
                // An error means that nobody waits for the reply any more.
                if delivery.piece(format!("{number} ")).await.is_err() {
                    break;
                }
            }
            Outcome::reply(end.to_string())
        })
        .await?;
    let client = Client::connect(broker.url()).await?;

    let reply = client.request("count", "3").timeout(Duration::from_secs(60)).await?;
    println!("whole: {}", reply.text()?);
    assert_eq!(reply.text()?, "1 2 3");

    let mut pieces = client.request("count", "3").stream().await?;
    while let Some(piece) = pieces.next().await {
        println!("piece: {}", piece?.text()?);
    }

    let error = client.request("count", "three").await.expect_err("no number");
    println!("error: {error}");
    assert_eq!((error.kind(), error.detail()), (ErrorKind::Failed, "the body is a number"));

    let error = client.request("nobody", "hello").fail_fast().await.expect_err("no worker");
    println!("error: {error}");
    assert_eq!(error.kind(), ErrorKind::NoResponder);

    worker.stop(Duration::from_secs(60)).await;
    Ok(())
}
