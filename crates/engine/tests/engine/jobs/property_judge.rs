//! What the model of the property tests sees: counts add up, ends stay, and in the calm every job comes to its end.

use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{JobId, JobView, TaskCounts, TaskState};

use super::property::{Op, SLOTS, World};

impl World {
    /// What is told of jobs adds up, and what has ended stays as it is.
    pub(super) fn judge(&mut self) -> Vec<JobView> {
        let mut views = Vec::new();
        for job in self.jobs() {
            let view = self.farm.show(job);
            let mut counts = TaskCounts::default();
            for task in self.farm.tasks(job, None) {
                let key = (job, task.task);
                match task.state {
                    TaskState::Waiting => counts.waiting += 1,
                    TaskState::Running => counts.running += 1,
                    TaskState::Finished => counts.finished += 1,
                    TaskState::Failed => counts.failed += 1,
                    TaskState::Cancelled => counts.cancelled += 1,
                }
                let ended = !matches!(task.state, TaskState::Waiting | TaskState::Running);
                let before = self.settled.get(&key).copied();
                assert!(ended || before.is_none(), "I20: {key:?} was over");
                if ended {
                    let state = before.map_or(task.state, |(state, _)| state);
                    assert_eq!(state, task.state, "I19: {key:?} ends once");
                    self.settled.insert(key, (task.state, task.attempt));
                }
                if task.state == TaskState::Finished {
                    assert!(self.finished.contains(&(job, task.task, task.attempt)), "{key:?}: some worker did it");
                }
            }
            assert_eq!(counts, view.counts, "the counts of job {job} are those of its tasks");
            views.push(view);
        }
        views
    }

    /// All that was bad is over: every job comes to an end.
    pub(super) fn calm(&mut self) {
        let said = self.farm.flush();
        self.hear(said);
        self.farm.quick = true;
        self.pair_ends();
        for _ in 0..200 {
            for job in self.jobs() {
                let said = self.farm.call(AdminCall::JobRelease { job: JobId(job) });
                self.hear(said);
            }
            for worker in 0..SLOTS.len() {
                self.hello(worker, 9, true);
                self.answer(worker, false);
                while self.workers[worker].offer.is_none() && !self.workers[worker].cancels.is_empty() {
                    self.apply(&Op::Stop { worker });
                }
                while !self.workers[worker].running.is_empty() {
                    self.apply(&Op::End { worker, pick: 0, success: true });
                }
            }
            if self.judge().iter().all(|view| view.state.is_end()) {
                break;
            }
            self.apply(&Op::Pass { ms: 61_000 });
        }
        let views = self.judge();
        let left: Vec<&JobView> = views.iter().filter(|view| !view.state.is_end()).collect();
        assert!(left.is_empty(), "I19: every task ends: {left:?}");
        assert!(self.waits.is_empty(), "who waits for the end of a job hears of it");
        for worker in &self.workers {
            assert!(worker.untold.is_empty(), "every UPDATE is answered");
        }
    }
}
