//! The next worker of a queue, over its own rota and its shared rotas.

use turno_proto::model::ConnId;

use crate::messages::Messages;
use crate::messages::workers::peer::Consuming;
use crate::messages::workers::shared_rota::Seat;

impl Messages {
    /// The consumer of that queue that takes a message of that cost, by its number.
    pub(in crate::messages) fn pick(&self, queue: u32, cost: u32) -> Option<u32> {
        let place = self.queues.at(queue);
        let own = self.settings.policy.pick(&place.rota, cost);
        if place.shared_rotas.is_empty() {
            return own;
        }
        let own = own.map(|number| place.consumer(number).worker);
        let of_shared_rotas = place.shared_rotas.iter().filter_map(|shared_rota| {
            let shared_rota = &self.shared_rotas[*shared_rota];
            Some(shared_rota.member(self.settings.policy.pick(&shared_rota.rota, cost)?))
        });
        // A worker that is kept for this queue shows no room to its shared rota.
        let kept = place.reserved.filter(|worker| self.room_in(*worker, queue) >= cost);
        let worker = of_shared_rotas.chain(own).chain(kept).min_by_key(|worker| self.rank(*worker))?;
        Some(self.number_in(worker, queue))
    }

    /// All consumers of a queue in the order of their turns.
    pub(in crate::messages) fn turns(&self, queue: u32) -> Vec<ConnId> {
        let place = self.queues.at(queue);
        let own = place.rota.iter().map(|(number, _)| place.consumer(number).worker);
        let of_shared_rotas = place.shared_rotas.iter().flat_map(|shared_rota| {
            let shared_rota = &self.shared_rotas[*shared_rota];
            shared_rota.rota.iter().map(|(number, _)| shared_rota.member(number))
        });
        let mut workers: Vec<ConnId> = own.chain(of_shared_rotas).collect();
        if !place.shared_rotas.is_empty() {
            workers.sort_by_key(|worker| self.rank(*worker));
        }
        workers
    }

    /// Lower comes first.
    fn rank(&self, worker: ConnId) -> u64 {
        let record = self.peers.worker(worker).expect("consumers are workers");
        if self.settings.policy.moves_to_bottom() { record.turn } else { record.id }
    }

    pub(in crate::messages) fn number_in(&self, worker: ConnId, queue: u32) -> u32 {
        let record = self.peers.worker(worker).expect("consumers are workers");
        record.consumes[record.position_of(queue).expect("a consumer consumes its queue")].number
    }

    /// The room a worker has for a queue's messages.
    pub(in crate::messages) fn room_in(&self, worker: ConnId, queue: u32) -> u32 {
        let Some(peer) = self.peers.get(worker) else { return 0 };
        let Some(record) = &peer.worker else { return 0 };
        let kept_for_other = record.reserved_for.is_some_and(|reserved| reserved != queue);
        let closed = kept_for_other || record.is_closed() || record.standings.has_probe(queue);
        if peer.ready && record.takes_work() && !closed { record.room() } else { 0 }
    }

    /// The worker was used: it goes to the bottom of its rotas, with the room it has left.
    pub(in crate::messages) fn turn_taken(&mut self, worker: ConnId) {
        self.find_shared_rota(worker);
        self.show(worker, self.settings.policy.moves_to_bottom());
    }

    pub(in crate::messages) fn goes_to_bottom(&mut self, worker: ConnId) {
        self.show(worker, true);
    }

    /// Tells every rota the worker is in how much room it has there.
    pub(crate) fn show_room(&mut self, worker: ConnId) {
        self.show(worker, false);
    }

    /// The same; `to_bottom`: it goes to the bottom of them, too.
    fn show(&mut self, worker: ConnId, to_bottom: bool) {
        let turn = to_bottom.then(|| self.peers.next_turn());
        let Some(peer) = self.peers.get_mut(worker) else { return };
        let Some(record) = &mut peer.worker else { return };
        record.turn = turn.unwrap_or(record.turn);
        let room = if peer.ready && record.takes_work() { record.room() } else { 0 };
        if let Some(pair) = record.pair {
            // One that is kept free for a costly message is so for tasks, too.
            self.job_workers.push(pair);
        }
        let has_links = !self.links.is_empty();
        if let Some(Seat { shared_rota, number }) = record.shared_rota {
            if has_links {
                self.links.shared_rota_changed(shared_rota);
            }
            let free = if record.reserved_for.is_none() && !record.is_closed() { room } else { 0 };
            self.shared_rotas[shared_rota].rota.show(number, free, to_bottom);
            if !record.standings.is_empty() {
                self.show_on_probation(worker, room, to_bottom);
            }
            return;
        }
        for &Consuming { queue, number } in &record.consumes {
            let place = self.queues.at_mut(queue);
            place.rota.show(number, record.shown(room, queue), to_bottom);
            if has_links {
                self.links.queue_changed(&place.name);
            }
        }
    }

