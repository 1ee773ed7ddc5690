//! The calm after the faults: everything must come to its end.

use turno_proto::model::{Mono, QueueName};

use crate::client::Client;
use crate::worker::Worker;
use crate::world::{Actor, Broker, Happening, World};

/// Everything drains within this time after the last fault (I21).
const CALM_MS: u64 = 60_000;
/// A worker has done a message by then, and the next one is loaded from disk.
const ONE_BY_ONE_MS: u64 = 100;
/// Workers of the fairness round, and rounds it goes.
const FAIR_WORKERS: usize = 3;
const FAIR_ROUNDS: u64 = 2;

impl World {
    /// The storm, for so many steps.
    pub(crate) fn storm(&mut self, steps: u64) {
        while self.steps < steps && self.step() {}
    }

    /// No more faults, no more questions: brokers come back, rogues leave, workers behave.
    pub(crate) fn calm_down(&mut self) {
        self.stormy = false;
        self.trace.note(self.now, "calm", self.steps, 0);
        self.links_calm_down();
        for broker in 0..self.brokers.len() {
            self.disk_heals(broker);
            self.resume_a_broker(broker);
            // Maintenance is over; peers on the way out go.
            if self.brokers[broker]
                .connections
                .as_ref()
                .is_some_and(|connections| connections.engine().status().draining)
            {
                self.end_broker(broker);
            }
            self.start_broker(broker);
        }
        let rogues: Vec<usize> =
            (0..self.peers.len()).filter(|at| matches!(self.peers[*at].actor, Actor::Rogue(_))).collect();
        let rogues: Vec<usize> = rogues.into_iter().filter(|at| !self.only_waits(*at)).collect();
        for index in rogues {
            if let Some(wire) = self.peers[index].wire.take() {
                self.close(wire, crate::net::Direction::ToBroker);
            }
        }
        for index in 0..self.peers.len() {
            let life = self.peers[index].life;
            if let Actor::Worker(worker) = &mut self.peers[index].actor {
                for held in worker.behave() {
                    self.at(self.now, Happening::Finish { peer: index, life, held });
                }
            }
        }
        // Every queue has at least one worker that is large enough for anything, at every broker or behind its links.
        for broker in self.places_of_work() {
            let queues = self.shared_queues();
            self.add_peer(Actor::Worker(Worker::new(8, true)), 8, queues, Some(broker));
        }
        self.singles_calm_down();
        self.farm_calms_down();
        self.zmq_calms_down();
    }

    /// Lets time pass until all is quiet; all must be quiet in time.
    pub(crate) fn settle(&mut self) {
        let end = self.now.plus_millis(CALM_MS + self.farm_patience_ms());
        self.await_holders(end);
        self.settle_until(end);
        self.settle_until(self.now.plus_millis(self.backlog_patience_ms()));
        assert!(self.is_quiet(), "I21: not quiet {CALM_MS} ms after the last fault: {}", self.unrest());
        self.oracle.judge();
        self.judge_farm();
        for broker in &self.brokers {
            let Some(connections) = &broker.connections else { panic!("I21: a broker did not come back") };
            let status = connections.engine().status();
            let run = connections.engine().run();
            self.oracle.judge_sends(run, status.dead);
            if let Some(disks) = &broker.disks {
                let truth = disks.truth().unwrap_or_else(|why| panic!("I1: the store cannot be opened: {why}"));
                self.oracle.found(&truth);
                self.oracle.letters.judge(&self.oracle.clocks, broker.run, &truth, status.dead);
                self.oracle.judge_owner(&truth);
            }
        }
    }

    fn settle_until(&mut self, end: Mono) {
        while self.now < end && !self.is_quiet() {
            assert!(self.step(), "I21: time stands still");
        }
    }

    /// How much longer a long backlog may take: a queue that waits for memory has one message at a time.
    fn backlog_patience_ms(&self) -> u64 {
        if !self.habits.waits_for_memory() {
            return 0;
        }
        let ready = |broker: &Broker| broker.connections.as_ref().map_or(0, |up| up.engine().status().ready);
        self.brokers.iter().map(ready).max().unwrap_or_default() * ONE_BY_ONE_MS
    }

