//! Several linked brokers, each on a host of its own.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use turno_proto::model::Slots;
use turno_proto::model::link::view::{BrokerNode, LinkState, LinkView};
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use crate::broker::Broker;
use crate::net::Net;
use crate::peer::Peer;
use crate::place::Place;
use crate::proxy::Proxy;
use crate::wait;

const NAMES: [&str; 8] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];

/// The plan of a cluster.
#[derive(Clone, Debug)]
pub struct Plan {
    brokers: usize,
    /// Links: the dialling broker and its target.
    links: Vec<(usize, usize)>,
    guests: usize,
    /// Of each broker.
    secrets: Vec<Option<&'static str>>,
    by_proxy: bool,
    flags: Vec<&'static str>,
    config: &'static str,
}

impl Plan {
    /// So many brokers, and who dials whom.
    pub fn new(brokers: usize, links: impl IntoIterator<Item = (usize, usize)>) -> Self {
        assert!(brokers <= NAMES.len(), "there are names for {} brokers", NAMES.len());
        Self {
            brokers,
            links: links.into_iter().collect(),
            guests: 1,
            secrets: vec![Some("a secret that all brokers of a test know"); brokers],
            by_proxy: false,
            flags: Vec::new(),
            config: "",
        }
    }

    /// Each dials the next.
    pub fn chain(brokers: usize) -> Self {
        Self::new(brokers, (1..brokers).map(|at| (at - 1, at)))
    }

    /// All dial the first.
    pub fn star(brokers: usize) -> Self {
        Self::new(brokers, (1..brokers).map(|at| (at, 0)))
    }

    /// Each dials the next, and the last the first.
    pub fn ring(brokers: usize) -> Self {
        Self::new(brokers, (0..brokers).map(|at| (at, (at + 1) % brokers)))
    }

    /// Each has a link with each.
    pub fn mesh(brokers: usize) -> Self {
        Self::new(brokers, (0..brokers).flat_map(|at| (0..at).map(move |other| (at, other))))
    }

    /// Each dials each, so that every link is wanted from both ends.
    pub fn both_ways(brokers: usize) -> Self {
        let others = move |at: usize| (0..brokers).filter(move |other| *other != at);
        Self::new(brokers, (0..brokers).flat_map(|at| others(at).map(move |other| (at, other))))
    }

    /// Hosts without a broker, after the others; one unless told otherwise.
    #[must_use]
    pub const fn guests(mut self, guests: usize) -> Self {
        self.guests = guests;
        self
    }

    /// The secret of one broker, or that it has none; by default all have the same.
    #[must_use]
    pub fn secret(mut self, at: usize, secret: Option<&'static str>) -> Self {
        self.secrets[at] = secret;
        self
    }

    /// Each link goes through a proxy, [`Cluster::proxy`].
    #[must_use]
    pub const fn by_proxy(mut self) -> Self {
        self.by_proxy = true;
        self
    }

    /// More flags of every broker.
    #[must_use]
    pub fn flags(mut self, flags: &[&'static str]) -> Self {
        self.flags.extend_from_slice(flags);
        self
    }

    /// The configuration file of every broker.
    #[must_use]
    pub const fn config(mut self, text: &'static str) -> Self {
        self.config = text;
        self
    }

    /// Starts all of it and waits until each link is up.
    #[track_caller]
    pub fn start(self) -> Cluster {
        let all: Vec<usize> = (0..self.brokers).collect();
        let cluster = self.start_some(&all);
        cluster.wait_up();
        cluster
    }

    /// Starts some of the brokers, in that order, and waits for no link.
    #[track_caller]
    pub fn start_some(self, which: &[usize]) -> Cluster {
        let net = Net::new(self.brokers + self.guests);
        let proxies: HashMap<_, _> =
            self.links.iter().filter(|_| self.by_proxy).map(|pair| (*pair, net.proxy(pair.0, pair.1))).collect();
        let brokers = (0..self.brokers).map(|_| None).collect();
        let places = (0..self.brokers).map(|at| Some(net.host(at).place())).collect();
        let mut cluster = Cluster { net, plan: self, proxies, brokers, places };
        for at in which {
            cluster.begin(*at);
        }
        cluster
    }
}

/// Linked brokers, running. Each is known by its number; its name is a Greek letter.
#[derive(Debug)]
pub struct Cluster {
    plan: Plan,
    proxies: HashMap<(usize, usize), Proxy>,
    brokers: Vec<Option<Broker>>,
    /// Of those that do not run.
    places: Vec<Option<Place>>,
    net: Net,
}

impl Cluster {
    /// The hosts: those of the brokers, then the guests.
    pub const fn net(&self) -> &Net {
        &self.net
    }

