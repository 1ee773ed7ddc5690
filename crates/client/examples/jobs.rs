//! Jobs: submit a command with many tasks, look at it, cancel it.
//!
//! Runs against a broker of its own, without a job worker: `cargo run -p turno-client --example jobs`. With a worker
//! (`turno worker start`) the tasks would run, and `client.jobs().wait(id)` would wait for their end.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::time::Duration;

use turno_broker::Broker;
use turno_client::Client;
use turno_client::jobs::{JobReason, JobState, TaskState};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let broker = Broker::start_loopback()?;
    let client = Client::connect(broker.url()).await?;
    let jobs = client.jobs();

    let submission = jobs
        .submit(["convert", "{}", "-resize", "50%", "small-{}"])
        .name("thumbnails")
        .items(["cat.jpg", "dog.jpg", "owl.jpg"])
        .retries(2)
        .time_limit(Duration::from_secs(60))
        .key("thumbnails-2026-11");
    let job = submission.clone().await?;
    let because = job.because.as_ref().map_or_else(String::new, ToString::to_string);
    println!("job {}: {} tasks wait: {because}", job.id, job.counts.waiting);
    assert_eq!((job.state, job.counts.waiting), (JobState::Waiting, 3));
    assert_eq!(jobs.get(job.id).await?.because.as_deref(), Some(&JobReason::NoWorker));

    // Submitted again with its key, it is the same job.
    assert_eq!(submission.await?.id, job.id);

    jobs.cancel_tasks(job.id, [3..=3]).await?;
    let mut tasks = jobs.tasks(job.id);
    while let Some(task) = tasks.next().await {
        let task = task?;
        println!("task {}: {:?}", task.task, task.state);
    }
    assert_eq!(jobs.tasks_in(job.id, TaskState::Waiting).collect().await?.len(), 2);

    let job = jobs.cancel(job.id).await?;
    assert_eq!(job.state, JobState::Cancelled);
    Ok(())
}
