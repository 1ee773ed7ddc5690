//! HELLO: the identity of a worker and its tasks. The foreman's account and the worker's are compared (S4.70, S4.76,
//! S4.77).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turno_proto::model::job::JobId;
use turno_proto::model::limits::{FOREMAN_PROCS_MAX, PEER_NAME_BYTES_MAX, RESIZED_WORKERS_MAX, TASK_UNNAMED_MS};
use turno_proto::model::{Code, ConnId, Slots};

use super::Jobs;
use super::context::{Consequence, JobsContext};
use super::event::{ForemanOrder, Hello, RunningTask};
use super::job::{Phase, StopReason};
use super::job_worker::HeldTask;
use super::labels::labels_of_job_worker;
use crate::effect::Sink;

impl Jobs {
    /// HELLO: the job worker is a worker from now on; again on the same connection it says anew what it is.
    pub(super) fn hello(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, hello: Hello, out: &mut impl Sink) {
        let Hello { id, name, slots, running, labels } = hello;
        if slots > FOREMAN_PROCS_MAX {
            return self.close_job_worker(cx, conn, Code::BadSlots, out);
        }
        let (id, name) = (id.map(|id| short(&id)).filter(|id| !id.is_empty()), short(&name));
        if let Some(id) = &id
            && let Some(older) = self.job_workers.by_key.get(id).copied().filter(|older| *older != conn)
        {
            // Its worker came back before the end of the older connection was noticed.
            self.close_job_worker(cx, older, Code::ConnectionLost, out);
        }
        self.enlist_job_worker(cx, conn, id, &name, u32::from(slots));
        self.label(conn, labels_of_job_worker(labels));
        let listed = self.reconcile(cx, conn, &running, out);
        self.expect_unlisted(cx, conn, &running, &listed);
        self.show_job_worker(cx, conn);
    }

    fn enlist_job_worker(
        &mut self,
        cx: &mut JobsContext<'_>,
        conn: ConnId,
        id: Option<Arc<str>>,
        name: &Arc<str>,
        procs: u32,
    ) {
        self.part(cx, conn);
        let slots = self.allowed_slots(id.as_ref(), Slots::Limited(procs));
        let Some(peer) = cx.peers().get(conn) else { return };
        let shown =
            if name.is_empty() { id.clone().unwrap_or_else(|| short(peer.address())) } else { Arc::clone(name) };
        cx.enlist(conn, &shown, slots);
        let job_worker = self.job_workers.by_conn.get_mut(&conn).expect("only job workers say HELLO");
        if job_worker.has_id {
            self.job_workers.by_key.remove(&job_worker.key);
        }
        if let Some(id) = &id {
            self.job_workers.by_key.insert(Arc::clone(id), conn);
        }
        job_worker.greeted = true;
        job_worker.procs = procs;
        job_worker.has_id = id.is_some();
        job_worker.key = id.clone().unwrap_or_else(|| Arc::clone(name));
        job_worker.name = shown;
        job_worker.told_free = None;
        if let Some(id) = id {
            self.unite(cx, &id);
        }
    }

    /// Listed tasks that the worker should have stay with it; it is told to stop the others. Returns the tasks that it
    /// lists rightly.
    fn reconcile(
        &mut self,
        cx: &mut JobsContext<'_>,
        conn: ConnId,
        running: &[RunningTask],
        out: &mut impl Sink,
    ) -> BTreeSet<(JobId, u32)> {
        let mut listed = BTreeSet::new();
        let mut wrong = BTreeSet::new();
        for &RunningTask { job: id, task, attempt } in running {
            let place = self.get(id).and_then(|job| job.spec.numbers().place_of(task));
            match place.filter(|place| self.keeps(conn, id, *place, attempt)) {
                Some(place) => drop(listed.insert((id, place))),
                None => drop(wrong.insert((id, task))),
            }
        }
        for (id, place) in &listed {
            self.set_gone(*id, *place, None);
            self.rebind(cx, conn, *id, *place);
            if self.at(*id).running[place].stop == Some(StopReason::TimeLimit) {
                self.send_cancel(conn, *id, *place, out);
            }
        }
        for (job, task) in wrong {
            // A task that it has under another attempt or twice is told of once, as what it should have.
            let place = self.get(job).and_then(|job| job.spec.numbers().place_of(task));
            if place.is_none_or(|place| !listed.contains(&(job, place))) {
                self.cancels += 1;
                Self::order(conn, ForemanOrder::Cancel { cancel: self.cancels, job, task }, out);
            }
        }
        listed
    }

