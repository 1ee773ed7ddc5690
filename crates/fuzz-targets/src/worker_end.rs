//! A job worker whose foreman does anything.
//!
//! Layout: processors (1), settings (2), then steps of one byte each with what they need.

use std::collections::BTreeSet;

use turno_proto::foreman::{Counts, Role, StatusUpdate, WireTaskId, Worker, WorkerEndState, WorkerEvent};
use turno_proto::model::Mono;

use crate::foreman_peer::{Peer, settings};
use turno_oracle::Bytes;

/// After every step the worker runs exactly what it was given and has not ended, its counts follow from that, all that it
/// writes is a worker's to write, and nothing is overdue.
pub fn worker_end(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let procs = u16::from(bytes.byte() % 8);
    let worker = Worker::new("w", "w-1", procs, settings(&mut bytes)).expect("few processors");
    let mut run =
        WorkerRun { worker, now: Mono::ZERO, peer: Peer::default(), running: BTreeSet::new(), rest: Vec::new() };
    run.worker.connect(run.now);
    while !bytes.is_empty() {
        match bytes.byte() % 16 {
            0..=9 => {
                let said = run.peer.says(Role::Worker, &mut bytes);
                run.rest.extend(said);
                let used = run.worker.handle_bytes(run.now, &run.rest);
                run.rest.drain(..used);
            }
            10 => run.now = run.now.plus_millis(u64::from(bytes.u16())),
            11 | 12 => run.end_one(&mut bytes),
            13 => run.worker.reset(run.now),
            14 => {
                run.worker.disconnect();
                run.rest.clear();
                run.peer = Peer::default();
                run.worker.connect(run.now);
            }
            _ => run.worker.handle_timeout(run.now),
        }
        run.look();
    }
}

struct WorkerRun {
    worker: Worker,
    now: Mono,
    peer: Peer,
    running: BTreeSet<WireTaskId>,
    /// Bytes that are no whole frame yet.
    rest: Vec<u8>,
}

impl WorkerRun {
    fn end_one(&mut self, bytes: &mut Bytes<'_>) {
        let index = usize::from(bytes.byte()) % self.running.len().max(1);
        let Some(id) = self.running.iter().nth(index).copied() else { return };
        self.running.remove(&id);
        let update = StatusUpdate { job: id.job, task: id.task, ..StatusUpdate::default() };
        assert!(self.worker.task_ended(self.now, update), "the worker knows what it runs");
    }

    fn look(&mut self) {
        self.worker.handle_timeout(self.now);
        assert!(self.worker.next_deadline().is_none_or(|at| at > self.now), "nothing is overdue");
        let mut out = Vec::new();
        self.worker.take_output(&mut out);
        self.peer.reads(Role::Worker, &out);
        while let Some(event) = self.worker.poll_event() {
            match event {
                WorkerEvent::Start(tasks) => {
                    for task in &tasks {
                        assert!(self.running.insert(task.id()), "{:?} runs already", task.id());
                    }
                }
                WorkerEvent::Cancel(tasks) => {
                    assert!(tasks.iter().all(|id| self.running.contains(id)), "only what runs is stopped");
                }
                WorkerEvent::Exit => {
                    assert_eq!(self.worker.state(), WorkerEndState::Exit0);
                    assert!(self.running.is_empty(), "nobody leaves in order while something runs");
                }
                _ => {}
            }
        }
        let Counts { nrun, nproc } = self.worker.counts();
        assert_eq!(usize::from(nrun), self.running.len(), "the worker counts what runs");
        assert_eq!(nproc, self.worker.max_procs().saturating_sub(nrun), "and what is free");
    }
}
