//! Views that an admin asks for.

use turno_engine::{DiskEffect, Effect, Input, NativeEffect, PeerEffect};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{BrokerView, ConsumerView, Counters, Explanation, QueueView, WorkerView};
use turno_proto::model::{Code, ConnId, MessageId};

use crate::harness::Harness;
use crate::seen::Seen;

/// Nobody: the engine answers an admin it knows nothing else about.
const ADMIN: ConnId = ConnId { index: u32::MAX - 1, generation: 1 };

impl Harness {
    /// An admin call: its answer, and what else follows from it. What has to be stored before the answer is.
    pub(crate) fn admin(&mut self, call: AdminCall) -> (Result<AdminAnswer, Code>, Vec<Seen>) {
        self.admin_then(call, |group| Input::Persisted { group })
    }

    /// The same, and how the disk takes what has to be stored before the answer.
    pub(crate) fn admin_then(
        &mut self,
        call: AdminCall,
        disk: impl FnOnce(u64) -> Input,
    ) -> (Result<AdminAnswer, Code>, Vec<Seen>) {
        let mut seen = self.say(Input::Admin { conn: ADMIN, seq: 1, call });
        let is_answer = |seen: &Seen| {
            matches!(
                seen,
                Seen::Said(
                    Effect::Peer(PeerEffect::Native { conn: ADMIN, effect: NativeEffect::Admin { .. } })
                        | Effect::Peer(PeerEffect::Answer { conn: ADMIN, result: Err(_), .. })
                )
            )
        };
        if !seen.iter().any(is_answer)
            && let Some(Seen::Said(Effect::Disk(DiskEffect::Persist { group, .. }))) = seen.last()
        {
            let input = disk(*group);
            seen.extend(self.say(input));
        }
        let at = seen.iter().position(is_answer).expect("an admin call is answered");
        let answer = match seen.remove(at) {
            Seen::Said(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) => {
                Ok(*answer)
            }
            Seen::Said(Effect::Peer(PeerEffect::Answer { result: Err(code), .. })) => Err(code),
            other => panic!("{other:?} is no answer"),
        };
        assert!(!seen.iter().any(is_answer), "an admin call is answered once");
        (answer, seen)
    }

    /// A call that only looks.
    pub(crate) fn look(&mut self, call: AdminCall) -> Result<AdminAnswer, Code> {
        let (answer, seen) = self.admin(call);
        assert_eq!(seen, [], "looking changes nothing");
        answer
    }

    pub(crate) fn status(&mut self) -> BrokerView {
        match self.look(AdminCall::Status) {
            Ok(AdminAnswer::Status { broker }) => *broker,
            other => panic!("{other:?} is no status"),
        }
    }

    pub(crate) fn counters(&mut self) -> Counters {
        self.status().counters
    }

    pub(crate) fn queue(&mut self, name: &str) -> QueueView {
        match self.look(AdminCall::QueueShow { queue: name.to_owned() }) {
            Ok(AdminAnswer::Queue { queue }) => *queue,
            other => panic!("{other:?} is not a queue"),
        }
    }

    pub(crate) fn consumers(&mut self, queue: &str) -> Vec<ConsumerView> {
        match self.look(AdminCall::QueueConsumers { queue: queue.to_owned() }) {
            Ok(AdminAnswer::Consumers { consumers, more: 0 }) => consumers,
            other => panic!("{other:?} is no rota"),
        }
    }

    /// The rota of a queue, next first: each worker's name and its slots in use.
    pub(crate) fn rota(&mut self, queue: &str) -> Vec<(String, u32)> {
        self.consumers(queue).into_iter().map(|consumer| (consumer.name, consumer.used)).collect()
    }

    pub(crate) fn worker_view(&mut self, worker: &str) -> WorkerView {
        match self.look(AdminCall::WorkerShow { worker: worker.to_owned() }) {
            Ok(AdminAnswer::Worker { worker }) => *worker,
            other => panic!("{other:?} is no worker"),
        }
    }

    pub(crate) fn explain(&mut self, id: MessageId) -> Explanation {
        match self.look(AdminCall::MessageExplain { id: id.to_string() }) {
            Ok(AdminAnswer::Message { explanation }) => *explanation,
            other => panic!("{other:?} is no explanation"),
        }
    }

    /// The bodies' ids that wait in a queue, next first.
    pub(crate) fn waiting(&mut self, queue: &str) -> Vec<String> {
        self.queue(queue).head.into_iter().flatten().map(|message| message.id).collect()
    }
}

/// A rota as the tests write it.
pub(crate) fn rota(rows: &[(ConnId, u32)]) -> Vec<(String, u32)> {
    rows.iter().map(|(conn, used)| (format!("w{}", conn.index), *used)).collect()
}
