//! Connections and workers as the engine sees them: open calls, slots and deliveries.

use std::collections::BTreeMap;

use turno_proto::model::{ConnId, Mono, Slots, limits};

use crate::messages::table::chain::{Chain, NIL};
use crate::messages::table::owned::Owned;
use crate::messages::worker_lost::WorkerTrust;
use crate::messages::workers::dropping::Standings;
use crate::messages::workers::round::Round;
use crate::messages::workers::shared_rota::Seat;

/// One connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(in crate::messages) id: ConnId,
    pub(in crate::messages) name: String,
    pub(in crate::messages) address: String,
    /// Its first PING came.
    pub(in crate::messages) ready: bool,
    /// A foreman's connection: it gets tasks of jobs, and no messages.
    pub(in crate::messages) is_job_worker: bool,
    handles: Vec<u32>,
    /// Its unanswered requests.
    pub(in crate::messages) owned: Owned,
    pub(in crate::messages) worker: Option<Box<Worker>>,
}

impl Peer {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The queue a handle stands for.
    pub(in crate::messages) fn queue_of(&self, handle: u32) -> Option<u32> {
        self.handles.get(handle as usize).copied().filter(|queue| *queue != NIL)
    }

    /// Points a handle at a queue; returns the one it pointed at before.
    pub(crate) fn open(&mut self, handle: u32, queue: u32) -> Option<u32> {
        let at = handle as usize;
        if self.handles.len() <= at {
            self.handles.resize(at + 1, NIL);
        }
        let before = std::mem::replace(&mut self.handles[at], queue);
        (before != NIL).then_some(before)
    }

    /// One more than the highest handle ever opened.
    pub(in crate::messages) fn handles_len(&self) -> u32 {
        u32::try_from(self.handles.len()).expect("handles are limited")
    }

    /// The queues its handles point at, one for each handle.
    pub(in crate::messages) fn handles(&self) -> impl Iterator<Item = u32> {
        self.handles.iter().copied().filter(|queue| *queue != NIL)
    }
}

/// A queue that a worker consumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) struct Consuming {
    pub(in crate::messages) queue: u32,
    /// Its number among the queue's consumers.
    pub(in crate::messages) number: u32,
}

/// The state of a worker.
#[derive(Debug)]
pub(crate) struct Worker {
    /// A number no other worker of this run gets.
    pub(in crate::messages) id: u64,
    pub(in crate::messages) name: String,
    /// The slots that it asked for.
    pub(in crate::messages) slots: Slots,
    /// The slots that it may use now: its own, or as many as it still holds after a resize to fewer.
    limit: u32,
    used: u32,
    /// The other end is a broker: what it holds crossed to it.
    pub(in crate::messages) is_link: bool,
    /// The same worker's other connection.
    pub(in crate::messages) pair: Option<ConnId>,
    /// Slots in use that the paired connection took.
    lent: u32,
    /// No new work: somebody asked for that.
    pub(in crate::messages) draining: bool,
    /// DEREGISTER came; it only finishes what it holds (S0.15).
    pub(in crate::messages) leaving: bool,
    /// By the number of the queue.
    pub(in crate::messages) consumes: Vec<Consuming>,
    /// The place in its shared rota, if it consumes many queues.
    pub(in crate::messages) shared_rota: Option<Seat>,
    /// Where it is in the round over its queues.
    pub(in crate::messages) round: Round,
    /// Its standings.
    pub(in crate::messages) standings: Standings,
    pub(in crate::messages) trust: WorkerTrust,
    /// The send that it holds alone: it gets nothing else.
    pub(in crate::messages) alone_with: Option<u32>,
    /// It closed its connection with bytes unread.
    pub(in crate::messages) unread: bool,
    /// Bytes of deliveries since it was last known to have read all, without those it settled (see `pace`).
    pub(in crate::messages) unread_bytes: u64,
    /// The last stamp of those that it had read then.
    pub(in crate::messages) read_stamp: u32,
    /// They are too many: it gets nothing before it has read.
    pub(in crate::messages) must_read: bool,
    /// When it was used last, as a rising number.
    pub(in crate::messages) turn: u64,
    pub(in crate::messages) held: Chain,
    /// An answer does not give slots back: the worker says when it has room (see `keeping`).
    pub(in crate::messages) keeps_slots: bool,
    /// Deliveries among those held that are answered, and whose slots are still in use; in the lane of owned messages.
    pub(in crate::messages) answered: Chain,
    /// The queue whose costly head it is kept free for.
    pub(in crate::messages) reserved_for: Option<u32>,
    pub(in crate::messages) registered: Mono,
    pub(in crate::messages) last_used: Option<Mono>,
    pub(in crate::messages) deliveries: u64,
    pub(in crate::messages) settled: u64,
    pub(in crate::messages) failed: u64,
    /// How often it was dropped from a queue.
    pub(in crate::messages) dropped: u64,
}

