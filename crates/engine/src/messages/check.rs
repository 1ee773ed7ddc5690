//! Invariants of messages.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::{ConnId, Cost, Slots, limits};

use crate::jobs::Jobs;
use crate::messages::Messages;
use crate::messages::queues::priority_level::{COLD_BYTES, Cold};
use crate::messages::stats::bytes_of;
use crate::messages::table::chain::Lane;
use crate::messages::table::message::{Flags, Message, MessageStage};
use crate::messages::workers::peer::{Consuming, Worker};

impl Messages {
    /// Asserts every invariant that the state of queues can show.
    pub(crate) fn check(&self, jobs: &Jobs) {
        assert!(self.agenda.is_empty(), "what follows from an input is done before the next one");
        self.timers.check();
        self.check_messages();
        self.check_broadcasts();
        self.check_shared_rotas();
        self.check_losses();
        self.loads.check();
        self.check_exclusives();
        self.check_links();
        for (number, _) in self.queues.after(None) {
            self.check_queue(number);
        }
        for peer in self.peers.iter() {
            let owned: Vec<u32> = peer.owned.iter(&self.messages).collect();
            assert_eq!(owned.len(), peer.owned.len() as usize, "a caller's list is as long as it says");
            peer.owned.check(&self.messages);
            for index in owned {
                let origin = self.messages[index].origin;
                assert_eq!(origin.map(|origin| origin.conn()), Some(peer.id), "a caller's list holds its own");
            }
            if let Some(worker) = &peer.worker {
                self.check_worker(peer.id, peer.ready, worker, jobs);
            }
        }
        let is_listed =
            |peer: &&crate::messages::workers::peer::Peer| peer.worker.as_deref().is_some_and(|worker| !worker.is_link);
        let listed = self.peers.iter().filter(is_listed).count();
        assert_eq!(listed, self.peers.workers(0).count(), "every worker has an id, and no one else");
    }

    fn check_messages(&self) {
        let (mut ready, mut in_flight, mut dead, mut bytes, mut timers, mut owned) = (0, 0, 0, 0, 0, 0);
        let (mut storing, mut durable, mut broadcasts, mut answered, mut delayed) = (0, 0, 0, 0, 0);
        for (index, message) in self.messages.iter() {
            match message.state {
                MessageStage::Waiting => ready += 1,
                MessageStage::Held { .. } | MessageStage::Asked { .. } | MessageStage::Stopping { .. } => {
                    in_flight += 1
                }
                MessageStage::Answered { .. } => {
                    in_flight += 1;
                    answered += 1;
                    assert!(message.origin.is_none() && message.timer.is_none(), "nobody waits for what is answered");
                }
                MessageStage::Broadcast => broadcasts += 1,
                MessageStage::Storing { .. } => storing += 1,
                MessageStage::Delayed { .. } => delayed += 1,
                MessageStage::Dead => {
                    dead += 1;
                    assert!(self.failures.contains_key(&index), "a dead letter says what its last failure was");
                }
            }
            durable += u64::from(message.flags.has(Flags::DURABLE) && !message.flags.has(Flags::ENDED));
            bytes += bytes_of(message.bytes.len()) + self.failure_bytes(index);
            timers += usize::from(message.timer.is_some());
            owned += usize::from(message.origin.is_some());
            assert!(
                message.flags.has(Flags::FORWARDED) || message.attempts <= message.attempts_max(),
                "attempts stay within the limit"
            );
            let beside = matches!(
                message.state,
                MessageStage::Broadcast | MessageStage::Asked { .. } | MessageStage::Stopping { .. }
            );
            assert!(message.cost != Cost::Broadcast || beside, "every delivery takes a slot, but those of broadcasts");
        }
        let waits = |message: &Message| message.state == MessageStage::Waiting;
        let abandoned = self.messages.iter().filter(|(_, one)| waits(one) && one.flags.has(Flags::ABANDONED));
        let abandoned: BTreeSet<(u32, u64)> = abandoned.map(|(index, message)| (index, message.serial)).collect();
        assert!(abandoned.is_subset(&self.deferred.ends().collect()), "what lost its caller will end");
        self.check_storing(storing);
        let cold: u64 = self.queues.after(None).map(|(_, queue)| queue.backlog.cold_len()).sum();
        let delayed_cold = self.check_delays();
        assert_eq!(delayed + delayed_cold, self.stats.delayed, "a delayed message is in its queue's list");
        assert_eq!(durable + cold + delayed_cold, self.durable.len, "the count of durable messages");
        let all = ready + in_flight + dead + storing + broadcasts + delayed;
        assert_eq!(all, self.messages.len() as u64, "every message is in one place");
        assert_eq!(ready + cold, self.stats.ready, "the count of waiting messages");
        assert_eq!(in_flight, self.stats.in_flight, "the count of deliveries");
        assert_eq!(answered, self.stats.answered, "the count of answered deliveries");
        assert_eq!(dead, self.stats.dead, "the count of dead letters");
        let dead_bytes: u64 = self.queues.after(None).map(|(_, queue)| queue.dead_bytes).sum();
        assert_eq!(dead_bytes, self.stats.dead_bytes, "the count of dead letters' bytes");
        assert_eq!(dead, self.failures.len() as u64, "failures belong to dead letters");
        assert_eq!(
            bytes + cold * COLD_BYTES + delayed_cold * limits::DELAYED_BYTES + self.dedup.bytes(),
            self.stats.bytes,
            "the count of bytes in memory"
        );
        assert_eq!(timers, self.timers.len(), "every timer belongs to a message");
        let listed: usize = self.peers.iter().map(|peer| peer.owned.len() as usize).sum();
        assert_eq!(owned, listed, "every request with a caller is in its caller's list");
    }

