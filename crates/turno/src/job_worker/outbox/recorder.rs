//! The recorder of one attempt's output, as the reader of its pipes uses it.

use std::sync::Arc;

use tokio::sync::Notify;
use turno_proto::foreman::Task;
use turno_proto::model::archive::OutputStream;
use turno_proto::model::job::JobId;

use super::attempt::AttemptId;
use super::driver::Outbox;
use super::event::Ticket;
use super::out_dir::OutFiles;

/// Takes what an attempt writes. Dropped before its end, what was not sent is forgotten.
#[derive(Debug)]
pub(crate) struct Recorder {
    way: OutputRoute,
}

#[derive(Debug)]
enum OutputRoute {
    Broker(Opened),
    Files(OutFiles),
}

/// An attempt that the outbox knows.
#[derive(Debug)]
struct Opened {
    outbox: Outbox,
    ticket: Ticket,
    wake: Arc<Notify>,
}

impl Outbox {
    /// Before a task's process starts. An error is the status with which the task fails.
    pub(crate) async fn begin(&self, task: &Task) -> Result<Recorder, String> {
        let way = if task.logging_dir.is_empty() {
            let id = AttemptId { job: JobId(task.job), task: task.task, attempt: task.attempt };
            let (ticket, wake) = self.open(id);
            OutputRoute::Broker(Opened { outbox: self.clone(), ticket, wake })
        } else {
            OutputRoute::Files(OutFiles::create(task).await?)
        };
        Ok(Recorder { way })
    }
}

impl Recorder {
    /// These bytes were read. Waits while there is no room for more; an error is the status with which the task fails.
    pub(crate) async fn wrote(&mut self, stream: OutputStream, bytes: &[u8]) -> Result<(), String> {
        match &mut self.way {
            OutputRoute::Broker(opened) => {
                if !opened.outbox.wrote(opened.ticket, stream, bytes) {
                    while !opened.outbox.has_room(opened.ticket) {
                        opened.wake.notified().await;
                    }
                }
                Ok(())
            }
            OutputRoute::Files(files) => files.wrote(stream, bytes).await,
        }
    }

    /// Both pipes are at their end. Waits until what is to be kept is, or lost for good.
    pub(crate) async fn end(self) {
        if let OutputRoute::Broker(opened) = &self.way {
            opened.outbox.end(opened.ticket);
            while !opened.outbox.has_ended(opened.ticket) {
                opened.wake.notified().await;
            }
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.outbox.forget(self.ticket);
    }
}
