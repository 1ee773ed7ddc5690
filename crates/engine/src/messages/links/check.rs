//! Invariants of links and crossings.

use std::collections::BTreeMap;

use turno_proto::model::{ConnId, limits};

use crate::messages::Messages;
use crate::messages::table::chain::Lane;
use crate::messages::table::message::{Flags, MessageStage};

impl Messages {
    pub(in crate::messages) fn check_links(&self) {
        let claims_are_due = self.links.claims.next_deadline().is_some();
        assert!(self.links.are_used() || !claims_are_due, "without other brokers nothing is claimed");
        let mut held: BTreeMap<(ConnId, &str), u32> = BTreeMap::new();
        for (index, message) in self.messages.iter() {
            let foreign = self.links.foreign.get(&index);
            assert_eq!(
                message.flags.has(Flags::FORWARDED),
                foreign.is_some(),
                "what came over a link is known as such"
            );
            let Some(foreign) = foreign else { continue };
            assert!(message.state != MessageStage::Waiting, "what came over a link does not wait here");
            assert!(!message.flags.has(Flags::DURABLE), "what came over a link is its owner's to keep");
            assert!(!foreign.path.has(self.links.me), "no message comes here twice");
            if let Some(origin) = message.origin {
                assert_eq!(origin.conn(), foreign.link, "it goes back the way it came");
                let name = self.queues.at(message.queue).name.as_str();
                *held.entry((foreign.link, name)).or_default() += u32::from(message.cost.slots());
            }
            if let Some(holder) = message.holder().and_then(|holder| self.links.by_conn.get(&holder)) {
                assert!(!foreign.path.has(holder.broker), "nothing goes back the way it came, but to end");
            }
        }
        assert_eq!(
            self.links.foreign.len(),
            self.messages.iter().filter(|(_, m)| m.flags.has(Flags::FORWARDED)).count()
        );
        held.retain(|_, cost| *cost > 0);
        let told = self
            .links
            .by_conn
            .iter()
            .flat_map(|(conn, link)| link.held.iter().map(|(name, cost)| ((*conn, name.as_str()), *cost)));
        assert!(told.eq(held), "slots that a link's messages take are counted");
        for (conn, link) in &self.links.by_conn {
            let worker = self.peers.worker(*conn).expect("a link is a worker");
            assert!(worker.is_link, "a link is a worker that is known as one");
            assert!(
                self.links.by_conn.values().filter(|other| other.broker == link.broker).count() == 1,
                "one link each"
            );
            let mut in_flight: BTreeMap<&str, u32> = BTreeMap::new();
            let mut crossings = 0;
            for index in worker.held.iter(&self.messages, Lane::Place) {
                let message = &self.messages[index];
                assert_eq!(link.out.get(&message.stamp), Some(&index), "a crossing is known by its number");
                *in_flight.entry(self.queues.at(message.queue).name.as_str()).or_default() +=
                    u32::from(message.cost.slots());
                crossings += 1;
            }
            assert_eq!(crossings, link.out.len(), "every crossing is held by its link");
            for (name, far) in &link.far {
                let crossed = in_flight.get(name.as_str()).copied().unwrap_or(0);
                assert_eq!(far.in_flight, crossed, "slots at the other end are counted");
                assert!(far.rooms.len() <= limits::BROKERS_MAX, "a queue has a bounded number of rooms");
            }
        }
        let links = self.peers.iter().filter(|peer| peer.worker.as_deref().is_some_and(|worker| worker.is_link));
        assert_eq!(links.count(), self.links.by_conn.len(), "every link is up");
    }
}
