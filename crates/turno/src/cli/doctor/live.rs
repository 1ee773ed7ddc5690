//! Views of the broker that runs on the directory.

use std::path::Path;

use turno_client::{Address, AdminAnswer, AdminCall, Client, Options};
use turno_proto::model::limits::PAGE_MAX;
use turno_proto::model::ring::view::RingView;
use turno_proto::model::view::{BrokerView, QueueView};

use super::directory;
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use turno_broker::config::SOCKET_NAME;

/// A broker at work.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) broker: BrokerView,
    /// Queues with more dead letters than they may have without a warning.
    pub(super) with_many_dead: Vec<QueueView>,
    /// Its ring, if it is in one.
    pub(super) ring: Option<RingView>,
}

/// Asks the broker there. None runs, or none answers: there is nothing to tell.
pub(super) fn seen(data: &Path, dead_max: u64, invocation: &Invocation) -> Option<Live> {
    let socket = data.join(SOCKET_NAME);
    if !directory::is_taken(data).unwrap_or(false) || !socket.exists() {
        return None;
    }
    let timeout = invocation.global.timeout();
    let asked = connect::block_on(async {
        let client =
            Client::connect(Options::new(vec![Address::Unix(socket)]).stay_while_draining().connect_timeout(timeout))
                .await?;
        let broker = match connect::admin(&client, AdminCall::Status, timeout).await? {
            AdminAnswer::Status { broker } => *broker,
            other => return Err(connect::unexpected(&other)),
        };
        let ring = match connect::admin(&client, AdminCall::Ring {}, timeout).await {
            Ok(AdminAnswer::Ring { ring }) => Some(*ring),
            _ => None,
        };
        // Where all together have few, no queue has many.
        let with_many_dead =
            if broker.dead > dead_max { many_dead(&client, dead_max, invocation).await? } else { Vec::new() };
        Ok::<Live, Failure>(Live { broker, with_many_dead, ring })
    });
    asked.ok()
}

async fn many_dead(client: &Client, dead_max: u64, invocation: &Invocation) -> Result<Vec<QueueView>, Failure> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let call = AdminCall::QueueLs { after, limit: PAGE_MAX };
        let (queues, next) = match connect::admin(client, call, invocation.global.timeout()).await? {
            AdminAnswer::Queues { queues, next } => (queues, next),
            other => return Err(connect::unexpected(&other)),
        };
        found.extend(queues.into_iter().filter(|queue| queue.dead > dead_max));
        if next.is_none() {
            return Ok(found);
        }
        after = next;
    }
}