    pub(crate) fn is_quiet(&self) -> bool {
        let brokers_quiet = self.brokers.iter().all(|broker| {
            broker.connections.as_ref().is_some_and(|connections| {
                let status = connections.engine().status();
                let kept =
                    broker.disks.as_ref().is_none_or(|disks| !disks.busy) && !connections.engine().waits_for_disk();
                status.ready == 0 && status.delayed == 0 && status.in_flight == 0 && kept
            })
        });
        brokers_quiet
            && self.peers.iter().all(|peer| match &peer.actor {
                Actor::Client(client) => client.is_idle(),
                Actor::Worker(worker) => worker.is_idle(),
                Actor::Rogue(_)
                | Actor::JobWorker(_)
                | Actor::Liar(_)
                | Actor::Submitter(_)
                | Actor::Listener(_)
                | Actor::Zmq(_) => true,
            })
            && self.farm_is_quiet()
            && self.events_are_told()
            && self.missing_link().is_none()
            && self.restless_zmq().is_none()
    }

    pub(crate) fn unrest(&self) -> String {
        let brokers: Vec<String> = self
            .brokers
            .iter()
            .map(|broker| match &broker.connections {
                Some(connections) => {
                    let status = connections.engine().status();
                    let disk = if connections.engine().waits_for_disk() { ", waits for its disk" } else { "" };
                    let (ready, running, workers) = (status.ready + status.delayed, status.in_flight, status.workers);
                    format!("{ready} ready or delayed, {running} in flight, {workers} workers{disk}")
                }
                None => "down".to_owned(),
            })
            .collect();
        let (farm, link, zmq) = (self.farm_unrest(), self.missing_link(), self.restless_zmq());
        format!("brokers {brokers:?}, {farm:?}, no link {link:?}, ZeroMQ peer {zmq:?}")
    }

    /// I10: one request after the other goes to each worker in turn.
    pub(crate) fn go_round(&mut self) {
        let queue = "fair".parse().expect("a name");
        let before = std::mem::take(&mut self.queues);
        self.queues = [before.clone(), vec![queue]].concat();
        let fair = vec![self.queues[before.len()].clone()];
        let workers: Vec<usize> = (0..FAIR_WORKERS)
            .map(|_| self.add_peer(Actor::Worker(Worker::new(2, true)), 2, fair.clone(), Some(0)))
            .collect();
        // Workers behind a link get nothing while a worker here has room.
        let neighbour = self.links.component_of(0).last().copied().filter(|broker| *broker != 0);
        let elsewhere =
            neighbour.map(|broker| self.add_peer(Actor::Worker(Worker::new(2, true)), 2, fair.clone(), Some(broker)));
        let asker = self.add_peer(Actor::Client(Client::default()), 0, Vec::new(), Some(0));
        self.pass(2_000);
        let answering: Vec<QueueName> =
            before.into_iter().filter(|queue| Some(queue) != self.zmq.sends.as_ref()).collect();
        self.shout_to_all(asker, &answering);
        for _ in 0..FAIR_ROUNDS * FAIR_WORKERS as u64 {
            self.ask_once(asker, &fair[0], 1);
            self.pass(500);
        }
        for worker in workers {
            let Actor::Worker(worker) = &self.peers[worker].actor else { unreachable!("workers were added") };
            assert_eq!(worker.taken(), FAIR_ROUNDS, "I10: every worker has its turn once a round");
        }
        if let Some(Actor::Worker(worker)) = elsewhere.map(|peer| &self.peers[peer].actor) {
            assert_eq!(worker.taken(), 0, "I14: local workers come first");
        }
    }

    pub(crate) fn ask_once(&mut self, asker: usize, queue: &QueueName, cost: u16) {
        let now = self.now;
        let peer = &mut self.peers[asker];
        if let (Some(core), Actor::Client(client)) = (&mut peer.core, &mut peer.actor) {
            self.number += 1;
            client.ask_plainly(now, asker, core, (queue, cost), self.number, &mut self.oracle);
            self.pump_peer(asker);
        }
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        let end: Mono = self.now.plus_millis(ms);
        while self.now < end && self.step() {}
    }
}