    /// Asserts that so many messages are on their way to the disk, and nothing else is waited for.
    fn check_storing(&self, storing: u64) {
        assert_eq!(
            storing,
            self.durable.indexes().count() as u64,
            "what waits for the disk is known to the room that waits"
        );
        assert!(self.durable.waits_for_sent_groups(), "nothing waits for a group that was not sent to the disk");
        for index in self.durable.indexes() {
            assert!(
                matches!(self.messages[index].state, MessageStage::Storing { .. }),
                "only what is being stored is waited for"
            );
        }
        for serial in self.dedup.check() {
            let on_its_way = self.durable.indexes().any(|index| self.messages[index].serial == serial);
            assert!(on_its_way, "only a message on its way to the disk is waited for");
        }
    }

    fn failure_bytes(&self, index: u32) -> u64 {
        self.failures.get(&index).map_or(0, |failure| failure.len() as u64)
    }

    fn check_broadcasts(&self) {
        let (mut parts, mut listed) = (0, 0);
        for (index, message) in self.messages.iter() {
            assert_eq!(
                message.state == MessageStage::Broadcast,
                self.broadcasts.contains_key(&index),
                "a broadcast has its tally, and nothing else has"
            );
            parts += usize::from(matches!(message.state, MessageStage::Asked { .. }));
        }
        for (number, tally) in &self.broadcasts {
            assert!(tally.adds_up(), "every consumer of a broadcast counts once");
            assert!(!tally.parts.is_empty(), "a broadcast that nobody has any more is over");
            for index in tally.parts.iter(&self.messages, Lane::Owned) {
                let MessageStage::Asked { broadcast, .. } = self.messages[index].state else {
                    panic!("a part is asked")
                };
                assert_eq!(broadcast, *number, "a part belongs to its broadcast");
                listed += 1;
            }
        }
        assert_eq!(parts, listed, "every part is in the list of its broadcast");
    }