    /// A queue's backlog changed: it may have become empty, or be so no more, or be short of messages at hand.
    pub(in crate::messages) fn note_waiting(&mut self, queue: u32) {
        let Some(place) = self.queues.get(queue) else { return };
        if !self.links.is_empty() {
            self.links.queue_changed(&place.name);
        }
        for shared_rota in &place.shared_rotas {
            self.shared_rotas[*shared_rota].note(queue, !place.backlog.is_empty());
        }
        if place.backlog.has_cold() {
            self.loads.look_at(queue);
        }
    }

    /// The worker, already among the queue's consumers, takes its turns there from now on.
    pub(in crate::messages) fn join_turns(&mut self, worker: ConnId, Consuming { queue, number }: Consuming) {
        let record = self.peers.worker(worker).expect("a worker that consumes");
        match record.shared_rota {
            _ if record.standings.is_probing(queue) => self.queues.at_mut(queue).rota.insert(number, 0),
            Some(seat) => {
                let shared_rota = self.alone(worker, seat);
                self.enlist(shared_rota, queue);
            }
            None if record.consumes.len() <= self.settings.own_rotas_max => {
                self.queues.at_mut(queue).rota.insert(number, 0)
            }
            None => {
                let in_shared_rota = |at: &Consuming| !record.standings.is_probing(at.queue);
                let all: Vec<Consuming> = record.consumes.iter().copied().filter(in_shared_rota).collect();
                let shared_rota = self.shared_rotas.create();
                let number = self.shared_rotas[shared_rota].insert(worker, 0);
                self.peers.worker_mut(worker).shared_rota = Some(Seat { shared_rota, number });
                for Consuming { queue: other, number } in all {
                    if other != queue {
                        self.queues.at_mut(other).rota.remove(number);
                    }
                    self.enlist(shared_rota, other);
                }
            }
        }
    }

    /// The worker, still among the queue's consumers, takes no more turns there.
    pub(in crate::messages) fn leave_turns(&mut self, worker: ConnId, Consuming { queue, number }: Consuming) {
        let record = self.peers.worker(worker).filter(|record| !record.standings.is_probing(queue));
        match record.and_then(|record| record.shared_rota) {
            Some(seat) => {
                let shared_rota = self.alone(worker, seat);
                self.shared_rotas[shared_rota].drop(queue);
                self.queues.at_mut(queue).shared_rotas.retain(|other| *other != shared_rota);
            }
            None => self.queues.at_mut(queue).rota.remove(number),
        }
    }

    /// The worker leaves its shared rota, if it has one, with all its queues.
    pub(in crate::messages) fn leave_shared_rota(&mut self, worker: ConnId) {
        let Some(record) = self.peers.get_mut(worker).and_then(|peer| peer.worker.as_deref_mut()) else { return };
        let Some(seat) = record.shared_rota.take() else { return };
        if let Some(queues) = self.shared_rotas.leave(seat) {
            for queue in queues {
                self.queues.at_mut(queue).shared_rotas.retain(|other| *other != seat.shared_rota);
            }
        }
    }

    /// The worker's queues are about to change: a shared rota of its own, which nobody joins meanwhile.
    fn alone(&mut self, worker: ConnId, seat: Seat) -> u32 {
        if self.shared_rotas[seat.shared_rota].rota.len() == 1 {
            self.shared_rotas.close(seat.shared_rota);
            return seat.shared_rota;
        }
        let free = self.shared_rotas[seat.shared_rota].rota.free(seat.number);
        let queues = self.shared_rotas[seat.shared_rota].queues.clone();
        self.leave_shared_rota(worker);
        let shared_rota = self.shared_rotas.create();
        let number = self.shared_rotas[shared_rota].insert(worker, free);
        self.peers.worker_mut(worker).shared_rota = Some(Seat { shared_rota, number });
        for queue in queues {
            self.enlist(shared_rota, queue);
        }
        shared_rota
    }

    /// A worker with a shared rota to itself is used, so it has chosen its queues: it joins those that chose the same.
    fn find_shared_rota(&mut self, worker: ConnId) {
        let Some(Seat { shared_rota: own, .. }) = self.peers.worker(worker).and_then(|record| record.shared_rota)
        else {
            return;
        };
        if self.shared_rotas[own].is_open() {
            return;
        }
        let Some(other) = self.shared_rotas.equal_to(own) else { return self.shared_rotas.open(own) };
        self.leave_shared_rota(worker);
        let number = self.shared_rotas[other].insert(worker, 0);
        self.peers.worker_mut(worker).shared_rota = Some(Seat { shared_rota: other, number });
    }

    fn enlist(&mut self, shared_rota: u32, queue: u32) {
        let place = self.queues.at_mut(queue);
        place.shared_rotas.push(shared_rota);
        self.shared_rotas[shared_rota].add(queue, !place.backlog.is_empty());
    }
}
