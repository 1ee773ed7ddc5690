//! Presence: reachable brokers and the paths to them. Sent whole, whenever it changes.

use std::collections::BTreeMap;

use turno_proto::model::link::{BrokerId, LinkMessage, Path, Presence};
use turno_proto::model::ring::Origin;
use turno_proto::model::{ConnId, limits};

use super::Links;
use crate::effect::{LinkEffect, PeerEffect, Sink};
use crate::messages::Messages;

impl Links {
    /// Sets the broker's identity in its ring, for neighbours to know.
    pub(in crate::messages) fn set_ring(&mut self, origin: Option<Origin>) {
        if self.ring != origin {
            self.ring = origin;
            self.presence_changed = true;
        }
    }

    /// Everyone else who can be reached: the link that leads there by the shortest way, and what is known of it.
    pub(super) fn reachable(&self) -> BTreeMap<BrokerId, (ConnId, &Presence)> {
        let mut found: BTreeMap<BrokerId, (ConnId, &Presence)> = BTreeMap::new();
        for (conn, link) in &self.by_conn {
            for presence in &link.presence {
                let Some(broker) = presence.path.brokers().last() else { continue };
                let nearer = |(_, there): &(ConnId, &Presence)| presence.path.len() < there.path.len();
                if found.get(broker).is_none_or(nearer) {
                    found.insert(*broker, (*conn, presence));
                }
            }
        }
        found
    }
}

impl Messages {
    /// Tells every neighbour who can be reached through this broker, if that is not what it was told before.
    pub(super) fn tell_presence(&mut self, out: &mut impl Sink) {
        let conns: Vec<ConnId> = self.links.by_conn.keys().copied().collect();
        for conn in conns {
            let presence = self.presence_for(conn);
            let link = self.links.link_mut(conn);
            if link.told_presence != presence {
                link.told_presence.clone_from(&presence);
                out.peer(PeerEffect::Link {
                    conn,
                    effect: LinkEffect::Message(Box::new(LinkMessage::Presence(presence))),
                });
            }
        }
    }

    fn presence_for(&self, conn: ConnId) -> Vec<Presence> {
        let to = self.links.link(conn).broker;
        let path = Path::default().then(self.links.me).expect("one is not too many");
        let neighbours = self.links.by_conn.values().map(|link| link.broker).collect();
        let (name, listens) = (self.settings.name.clone(), self.links.listens);
        let ring = self.links.ring;
        let own = Presence { path, name, neighbours, listens, ring };
        // The shortest way that does not lead through the one that is told.
        let mut best: BTreeMap<BrokerId, Presence> = BTreeMap::new();
        for (other, link) in &self.links.by_conn {
            if *other == conn {
                continue;
            }
            for presence in link.presence.iter().filter(|presence| !presence.path.has(to)) {
                let Some(path) = presence.path.after(self.links.me) else { continue };
                let Some(broker) = path.brokers().last().copied() else { continue };
                if best.get(&broker).is_none_or(|there| path.len() < there.path.len()) {
                    best.insert(broker, Presence { path, ..presence.clone() });
                }
            }
        }
        let mut all = vec![own];
        all.extend(best.into_values().take(limits::BROKERS_MAX - 1));
        all
    }

    /// PRESENCE came.
    pub(super) fn present(&mut self, conn: ConnId, presence: Vec<Presence>) {
        let me = self.links.me;
        let link = self.links.link_mut(conn);
        let neighbour = link.broker;
        let honest = |told: &Presence| told.path.brokers().first() == Some(&neighbour) && !told.path.has(me);
        let mut presence: Vec<Presence> = presence.into_iter().filter(honest).take(limits::BROKERS_MAX).collect();
        for told in &mut presence {
            told.neighbours.truncate(limits::LINKS_MAX);
            told.name = told.name.chars().take(limits::PEER_NAME_BYTES_MAX / 4).collect();
        }
        if link.presence != presence {
            link.presence = presence;
            self.links.presence_changed = true;
        }
    }
}
