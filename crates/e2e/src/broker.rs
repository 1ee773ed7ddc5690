//! The real broker on free ports, in a place of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use turno_proto::model::ring::view::RingView;

use crate::net::Host;
use crate::peer::Peer;
use crate::place::Place;
use crate::run::{Background, Run};
use crate::wait;

/// The pipes by which libfiu is told what shall fail, in the broker's place.
const FAULTS: &str = "faults";

/// `turno serve`, running.
#[derive(Debug)]
pub struct Broker {
    process: Background,
    ready: Value,
    /// Where it lives; commands run here go to it.
    pub place: Place,
}

impl Broker {
    /// A broker with no flags but a free port.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// A broker with more flags.
    pub fn start_with(flags: &[&str]) -> Self {
        Self::start_in(Place::new(), flags)
    }

    /// A broker in a place that is there already.
    pub fn start_in(place: Place, flags: &[&str]) -> Self {
        Self::start_in_at(place, "127.0.0.1:0", flags)
    }

    /// A broker in a place that is there already, at an address of the test's choice.
    pub fn start_in_at(place: Place, listen: &str, flags: &[&str]) -> Self {
        Self::start_by(place, &[], listen, flags)
    }

    /// The broker of a host, at its address; in a place of that host, such as the one of the broker before it.
    pub fn start_on(host: &Host, place: Place, flags: &[&str]) -> Self {
        let open = if host.ip().is_loopback() { &[][..] } else { &["--insecure"] };
        Self::start_in_at(place, &host.address().to_string(), &[open, flags].concat())
    }

    /// A broker that another program starts and becomes, such as `fiu-run`.
    pub fn start_under(place: Place, by: &[&str], flags: &[&str]) -> Self {
        Self::start_by(place, by, "127.0.0.1:0", flags)
    }

    /// A broker whose calls to the system fail when [`Broker::inject`] says so, by libfiu.
    pub fn start_faulty(place: Place, flags: &[&str]) -> Self {
        let control = place.path().join(FAULTS).display().to_string();
        Self::start_under(place, &["fiu-run", "-x", "-f", &control], flags)
    }

    /// Gives libfiu a command, such as `enable name=posix/io/sync/fdatasync,failinfo=5`: the calls of that name fail
    /// with that error from now on.
    #[track_caller]
    pub fn inject(&self, command: &str) {
        let control = self.place.path().join(FAULTS);
        let mut fiu = self.place.command("fiu-ctrl");
        fiu.arg("-f").arg(control).args(["-c", command]).arg(self.process.id().to_string());
        let told = Run::finish(fiu, b"", wait::PATIENCE).expect(0);
        assert_eq!(told.text(), "", "libfiu takes it");
    }

    fn start_by(mut place: Place, by: &[&str], listen: &str, flags: &[&str]) -> Self {
        let mut arguments = vec!["serve", "--json", "--listen", listen];
        arguments.extend_from_slice(flags);
        let mut process = Background::start(place.turno_under(by, arguments));
        let line = wait::find(wait::PATIENCE, || {
            process.stdout().into_iter().next().or_else(|| (!process.runs()).then(String::new))
        });
        let line = line.filter(|line| !line.is_empty());
        let line = line.unwrap_or_else(|| panic!("the broker did not get ready: {:?}", process.stderr()));
        let ready: Value = serde_json::from_str(&line).expect("the ready line is JSON");
        let native = ready["native"].as_str().unwrap_or_else(|| panic!("the broker did not get ready: {line}"));
        place.set_url(format!("turno://{native}"));
        Self { process, ready, place }
    }

    /// Its native address.
    pub fn address(&self) -> SocketAddr {
        self.ready["native"].as_str().and_then(|text| text.parse().ok()).expect("a native address")
    }

    /// Where job workers find it.
    pub fn foreman(&self) -> SocketAddr {
        self.ready["foreman"].as_str().and_then(|text| text.parse().ok()).expect("an address for job workers")
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("turno://{}", self.address())
    }

    /// Its Unix socket.
    pub fn unix(&self) -> PathBuf {
        self.ready["unix"].as_str().expect("a Unix socket").into()
    }

    /// The ready line.
    pub fn ready(&self) -> &Value {
        &self.ready
    }

    /// The process.
    pub fn process(&mut self) -> &mut Background {
        &mut self.process
    }

    /// The lines of its log so far.
    pub fn log(&self) -> String {
        self.process.stderr().join("\n")
    }

    /// Runs `turno` against it, to the end.
    pub fn run(&self, arguments: &[&str]) -> Run {
        self.place.run(arguments)
    }

    /// Starts `turno` against it in the background.
    pub fn start_turno(&self, arguments: &[&str]) -> Background {
        self.place.start(arguments)
    }

    /// `turno` against it, not yet started.
    pub fn turno(&self, arguments: &[&str]) -> Command {
        self.place.turno(arguments)
    }

    /// Starts a worker and waits until it takes work: `turno work` with these arguments.
    pub fn worker(&self, arguments: &[&str]) -> Background {
        let before = self.workers();
        let mut all = vec!["work"];
        all.extend_from_slice(arguments);
        let worker = self.place.start(all);
        wait::until("the worker is ready", || self.workers() > before);
        worker
    }

    /// How many workers are ready.
    pub fn workers(&self) -> usize {
        let listed = self.run(&["worker", "ls", "--json"]).expect(0).json();
        let workers = listed["workers"].as_array().expect("a list of workers");
        workers.iter().filter(|worker| worker["state"] == "ready").count()
    }

    /// The document of `status --json`.
    pub fn status(&self) -> Value {
        self.run(&["status", "--json"]).expect(0).json()["broker"].take()
    }

    /// The document of `queue show --json`; null if there is no such queue.
    pub fn queue(&self, name: &str) -> Value {
        self.run(&["queue", "show", name, "--json"]).json()["queue"].take()
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        self.process.signal(Signal::KILL);
        self.process.end(wait::PATIENCE);
    }

    /// Its place, for the next broker. If it still runs, it is killed.
    pub fn into_place(self) -> Place {
        self.place
    }

    /// The ring as it sees it.
    #[track_caller]
    pub fn ring(&self) -> RingView {
        Peer::greeted(self.address(), 0).ring()
    }

    /// Ends it in order; its place, for the next broker.
    #[track_caller]
    pub fn end(mut self) -> Place {
        let code = self.terminate(wait::PATIENCE);
        assert_eq!(code, 0, "{:?}", self.process.stderr());
        self.place
    }

    /// Where it keeps its data unless told otherwise.
    pub fn data(&self) -> PathBuf {
        self.place.data()
    }

    /// Asks it to end and returns its exit code.
    pub fn terminate(&mut self, within: Duration) -> i32 {
        self.process.signal(Signal::TERM);
        self.process.end(within)
    }
}
