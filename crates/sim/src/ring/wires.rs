//! Connections between brokers: bytes arrive in order and late, stall, or never come; anyone who hears nothing closes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use turno_engine::ring::RingMessage;
use turno_proto::model::ring::Member;
use turno_proto::model::{ConnId, Mono};

/// A broker's place in the world: its address.
pub(super) type Place = usize;
/// One life of a broker: they are numbered through.
pub(super) type Life = usize;
pub(super) type WireId = u32;

/// The end that dialled, and the end that was dialled.
pub(super) const DIALLER: usize = 0;
pub(super) const DIALLED: usize = 1;

/// Something on its way.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// The greeting is over: what anyone who dialled hears of the other end.
    Dialled(u32, Member),
    /// The greeting is over: what anyone who was dialled hears.
    Accepted(Member),
    Word(RingMessage),
    Ping,
    Fin,
}

/// Whose end of a wire this is.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) place: Place,
    pub(super) conn: ConnId,
    pub(super) heard: Mono,
    /// The node knows of it.
    pub(super) is_known: bool,
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) items: VecDeque<(Mono, Item)>,
    last: Mono,
    /// Nothing arrives before.
    pub(super) stalled: Mono,
}

impl Lane {
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

    /// What of it is due.
    pub(super) fn pop(&mut self, now: Mono) -> Option<Item> {
        self.items.pop_front_if(|(due, _)| *due <= now).map(|(_, item)| item)
    }
}

/// A connection: two ends, and the lane away from each.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) ends: [Option<End>; 2],
    pub(super) places: [Place; 2],
    pub(super) lives: [Life; 2],
    pub(super) lanes: [Lane; 2],
}

#[derive(Debug, Default)]
pub(super) struct Wires {
    pub(super) all: BTreeMap<WireId, Wire>,
    by_conn: BTreeMap<(Place, ConnId), (WireId, usize)>,
    count: u32,
    /// From one place to another nothing arrives.
    pub(super) cut: BTreeSet<(Place, Place)>,
}

impl Wires {
    pub(super) fn open(&mut self, now: Mono, from: (Place, Life), to: (Place, Life)) -> WireId {
        self.count += 1;
        let wire = self.count;
        let end = |side: u32, place: Place| {
            let conn = ConnId { index: wire * 2 + side, generation: 1 };
            End { place, conn, heard: now, is_known: false }
        };
        let ends = [end(0, from.0), end(1, to.0)];
        for (side, end) in ends.iter().enumerate() {
            self.by_conn.insert((end.place, end.conn), (wire, side));
        }
        let ends = ends.map(Some);
        self.all.insert(wire, Wire { ends, places: [from.0, to.0], lives: [from.1, to.1], lanes: Default::default() });
        wire
    }

    pub(super) fn find(&self, place: Place, conn: ConnId) -> Option<(WireId, usize)> {
        self.by_conn.get(&(place, conn)).copied()
    }

    /// Whose the other end is, or was.
    pub(super) fn peer(&self, place: Place, conn: ConnId) -> Option<Life> {
        let (wire, side) = self.find(place, conn)?;
        Some(self.all[&wire].lives[1 - side])
    }

    /// That end is gone, and hears nothing any more.
    pub(super) fn end(&mut self, wire: WireId, side: usize) -> Option<End> {
        let end = self.all.get_mut(&wire)?.ends[side].take()?;
        self.by_conn.remove(&(end.place, end.conn));
        if self.all.get(&wire)?.ends.iter().all(Option::is_none) {
            self.all.remove(&wire);
        }
        Some(end)
    }

    pub(super) fn is_cut(&self, from: Place, to: Place) -> bool {
        self.cut.contains(&(from, to))
    }

    /// The ends that a place has.
    pub(super) fn of(&self, place: Place) -> Vec<(WireId, usize)> {
        let ends = self.all.iter().flat_map(|(id, wire)| [(*id, 0, wire.ends[0]), (*id, 1, wire.ends[1])]);
        ends.filter(|(_, _, end)| end.is_some_and(|end| end.place == place)).map(|(id, side, _)| (id, side)).collect()
    }

    /// Publications on their way to somebody who would hear them.
    pub(super) fn publications(&self) -> usize {
        let lanes = self.all.values().flat_map(|wire| [(&wire.lanes[0], wire.ends[1]), (&wire.lanes[1], wire.ends[0])]);
        let items = lanes.filter(|(_, end)| end.is_some()).flat_map(|(lane, _)| &lane.items);
        items.filter(|(_, item)| matches!(item, Item::Word(RingMessage::Publish(_)))).count()
    }
}
