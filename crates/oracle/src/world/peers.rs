//! Peers: connections, registrations and ends.

use turno_engine::{Effect, Input, PeerEffect};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{Code, ConnId, Slots, limits};

use super::{World, queue_name};
use crate::message::Peer;
use crate::op::{Op, WorkerOp};
use crate::oracle::Asking;

impl World {
    pub(super) fn connect(&mut self, place: usize) {
        if self.places[place].is_some() {
            return;
        }
        self.generations += 1;
        let conn = ConnId { index: place as u32, generation: self.generations };
        self.places[place] = Some(conn);
        self.oracle.peers.insert(conn, Peer::default());
        self.step(Input::Connected { conn, name: name_of(conn), address: String::new() });
        for queue in 0..3 {
            self.open(conn, queue as u32, queue);
        }
    }

    pub(super) fn leave(&mut self, place: usize, unread: bool) {
        let Some(conn) = self.places[place].take() else { return };
        if unread {
            self.step(Input::Unread { conn });
        }
        self.oracle.free_all(conn);
        self.oracle.leaves_queues(conn);
        self.oracle.listeners.leave(conn);
        self.oracle.peers.remove(&conn);
        self.step(Input::Disconnected { conn });
        self.oracle.check_nobody_works_for(conn);
    }

    pub(super) fn rejoin(&mut self, place: usize) {
        self.leave(place, false);
        self.connect(place);
        self.apply(Op::Ready(place));
        self.apply(Op::Register(place, Slots::Limited(3)));
    }

    /// A handle that stood for another queue gives up what was asked with it.
    fn open(&mut self, conn: ConnId, handle: u32, queue: usize) {
        let peer = self.oracle.peers.get_mut(&conn).expect("who sits at a place is connected");
        let before = peer.handles.get(&handle).copied();
        let in_use = before.is_some_and(|before| peer.consumes.get(&before) == Some(&handle));
        let other = before.filter(|before| *before != queue && !in_use);
        let asked = other.filter(|before| peer.asked.get(before) == Some(&handle));
        let place = asked.map(|before| self.oracle.exclusive[before].clone());
        if let Some(before) = asked {
            self.oracle.exclusive[before].leave(conn);
        }
        let answer = self.answer_to(Input::Open { conn, seq: 0, handle, queue: queue_name(queue) });
        match answer {
            Ok(()) => assert!(!in_use && handle < limits::HANDLES_MAX, "{handle} cannot be opened"),
            Err(Code::TooManyHandles) => assert!(handle > limits::HANDLE_GAP_MAX, "{handle} is not many"),
            Err(Code::AlreadyConsuming) => assert!(in_use, "{handle} is not in use"),
            Err(Code::TooManyQueues) => assert!(self.settings.limits.queues_max <= 3, "there are few queues"),
            Err(other) => panic!("{other} is no answer to OPEN"),
        }
        if answer.is_err() {
            if let Some((before, place)) = asked.zip(place) {
                self.oracle.exclusive[before] = place;
            }
            return;
        }
        let peer = self.oracle.peers.get_mut(&conn).expect("still there");
        peer.handles.insert(handle, queue);
        if let Some(before) = other {
            peer.standings.forget(before);
        }
        if let Some(before) = asked {
            peer.asked.remove(&before);
        }
    }

    /// Runs an operation of a worker.
    pub(super) fn as_worker(&mut self, conn: ConnId, op: &Op) {
        let peer = self.oracle.peers.get_mut(&conn).expect("who sits at a place is connected");
        let known = if peer.slots.is_some() { Ok(()) } else { Err(Code::NotRegistered) };
        let seq = 0;
        match *op {
            Op::Ready(_) => {
                peer.ready = true;
                self.step(Input::Ready { conn });
            }
            Op::HasRead(_) => {
                peer.paced = false;
                self.step(Input::HasRead { conn });
            }
            Op::Open { handle, queue, .. } => self.open(conn, handle, queue),
            Op::Register(_, slots) => {
                (peer.slots, peer.closed) = (Some(slots), false);
                self.control(Input::Register { conn, seq, slots, name: String::new() }, Ok(()));
            }
            Op::Resize(_, slots) => {
                peer.slots = peer.slots.map(|_| slots);
                self.control(Input::Resize { conn, seq, slots }, known);
            }
            Op::Deregister(_) => {
                (peer.slots, peer.closed) = (None, false);
                self.oracle.leaves_queues(conn);
                self.control(Input::Deregister { conn, seq }, known);
            }
            Op::Consume { handle, exclusive, .. } => self.consume(conn, handle, exclusive),
            Op::Notify { handle, .. } => self.notify(conn, handle),
            Op::CancelQueue { handle, .. } => self.cancel_queue(conn, handle),
            Op::PeerClosing(_) => {
                peer.closed |= known.is_ok();
                self.step(Input::PeerClosing { conn });
            }
            _ => unreachable!("only a worker's operations come here"),
        }
    }

