//! The Rust example of the README, run against an embedded broker.

use std::time::Duration;

use turno_broker::Broker;
use turno_client::{Client, Error, Worker};

/// The example does what it says. Proves S0.1 and S0.37.
#[tokio::test]
async fn the_example_of_the_readme_runs() -> Result<(), Error> {
    let embedded = Broker::start_loopback().expect("a broker on loopback");
    let url = embedded.url();
    let broker = url.as_str();
    // README
    let worker = Worker::new(broker)
        .queue("shout")
        .slots(4)
        .start(|delivery| async move { delivery.body.to_ascii_uppercase() })
        .await?;

    let client = Client::connect(broker).await?;
    let reply = client.request("shout", "good morning").timeout(Duration::from_secs(30)).await?;
    assert_eq!(reply.body, "GOOD MORNING");
    // README
    assert_eq!(worker.in_flight(), 0);
    Ok(())
}

/// What stands between the marks above is what the README shows.
#[test]
fn the_readme_shows_the_example_that_runs() {
    let unindented = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let example = include_str!("readme.rs").split("// README\n").nth(1).expect("the marks are there");
    let readme = unindented(include_str!("../../../README.md"));
    assert!(readme.contains(unindented(example).trim()), "README.md shows another example:\n{example}");
}
