//! Admin calls: which machine a call is for, and the calls that concern several of them.

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::{SLOTS_MAX, VIEW_MESSAGES_MAX};
use turno_proto::model::view::{BrokerView, WorkerView};
use turno_proto::model::{Closing, ClosingReason, Code, ConnId, Slots};

use super::Engine;
use crate::archive::ArchiveInput;
use crate::effect::{Caller, PeerEffect, Sink};
use crate::jobs::JobsInput;

impl Engine {
    pub(super) fn admin(&mut self, conn: ConnId, seq: u32, call: AdminCall, out: &mut impl Sink) {
        let answer = match call {
            AdminCall::Status
            | AdminCall::Drain
            | AdminCall::Resume
            | AdminCall::WorkerLs { .. }
            | AdminCall::WorkerShow { .. }
            | AdminCall::WorkerResize { .. }
            | AdminCall::WorkerDrain { .. }
            | AdminCall::WorkerResume { .. }
            | AdminCall::WorkerStop { .. } => {
                return match self.answer_to(call, out) {
                    Ok(answer) => self.messages.tell_once_stored(conn, seq, answer, out),
                    Err(code) => out.peer(PeerEffect::Answer { conn, seq, result: Err(code) }),
                };
            }
            AdminCall::QueueLs { .. }
            | AdminCall::QueueShow { .. }
            | AdminCall::QueueConsumers { .. }
            | AdminCall::QueueSet { .. }
            | AdminCall::QueuePurge { .. }
            | AdminCall::DeadLs { .. }
            | AdminCall::DeadShow { .. }
            | AdminCall::DeadRetry { .. }
            | AdminCall::DeadPurge { .. }
            | AdminCall::MessageExplain { .. }
            | AdminCall::MessageCancel { .. }
            | AdminCall::MessageRetry { .. } => return self.with_memory().call(conn, seq, call, out),
            AdminCall::JobSubmit { .. }
            | AdminCall::JobLs { .. }
            | AdminCall::JobShow { .. }
            | AdminCall::JobTasks { .. }
            | AdminCall::JobCancel { .. }
            | AdminCall::JobRetry { .. }
            | AdminCall::JobHold { .. }
            | AdminCall::JobRelease { .. }
            | AdminCall::JobWait { .. }
            | AdminCall::JobRm { .. }
            | AdminCall::JobExplain { .. } => {
                return self.tell_jobs(JobsInput::Call { caller: Caller { conn, seq }, call }, out);
            }
            AdminCall::TaskOutput { .. }
            | AdminCall::TaskFile { .. }
            | AdminCall::JobOutput { .. }
            | AdminCall::JobFiles { .. }
            | AdminCall::JobFile { .. }
            | AdminCall::UploadCheck { .. }
            | AdminCall::UploadPut { .. }
            | AdminCall::UploadGet { .. } => {
                return self.tell_archive(ArchiveInput::Call { caller: Caller { conn, seq }, call }, out);
            }
            AdminCall::TopicLs { .. }
            | AdminCall::TopicSubscribers { .. }
            | AdminCall::TopicCreate { .. }
            | AdminCall::TopicRecv { .. }
            | AdminCall::TopicDestroy { .. } => {
                let settings = self.messages.settings();
                self.topics.call(|at| settings.moment(at), call, self.messages.peers())
            }
            AdminCall::LinkLs {} | AdminCall::LinkAdd { .. } | AdminCall::LinkRm { .. } | AdminCall::LinkGraph {} => {
                self.messages.link_call(call, out)
            }
            // Endpoints are the host's, which answers before the engine hears of it.
            AdminCall::ZmqLs {} => Err(Code::BadCall),
            AdminCall::Ring {} | AdminCall::RingJoin { .. } | AdminCall::RingLeave {} | AdminCall::RingShutdown {} => {
                self.ring_call(conn, call, out)
            }
        };
        out.peer(match answer {
            Ok(answer) => PeerEffect::admin(conn, seq, Box::new(answer)),
            Err(code) => PeerEffect::Answer { conn, seq, result: Err(code) },
        });
    }