    fn check_shared_rotas(&self) {
        self.shared_rotas.check();
        for (number, shared_rota) in self.shared_rotas.iter() {
            for queue in &shared_rota.queues {
                let place = self.queues.at(*queue);
                assert!(place.shared_rotas.contains(&number), "a queue knows its shared rotas");
                let waits = !place.backlog.is_empty();
                assert_eq!(shared_rota.waiting.contains(queue), waits, "a shared rota knows where something waits");
            }
        }
    }

    fn check_queue(&self, number: u32) {
        let queue = self.queues.at(number);
        queue.rota.check();
        let in_shared_rotas: usize =
            queue.shared_rotas.iter().map(|shared_rota| self.shared_rotas[*shared_rota].rota.len()).sum();
        assert_eq!(queue.rota.len() + in_shared_rotas, queue.consumers_len(), "every consumer is in one rota");
        let is_short = self.loads.is_short(number);
        let loads = self.drain.is_none() && !is_short;
        queue.backlog.check(&self.messages, loads.then_some(self.settings.hot_bytes));
        let stands = queue.in_flight + queue.returning == 0 && queue.backlog.waits_for_cold();
        assert!(self.drain.is_some() || !stands, "a queue without memory goes on with one message");
        let of_queue = self.messages.iter().filter(|(_, message)| message.queue == number);
        let (mut waiting, mut held, mut bytes, mut storing, mut dead_bytes) = (0, 0, 0, 0, 0);
        for priority in queue.backlog.priorities_with_cold() {
            let line = queue.backlog.level(priority);
            waiting += line.cold().count() as u32;
            bytes += line.cold().map(Cold::bytes).sum::<u64>();
            // Those that ended on their way are still awaited.
            let awaited = self.loads.turns(number, priority).filter(|serial| line.position(*serial).is_some());
            assert!(line.loading().map(Cold::serial).eq(awaited), "what a line waits for is being loaded, in order");
        }
        let (delayed, delayed_bytes) = self.check_delayed(number);
        bytes += delayed_bytes;
        let mut found = 0;
        for (index, message) in of_queue {
            found += u64::from(matches!(message.state, MessageStage::Delayed { .. }));
            waiting += u32::from(message.state == MessageStage::Waiting);
            held += u32::from(message.holder().is_some());
            storing += u32::from(matches!(message.state, MessageStage::Storing { .. }));
            let its_bytes = bytes_of(message.bytes.len()) + self.failure_bytes(index);
            bytes += its_bytes;
            dead_bytes += if message.state == MessageStage::Dead { its_bytes } else { 0 };
        }
        assert_eq!(dead_bytes, queue.dead_bytes, "the bytes of a queue's dead letters are counted");
        assert_eq!(found, delayed, "a queue's delayed messages are in its list");
        assert_eq!(waiting, queue.backlog.len(), "waiting messages are in their queue's backlog");
        assert_eq!(held, queue.in_flight, "a queue's deliveries are counted");
        assert_eq!(storing, queue.storing, "a queue knows how many of its messages wait for the disk");
        assert_eq!(bytes, queue.bytes, "a queue's bytes are counted");
        let handles = self.peers.iter().flat_map(|peer| peer.handles()).filter(|queue| *queue == number).count();
        assert_eq!(handles, queue.handles as usize, "a queue knows how many handles point at it");
        assert!(!queue.is_idle(), "a queue that nobody uses is forgotten");
        self.check_no_one_waits_beside_a_free_slot(number);
        if let Some(worker) = queue.reserved {
            let reserved_for = self.peers.worker(worker).and_then(|worker| worker.reserved_for);
            assert_eq!(reserved_for, Some(number), "a reservation is known on both sides");
            let head = queue.backlog.head().expect("a reservation is for a head that waits");
            let cost = u32::from(self.messages[head].cost.slots());
            assert!(cost > 1 || self.losses.goes_alone(head), "only a costly head, or one that goes alone, reserves");
            let slots = self.peers.worker(worker).map_or(0, |worker| worker.slots.as_count());
            assert!(slots >= cost, "the worker kept for a head is large enough for it");
            assert!(self.drain.is_none(), "nobody is kept for anything in a drain");
        }
    }

