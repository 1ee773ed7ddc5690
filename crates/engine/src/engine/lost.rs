//! Consequences of the end of a connection, machine by machine. This is the one list of them.

use turno_proto::model::{Code, ConnId};

use super::Engine;
use crate::effect::Sink;
use crate::jobs::JobsInput;

impl Engine {
    /// Cleans up after a connection.
    pub(super) fn disconnected(&mut self, conn: ConnId, out: &mut impl Sink) {
        // Its filters go with it.
        self.topics.forget(conn);
        // Calls that wait for the end of a job; of a job worker its tasks, which may still come back with it.
        self.tell_jobs(JobsInput::Lost { conn }, out);
        // Messages that crossed its link, its own requests, its places in queues and rotas, its deliveries, its handles.
        self.messages.lost(conn, out);
    }

    /// DEREGISTER: a worker goes, its connection stays.
    pub(super) fn deregister(&mut self, conn: ConnId) -> Result<(), Code> {
        self.messages.begin_to_leave(conn)?;
        self.with_jobs(|jobs, cx| jobs.forget_native(cx, conn));
        self.messages.left(conn);
        Ok(())
    }
}
