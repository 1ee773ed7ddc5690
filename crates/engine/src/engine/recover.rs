//! Recovery from stored records, before the first input.

use turno_proto::model::QueueName;
use turno_proto::model::view::QueueSettings;

use super::Engine;
use crate::jobs::StoredJobs;
use crate::messages::disk::persist::{DedupRecord, RecoveredMessage};

impl Engine {
    /// Takes back the settings of a queue that outlived the last run. For the start, before the first input.
    pub fn recover_queue(&mut self, queue: QueueName, settings: QueueSettings) {
        self.messages.recover_queue(queue, settings);
    }

    /// The highest term of a token that an earlier run heard of. For the start, before the first input.
    pub fn recover_token_term(&mut self, term: u64) {
        self.messages.recover_token_term(term);
    }

    /// Takes back a message that outlived the last run. For the start, before the first input, in the order of the
    /// serials. One that was tried before stays in memory, before those that only the store holds.
    pub fn recover(&mut self, survivor: RecoveredMessage) {
        self.messages.recover(survivor);
    }

    /// Takes back the dedup ids that outlived the last run, in any order. For the start, before the first input. Those
    /// that are too old by now are forgotten with the first inputs.
    pub fn recover_dedup(&mut self, remembered: Vec<DedupRecord>) {
        self.messages.recover_dedup(remembered);
    }

    /// Takes back all jobs that outlived the last run. For the start, before the first input. What belongs to no job is
    /// removed with the first thing that is stored.
    pub fn recover_jobs(&mut self, stored: StoredJobs) {
        self.with_jobs(|jobs, cx| jobs.recover(cx, stored));
        self.archive.knows_all();
    }
}