    /// The broker as a whole, and workers: they concern queues and jobs.
    fn answer_to(&mut self, call: AdminCall, out: &mut impl Sink) -> Result<AdminAnswer, Code> {
        Ok(match call {
            AdminCall::Status => AdminAnswer::Status { broker: Box::new(self.broker_view()) },
            AdminCall::Drain => {
                self.messages.begin_maintenance(out)?;
                AdminAnswer::Status { broker: Box::new(self.broker_view()) }
            }
            AdminCall::Resume => {
                self.messages.end_maintenance(out)?;
                self.jobs.may_go_on();
                AdminAnswer::Status { broker: Box::new(self.broker_view()) }
            }
            AdminCall::WorkerLs { after, limit } => self.worker_page(after, limit),
            AdminCall::WorkerShow { worker } => self.worker_answer(self.messages.find_worker(&worker)?),
            AdminCall::WorkerResize { worker, slots } => {
                let worker = self.messages.find_worker(&worker)?;
                if matches!(slots, Slots::Limited(count) if count > SLOTS_MAX) {
                    return Err(Code::BadSlots);
                }
                let is_job_worker = self.jobs.is_job_worker(worker);
                if is_job_worker {
                    self.with_jobs(|jobs, cx| jobs.resize_job_worker(cx, worker, slots))
                } else {
                    self.messages.resize(worker, slots)
                }?;
                self.worker_answer(worker)
            }
            AdminCall::WorkerDrain { worker } => {
                let worker = self.messages.find_worker(&worker)?;
                self.withhold_worker(worker);
                self.worker_answer(worker)
            }
            AdminCall::WorkerResume { worker } => {
                let worker = self.messages.find_worker(&worker)?;
                for conn in self.messages.connections_of(worker) {
                    self.messages.resume_worker(conn);
                    self.jobs.look_at(conn);
                }
                self.worker_answer(worker)
            }
            AdminCall::WorkerStop { worker, now } => self.stop_worker(&worker, now, out)?,
            _ => return Err(Code::BadCall),
        })
    }

    /// Asks a worker to end. At once: what it holds goes to others, and no attempt counts.
    fn stop_worker(&mut self, worker: &str, now: bool, out: &mut impl Sink) -> Result<AdminAnswer, Code> {
        let worker = self.messages.find_worker(worker)?;
        self.withhold_worker(worker);
        if self.jobs.is_job_worker(worker) {
            self.with_jobs(|jobs, cx| jobs.stop_job_worker(cx, worker, now, out))?;
            return Ok(self.worker_answer(worker));
        }
        let reason = if now { ClosingReason::Now } else { ClosingReason::Stop };
        out.peer(PeerEffect::Closing { conn: worker, closing: Closing { reason, within_ms: 0 } });
        if !now {
            return Ok(self.worker_answer(worker));
        }
        self.messages.give_all_back(worker, out);
        let answer = self.worker_answer(worker);
        // One that deregistered is forgotten with the last delivery, but not before it is shown.
        self.messages.forget_worker_if_gone(worker);
        Ok(answer)
    }

    /// Gives a worker nothing new, over any of its connections.
    fn withhold_worker(&mut self, worker: ConnId) {
        for conn in self.messages.connections_of(worker) {
            self.messages.withhold_worker(conn);
            self.jobs.look_at(conn);
        }
    }

    /// The broker as a whole.
    pub(super) fn broker_view(&self) -> BrokerView {
        BrokerView {
            jobs: self.jobs.view(),
            memory: self.memory_view(),
            ring: self.ring_view().map(Box::new),
            ..self.messages.broker_view()
        }
    }

    fn worker_page(&self, after: Option<u64>, limit: u32) -> AdminAnswer {
        let (conns, more) = self.messages.worker_page(after, limit);
        let workers: Vec<WorkerView> = conns.into_iter().filter_map(|conn| self.worker_view(conn)).collect();
        let next = workers.last().filter(|_| more).map(|worker| worker.id);
        AdminAnswer::Workers { workers, next }
    }

    fn worker_answer(&self, conn: ConnId) -> AdminAnswer {
        let mut view = self.worker_view(conn).expect("the worker was found a moment ago");
        view.standings = Some(self.messages.standings_of(conn));
        view.holds = Some(self.messages.messages_of(conn, VIEW_MESSAGES_MAX));
        view.tasks = Some(self.jobs.tasks_at(conn, VIEW_MESSAGES_MAX).1);
        AdminAnswer::Worker { worker: Box::new(view) }
    }

    /// A worker, with what it does over its other connection.
    pub(super) fn worker_view(&self, conn: ConnId) -> Option<WorkerView> {
        Some(WorkerView {
            slots_max: self.jobs.procs_of(conn),
            labels: self.jobs.labels_of(conn),
            tasks_running: self.jobs.tasks_at(conn, 0).0,
            ..self.messages.worker_view(conn)?
        })
    }
}