    /// The queue of a handle, for a worker.
    fn queue_of(&self, conn: ConnId, handle: u32) -> Result<usize, Code> {
        let peer = &self.oracle.peers[&conn];
        peer.slots.ok_or(Code::NotRegistered)?;
        peer.handles.get(&handle).copied().ok_or(Code::UnknownHandle)
    }

    fn consume(&mut self, conn: ConnId, handle: u32, exclusive: bool) {
        let queue = self.queue_of(conn, handle).and_then(|queue| {
            let has = self.oracle.exclusive[queue].held_by(conn).is_some();
            if has { Err(Code::AlreadyConsuming) } else { Ok(queue) }
        });
        let input = Input::Consume { conn, seq: 0, handle, exclusive };
        match queue {
            Ok(queue) => {
                self.oracle.asking = Some(Asking { conn, queue, handle, exclusive });
                self.step(input);
                assert!(self.oracle.asking.is_none(), "{handle}: CONSUME is answered");
                let peer = &self.oracle.peers[&conn];
                let heard = peer.consumes.contains_key(&queue) || peer.asked.contains_key(&queue);
                // A worker may be dropped again in the same breath.
                assert!(heard || peer.slots.is_some(), "{handle}: CONSUME is answered well");
            }
            Err(code) => self.control(input, Err(code)),
        }
    }

    fn notify(&mut self, conn: ConnId, handle: u32) {
        let queue = self.queue_of(conn, handle).and_then(|queue| {
            let waits = self.oracle.exclusive[queue].asks_to_be_told(conn);
            if waits { Ok(queue) } else { Err(Code::NotRefused) }
        });
        let input = Input::QueueAvailableNotify { conn, seq: 0, handle };
        match queue {
            Ok(queue) => {
                if let Some(peer) = self.oracle.peers.get_mut(&conn) {
                    peer.asked.insert(queue, handle);
                }
                let effects = self.step(input);
                assert!(
                    !effects.iter().any(|effect| matches!(effect, Effect::Peer(PeerEffect::Answer { .. }))),
                    "it may wait"
                );
            }
            Err(code) => self.control(input, Err(code)),
        }
    }

    fn cancel_queue(&mut self, conn: ConnId, handle: u32) {
        let expected = self.queue_of(conn, handle).and_then(|queue| {
            let place = &mut self.oracle.exclusive[queue];
            if place.held_by(conn).is_none() && !place.waits(conn) {
                return Err(Code::NotFound);
            }
            place.leave(conn);
            let peer = self.oracle.peers.get_mut(&conn).expect("a worker is connected");
            peer.asked.remove(&queue);
            if peer.consumes.remove(&queue).is_some() {
                peer.standings.leave(queue);
            }
            Ok(())
        });
        self.control(Input::CancelQueue { conn, seq: 0, handle }, expected);
    }

    /// Runs an admin's command about a worker, if it is one.
    pub(super) fn manage(&mut self, place: usize, what: WorkerOp) {
        let Some(conn) = self.places[place] else { return };
        let Some(peer) = self.oracle.peers.get_mut(&conn).filter(|peer| peer.slots.is_some()) else { return };
        let (worker, mut expected) = (name_of(conn), None);
        let call = match what {
            WorkerOp::Drain => {
                peer.closed = true;
                AdminCall::WorkerDrain { worker }
            }
            WorkerOp::Resume => {
                peer.closed = false;
                AdminCall::WorkerResume { worker }
            }
            WorkerOp::Stop { now } => {
                peer.closed = true;
                if now {
                    self.oracle.free_all(conn);
                }
                AdminCall::WorkerStop { worker, now }
            }
            WorkerOp::Resize(slots) => {
                if matches!(slots, Slots::Limited(slots) if slots > limits::SLOTS_MAX) {
                    expected = Some(Code::BadSlots);
                } else {
                    peer.slots = Some(slots);
                }
                AdminCall::WorkerResize { worker, slots }
            }
        };
        assert_eq!(self.admin(call).err(), expected, "the worker is there");
    }
}

fn name_of(conn: ConnId) -> String {
    format!("p{}g{}", conn.index, conn.generation)
}