    /// I11: no message waits while a worker has room for it. Behind one that only waits for its end it may, for a moment.
    fn check_no_one_waits_beside_a_free_slot(&self, number: u32) {
        let queue = self.queues.at(number);
        if self.drain.is_none()
            && let Some(head) = queue.backlog.head()
            && !self.messages[head].flags.has(Flags::ABANDONED)
        {
            let taker = self.pick_for(number, head).map(|number| queue.consumer(number).worker);
            assert_eq!(taker, None, "{}: the head waits beside a free slot", queue.name);
        }
    }

    fn check_worker(&self, conn: ConnId, ready: bool, worker: &Worker, jobs: &Jobs) {
        let held: Vec<u32> = worker.held.iter(&self.messages, Lane::Place).collect();
        let mut used = 0;
        for index in &held {
            assert_eq!(self.messages[*index].holder(), Some(conn), "a worker holds what says so");
            used += u32::from(self.messages[*index].slots_in_use());
        }
        used += jobs.slots_of_tasks(conn) + worker.lent();
        assert_eq!(used, worker.used(), "slots in use are the cost of what is held");
        if let Some(other) = worker.pair {
            let pair = self.peers.worker(other).expect("a paired connection is there");
            assert_eq!((pair.pair, pair.used()), (Some(conn), worker.used()), "paired connections have one account");
        }
        assert!(
            worker.pair.is_some() || worker.lent() == 0,
            "only a paired connection takes slots of another's account"
        );
        assert!(worker.used() <= worker.limit(), "0 ≤ used ≤ slots, always");
        assert_eq!(worker.limit(), worker.slots.as_count().max(worker.used()), "the limit follows the slots");
        assert!(!(worker.leaving && held.is_empty()), "a worker that left and holds nothing is forgotten");
        let mut seen = BTreeMap::new();
        for &Consuming { queue, number } in &worker.consumes {
            assert_eq!(seen.insert(queue, number), None, "a worker is in a queue once");
            let place = self.queues.at(queue);
            assert_eq!(place.consumer(number).worker, conn, "a consumer's number is its own");
            let kept = worker.reserved_for.is_some_and(|reserved| reserved != queue);
            let probes = worker.standings.has_probe(queue);
            let open = ready && !worker.draining && !worker.leaving && !kept && !probes && !worker.is_closed();
            let room = match worker.slots {
                Slots::Unlimited if worker.used() >= limits::UNLIMITED_WINDOW => 0,
                Slots::Unlimited => u32::MAX,
                Slots::Limited(count) => count.saturating_sub(worker.used()),
            };
            if worker.shared_rota.is_none() || worker.standings.is_probing(queue) {
                assert_eq!(place.rota.free(number), if open { room } else { 0 }, "the rota shows a worker's true room");
            }
            assert_eq!(self.room_in(conn, queue), if open { room } else { 0 }, "a worker's room is told truly");
        }
        if let Some(seat) = worker.shared_rota {
            let shared_rota = &self.shared_rotas[seat.shared_rota];
            assert_eq!(shared_rota.member(seat.number), conn, "a seat is its worker's own");
            let settled = seen.keys().filter(|queue| !worker.standings.is_probing(**queue));
            assert!(shared_rota.queues.iter().eq(settled), "a shared rota consumes what its members do, probes apart");
            let open =
                ready && !worker.draining && !worker.leaving && worker.reserved_for.is_none() && !worker.is_closed();
            let room = if open { worker.room() } else { 0 };
            assert_eq!(shared_rota.rota.free(seat.number), room, "a shared rota's rota shows a worker's true room");
        }
        self.check_keeping(conn, worker);
        worker.standings.check(|queue| worker.position_of(queue).is_ok(), |probe| held.contains(&probe));
        assert!(worker.consumes.is_sorted_by_key(|consuming| consuming.queue), "queues are in order");
    }
}
