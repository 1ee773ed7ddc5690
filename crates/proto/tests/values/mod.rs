//! The value of every golden vector, written by hand: name, frame.

mod admin;
mod archive;
mod job;
mod link;
mod message;
mod ring;
mod ring_admin;
mod session;
mod topic;
mod zmq;

use turno_proto::native::Frame;

/// Every vector's name with the frame it stands for.
pub(crate) fn all() -> Vec<(&'static str, Frame<'static>)> {
    let mut table = session::frames();
    table.extend(message::frames());
    table.extend(admin::calls());
    table.extend(admin::answers());
    table.extend(job::calls());
    table.extend(job::answers());
    table.extend(archive::calls());
    table.extend(archive::answers());
    table.extend(link::frames());
    table.extend(link::calls());
    table.extend(link::answers());
    table.extend(ring::frames());
    table.extend(topic::frames());
    table.extend(topic::calls());
    table.extend(topic::answers());
    table.extend(ring_admin::calls());
    table.extend(ring_admin::answers());
    table.extend(zmq::calls());
    table.extend(zmq::answers());
    table
}