    /// How many brokers there are, running or not.
    pub const fn len(&self) -> usize {
        self.brokers.len()
    }

    /// True if there is none.
    pub const fn is_empty(&self) -> bool {
        self.brokers.is_empty()
    }

    /// The number of the first host without a broker.
    pub const fn guest(&self) -> usize {
        self.brokers.len()
    }

    /// A broker's name.
    pub fn name(&self, at: usize) -> &'static str {
        NAMES[at]
    }

    /// A broker that runs.
    #[track_caller]
    pub fn broker(&self, at: usize) -> &Broker {
        self.brokers[at].as_ref().expect("it runs")
    }

    /// The same, to do something to it.
    #[track_caller]
    pub fn broker_mut(&mut self, at: usize) -> &mut Broker {
        self.brokers[at].as_mut().expect("it runs")
    }

    /// The proxy on a link, by who dials whom.
    #[track_caller]
    pub fn proxy(&self, from: usize, to: usize) -> &Proxy {
        self.proxies.get(&(from, to)).expect("this link goes through a proxy")
    }

    /// Brokers in this order of preference, as a host reaches them.
    pub fn urls(&self, from: usize, order: &[usize]) -> String {
        let urls: Vec<String> = order.iter().map(|to| self.net.url(from, *to)).collect();
        urls.join(",")
    }

    /// A raw client on a broker's own host, with the queue open as handle 0.
    #[track_caller]
    pub fn client(&self, at: usize, queue: &str) -> Peer {
        let address = self.broker(at).address();
        self.net.host(at).within(|| Peer::client(address, queue))
    }

    /// A raw worker on a broker's own host.
    #[track_caller]
    pub fn worker(&self, at: usize, queue: &str, slots: u32, name: &str) -> Peer {
        let address = self.broker(at).address();
        self.net.host(at).within(|| Peer::worker(address, queue, Slots::Limited(slots), name))
    }

    /// Starts a broker that does not run, in the place it had before. Does not wait for its links.
    #[track_caller]
    pub fn begin(&mut self, at: usize) {
        let place = self.places[at].take().expect("it does not run");
        let mut flags = vec!["--name".to_owned(), NAMES[at].to_owned()];
        for (from, to) in self.plan.links.iter().filter(|(from, _)| *from == at) {
            let address = self.proxies.get(&(*from, *to)).map_or_else(|| self.net.way(*from, *to), Proxy::address);
            flags.extend(["--link".to_owned(), address.to_string()]);
        }
        if let Some(secret) = self.plan.secrets[at] {
            let file = secret_file(&place, secret);
            flags.extend(["--link-secret-file".to_owned(), file]);
        }
        if !self.plan.config.is_empty() {
            place.file("config/turno/turno.toml", self.plan.config);
        }
        flags.extend(self.plan.flags.iter().map(ToString::to_string));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.brokers[at] = Some(Broker::start_on(self.net.host(at), place, &flags));
    }

    /// Kills a broker with SIGKILL.
    #[track_caller]
    pub fn kill(&mut self, at: usize) {
        let broker = self.brokers[at].take().expect("it runs");
        self.places[at] = Some(broker.into_place());
    }

