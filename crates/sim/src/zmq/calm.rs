//! The calm of ZeroMQ peers: everything arrives or was counted as lost.

use turno_broker::connections::{ListenerKind, Turn};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::zmq::EndpointView;
use turno_proto::native::{Connect, Frame, VERSION, encode};

use super::peer::Role;
use crate::client::Client;
use crate::frames::frames;
use crate::net::Direction;
use crate::world::{Actor, Happening, Peer, World};

/// Everyone gets something in this time, and everything ends.
const CALM_MS: u64 = 60_000;
/// Between two rounds.
const ROUND_MS: u64 = 300;

impl World {
    fn zmq_peers(&self) -> Vec<usize> {
        (0..self.peers.len()).filter(|index| self.peers[*index].is_zmq()).collect()
    }

    /// Workers finish what they have.
    pub(crate) fn zmq_calms_down(&mut self) {
        for index in self.zmq_peers() {
            let (now, life) = (self.now, self.peers[index].life);
            let Actor::Zmq(zmq) = &mut self.peers[index].actor else { continue };
            if let Role::Works(worker) = &mut zmq.role {
                for key in worker.behave() {
                    self.at(now, Happening::ZmqFinish { peer: index, life, key });
                }
            }
        }
    }

    /// A peer that has something left to do, or cannot do it: without a connection, or with something under way on it.
    pub(crate) fn restless_zmq(&self) -> Option<&Actor> {
        let restless = |peer: &&Peer| {
            let Actor::Zmq(zmq) = &peer.actor else { return false };
            let works = matches!(&zmq.role, Role::Works(worker) if !worker.is_idle());
            let quiet = peer.wire.is_some_and(|wire| {
                let wire = &self.wires[wire];
                wire.is_sound() && !wire.has_unread(Direction::ToBroker) && !wire.has_unread(Direction::ToPeer)
            });
            works || !quiet || !zmq.is_open() || !peer.out.is_empty()
        };
        self.peers.iter().find(restless).map(|peer| &peer.actor)
    }

    /// I21: everyone who asks gets an answer, everyone who works gets work, what is pushed is read, what is published is told.
    pub(crate) fn zmq_goes_round(&mut self) {
        let Some(broker) = self.zmq.broker else { return };
        let peers = self.zmq_peers();
        let asker = self.add_peer(Actor::Client(Client::default()), 0, Vec::new(), Some(broker));
        for index in &peers {
            if let Some(peer) = self.zmq_mut(*index) {
                peer.subscribe_to_all();
            }
            self.pump_peer(*index);
        }
        self.pass(2_000);
        let before: Vec<u64> = peers.iter().map(|index| self.oracle.zmq.progress_of(*index)).collect();
        let end = self.now.plus_millis(CALM_MS);
        let idle = |world: &Self| {
            let stands = |(index, before): &(&usize, &u64)| world.oracle.zmq.progress_of(**index) == **before;
            peers.iter().zip(&before).find(stands).map(|(index, _)| *index)
        };
        while let Some(index) = idle(self) {
            assert!(self.now < end, "I21: {index} gets nothing in the calm: {:?}", self.peers[index].actor);
            for queue in self.zmq.services.clone() {
                self.ask_once(asker, &queue, 1);
            }
            self.client_sends(asker);
            peers.iter().for_each(|index| self.zmq_goes_on(*index));
            self.pass(ROUND_MS);
        }
        let end = self.now.plus_millis(CALM_MS);
        while !self.is_quiet() {
            assert!(self.now < end, "I21: not quiet {CALM_MS} ms after the last request: {}", self.unrest());
            assert!(self.step(), "I21: time stands still");
        }
        self.judge_zmq(broker);
    }

    /// One more request, send or publication.
    fn zmq_goes_on(&mut self, index: usize) {
        let now = self.now;
        let Actor::Zmq(zmq) = &mut self.peers[index].actor else { return };
        let count = match &mut zmq.role {
            Role::Asks(asker) => asker.wants(now, &mut self.rng),
            _ => Some(1),
        };
        match count {
            Some(count) => self.zmq_makes(index, count.min(1)),
            None => self.zmq_reconnects(index),
        }
    }

    /// I13, I1: what has no answer and what was pushed and is not done was counted.
    fn judge_zmq(&mut self, broker: usize) {
        let views = self.endpoint_views(broker);
        for EndpointView { name, withheld, .. } in &views {
            let unanswered = self.oracle.zmq.unanswered_at(name) as u64;
            assert!(
                unanswered <= *withheld,
                "I13: {unanswered} requests at {name} have no answer, and {withheld} were withheld"
            );
        }
        let refused = views.iter().map(|view| view.refused).sum();
        let Some(connections) = &self.brokers[broker].connections else { panic!("I21: a broker did not come back") };
        self.oracle.judge_pushes(broker, self.brokers[broker].run, refused, connections.engine().status().dead);
    }

    /// The views of a broker's endpoints.
    fn endpoint_views(&mut self, broker: usize) -> Vec<EndpointView> {
        let shown = self.clock_of(broker);
        let Some(connections) = &mut self.brokers[broker].connections else { return Vec::new() };
        let conn = connections.accept(shown, "visitor".to_owned(), ListenerKind::Native).expect("a broker with room");
        let connect =
            Connect { version: VERSION, name: "visitor".into(), program: String::new(), heartbeat_ms: 30_000 };
        let mut bytes = Vec::new();
        for frame in [
            Frame::Connect { seq: 1, connect },
            Frame::Ping { seq: 2 },
            Frame::AdminCall { seq: 3, call: AdminCall::ZmqLs {} },
        ] {
            encode(&frame, &mut bytes);
        }
        let mut turn = connections.take(shown, conn, &bytes);
        while turn == Turn::Cut {
            turn = connections.go_on(shown, conn);
        }
        let views = frames(connections.unwritten(conn)).find_map(|frame| match frame {
            Frame::AdminAnswer { answer: AdminAnswer::ZmqEndpoints { endpoints }, .. } => Some(endpoints),
            _ => None,
        });
        connections.hang_up(shown, conn);
        self.pump_broker(broker);
        views.expect("S1.6: a broker tells of its endpoints")
    }
}
