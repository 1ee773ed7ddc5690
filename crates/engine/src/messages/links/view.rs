//! Views of links and other brokers.

use std::collections::BTreeSet;

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::link::view::{BrokerNode, LinkState, LinkView};
use turno_proto::model::link::{BrokerId, Path};
use turno_proto::model::view::Reason;
use turno_proto::model::{Code, ConnId, Seconds, limits};

use super::targets::Target;
use super::{Link, Links};
use crate::effect::{LinkEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::table::message::Message;

/// Longest address that may be wanted: a host name and a port.
const ADDRESS_BYTES_MAX: usize = 300;

/// How many links there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) struct LinkCounts {
    /// Those that are up, no matter who dialled.
    pub(in crate::messages) up: u64,
    /// Addresses that links are wanted to.
    pub(in crate::messages) wanted: u64,
    /// Those of the wanted that are not up, though they could be.
    pub(in crate::messages) down: u64,
}

/// A queue's workers at other brokers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::messages) struct FarWorkers {
    /// Brokers that have some.
    pub(in crate::messages) brokers: u64,
    /// Slots there that messages from here have in use.
    used: u64,
    /// Something would cross now.
    pub(in crate::messages) free: bool,
    /// Some have workers, but none of the links there takes so long a message: the most that one takes.
    pub(in crate::messages) too_long_for: Option<u64>,
}

impl FarWorkers {
    pub(in crate::messages) const fn busy(self, ahead: u64) -> Reason {
        Reason::FarBusy { brokers: self.brokers, used: self.used, ahead }
    }
}

impl Links {
    /// The id and the name of the broker at the other end, if that connection is a link.
    pub(in crate::messages) fn far_end(&self, conn: ConnId) -> Option<(String, String)> {
        self.by_conn.get(&conn).map(|link| (link.broker.to_string(), link.name.clone()))
    }

    /// Brokers that a message came through, by their names where those are known.
    pub(in crate::messages) fn came_by(&self, index: u32) -> Vec<String> {
        let Some(foreign) = self.foreign.get(&index) else { return Vec::new() };
        let known = self.reachable();
        let name = |broker: &BrokerId| match known.get(broker) {
            Some((_, presence)) => presence.name.clone(),
            None => broker.to_string(),
        };
        foreign.path.brokers().iter().map(name).collect()
    }

    pub(in crate::messages) fn counts(&self) -> LinkCounts {
        let down = |target: &Target| matches!(target.state, LinkState::Down | LinkState::Dialling);
        LinkCounts {
            up: self.by_conn.len() as u64,
            wanted: self.targets.len() as u64,
            down: self.targets.iter().filter(|(_, target)| down(target)).count() as u64,
        }
    }
}

impl Messages {
    /// Workers elsewhere that could take the message. None if its queue is one worker's alone here: then nothing of it crosses.
    pub(in crate::messages) fn far_workers(&self, message: &Message) -> FarWorkers {
        let queue = self.queues.at(message.queue);
        let mut far = FarWorkers::default();
        if queue.exclusive.is_some() {
            return far;
        }
        let mut brokers: BTreeSet<BrokerId> = BTreeSet::new();
        for link in self.links.by_conn.values().filter(|link| !link.closing) {
            let Some(there) = link.far.get(&queue.name).filter(|far| !far.rooms.is_empty()) else { continue };
            if message.bytes.len() as u64 > link.payload_max {
                far.too_long_for = far.too_long_for.max(Some(link.payload_max));
                continue;
            }
            brokers.extend(there.rooms.iter().filter_map(|room| room.path.brokers().last()));
            far.used += u64::from(there.in_flight);
            let paused = there.paused_until.is_some_and(|until| self.now < until);
            far.free |= !paused && there.room_for(&Path::default()) > 0;
        }
        far.brokers = brokers.len() as u64;
        far
    }

    /// Answers an admin's call about links.
    pub(crate) fn link_call(&mut self, call: AdminCall, out: &mut impl Sink) -> Result<AdminAnswer, Code> {
        match call {
            AdminCall::LinkAdd { address } => self.add_link(address, out),
            AdminCall::LinkRm { link } => self.remove_link(&link, out),
            AdminCall::LinkGraph {} => Ok(AdminAnswer::LinkGraph { brokers: self.graph() }),
            _ => Ok(AdminAnswer::Links { links: self.link_views() }),
        }
    }

    fn add_link(&mut self, address: String, out: &mut impl Sink) -> Result<AdminAnswer, Code> {
        if address.is_empty() || address.len() > ADDRESS_BYTES_MAX || !address.contains(':') {
            return Err(Code::BadOption);
        }
        let known = self.links.targets.iter().any(|(_, target)| target.address == address);
        if !known && self.links.targets.len() >= limits::LINKS_MAX {
            return Err(Code::TooManyLinks);
        }
        let number = self.links.targets.add(address, self.now);
        self.dial_links(out);
        let target = self.links.targets.get(number).expect("it was just added");
        Ok(AdminAnswer::Links { links: vec![self.target_view(number, target)] })
    }

