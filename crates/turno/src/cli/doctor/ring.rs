//! The ring of a broker that runs on the directory.

use std::path::Path;

use turno_broker::config::SOCKET_NAME;
use turno_client::{Address, AdminAnswer, AdminCall, Client, Options};
use turno_proto::model::ring::view::RingView;

use super::{Report, directory};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::ring::told;

/// What the broker there tells of its ring. None runs, none answers, or it is in no ring: there is nothing to look at.
pub(super) fn seen(data: &Path, invocation: &Invocation) -> Option<RingView> {
    let socket = data.join(SOCKET_NAME);
    if !directory::is_taken(data).unwrap_or(false) || !socket.exists() {
        return None;
    }
    let timeout = invocation.global.timeout();
    let asked = connect::block_on(async {
        let client =
            Client::connect(Options::new(vec![Address::Unix(socket)]).stay(true).connect_timeout(timeout)).await?;
        connect::admin(&client, AdminCall::Ring {}, timeout).await
    });
    match asked {
        Ok(AdminAnswer::Ring { ring }) => Some(*ring),
        _ => None,
    }
}

pub(super) fn look(ring: &RingView, report: &mut Report) {
    match told::is_broken(ring) {
        true => report.warn("ring", told::line(ring), "it mends itself if it can: turno ring show"),
        false => report.ok("ring", told::line(ring)),
    };
}
