//! Jobs and the real program that runs their tasks.

use std::fs;

use serde_json::Value;

use crate::broker::Broker;
use crate::run::Background;
use crate::{schema, wait};

impl Broker {
    /// Starts `turno worker start` with these arguments and waits until the foreman knows it.
    #[track_caller]
    pub fn job_worker(&self, arguments: &[&str]) -> Background {
        let all = [&["worker", "start", "--json"], arguments].concat();
        let mut job_worker = self.start_turno(&all);
        let line = wait::find(wait::PATIENCE, || {
            job_worker.stdout().into_iter().next().or_else(|| (!job_worker.runs()).then(String::new))
        });
        let line = line.unwrap_or_default();
        assert!(!line.is_empty(), "the worker did not get ready: {:?}", job_worker.stderr());
        schema::check(&schema::document(&line));
        job_worker
    }

    /// Submits a job of that command and returns its number.
    #[track_caller]
    pub fn submit(&self, flags: &[&str], command: &[&str]) -> u64 {
        let arguments = [&["job", "submit", "--json"], flags, &["--"], command].concat();
        let job = self.run(&arguments).expect(0).document("turno.job/1");
        job["job"]["id"].as_str().and_then(|id| id.parse().ok()).expect("a job has a number")
    }

    /// The document of `job show --json`.
    #[track_caller]
    pub fn job(&self, id: u64) -> Value {
        self.run(&["job", "show", &id.to_string(), "--json"]).expect(0).document("turno.job/1")["job"].take()
    }

    /// A job's tasks: waiting, running, finished, failed, cancelled.
    #[track_caller]
    pub fn task_counts(&self, id: u64) -> [u64; 5] {
        let job = self.job(id);
        ["waiting", "running", "finished", "failed", "cancelled"].map(|state| job[state].as_u64().expect("a count"))
    }

    /// The rows of `job tasks --json`, in the order of their numbers.
    #[track_caller]
    pub fn tasks(&self, id: u64) -> Vec<Value> {
        let listed = self.run(&["job", "tasks", &id.to_string(), "--json"]).expect(0).document("turno.task_list/1");
        listed["tasks"].as_array().expect("a list").clone()
    }

    /// Waits until the job has ended, and returns the exit code of `job wait`.
    #[track_caller]
    pub fn wait_for_job(&self, id: u64) -> i32 {
        self.run(&["job", "wait", &id.to_string(), "--timeout", "100s"]).code
    }

    /// The output of `job logs` for one task: its standard output and its standard error.
    #[track_caller]
    pub fn printed(&self, job: u64, task: u32) -> (String, String) {
        let run = self.run(&["job", "logs", "-q", &format!("{job}.{task}")]).expect(0);
        (run.text(), run.stderr)
    }

    /// The content of a file that a task wrote; waits until it is there.
    #[track_caller]
    pub fn written(&self, name: &str) -> String {
        let path = self.place.path().join(name);
        let text = wait::find(wait::PATIENCE, || fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')));
        text.unwrap_or_else(|| panic!("nobody wrote {name}")).trim().to_owned()
    }

    /// The number of a process that a task wrote into a file.
    #[track_caller]
    pub fn written_id(&self, name: &str) -> u32 {
        self.written(name).parse().expect("the number of a process")
    }
}