impl Worker {
    pub(in crate::messages) fn new(id: u64, name: String, slots: Slots, now: Mono) -> Self {
        Self {
            id,
            name,
            slots,
            limit: slots.as_count(),
            used: 0,
            is_link: false,
            pair: None,
            lent: 0,
            draining: false,
            leaving: false,
            consumes: Vec::new(),
            shared_rota: None,
            round: Round::default(),
            standings: Standings::default(),
            trust: WorkerTrust::default(),
            alone_with: None,
            unread: false,
            unread_bytes: 0,
            read_stamp: 0,
            must_read: false,
            turn: 0,
            held: Chain::default(),
            keeps_slots: false,
            answered: Chain::default(),
            reserved_for: None,
            registered: now,
            last_used: None,
            deliveries: 0,
            settled: 0,
            failed: 0,
            dropped: 0,
        }
    }

    pub(crate) const fn slots(&self) -> Slots {
        self.slots
    }

    /// When it was used last, as a rising number.
    pub(crate) const fn turn(&self) -> u64 {
        self.turn
    }

    /// The same worker's other connection.
    pub(crate) const fn pair(&self) -> Option<ConnId> {
        self.pair
    }

    /// Whether it is kept free for the costly head of a queue.
    pub(crate) const fn is_reserved(&self) -> bool {
        self.reserved_for.is_some()
    }

    pub(crate) const fn used(&self) -> u32 {
        self.used
    }

    pub(in crate::messages) const fn lent(&self) -> u32 {
        self.lent
    }

    pub(in crate::messages) const fn limit(&self) -> u32 {
        self.limit
    }

    /// Where in `consumes` a queue is.
    pub(in crate::messages) fn position_of(&self, queue: u32) -> Result<usize, usize> {
        self.consumes.binary_search_by_key(&queue, |consuming| consuming.queue)
    }

    /// Nobody asked it to take nothing more.
    pub(crate) const fn takes_work(&self) -> bool {
        !self.draining && !self.leaving
    }

    pub(in crate::messages) const fn has_settled(&self) -> bool {
        self.settled > 0 || self.failed > 0
    }

    /// Gets nothing for now, from none of its queues.
    pub(in crate::messages) const fn is_closed(&self) -> bool {
        self.must_read
            || self.alone_with.is_some()
            || match self.trust {
                WorkerTrust::Full => false,
                WorkerTrust::OneAtATime => !self.held.is_empty(),
                WorkerTrust::Paused => true,
            }
    }

    /// Slots it could fill now, were it allowed to. A worker with unlimited slots has a window; a link has none, because
    /// the other end says how much room there is.
    pub(crate) const fn room(&self) -> u32 {
        match self.slots {
            Slots::Unlimited if !self.is_link && self.used >= limits::UNLIMITED_WINDOW => 0,
            Slots::Unlimited => u32::MAX,
            Slots::Limited(_) => self.limit - self.used,
        }
    }

    /// The room that it shows to one of its queues.
    pub(in crate::messages) fn shown(&self, room: u32, queue: u32) -> u32 {
        let kept_for_other = self.reserved_for.is_some_and(|reserved| reserved != queue);
        if kept_for_other || self.is_closed() || self.standings.has_probe(queue) { 0 } else { room }
    }

    /// The queues it consumes on probation.
    pub(in crate::messages) fn on_probation(&self) -> impl Iterator<Item = Consuming> {
        self.standings.probing().filter_map(|queue| Some(self.consumes[self.position_of(queue).ok()?]))
    }

    /// Another number of slots. With more in use than that it gets nothing until it is below.
    pub(crate) fn resize(&mut self, slots: Slots) {
        self.slots = slots;
        self.limit = slots.as_count().max(self.used);
    }

    pub(in crate::messages) fn take(&mut self, cost: u16) {
        self.used += u32::from(cost);
        assert!(self.used <= self.limit, "0 ≤ used ≤ slots, always");
    }

    /// Has one account with another connection from now on, over which that much is in use.
    pub(in crate::messages) fn unite(&mut self, pair: ConnId, used: u32) {
        (self.pair, self.lent) = (Some(pair), used);
        self.used += used;
        self.limit = self.slots.as_count().max(self.used);
    }

    /// Has an account of its own from now on. Returns its paired connection.
    pub(in crate::messages) fn part(&mut self) -> Option<ConnId> {
        self.used -= std::mem::take(&mut self.lent);
        self.limit = self.slots.as_count().max(self.used);
        self.pair.take()
    }

    pub(in crate::messages) fn pair_took(&mut self, cost: u16) {
        self.lent += u32::from(cost);
        self.take_over(cost);
    }

    pub(in crate::messages) fn pair_gave(&mut self, cost: u16) {
        self.lent = self.lent.checked_sub(u32::from(cost)).expect("a paired connection gives back what it took");
        self.give_back(cost);
    }