    /// Ends a broker in order.
    #[track_caller]
    pub fn end(&mut self, at: usize) {
        self.places[at] = Some(self.brokers[at].take().expect("it runs").end());
    }

    /// Ends a broker in order, starts it again and waits for all links.
    #[track_caller]
    pub fn restart(&mut self, at: usize) {
        self.end(at);
        self.begin(at);
        self.wait_up();
    }

    /// One after the other.
    #[track_caller]
    pub fn restart_all(&mut self) {
        for at in 0..self.len() {
            self.restart(at);
        }
    }

    /// Its links, up or wanted.
    #[track_caller]
    pub fn links(&self, at: usize) -> Vec<LinkView> {
        match self.ask(at, AdminCall::LinkLs {}) {
            AdminAnswer::Links { links } => links,
            other => panic!("another answer: {other:?}"),
        }
    }

    /// Asks a broker about itself, from its own host.
    #[track_caller]
    pub fn ask(&self, at: usize, call: AdminCall) -> AdminAnswer {
        let address = self.broker(at).address();
        self.net.host(at).within(|| Peer::greeted(address, 0)).ask(call)
    }

    /// The names of those with whom a broker has a link that is up, sorted; one twice if there are two.
    #[track_caller]
    pub fn linked(&self, at: usize) -> Vec<String> {
        let up = self.links(at).into_iter().filter(|link| link.state == LinkState::Up);
        let mut names: Vec<String> = up.map(|link| link.name.expect("a name")).collect();
        names.sort();
        names
    }

    /// Brokers as one knows them, itself first.
    #[track_caller]
    pub fn graph(&self, at: usize) -> Vec<BrokerNode> {
        match self.ask(at, AdminCall::LinkGraph {}) {
            AdminAnswer::LinkGraph { brokers } => brokers,
            other => panic!("another answer: {other:?}"),
        }
    }

    /// The names of all brokers that one knows of, itself included, sorted.
    #[track_caller]
    pub fn known(&self, at: usize) -> Vec<String> {
        let mut names: Vec<String> = self.graph(at).into_iter().map(|broker| broker.name).collect();
        names.sort();
        names
    }

    /// The names of those with whom it should have links now, sorted.
    pub fn expected(&self, at: usize) -> Vec<String> {
        let ends = self.plan.links.iter().filter_map(|(from, to)| match at {
            _ if at == *from => Some(*to),
            _ if at == *to => Some(*from),
            _ => None,
        });
        let names: BTreeSet<&str> =
            ends.filter(|other| *other != at && self.brokers[*other].is_some()).map(|other| NAMES[other]).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Those that run.
    pub fn running(&self) -> Vec<usize> {
        (0..self.len()).filter(|at| self.brokers[*at].is_some()).collect()
    }

    /// Waits until each broker that runs has the links that it should have, and no others.
    #[track_caller]
    pub fn wait_up(&self) {
        for at in self.running() {
            let expected = self.expected(at);
            let up = wait::find(wait::PATIENCE, || (self.linked(at) == expected).then_some(()));
            assert!(up.is_some(), "{} has not the links {expected:?}, but {:?}", NAMES[at], self.links(at));
        }
    }

    /// Waits until each broker that runs knows those that run, and nobody else. All of them must be linked somehow.
    #[track_caller]
    pub fn wait_known(&self) {
        let mut expected: Vec<&str> = self.running().into_iter().map(|at| NAMES[at]).collect();
        expected.sort_unstable();
        for at in self.running() {
            let known = wait::find(wait::PATIENCE, || (self.known(at) == expected).then_some(()));
            assert!(known.is_some(), "{} does not know {expected:?}, but {:?}", NAMES[at], self.graph(at));
        }
    }
}

/// A file that nobody else may read.
fn secret_file(place: &Place, secret: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = place.file("secret", secret);
    let only_ours = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(Path::new(&path), only_ours).expect("our own file");
    path.display().to_string()
}
