//! A job worker that speaks the foreman's protocol and starts no program: a test says when a task ends, and how.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use turno_proto::foreman::{ForemanSettings, StatusUpdate, Task, WireTaskId, Worker, WorkerEvent};
use turno_proto::model::Mono;

use crate::wait;

/// The worker's end, its socket, and what it was told.
#[derive(Debug)]
pub struct JobWorker {
    end: Worker,
    foreman: SocketAddr,
    socket: Option<TcpStream>,
    /// Bytes of an incomplete frame.
    partial: Vec<u8>,
    began: Instant,
    told: VecDeque<WorkerEvent>,
}

impl JobWorker {
    /// A worker with so many processors, greeted by the foreman.
    pub fn start(foreman: SocketAddr, name: &str, procs: u16) -> Self {
        Self::labelled(foreman, name, procs, &[])
    }

    /// The same with labels.
    pub fn labelled(foreman: SocketAddr, name: &str, procs: u16, labels: &[(&str, &str)]) -> Self {
        let mut end =
            Worker::new(name.to_owned(), name.to_owned(), procs, ForemanSettings::default()).expect("few processors");
        end.set_labels(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
        let mut worker =
            Self { end, foreman, socket: None, partial: Vec::new(), began: Instant::now(), told: VecDeque::new() };
        worker.connect(foreman);
        worker
    }

    /// Connects, for the first time or again, and waits for the greeting.
    pub fn connect(&mut self, foreman: SocketAddr) {
        self.cut();
        self.foreman = foreman;
        let socket = wait::find(wait::PATIENCE, || TcpStream::connect(self.foreman).ok()).expect("the foreman listens");
        socket.set_nodelay(true).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(5))).expect("a socket");
        self.socket = Some(socket);
        self.end.connect(self.now());
        self.until("greeted", |event| matches!(event, WorkerEvent::Greeted).then_some(()));
    }

    /// Breaks the connection, as a network does.
    pub fn cut(&mut self) {
        if self.socket.take().is_some() {
            self.end.disconnect();
            self.partial.clear();
        }
    }

    /// The next tasks to start.
    pub fn tasks(&mut self) -> Vec<Task> {
        self.until("tasks", |event| match event {
            WorkerEvent::Start(tasks) => Some(tasks.clone()),
            _ => None,
        })
    }

    /// The next tasks to stop.
    pub fn cancelled(&mut self) -> Vec<WireTaskId> {
        self.until("a CANCEL", |event| match event {
            WorkerEvent::Cancel(tasks) => Some(tasks.clone()),
            _ => None,
        })
    }

    /// A task has ended. The foreman hears of it as soon as it can.
    pub fn end(&mut self, task: WireTaskId, exit_code: i32) {
        let update = StatusUpdate {
            job: task.job,
            task: task.task,
            success: exit_code == 0,
            status: if exit_code == 0 { "done".to_owned() } else { format!("exit {exit_code}") },
            exit_code: Some(exit_code),
            ..StatusUpdate::default()
        };
        assert!(self.end.task_ended(self.now(), update), "it runs here");
        self.turn();
    }

    /// Waits until the foreman has recorded the end of that task.
    pub fn reported(&mut self, task: WireTaskId) {
        self.until("the answer to UPDATE", |event| (*event == WorkerEvent::Reported(task)).then_some(()));
    }

    /// Takes what it is given and ends it with success at once, until `done` says so. Returns the tasks it ran.
    pub fn work_until(&mut self, mut done: impl FnMut() -> bool) -> Vec<WireTaskId> {
        let mut ran = Vec::new();
        let patience = Instant::now() + wait::PATIENCE;
        while !done() {
            assert!(Instant::now() < patience, "there is still something to do; ran {ran:?}");
            self.turn();
            while let Some(event) = self.told.pop_front() {
                if let WorkerEvent::Start(tasks) = event {
                    for task in tasks {
                        ran.push(task.id());
                        self.end(task.id(), 0);
                    }
                }
            }
        }
        ran
    }

    /// Waits for one event and returns what `look` makes of it; events before it that `look` makes nothing of are
    /// kept.
    pub fn until<T>(&mut self, what: &str, look: impl Fn(&WorkerEvent) -> Option<T>) -> T {
        let patience = Instant::now() + wait::PATIENCE;
        loop {
            let found = self.told.iter().enumerate().find_map(|(at, event)| Some((at, look(event)?)));
            if let Some((at, found)) = found {
                self.told.remove(at);
                return found;
            }
            assert!(Instant::now() < patience, "no {what}; told {:?}", self.told);
            self.turn();
        }
    }

    /// Writes what waits, reads what is there, and lets time pass.
    fn turn(&mut self) {
        let now = self.now();
        self.end.handle_timeout(now);
        self.say();
        let Some(socket) = &mut self.socket else { return };
        let mut bytes = [0; 64 * 1024];
        match socket.read(&mut bytes) {
            Ok(0) => self.cut(),
            Ok(count) => {
                self.partial.extend_from_slice(&bytes[..count]);
                let used = self.end.handle_bytes(now, &self.partial);
                self.partial.drain(..used);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => self.cut(),
        }
        self.say();
    }

    /// Takes what its end tells, and writes what that wants written.
    fn say(&mut self) {
        while let Some(event) = self.end.poll_event() {
            self.told.push_back(event);
        }
        let mut said = Vec::new();
        self.end.take_output(&mut said);
        if let Some(socket) = &mut self.socket {
            // A broker that is gone is noticed by reading.
            let _ = socket.write_all(&said);
        }
    }

    fn now(&self) -> Mono {
        Mono::from_millis(u64::try_from(self.began.elapsed().as_millis()).expect("a short while"))
    }
}