    /// Whether the worker rightly says that it runs that task.
    fn keeps(&self, conn: ConnId, id: JobId, place: u32, attempt: Option<u32>) -> bool {
        let Some(running) = self.get(id).and_then(|job| job.running.get(&place)) else { return false };
        let is_free = running.conn.is_none() && running.gone.is_some();
        let has_it = running.conn == Some(conn) && running.phase != Phase::Storing;
        (is_free || has_it) && attempt.is_none_or(|attempt| attempt == running.attempt)
    }

    /// The task takes slots of that job worker, also if it has more than it says: it runs there.
    fn rebind(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, id: JobId, place: u32) {
        let job = self.all.get_mut(&id).expect("it was just found");
        let running = job.running.get_mut(&place).expect("it was just found");
        if running.conn.is_some() {
            return;
        }
        let job_worker = self.job_workers.by_conn.get_mut(&conn).expect("it says HELLO");
        (running.conn, running.phase) = (Some(conn), Phase::Runs);
        (running.key, running.worker) = (Arc::clone(&job_worker.key), Arc::clone(&job_worker.name));
        let slots = job.spec.slots;
        let task = job.spec.numbers().number_of(place);
        job_worker
            .held
            .insert((id, place), HeldTask { task, attempt: running.attempt, slots, handed_in: running.handed_in });
        cx.take_over(conn, slots);
        // It may have begun without an answer: its connection was lost before it could accept the task.
        self.begin_time(cx, id, place);
    }

    /// A task that the worker should have and does not list has ended, and an UPDATE of it may be on its way; if none
    /// comes, the task is lost.
    fn expect_unlisted(
        &mut self,
        cx: &mut JobsContext<'_>,
        conn: ConnId,
        running: &[RunningTask],
        listed: &BTreeSet<(JobId, u32)>,
    ) {
        let named: BTreeMap<(JobId, u32), Option<u32>> =
            running.iter().map(|running| ((running.job, running.task), running.attempt)).collect();
        let soon = cx.now.plus_millis(TASK_UNNAMED_MS);
        let job_worker = &self.job_workers.by_conn[&conn];
        let offered: BTreeSet<(JobId, u32)> =
            job_worker.offer.iter().flat_map(|offer| &offer.tasks).map(|(job, place, _)| (*job, *place)).collect();
        let missing: Vec<(JobId, u32)> =
            job_worker.held.keys().filter(|task| !listed.contains(task) && !offered.contains(task)).copied().collect();
        let runs = |(id, place): &(JobId, u32)| self.get(*id).is_some_and(|job| job.running.contains_key(place));
        // It was told to stop, and its process is not gone yet.
        let lingers = |(id, place): &(JobId, u32)| {
            let held = &job_worker.held[&(*id, *place)];
            let attempt = named.get(&(*id, held.task));
            attempt.is_some_and(|attempt| attempt.is_none_or(|attempt| attempt == held.attempt))
        };
        let ghosts: Vec<(JobId, u32)> = missing.iter().copied().filter(|task| !runs(task) && !lingers(task)).collect();
        for task in ghosts {
            // It was told to stop, and its process is gone.
            self.let_go(cx, conn, task);
        }
        let (key, has_id) = (Arc::clone(&self.job_workers.by_conn[&conn].key), self.job_workers.by_conn[&conn].has_id);
        let mut soon_gone: Vec<(JobId, u32)> = missing;
        if has_id {
            soon_gone.extend(self.gone_by(&key));
        }
        for (id, place) in soon_gone {
            let Some(running) = self.all.get_mut(&id).and_then(|job| job.running.get_mut(&place)) else {
                continue;
            };
            match &mut running.ending {
                Some(ending) => ending.keeps_slots = false,
                None if running.gone.is_none_or(|gone| gone > soon) => self.set_gone(id, place, Some(soon)),
                None => {}
            }
        }
    }

