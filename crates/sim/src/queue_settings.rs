//! An operator after the calm: a queue is purged, and dead letters are retried.

use turno_client::core::{Ask, Ticket};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{DedupId, MessageId, Payload, QueueName};

use crate::client::Client;
use crate::later::LATER;
use crate::letters::StoreContents;
use crate::world::{Actor, World};

/// Tickets of what is sent to be removed.
const UNWANTED: u64 = LATER + (1 << 20);
/// Messages that are removed: more than a small window holds in memory.
const UNWANTED_COUNT: u64 = 20;
/// Seconds within which they are all stored, and within which what the operator wants is done: a store that failed in the storm may
/// show it only now, and its broker starts again.
const SENT_WITHIN_S: u64 = 25;
const DONE_WITHIN_S: u64 = 20;
/// More than there are.
const ALL: u32 = 1_000;

impl World {
    /// I1 and I3: what is purged is gone from the disk, too, and what is put back is done.
    pub(crate) fn look_after_queues(&mut self) {
        let is_kept = |at: &usize| self.brokers[*at].disks.is_some();
        let kept: Vec<usize> = (0..self.brokers.len()).filter(is_kept).collect();
        if kept.is_empty() || !self.links.is_empty() {
            return;
        }
        let broker = kept[self.rng.index(kept.len())];
        self.empty_a_queue(broker);
        self.put_letters_back(broker);
    }

    fn truth_of(&self, broker: usize) -> StoreContents {
        let disks = self.brokers[broker].disks.as_ref().expect("it has a store");
        disks.truth().unwrap_or_else(|why| panic!("I1: the store cannot be opened: {why}"))
    }

    fn empty_a_queue(&mut self, broker: usize) {
        let queue: QueueName = "unwanted".parse().expect("a name");
        let sender = self.add_peer(Actor::Client(Client::default()), 0, Vec::new(), Some(broker));
        self.pass(2_000);
        let before = self.truth_of(broker).messages;
        let now = self.now;
        if let Some(core) = &mut self.peers[sender].core {
            for nth in 0..UNWANTED_COUNT {
                let mut ask = Ask::new(queue.clone(), Payload::body("unwanted"));
                // So that it is sent again if the broker ends meanwhile.
                ask.dedup_id = DedupId::new(&nth.to_be_bytes()).ok();
                core.send(now, Ticket(UNWANTED + nth), ask);
            }
        }
        self.pump_peer(sender);
        let added = |world: &Self| world.truth_of(broker).messages.difference(&before).count() as u64;
        for _ in 0..SENT_WITHIN_S {
            self.pass(1_000);
            if added(self) == UNWANTED_COUNT {
                break;
            }
        }
        assert_eq!(added(self), UNWANTED_COUNT, "I1: what was sent to be removed is on the disk");
        for _ in 0..DONE_WITHIN_S {
            self.administer(broker, AdminCall::QueuePurge { queue: queue.to_string(), limit: ALL });
            self.pass(1_000);
            if added(self) == 0 {
                break;
            }
        }
        assert_eq!(added(self), 0, "I1: what was purged is on the disk, and would be back after a restart");
    }

    fn put_letters_back(&mut self, broker: usize) {
        let StoreContents { run, dead, .. } = self.truth_of(broker);
        self.oracle.letters.put_back(run);
        let undone = |world: &Self| {
            let is_done = |serial: u64| world.oracle.letters.is_done(MessageId::new(run, serial, u32::MAX));
            dead.iter().copied().find(|serial| !is_done(*serial))
        };
        for _ in 0..DONE_WITHIN_S {
            for queue in self.queues.clone() {
                let call = AdminCall::DeadRetry { queue: queue.to_string(), ids: Vec::new(), oldest: ALL };
                self.administer(broker, call);
            }
            self.pass(1_000);
            if undone(self).is_none() {
                break;
            }
        }
        assert_eq!(undone(self), None, "I3: a dead letter was put back, and nobody has done it");
    }
}
