//! What workers say.

use turno_engine::{ForemanEvent, Hello, Input, RunningTask, Update};
use turno_proto::model::ConnId;
use turno_proto::model::job::JobId;

use super::{Farm, Said, labels};

impl Farm {
    pub(in crate::jobs) fn connect(&mut self) -> ConnId {
        let conn = ConnId { index: self.conns, generation: 1 };
        self.conns += 1;
        assert_eq!(self.event(conn, ForemanEvent::Connected { address: format!("10.0.0.{}:7", conn.index) }), []);
        conn
    }

    /// A worker with that id, and what it is given.
    pub(in crate::jobs) fn joining(&mut self, id: &str, slots: u16) -> (ConnId, Vec<Said>) {
        let conn = self.connect();
        let said = self.hello(conn, id, slots, &[]);
        (conn, said)
    }

    /// A worker with these labels, and what it is given.
    pub(in crate::jobs) fn labelled(&mut self, id: &str, slots: u16, has: &[(&str, &str)]) -> (ConnId, Vec<Said>) {
        self.labels.insert(id.to_owned(), labels(has));
        self.joining(id, slots)
    }

    /// A worker that finds nothing to do.
    pub(in crate::jobs) fn worker(&mut self, id: &str, slots: u16) -> ConnId {
        let (conn, said) = self.joining(id, slots);
        assert_eq!(said, [], "use `joining` for a worker that finds something");
        conn
    }

    pub(in crate::jobs) fn hello(
        &mut self,
        conn: ConnId,
        id: &str,
        slots: u16,
        listed: &[(u64, u32, Option<u32>)],
    ) -> Vec<Said> {
        let running = |&(job, task, attempt): &(u64, u32, Option<u32>)| RunningTask { job: JobId(job), task, attempt };
        let running = listed.iter().map(running).collect();
        let labels = self.labels.get(id).cloned().unwrap_or_default();
        let id = (!id.is_empty()).then(|| id.to_owned());
        self.event(conn, ForemanEvent::Hello(Hello { id, name: String::new(), slots, running, labels }))
    }

    pub(in crate::jobs) fn event(&mut self, conn: ConnId, event: ForemanEvent) -> Vec<Said> {
        if let ForemanEvent::Hello(Hello { id, name, .. }) = &event {
            let name = Some(name).filter(|name| !name.is_empty()).or(id.as_ref());
            self.job_workers.insert(conn, name.cloned().unwrap_or_default());
        }
        if event == ForemanEvent::Stopped {
            self.stops.entry(conn).and_modify(|stops| *stops = stops.saturating_sub(1));
        }
        self.step(Input::Foreman { conn, event: Box::new(event) })
    }

    pub(in crate::jobs) fn offer_of(&self, conn: ConnId) -> u64 {
        self.offers[&conn]
    }

    pub(in crate::jobs) fn accept(&mut self, conn: ConnId) -> Vec<Said> {
        let offer = self.offers[&conn];
        self.event(conn, ForemanEvent::Accepted { offer })
    }

    pub(in crate::jobs) fn refuse_offer(&mut self, conn: ConnId, slots_free: u16) -> Vec<Said> {
        let offer = self.offers[&conn];
        self.event(conn, ForemanEvent::Refused { offer, slots_free })
    }

    /// The next number of an UPDATE.
    pub(in crate::jobs) fn next_request(&self) -> u32 {
        self.requests + 1
    }

    pub(in crate::jobs) fn update(
        &mut self,
        conn: ConnId,
        job: u64,
        task: u32,
        attempt: Option<u32>,
        success: bool,
    ) -> Vec<Said> {
        self.requests += 1;
        let (exit_code, status) = if success { (Some(0), "") } else { (Some(1), "went wrong") };
        let update = Update {
            request: self.requests,
            job: JobId(job),
            task,
            attempt,
            success,
            given_back: false,
            exit_code,
            signal: None,
            status: status.to_owned(),
            started_unix_ms: None,
            ended_unix_ms: None,
        };
        self.event(conn, ForemanEvent::Update(update))
    }

    /// An UPDATE that is acknowledged first, and what follows.
    pub(in crate::jobs) fn ended(
        &mut self,
        conn: ConnId,
        job: u64,
        task: u32,
        attempt: u32,
        success: bool,
    ) -> Vec<Said> {
        let request = self.next_request();
        let mut said = self.update(conn, job, task, Some(attempt), success);
        assert_eq!(said.first(), Some(&Said::Ack(conn, request)), "an update is acknowledged");
        said.remove(0);
        said
    }

    pub(in crate::jobs) fn finished(&mut self, conn: ConnId, job: u64, task: u32, attempt: u32) -> Vec<Said> {
        self.ended(conn, job, task, attempt, true)
    }

    pub(in crate::jobs) fn failed(&mut self, conn: ConnId, job: u64, task: u32, attempt: u32) -> Vec<Said> {
        self.ended(conn, job, task, attempt, false)
    }

    /// Its worker ends it for reasons of its own.
    pub(in crate::jobs) fn gave_back(&mut self, conn: ConnId, job: u64, task: u32, attempt: u32) -> Vec<Said> {
        self.requests += 1;
        let update = Update {
            request: self.requests,
            job: JobId(job),
            task,
            attempt: Some(attempt),
            success: false,
            given_back: true,
            exit_code: None,
            signal: Some(15),
            status: "given back".to_owned(),
            started_unix_ms: None,
            ended_unix_ms: None,
        };
        let mut said = self.event(conn, ForemanEvent::Update(update));
        assert_eq!(said.remove(0), Said::Ack(conn, self.requests), "an update is acknowledged");
        said
    }

    pub(in crate::jobs) fn confirm(&mut self, conn: ConnId, job: u64, task: u32) -> Vec<Said> {
        let cancel = self.cancels[&(conn, job, task)];
        self.event(conn, ForemanEvent::Cancelled { cancel })
    }

    pub(in crate::jobs) fn no_such_job(&mut self, conn: ConnId, job: u64, task: u32) -> Vec<Said> {
        let cancel = self.cancels[&(conn, job, task)];
        self.event(conn, ForemanEvent::NoSuchJob { cancel })
    }

    pub(in crate::jobs) fn lose(&mut self, conn: ConnId) -> Vec<Said> {
        self.step(Input::Disconnected { conn })
    }
}
