//! Whose turn it is in a queue: its own rota and those of its crews, seen as one.

use turno_proto::model::ConnId;

use crate::messages::Messages;
use crate::messages::workers::crew::Seat;
use crate::messages::workers::peer::Consuming;

impl Messages {
    /// The consumer of that queue that takes a message of that cost, by its number.
    pub(in crate::messages) fn pick(&self, queue: u32, cost: u32) -> Option<u32> {
        let place = self.queues.at(queue);
        let own = self.settings.policy.pick(&place.rota, cost);
        if place.crews.is_empty() {
            return own;
        }
        let own = own.map(|number| place.consumer(number).worker);
        let of_crews = place.crews.iter().filter_map(|crew| {
            let crew = &self.crews[*crew];
            Some(crew.member(self.settings.policy.pick(&crew.rota, cost)?))
        });
        // A worker that is kept for this queue shows no room to its crew.
        let kept = place.reserved.filter(|worker| self.room_in(*worker, queue) >= cost);
        let worker = of_crews.chain(own).chain(kept).min_by_key(|worker| self.rank(*worker))?;
        Some(self.number_in(worker, queue))
    }

    /// All consumers of a queue in the order of their turns.
    pub(in crate::messages) fn turns(&self, queue: u32) -> Vec<ConnId> {
        let place = self.queues.at(queue);
        let own = place.rota.iter().map(|(number, _)| place.consumer(number).worker);
        let of_crews = place.crews.iter().flat_map(|crew| {
            let crew = &self.crews[*crew];
            crew.rota.iter().map(|(number, _)| crew.member(number))
        });
        let mut workers: Vec<ConnId> = own.chain(of_crews).collect();
        if !place.crews.is_empty() {
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
        self.find_crew(worker);
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
        if let Some(twin) = record.twin {
            // One that is kept free for a costly message is so for tasks, too.
            self.job_workers.push(twin);
        }
        let has_links = !self.links.is_empty();
        if let Some(Seat { crew, number }) = record.crew {
            if has_links {
                self.links.crew_changed(crew);
            }
            let free = if record.reserved_for.is_none() && !record.is_closed() { room } else { 0 };
            self.crews[crew].rota.show(number, free, to_bottom);
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
        for crew in &place.crews {
            self.crews[*crew].note(queue, !place.backlog.is_empty());
        }
        if place.backlog.has_cold() {
            self.loads.look_at(queue);
        }
    }

    /// The worker, already among the queue's consumers, takes its turns there from now on.
    pub(in crate::messages) fn join_turns(&mut self, worker: ConnId, Consuming { queue, number }: Consuming) {
        let record = self.peers.worker(worker).expect("a worker that consumes");
        match record.crew {
            _ if record.standings.is_probing(queue) => self.queues.at_mut(queue).rota.insert(number, 0),
            Some(seat) => {
                let crew = self.alone(worker, seat);
                self.enlist(crew, queue);
            }
            None if record.consumes.len() <= self.settings.own_rotas_max => {
                self.queues.at_mut(queue).rota.insert(number, 0)
            }
            None => {
                let in_crew = |at: &Consuming| !record.standings.is_probing(at.queue);
                let all: Vec<Consuming> = record.consumes.iter().copied().filter(in_crew).collect();
                let crew = self.crews.create();
                let number = self.crews[crew].insert(worker, 0);
                self.peers.worker_mut(worker).crew = Some(Seat { crew, number });
                for Consuming { queue: other, number } in all {
                    if other != queue {
                        self.queues.at_mut(other).rota.remove(number);
                    }
                    self.enlist(crew, other);
                }
            }
        }
    }

    /// The worker, still among the queue's consumers, takes no more turns there.
    pub(in crate::messages) fn leave_turns(&mut self, worker: ConnId, Consuming { queue, number }: Consuming) {
        let record = self.peers.worker(worker).filter(|record| !record.standings.is_probing(queue));
        match record.and_then(|record| record.crew) {
            Some(seat) => {
                let crew = self.alone(worker, seat);
                self.crews[crew].drop(queue);
                self.queues.at_mut(queue).crews.retain(|other| *other != crew);
            }
            None => self.queues.at_mut(queue).rota.remove(number),
        }
    }

    /// The worker leaves its crew, if it has one, with all its queues.
    pub(in crate::messages) fn leave_crew(&mut self, worker: ConnId) {
        let Some(record) = self.peers.get_mut(worker).and_then(|peer| peer.worker.as_deref_mut()) else { return };
        let Some(seat) = record.crew.take() else { return };
        if let Some(queues) = self.crews.leave(seat) {
            for queue in queues {
                self.queues.at_mut(queue).crews.retain(|other| *other != seat.crew);
            }
        }
    }

    /// The worker's queues are about to change: a crew of its own, which nobody joins meanwhile.
    fn alone(&mut self, worker: ConnId, seat: Seat) -> u32 {
        if self.crews[seat.crew].rota.len() == 1 {
            self.crews.close(seat.crew);
            return seat.crew;
        }
        let free = self.crews[seat.crew].rota.free(seat.number);
        let queues = self.crews[seat.crew].queues.clone();
        self.leave_crew(worker);
        let crew = self.crews.create();
        let number = self.crews[crew].insert(worker, free);
        self.peers.worker_mut(worker).crew = Some(Seat { crew, number });
        for queue in queues {
            self.enlist(crew, queue);
        }
        crew
    }

    /// A worker with a crew to itself is used, so it has chosen its queues: it joins those that chose the same.
    fn find_crew(&mut self, worker: ConnId) {
        let Some(Seat { crew: own, .. }) = self.peers.worker(worker).and_then(|record| record.crew) else { return };
        if self.crews[own].is_open() {
            return;
        }
        let Some(other) = self.crews.equal_to(own) else { return self.crews.open(own) };
        self.leave_crew(worker);
        let number = self.crews[other].insert(worker, 0);
        self.peers.worker_mut(worker).crew = Some(Seat { crew: other, number });
    }

    fn enlist(&mut self, crew: u32, queue: u32) {
        let place = self.queues.at_mut(queue);
        place.crews.push(crew);
        self.crews[crew].add(queue, !place.backlog.is_empty());
    }
}