    /// Tasks whose worker is gone and was known by that key.
    fn gone_by(&self, key: &Arc<str>) -> Vec<(JobId, u32)> {
        let lost = self.lost.range((Arc::clone(key), JobId(0), 0)..).take_while(|(of, ..)| of == key);
        let is_free = |job: &JobId, place: &u32| self.all[job].running[place].conn.is_none();
        lost.filter(|(_, job, place)| is_free(job, place)).map(|(_, job, place)| (*job, *place)).collect()
    }

    /// The connection is to end, and its worker counts as gone.
    fn close_job_worker(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, code: Code, out: &mut impl Sink) {
        Self::order(conn, ForemanOrder::Close { code }, out);
        self.lose_job_worker(cx, conn, out);
        cx.dismiss(conn);
    }

    /// Tells a job worker to end, after what it has or at once, and offers it nothing more (S4.74, S4.75).
    pub(crate) fn stop_job_worker(
        &mut self,
        cx: &mut JobsContext<'_>,
        conn: ConnId,
        now: bool,
        out: &mut impl Sink,
    ) -> Result<(), Code> {
        let job_worker = self.job_workers.get_mut(conn).ok_or(Code::NotFound)?;
        job_worker.ends_now |= now;
        job_worker.procs = 0;
        job_worker.stops += 1;
        Self::order(conn, if now { ForemanOrder::StopNow } else { ForemanOrder::Stop }, out);
        self.show_job_worker(cx, conn);
        Ok(())
    }

    /// OK to a STOP.
    pub(super) fn stopped(&mut self, cx: &mut JobsContext<'_>, conn: ConnId) {
        let Some(job_worker) = self.job_workers.get_mut(conn).filter(|job_worker| job_worker.stops > 0) else { return };
        job_worker.stops -= 1;
        cx.resize(conn, Slots::Limited(0));
        self.show_job_worker(cx, conn);
    }

    /// Gives a job worker no more than so many slots, over both its connections. That is the broker's own account: a STOP cannot be
    /// taken back, and a job worker that was made smaller may grow again up to what it says it has. It is remembered over
    /// connections of a job worker with an id.
    pub(crate) fn resize_job_worker(
        &mut self,
        cx: &mut JobsContext<'_>,
        conn: ConnId,
        slots: Slots,
    ) -> Result<(), Code> {
        let job_worker = self.job_workers.get_mut(conn).ok_or(Code::NotFound)?;
        let count = match slots {
            Slots::Limited(count) if count <= job_worker.procs => count,
            Slots::Limited(_) | Slots::Unlimited => return Err(Code::BadSlots),
        };
        if job_worker.has_id && count < job_worker.procs {
            self.resized.insert(Arc::clone(&job_worker.key), count);
            if self.resized.len() > RESIZED_WORKERS_MAX {
                self.resized.pop_first();
            }
        } else {
            self.resized.remove(&job_worker.key);
        }
        let pair = cx.worker(conn).and_then(|worker| worker.pair());
        cx.resize(conn, slots);
        self.show_job_worker(cx, conn);
        if let Some(pair) = pair {
            cx.resize(pair, slots);
            cx.cause(Consequence::MoreRoom(pair));
        }
        Ok(())
    }

    /// The slots that an admin left to the worker with that id.
    pub(super) fn allowed_slots(&self, id: Option<&Arc<str>>, slots: Slots) -> Slots {
        let limit = id.and_then(|id| self.resized.get(id));
        limit.map_or(slots, |limit| Slots::Limited(slots.as_count().min(*limit)))
    }
}

/// A name as it is kept.
fn short(name: &str) -> Arc<str> {
    Arc::from(cut(name, PEER_NAME_BYTES_MAX))
}

/// At most that many bytes of a text, and no half characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
