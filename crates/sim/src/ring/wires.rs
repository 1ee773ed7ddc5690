//! Connections between brokers: bytes arrive in order and late, stall, or never come; an end that hears nothing closes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use turno_engine::ring::RingMessage;
use turno_proto::model::ring::Member;
use turno_proto::model::{ConnId, Mono};

/// A broker's place in the world: its address.
pub(super) type BrokerPlace = usize;
/// One life of a broker: they are numbered through.
pub(super) type LifeNumber = usize;
pub(super) type WireId = u32;

/// The end that dialled, and the end that was dialled.
pub(super) const DIALLER: usize = 0;
pub(super) const DIALLED: usize = 1;

/// Something on its way.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// The greeting is over: what the dialling end hears of the other.
    Dialled(u32, Member),
    /// The greeting is over: what the other end hears.
    Accepted(Member),
    Message(RingMessage),
    Ping,
    Fin,
}

/// One end of a wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingEnd {
    pub(super) place: BrokerPlace,
    pub(super) conn: ConnId,
    pub(super) heard: Mono,
    /// The node knows of it.
    pub(super) is_known: bool,
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct RingLane {
    pub(super) items: VecDeque<(Mono, Item)>,
    last: Mono,
    /// Nothing arrives before.
    pub(super) stalled: Mono,
}

impl RingLane {
    /// In order, whenever it arrives.
    pub(super) fn push(&mut self, due: Mono, item: Item) -> Mono {
        self.last = self.last.max(due).max(self.stalled);
        self.items.push_back((self.last, item));
        self.last
    }

    /// Nothing stalls any more.
    pub(super) fn release(&mut self, now: Mono) {
        (self.stalled, self.last) = (now, now);
        for (due, _) in &mut self.items {
            *due = now.min(*due);
        }
    }

    /// Takes the next item that is due.
    pub(super) fn pop(&mut self, now: Mono) -> Option<Item> {
        self.items.pop_front_if(|(due, _)| *due <= now).map(|(_, item)| item)
    }
}

/// A connection: two ends, and the lane away from each.
#[derive(Debug)]
pub(super) struct RingWire {
    pub(super) ends: [Option<RingEnd>; 2],
    pub(super) places: [BrokerPlace; 2],
    pub(super) lives: [LifeNumber; 2],
    pub(super) lanes: [RingLane; 2],
}

#[derive(Debug, Default)]
pub(super) struct Wires {
    pub(super) all: BTreeMap<WireId, RingWire>,
    by_conn: BTreeMap<(BrokerPlace, ConnId), (WireId, usize)>,
    count: u32,
    /// From one place to another nothing arrives.
    pub(super) cut: BTreeSet<(BrokerPlace, BrokerPlace)>,
}

impl Wires {
    pub(super) fn open(&mut self, now: Mono, from: (BrokerPlace, LifeNumber), to: (BrokerPlace, LifeNumber)) -> WireId {
        self.count += 1;
        let wire = self.count;
        let end = |side: u32, place: BrokerPlace| {
            let conn = ConnId { index: wire * 2 + side, generation: 1 };
            RingEnd { place, conn, heard: now, is_known: false }
        };
        let ends = [end(0, from.0), end(1, to.0)];
        for (side, end) in ends.iter().enumerate() {
            self.by_conn.insert((end.place, end.conn), (wire, side));
        }
        let ends = ends.map(Some);
        self.all
            .insert(wire, RingWire { ends, places: [from.0, to.0], lives: [from.1, to.1], lanes: Default::default() });
        wire
    }

    pub(super) fn find(&self, place: BrokerPlace, conn: ConnId) -> Option<(WireId, usize)> {
        self.by_conn.get(&(place, conn)).copied()
    }

    /// The broker at the other end.
    pub(super) fn peer(&self, place: BrokerPlace, conn: ConnId) -> Option<LifeNumber> {
        let (wire, side) = self.find(place, conn)?;
        Some(self.all[&wire].lives[1 - side])
    }

    /// That end is gone, and hears nothing any more.
    pub(super) fn end(&mut self, wire: WireId, side: usize) -> Option<RingEnd> {
        let end = self.all.get_mut(&wire)?.ends[side].take()?;
        self.by_conn.remove(&(end.place, end.conn));
        if self.all.get(&wire)?.ends.iter().all(Option::is_none) {
            self.all.remove(&wire);
        }
        Some(end)
    }

    pub(super) fn is_cut(&self, from: BrokerPlace, to: BrokerPlace) -> bool {
        self.cut.contains(&(from, to))
    }

    /// The ends that a place has.
    pub(super) fn of(&self, place: BrokerPlace) -> Vec<(WireId, usize)> {
        let ends = self.all.iter().flat_map(|(id, wire)| [(*id, 0, wire.ends[0]), (*id, 1, wire.ends[1])]);
        ends.filter(|(_, _, end)| end.is_some_and(|end| end.place == place)).map(|(id, side, _)| (id, side)).collect()
    }

    /// Publications on their way to somebody who would hear them.
    pub(super) fn publications(&self) -> usize {
        let lanes = self.all.values().flat_map(|wire| [(&wire.lanes[0], wire.ends[1]), (&wire.lanes[1], wire.ends[0])]);
        let items = lanes.filter(|(_, end)| end.is_some()).flat_map(|(lane, _)| &lane.items);
        items.filter(|(_, item)| matches!(item, Item::Message(RingMessage::Publish(_)))).count()
    }
}
