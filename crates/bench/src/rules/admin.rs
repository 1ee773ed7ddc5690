//! Questions to the broker beside a load.

use std::cell::RefCell;

use anyhow::{Context, Result, bail};
use turno_proto::model::view::QueueView;
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{Frame, Header, decode, encode};

use crate::link::Link;

/// Asks, and waits for the answer; of a connection that is used for nothing else meanwhile.
pub(crate) async fn ask(link: &mut Link, call: AdminCall) -> Result<AdminAnswer> {
    encode(&Frame::AdminCall { seq: 0, call }, &mut link.out);
    link.flush().await?;
    let answer = RefCell::new(None);
    while answer.borrow().is_none() {
        link.receive(|header, rest, _| *answer.borrow_mut() = Some(answer_of(header, rest))).await?;
    }
    answer.into_inner().context("an answer")?
}

fn answer_of(header: Header, rest: &[u8]) -> Result<AdminAnswer> {
    match whole(header, rest)? {
        Frame::AdminAnswer { answer, .. } => Ok(answer),
        other => bail!("not an answer: {other:?}"),
    }
}

/// Decodes a frame.
pub(super) fn whole(header: Header, rest: &[u8]) -> Result<Frame<'_>> {
    decode(&header, rest).ok().context("a frame that makes no sense")
}

/// The queue as it is now.
pub(super) async fn queue(link: &mut Link, name: &str) -> Result<QueueView> {
    match ask(link, AdminCall::QueueShow { queue: name.to_owned() }).await? {
        AdminAnswer::Queue { queue } => Ok(*queue),
        other => bail!("not a queue: {other:?}"),
    }
}
