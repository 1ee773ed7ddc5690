//! Any view of a worker.

use turno_proto::model::job::JobId;
use turno_proto::model::view::{
    ConsumerView, HoldingView, Standing, StandingState, StandingView, WorkerKind, WorkerState, WorkerTaskView,
    WorkerView,
};
use turno_proto::model::{TaskId, Token, WorkerId};

use super::Seed;

impl Seed {
    pub(super) fn consumer(&self) -> ConsumerView {
        ConsumerView {
            worker: WorkerId(self.long),
            name: self.text(),
            slots: self.slots(),
            used: self.word,
            free: self.slots(),
            turn: self.bits[0].then_some(self.small.into()),
            in_flight: self.seq.into(),
            standing: self.standing(),
            token: self.bits[3].then_some(Token(self.long)),
            waits: self.bits[2].then_some(self.small.into()),
        }
    }

    fn standing(&self) -> Standing {
        let states = [
            StandingState::Consuming,
            StandingState::Suspect,
            StandingState::Dropped,
            StandingState::Probing,
            StandingState::Standby,
        ];
        Standing {
            state: states[usize::from(self.small) % states.len()],
            expired: self.number,
            dropped_at: self.bits[2].then(|| self.moment()),
            reason: self.bits[1].then(|| self.text()),
        }
    }

    pub(super) fn worker(&self) -> WorkerView {
        let states = [WorkerState::Greeting, WorkerState::Ready, WorkerState::Draining];
        let kinds = [WorkerKind::Queue, WorkerKind::Job, WorkerKind::Both];
        WorkerView {
            id: WorkerId(self.long),
            kind: kinds[usize::from(self.choice) % kinds.len()],
            name: self.text(),
            address: self.text(),
            state: states[usize::from(self.small) % states.len()],
            slots: self.slots(),
            slots_max: self.bits[1].then_some(self.word),
            used: self.word,
            free: self.slots(),
            queues: vec![self.text(); usize::from(self.choice % 4)],
            exclusive: vec![HoldingView { queue: self.text(), token: Token(self.long) }; usize::from(self.choice % 2)],
            waits_for: self.texts(),
            labels: self.texts().into_iter().map(|text| (text.clone(), text)).collect(),
            registered_at: self.moment(),
            last_used_at: self.bits[2].then(|| self.moment()),
            deliveries: 1,
            settled: 2,
            failed: 3,
            dropped: self.long,
            unread_bytes: self.long,
            standings: self.bits[3].then(|| vec![StandingView { queue: self.text(), standing: self.standing() }]),
            holds: self.bits[4].then(|| vec![self.message(); usize::from(self.choice % 3)]),
            tasks_running: self.long,
            tasks: self.bits[5].then(|| vec![self.worker_task(); usize::from(self.choice % 3)]),
        }
    }

    fn worker_task(&self) -> WorkerTaskView {
        WorkerTaskView {
            id: TaskId { job: JobId(self.long), task: self.word },
            name: self.text(),
            attempt: self.number,
            slots: self.small,
            started_at: self.bits[0].then(|| self.moment()),
        }
    }
}
