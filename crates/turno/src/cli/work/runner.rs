//! Handles a delivery: its program runs, or it waits for its turn.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, watch};
use turno_client::{Delivery, Outcome, Slots};
use turno_proto::model::{Code, parts};

use super::broadcasts::{Broadcasts, NoTurn};
use super::program::{Program, Task};
use super::{echo, stderr};

/// The shared state of all deliveries.
#[derive(Clone)]
pub(crate) struct DeliveryRunner {
    program: Option<Arc<Program>>,
    broadcasts: Broadcasts,
    /// Known as soon as the worker is registered.
    reply_max: watch::Receiver<Option<u64>>,
    stderr: stderr::StderrSender,
    /// The worker's.
    name: String,
}

impl DeliveryRunner {
    /// Also where to tell the bytes that a reply may have: until that is known, nothing runs.
    pub(crate) fn new(
        program: Option<Arc<Program>>,
        slots: Slots,
        stderr: stderr::StderrSender,
        name: &str,
    ) -> (Self, watch::Sender<Option<u64>>) {
        let (tell, reply_max) = watch::channel(None);
        (Self { program, broadcasts: Broadcasts::new(slots), reply_max, stderr, name: name.to_owned() }, tell)
    }
}

/// One delivery from its start to its end.
pub(crate) async fn handle(delivery: Delivery, mut runner: DeliveryRunner) -> Outcome {
    let Some(program) = runner.program.clone() else { return echo::reply(delivery) };
    let _turn = match delivery.cost {
        0 => match turn(&delivery, &runner).await {
            Ok(turn) => Some(turn),
            Err(outcome) => return outcome,
        },
        _ => None,
    };
    // Nobody is left to tell only when everything ends.
    let reply_max = match runner.reply_max.wait_for(Option::is_some).await {
        Ok(known) => known.unwrap_or_default(),
        Err(_) => return Outcome::failed("the worker is shutting down"),
    };
    let task = Task {
        queue: delivery.queue.clone(),
        id: delivery.id.to_string(),
        attempt: delivery.attempt,
        token: delivery.token,
        body: delivery.body.clone(),
        // Parts that were read are never too many.
        parts: parts::lengths(delivery.parts().iter().map(Bytes::len)).unwrap_or_default(),
        reply_bytes_max: delivery.wants_reply.then(|| usize::try_from(reply_max).unwrap_or(usize::MAX)),
    };
    let stop = async { delivery.cancelled().await.name() };
    program.run(task, stop, &runner.stderr).await.into()
}

/// The turn of a broadcast, or how it ends without one.
async fn turn(delivery: &Delivery, runner: &DeliveryRunner) -> Result<OwnedSemaphorePermit, Outcome> {
    let stop = async { delivery.cancelled().await.name() };
    let turn = runner.broadcasts.turn(delivery.body.len(), delivery.deadline, stop).await;
    match turn {
        Ok(turn) => Ok(turn),
        Err(NoTurn::Stopped(reason)) => Err(Outcome::failed(format!("stopped before it started: {reason}"))),
        Err(NoTurn::Late) => Err(Outcome::failed(format!("{} before it started", Code::TimedOut.name()))),
        Err(NoTurn::Busy { text, first }) => {
            if first {
                let line = format!("{}: too many broadcasts; further ones fail: {text}\n", runner.name);
                // Nobody takes it only when everything ends.
                let _ = runner.stderr.send(line.into_bytes().into()).await;
            }
            Err(Outcome::failed(text))
        }
    }
}