    /// Takes slots of what runs there in any case, also beyond the slots it has.
    pub(in crate::messages) fn take_over(&mut self, cost: u16) {
        self.used += u32::from(cost);
        self.limit = self.slots.as_count().max(self.used);
    }

    /// A delivery of so many bytes is over, so it is not unread.
    pub(in crate::messages) const fn read_of(&mut self, stamp: u32, bytes: u64) {
        if stamp.wrapping_sub(self.read_stamp).cast_signed() > 0 {
            self.unread_bytes = self.unread_bytes.saturating_sub(bytes);
        }
    }

    pub(in crate::messages) fn give_back(&mut self, cost: u16) {
        self.used = self.used.checked_sub(u32::from(cost)).expect("0 ≤ used ≤ slots, always");
        self.limit = self.slots.as_count().max(self.used);
    }
}

/// All connections, by the index the shell gave them.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    by_index: Vec<Option<Peer>>,
    len: usize,
    /// Those that are workers, by the id of the worker. Links are not among them.
    workers: BTreeMap<u64, ConnId>,
    /// The latest id of a worker.
    worker_ids: u64,
    /// Counts the turns that workers took.
    turns: u64,
}

impl Peers {
    pub(in crate::messages) fn insert(&mut self, id: ConnId, name: String, address: String) {
        let at = id.index as usize;
        if self.by_index.len() <= at {
            self.by_index.resize_with(at + 1, || None);
        }
        assert!(self.by_index[at].is_none(), "the shell tells of a connection's end before it reuses the index");
        self.by_index[at] = Some(Peer {
            id,
            name,
            address,
            ready: false,
            is_job_worker: false,
            handles: Vec::new(),
            owned: Owned::default(),
            worker: None,
        });
        self.len += 1;
    }

    pub(in crate::messages) fn remove(&mut self, id: ConnId) -> Option<Peer> {
        let peer = self.by_index.get_mut(id.index as usize)?.take_if(|peer| peer.id == id)?;
        self.len -= 1;
        if let Some(worker) = &peer.worker {
            self.workers.remove(&worker.id);
        }
        Some(peer)
    }

    /// A connection is a worker from now on, or one under that name and with that many slots.
    pub(in crate::messages) fn enlist(
        &mut self,
        id: ConnId,
        name: String,
        slots: Slots,
        now: Mono,
    ) -> Option<&mut Worker> {
        let number = self.worker_ids + 1;
        let peer = self.get_mut(id)?;
        if let Some(worker) = &mut peer.worker {
            worker.resize(slots);
            worker.name = name;
        } else {
            peer.worker = Some(Box::new(Worker::new(number, name, slots, now)));
            self.worker_ids = number;
            self.workers.insert(number, id);
        }
        self.get_mut(id)?.worker.as_deref_mut()
    }

    /// A connection is no worker any more, if that one shall go.
    pub(crate) fn dismiss_if(&mut self, id: ConnId, goes: impl Fn(&Worker) -> bool) {
        let Some(peer) = self.get_mut(id) else { return };
        if let Some(worker) = peer.worker.take_if(|worker| goes(worker)) {
            self.workers.remove(&worker.id);
        }
    }

    /// Workers in the order of their ids, from that one on. Links are not among them.
    pub(in crate::messages) fn workers(&self, from: u64) -> impl Iterator<Item = ConnId> {
        self.workers.range(from..).map(|(_, conn)| *conn)
    }

    /// An id that no worker has or will have.
    pub(in crate::messages) const fn next_worker_id(&mut self) -> u64 {
        self.worker_ids += 1;
        self.worker_ids
    }

    /// The worker with that id.
    pub(in crate::messages) fn with_id(&self, worker: u64) -> Option<ConnId> {
        self.workers.get(&worker).copied()
    }

    /// The next turn that a worker takes.
    #[inline]
    pub(in crate::messages) const fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    #[inline]
    pub(crate) fn get(&self, id: ConnId) -> Option<&Peer> {
        self.by_index.get(id.index as usize)?.as_ref().filter(|peer| peer.id == id)
    }

    #[inline]
    pub(in crate::messages) fn get_mut(&mut self, id: ConnId) -> Option<&mut Peer> {
        self.by_index.get_mut(id.index as usize)?.as_mut().filter(|peer| peer.id == id)
    }

    #[inline]
    pub(crate) fn worker(&self, id: ConnId) -> Option<&Worker> {
        self.get(id)?.worker.as_deref()
    }

    /// A worker that rooms know to be there.
    #[inline]
    pub(crate) fn worker_mut(&mut self, id: ConnId) -> &mut Worker {
        self.get_mut(id).and_then(|peer| peer.worker.as_deref_mut()).expect("rooms hold ids of workers that are there")
    }

    pub(in crate::messages) const fn len(&self) -> usize {
        self.len
    }

    pub(in crate::messages) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.by_index.iter().flatten()
    }
}
