//! A ring of brokers, each on a host of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use turno_proto::model::ring::RingState;
use turno_proto::model::ring::view::RingView;
use turno_proto::native::Frame;

use crate::broker::Broker;
use crate::net::Net;
use crate::peer::Peer;
use crate::place::Place;
use crate::port::Port;
use crate::run::Background;
use crate::wait;

/// The shared secret of all members.
const SECRET: &str = "a secret that all members of a test know";

/// Members of a ring, running or not. Each is known by its number; its sid is one more.
#[derive(Debug)]
pub struct Circle {
    brokers: Vec<Option<Broker>>,
    /// Of those that do not run.
    places: Vec<Option<Place>>,
    ports: Vec<Port>,
    flags: Vec<&'static str>,
    net: Net,
}

impl Circle {
    /// Places for so many members, none of which runs.
    pub fn empty(count: usize, flags: &[&'static str]) -> Self {
        let net = Net::new(count);
        let port = |at: usize| net.host(at).within(|| Port::reserve_at(net.host(at).ip()));
        Self {
            brokers: (0..count).map(|_| None).collect(),
            places: (0..count).map(|at| Some(net.host(at).place())).collect(),
            ports: (0..count).map(port).collect(),
            flags: flags.to_vec(),
            net,
        }
    }

    /// A ring of so many, whole.
    #[track_caller]
    pub fn start(count: usize, flags: &[&'static str]) -> Self {
        let mut circle = Self::empty(count, flags);
        circle.begin(0, None);
        for at in 1..count {
            circle.begin(at, Some(0));
        }
        circle.wait_whole();
        circle
    }

    /// The hosts.
    pub const fn net(&self) -> &Net {
        &self.net
    }

    /// Starts one that does not run, in the place it had before. It joins at another, or is the first.
    #[track_caller]
    pub fn begin(&mut self, at: usize, next: Option<usize>) {
        let place = self.places[at].take().expect("it does not run");
        let listen = self.ports[at].address();
        place.file("config/turno/turno.toml", &format!("[ring]\nlisten = \"{listen}\"\nsecret = \"{SECRET}\"\n"));
        let mut flags = vec!["--sid".to_owned(), (at + 1).to_string()];
        if let Some(next) = next {
            flags.extend(["--ring-next".to_owned(), self.member(next), "--ring-wait".to_owned()]);
        }
        flags.extend(self.flags.iter().map(ToString::to_string));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.brokers[at] = Some(Broker::start_on(self.net.host(at), place, &flags));
    }

    /// SID@HOST:PORT of one.
    pub fn member(&self, at: usize) -> String {
        format!("{}@{}", at + 1, self.ports[at].address())
    }

    /// One that runs.
    #[track_caller]
    pub fn broker(&self, at: usize) -> &Broker {
        self.brokers[at].as_ref().expect("it runs")
    }

    /// The same, to do something to it.
    #[track_caller]
    pub fn broker_mut(&mut self, at: usize) -> &mut Broker {
        self.brokers[at].as_mut().expect("it runs")
    }

    /// Those that run.
    pub fn running(&self) -> Vec<usize> {
        (0..self.brokers.len()).filter(|at| self.brokers[*at].is_some()).collect()
    }

    /// Kills one with SIGKILL.
    #[track_caller]
    pub fn kill(&mut self, at: usize) {
        let broker = self.brokers[at].take().expect("it runs");
        self.places[at] = Some(broker.into_place());
    }

    /// Ends one in order.
    #[track_caller]
    pub fn end(&mut self, at: usize) {
        self.places[at] = Some(self.brokers[at].take().expect("it runs").end());
    }

    /// The ring as one sees it.
    #[track_caller]
    pub fn view(&self, at: usize) -> RingView {
        let address = self.broker(at).address();
        self.net.host(at).within(|| Peer::greeted(address, 0)).ring()
    }

    /// Waits until all that run are one circle, as each of them sees it; how long that took.
    #[track_caller]
    pub fn wait_whole(&self) -> Duration {
        self.wait_whole_but(&[])
    }

    /// The same without some that run.
    #[track_caller]
    pub fn wait_whole_but(&self, others: &[usize]) -> Duration {
        let begun = Instant::now();
        let members: Vec<usize> = self.running().into_iter().filter(|at| !others.contains(at)).collect();
        let is_whole = |at: &usize| {
            let RingView { state, whole, members: seen, .. } = self.view(*at);
            let is_settled = state == if members.len() > 1 { RingState::Member } else { RingState::Alone };
            let sids = |at: &usize| seen.iter().filter(|one| usize::from(one.sid.get()) == at + 1).count();
            is_settled && whole && seen.len() == members.len() && members.iter().all(|at| sids(at) == 1)
        };
        let whole = wait::find(wait::PATIENCE, || members.iter().all(is_whole).then_some(()));
        if whole.is_none() {
            let views: Vec<String> = members.iter().map(|at| format!("{:?}", self.view(*at))).collect();
            panic!("no circle of {members:?}:\n{}", views.join("\n"));
        }
        begun.elapsed()
    }

    /// A program at one that prints what is published.
    #[track_caller]
    pub fn listen(&self, at: usize) -> Background {
        self.broker(at).listen(&["news"])
    }

    /// Publishes numbers at one, in order, while something is done; how many there were.
    ///
    /// Each is confirmed before the next: so it is at least on its way.
    pub fn publishing<T>(&mut self, at: usize, what: impl FnOnce(&mut Self, &AtomicU64) -> T) -> (u64, T) {
        let count = AtomicU64::new(0);
        let (end, ended) = mpsc::sync_channel::<()>(1);
        let address = self.broker(at).address();
        let mut publisher = self.net.host(at).within(|| Peer::greeted(address, 0));
        let numbers = &count;
        let done = thread::scope(|scope| {
            scope.spawn(move || {
                // A stream and not a flood, so that it lasts for all that is done meanwhile.
                while ended.recv_timeout(Duration::from_millis(2)) == Err(RecvTimeoutError::Timeout) {
                    let number = numbers.load(Ordering::Relaxed) + 1;
                    let seq = publisher.publish("news", number.to_string().as_bytes(), true);
                    publisher.hear(|frame| assert_eq!(frame, Frame::Ok { seq }));
                    numbers.store(number, Ordering::Relaxed);
                }
            });
            let done = what(self, numbers);
            drop(end);
            done
        });
        (count.into_inner(), done)
    }
}

/// Waits until a listener has printed all numbers up to that one, and says what it printed.
#[track_caller]
pub fn heard_up_to(listener: &Background, last: u64) -> Vec<u64> {
    let end = format!("news {last}");
    let all = wait::find(wait::PATIENCE, || (listener.stdout().last() == Some(&end)).then_some(()));
    let lines = listener.stdout();
    assert!(all.is_some(), "the last is {:?}, not {end}; {:?}", lines.last(), listener.stderr());
    let number = |line: &String| line.strip_prefix("news ").and_then(|number| number.parse().ok()).expect("a number");
    lines.iter().map(number).collect()
}
