//! Shared rotas: one rota for all workers that consume the same many queues.
//!
//! A worker of a few queues stands in the rota of each, and each is told when it is used or has room again. With
//! thousands of queues that would be thousands of tellings a delivery. So a worker of more than a few (`Settings::own_rotas_max`)
//! stands in one rota only, that of its shared rota, and a queue looks at its own rota and at those of its shared rotas.
//!
//! A worker that still chooses its queues has a shared rota to itself, which grows with it; when it is used it joins the shared rota
//! that consumes exactly the same, if there is one. So choosing costs little, and equal workers find together.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Index, IndexMut};

use turno_proto::model::ConnId;

use crate::messages::workers::rota::Rota;

/// A worker's place in its shared rota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) struct Seat {
    pub(in crate::messages) shared_rota: u32,
    /// Its number in the shared rota's rota.
    pub(in crate::messages) number: u32,
}

/// Workers that consume the same queues.
#[derive(Debug, Default)]
pub(in crate::messages) struct SharedRota {
    pub(in crate::messages) queues: BTreeSet<u32>,
    /// Those of its queues in which something waits.
    pub(in crate::messages) waiting: BTreeSet<u32>,
    pub(in crate::messages) rota: Rota,
    members: Vec<Option<ConnId>>,
    /// Tells sets of queues apart, nearly always.
    hash: u64,
    /// Others may join it: its set of queues is no longer being chosen.
    open: bool,
}

impl SharedRota {
    pub(in crate::messages) fn member(&self, number: u32) -> ConnId {
        self.members[number as usize].expect("the rota holds members that are there")
    }

    pub(in crate::messages) const fn is_open(&self) -> bool {
        self.open
    }

    /// The queue to serve next: the first from `from` on in which something waits, or the first at all.
    pub(in crate::messages) fn next_waiting(&self, from: u32) -> Option<u32> {
        self.waiting.range(from..).next().or_else(|| self.waiting.first()).copied()
    }

    pub(crate) fn insert(&mut self, worker: ConnId, free: u32) -> u32 {
        let number = self.members.iter().position(Option::is_none).unwrap_or(self.members.len());
        if number == self.members.len() {
            self.members.push(None);
        }
        self.members[number] = Some(worker);
        let number = u32::try_from(number).expect("fewer members than connections, fewer of those than 2^32");
        self.rota.insert(number, free);
        number
    }

    pub(in crate::messages) fn add(&mut self, queue: u32, waits: bool) {
        self.queues.insert(queue);
        self.hash ^= mixed(queue);
        self.note(queue, waits);
    }

    pub(in crate::messages) fn drop(&mut self, queue: u32) {
        self.queues.remove(&queue);
        self.hash ^= mixed(queue);
        self.waiting.remove(&queue);
    }

    /// Something waits in that queue, or nothing any more.
    pub(crate) fn note(&mut self, queue: u32, waits: bool) {
        if waits {
            self.waiting.insert(queue);
        } else {
            self.waiting.remove(&queue);
        }
    }
}

/// All shared rotas.
#[derive(Debug, Default)]
pub(in crate::messages) struct SharedRotas {
    by_number: Vec<Option<SharedRota>>,
    vacant: Vec<u32>,
    /// Open shared rotas by the hash of their queues.
    open: BTreeMap<u64, Vec<u32>>,
}

impl SharedRotas {
    /// The queues of a shared rota, if it is still there.
    pub(in crate::messages) fn queues_of(&self, shared_rota: u32) -> Vec<u32> {
        let shared_rota = self.by_number.get(shared_rota as usize).and_then(Option::as_ref);
        shared_rota.map(|shared_rota| shared_rota.queues.iter().copied().collect()).unwrap_or_default()
    }

    pub(in crate::messages) fn create(&mut self) -> u32 {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.by_number.push(None);
            u32::try_from(self.by_number.len() - 1).expect("fewer shared rotas than workers")
        });
        self.by_number[number as usize] = Some(SharedRota::default());
        number
    }

    /// A member leaves. Returns the queues of a shared rota that nobody is left in; it is no more.
    pub(in crate::messages) fn leave(
        &mut self,
        Seat { shared_rota: number, number: member }: Seat,
    ) -> Option<BTreeSet<u32>> {
        let shared_rota = &mut self[number];
        shared_rota.rota.remove(member);
        shared_rota.members[member as usize] = None;
        if shared_rota.rota.len() > 0 {
            return None;
        }
        self.close(number);
        self.vacant.push(number);
        self.by_number[number as usize].take().map(|shared_rota| shared_rota.queues)
    }

    /// Others may join.
    pub(crate) fn open(&mut self, number: u32) {
        let shared_rota = &mut self[number];
        shared_rota.open = true;
        let hash = shared_rota.hash;
        self.open.entry(hash).or_default().push(number);
    }

    /// Its set of queues is about to change, or it ends.
    pub(in crate::messages) fn close(&mut self, number: u32) {
        let shared_rota = &mut self[number];
        let hash = shared_rota.hash;
        if !std::mem::take(&mut shared_rota.open) {
            return;
        }
        if let Some(same) = self.open.get_mut(&hash) {
            same.retain(|other| *other != number);
            if same.is_empty() {
                self.open.remove(&hash);
            }
        }
    }

    /// An open shared rota with the same queues as this one.
    pub(in crate::messages) fn equal_to(&self, number: u32) -> Option<u32> {
        let shared_rota = &self[number];
        let candidates = self.open.get(&shared_rota.hash)?.iter().copied();
        candidates.filter(|other| *other != number).find(|other| self[*other].queues == shared_rota.queues)
    }

    pub(in crate::messages) fn iter(&self) -> impl Iterator<Item = (u32, &SharedRota)> {
        (0..).zip(&self.by_number).filter_map(|(number, shared_rota)| Some((number, shared_rota.as_ref()?)))
    }

    pub(crate) fn check(&self) {
        for (number, shared_rota) in self.iter() {
            shared_rota.rota.check();
            assert!(shared_rota.rota.len() > 0, "a shared rota has members");
            let hash = shared_rota.queues.iter().fold(0, |hash, queue| hash ^ mixed(*queue));
            assert_eq!(shared_rota.hash, hash, "a shared rota's hash is that of its queues");
            let listed = self.open.get(&shared_rota.hash).is_some_and(|same| same.contains(&number));
            assert_eq!(shared_rota.open, listed, "an open shared rota can be found");
            assert!(shared_rota.open || shared_rota.rota.len() == 1, "a worker that still chooses is alone");
            let members = shared_rota.members.iter().flatten().count();
            assert_eq!(members, shared_rota.rota.len(), "a shared rota's members are in its rota");
        }
        let open: usize = self.open.values().map(Vec::len).sum();
        assert_eq!(
            open,
            self.iter().filter(|(_, shared_rota)| shared_rota.open).count(),
            "only shared rotas that are there can be found"
        );
    }
}

impl Index<u32> for SharedRotas {
    type Output = SharedRota;

    fn index(&self, number: u32) -> &SharedRota {
        self.by_number[number as usize].as_ref().expect("rooms hold numbers of shared rotas that are there")
    }
}

impl IndexMut<u32> for SharedRotas {
    fn index_mut(&mut self, number: u32) -> &mut SharedRota {
        self.by_number[number as usize].as_mut().expect("rooms hold numbers of shared rotas that are there")
    }
}

/// Spreads a number over 64 bits, so that sums over different sets differ.
const fn mixed(queue: u32) -> u64 {
    let mut bits = (queue as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