    /// A link is wanted for the ring's sake. One that is there already, or one too many, changes nothing.
    pub(crate) fn link_to(&mut self, address: String, out: &mut impl Sink) {
        if self.links.targets.len() < limits::LINKS_MAX {
            self.links.targets.add(address, self.now);
            self.dial_links(out);
        }
    }

    /// The ring does not want that link any more.
    pub(crate) fn unlink_from(&mut self, address: &str, out: &mut impl Sink) {
        if self.settings.links.iter().any(|wanted| wanted == address) {
            return;
        }
        if self.links.targets.iter().any(|(_, target)| target.address == address) {
            let removed = self.remove_link(address, out);
            debug_assert!(removed.is_ok(), "it was there a moment ago");
        }
    }

    /// Not wanted any more: by its address, or by the name or the id of the broker at its other end.
    fn remove_link(&mut self, wanted: &str, out: &mut impl Sink) -> Result<AdminAnswer, Code> {
        let named = |link: &Link| link.name == wanted || link.broker.to_string() == wanted;
        let of_address = self.links.targets.iter().find(|(_, target)| target.address == wanted).map(|(at, _)| at);
        let mut conns = self.links.by_conn.iter().filter(|(_, link)| match of_address {
            Some(number) => link.target == Some(number),
            None => named(link),
        });
        let conn = conns.next().map(|(conn, _)| *conn);
        if of_address.is_none() && conns.next().is_some() {
            return Err(Code::Ambiguous);
        }
        let number = of_address.or_else(|| conn.and_then(|conn| self.links.link(conn).target));
        let view = match (number, conn) {
            (Some(number), _) => {
                let target = self.links.targets.get(number).expect("it was just found");
                self.target_view(number, target)
            }
            (None, Some(conn)) => self.link_view(self.links.link(conn)),
            (None, None) => return Err(Code::NotFound),
        };
        if let Some(number) = number {
            self.links.targets.remove(number);
        }
        if let Some(conn) = conn {
            out.peer(PeerEffect::Link { conn, effect: LinkEffect::Unlink { code: Code::Cancelled } });
            self.lost(conn, out);
        }
        Ok(AdminAnswer::Links { links: vec![view] })
    }

    fn link_views(&self) -> Vec<LinkView> {
        let wanted = self.links.targets.iter().map(|(number, target)| self.target_view(number, target));
        let came = self.links.by_conn.values().filter(|link| link.target.is_none());
        wanted.chain(came.map(|link| self.link_view(link))).collect()
    }

    fn target_view(&self, number: u32, target: &Target) -> LinkView {
        if let Some(link) = self.links.by_conn.values().find(|link| link.target == Some(number)) {
            return self.link_view(link);
        }
        LinkView {
            state: target.state,
            target: Some(target.address.clone()),
            since_at: self.settings.moment(target.since),
            code: target.code.map(|code| code.name().to_owned()),
            ..LinkView::default()
        }
    }

    fn link_view(&self, link: &Link) -> LinkView {
        let target = link.target.and_then(|number| self.links.targets.get(number));
        let offered = link.far.values().map(|far| u64::from(far.room_for(&Default::default()))).sum();
        LinkView {
            name: Some(link.name.clone()),
            state: if link.closing { LinkState::Closing } else { LinkState::Up },
            round_trip_seconds: link.round_trip_us.map(Seconds::from_micros),
            offered,
            backlog: link.out.len() as u64,
            forwarded: link.forwarded,
            received: link.received,
            returned: link.returned,
            target: target.map(|target| target.address.clone()),
            since_at: self.settings.moment(link.since),
            code: None,
            broker: Some(link.broker.to_string()),
            address: Some(link.address.clone()),
        }
    }

    fn graph(&self) -> Vec<BrokerNode> {
        let reachable = self.links.reachable();
        let name = |id: &BrokerId| match reachable.get(id) {
            _ if *id == self.links.me => self.settings.name.clone(),
            Some((_, presence)) => presence.name.clone(),
            None => id.to_string(),
        };
        let node = |broker: BrokerId, way: &[BrokerId], neighbours: &[BrokerId]| {
            // In the order of their names, not of the connections, so that the same links look the same everywhere.
            let mut neighbours: Vec<(String, String)> =
                neighbours.iter().map(|id| (name(id), id.to_string())).collect();
            neighbours.sort_unstable();
            let (neighbours, neighbour_ids) = neighbours.into_iter().unzip();
            BrokerNode {
                name: name(&broker),
                hops: way.len() as u64,
                way: way.iter().map(name).collect(),
                neighbours,
                broker: broker.to_string(),
                way_ids: way.iter().map(BrokerId::to_string).collect(),
                neighbour_ids,
            }
        };
        let neighbours: Vec<BrokerId> = self.links.by_conn.values().map(|link| link.broker).collect();
        let others = reachable.iter();
        let others = others.map(|(broker, (_, it))| node(*broker, it.path.brokers(), &it.neighbours));
        let mut others: Vec<BrokerNode> = others.collect();
        others.sort_by(|one, other| (&one.name, &one.broker).cmp(&(&other.name, &other.broker)));
        others.insert(0, node(self.links.me, &[], &neighbours));
        others
    }
}
