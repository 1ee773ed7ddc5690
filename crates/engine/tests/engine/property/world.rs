//! The engine, its peers and its clock, moved by random operations.

use turno_engine::{
    CallerWord, DiskEffect, Effect, Engine, Input, NativeEffect, Outgoing, PeerEffect, Settings, WorkerWord,
};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::Reason;
use turno_proto::model::{Code, ConnId, DedupId, Delivery, Durability, Mono, Payload, Slots};

use super::disk::Disk;
use super::oracle::{Kind, Message, Oracle, Peer, Standings};
use super::{IN_FLIGHT_MAX, Op, Options, PLACES, QUEUES, Word};
use crate::seen::admin_answer;

pub(super) const ADMIN: ConnId = ConnId { index: 1_000, generation: 1 };
pub(super) const NAMES: [&str; QUEUES] = ["a", "b", "c"];
/// The deadline of a request that names none.
pub(super) const USUAL_MS: u32 = 30_000;

pub(super) struct World {
    pub(super) settings: Settings,
    pub(super) engine: Engine,
    pub(super) disk: Disk,
    pub(super) oracle: Oracle,
    pub(super) clock: Mono,
    /// The latest time the engine was told.
    pub(super) now: Mono,
    pub(super) places: [Option<ConnId>; PLACES],
    pub(super) volatile: [bool; QUEUES],
    generations: u32,
    pub(super) seqs: u32,
}

impl World {
    /// Four workers, two clients, three queues.
    pub(super) fn new(settings: Settings) -> Self {
        let clock = Mono::from_millis(1_000);
        let mut world = Self {
            engine: Engine::new(settings.clone(), clock),
            settings,
            disk: Disk::default(),
            oracle: Oracle::default(),
            clock,
            now: clock,
            places: [None; PLACES],
            volatile: [false; QUEUES],
            generations: 0,
            seqs: 0,
        };
        world.gather();
        world
    }

    fn gather(&mut self) {
        for place in 0..PLACES {
            self.apply(Op::Connect(place));
            self.apply(Op::Ready(place));
        }
        for place in 0..4 {
            self.apply(Op::Register(place, 2));
            for queue in 0..QUEUES {
                self.apply(Op::Consume(place, queue));
            }
        }
    }

    /// Another broker takes over; without a disk there would be nothing left of this one.
    fn restart(&mut self) {
        let Some(store) = &mut self.settings.store else { return };
        store.last_serial = self.disk.last_serial;
        self.oracle.restart();
        self.places = [None; PLACES];
        self.disk.loads.clear();
        self.now = self.now.max(self.clock);
        self.engine = Engine::new(self.settings.clone(), self.now);
        self.engine.recover_dedup(self.disk.remembered.values().copied().collect());
        for (queue, settings) in &self.disk.settings {
            self.engine.recover_queue(queue.clone(), *settings);
        }
        for survivor in self.disk.kept.values() {
            self.engine.recover(survivor.clone());
            self.engine.sanity_check();
        }
        self.gather();
    }

    pub(super) fn step(&mut self, input: Input) -> Vec<Effect> {
        self.now = self.now.max(self.clock);
        let (mut effects, mut done) = (Vec::new(), 0);
        let mut next = Some(input);
        while let Some(input) = next {
            self.engine.handle(self.clock, input, &mut effects);
            self.engine.sanity_check();
            let group = effects[done..].iter().filter_map(|effect| self.disk.take(effect)).max();
            done = effects.len();
            next = group.map(|group| Input::Persisted { group });
        }
        self.oracle.watch(self.now, &effects);
        effects
    }

    /// The disk reads one of the messages that the engine wants.
    fn read(&mut self) -> Vec<Effect> {
        self.disk.read().map_or_else(Vec::new, |input| self.step(input))
    }

    /// A control frame, answered as the oracle expects.
    fn control(&mut self, input: Input, expected: Result<(), Code>) {
        let effects = self.step(input.clone());
        let answer = match effects.first() {
            Some(Effect::Peer(PeerEffect::Answer { result, .. })) => *result,
            other => panic!("{other:?} is no answer to {input:?}"),
        };
        assert_eq!(answer, expected, "{input:?}");
    }

    pub(super) fn apply(&mut self, op: Op) {
        match op {
            Op::Connect(place) => self.connect(place),
            Op::Pass(millis) => self.pass(millis),
            Op::Jump(millis) => self.clock = self.clock.plus_millis(millis),
            Op::Back(millis) => self.clock = Mono::from_millis(self.clock.as_millis().saturating_sub(millis)),
            Op::Settle { ago, word, forger } => self.settle(ago, word, forger),
            Op::Cancel(ago) => self.cancel(ago),
            Op::CancelMessage(ago) => self.cancel_message(ago),
            Op::Purge(queue) => self.purge(queue),
            Op::RetryDead(queue) => self.retry_dead(queue),
            Op::PurgeDead(queue) => self.purge_dead(queue),
            Op::SetQueue(queue, durable) => self.set_queue(queue, durable),
            Op::Request { place, options, no_reply, fail_fast } => self.request(place, &options, no_reply, fail_fast),
            Op::Read(times) => (0..times).for_each(|_| drop(self.read())),
            Op::Restart => self.restart(),
            Op::Send { place, options } => self.send(place, &options),
            Op::Broadcast { place, queue, within_ms, no_reply, skip_self } => {
                self.broadcast(place, queue, within_ms, no_reply, skip_self);
            }
            Op::Leave(place) => self.leave(place),
            Op::Maintain => drop(self.admin(AdminCall::Drain).expect("it may always be drained")),
            Op::GoOn => drop(self.admin(AdminCall::Resume).expect("it may always go on")),
            Op::Ready(place)
            | Op::Register(place, _)
            | Op::Resize(place, _)
            | Op::Deregister(place)
            | Op::Consume(place, _)
            | Op::CancelQueue(place, _)
            | Op::PeerClosing(place)
            | Op::DrainWorker(place)
            | Op::ResumeWorker(place)
            | Op::StopWorker { place, .. } => {
                if let Some(conn) = self.places[place] {
                    self.as_worker(conn, &op);
                }
            }
        }
    }

    fn connect(&mut self, place: usize) {
        if self.places[place].is_some() {
            return;
        }
        self.generations += 1;
        let conn = ConnId { index: place as u32, generation: self.generations };
        self.places[place] = Some(conn);
        self.oracle.peers.insert(conn, Peer::default());
        let name = name_of(conn);
        self.step(Input::Connected { conn, name, address: String::new() });
        for (handle, name) in (0..).zip(NAMES) {
            let queue = name.parse().expect("a good name");
            self.control(Input::Open { conn, seq: 0, handle, queue }, Ok(()));
        }
    }

    fn leave(&mut self, place: usize) {
        if let Some(conn) = self.places[place].take() {
            self.oracle.free_all(conn);
            self.oracle.peers.remove(&conn);
            self.step(Input::Disconnected { conn });
            self.oracle.check_nobody_works_for(conn);
        }
    }

    /// What a worker says, or an admin about it.
    fn as_worker(&mut self, conn: ConnId, op: &Op) {
        let peer = self.oracle.peers.get_mut(&conn).expect("who sits at a place is connected");
        let known = if peer.slots.is_some() { Ok(()) } else { Err(Code::NotRegistered) };
        let seq = 0;
        match *op {
            Op::Ready(_) => {
                peer.ready = true;
                self.step(Input::Ready { conn });
            }
            Op::Register(_, slots) => {
                let slots = slots_of(slots);
                (peer.slots, peer.closed) = (Some(slots), false);
                self.control(Input::Register { conn, seq, slots, name: String::new() }, Ok(()));
            }
            Op::Resize(_, slots) => {
                let slots = slots_of(slots);
                peer.slots = peer.slots.map(|_| slots);
                self.control(Input::Resize { conn, seq, slots }, known);
            }
            Op::Deregister(_) => {
                (peer.slots, peer.closed) = (None, false);
                peer.consumes.clear();
                peer.standings = Standings::default();
                self.control(Input::Deregister { conn, seq }, known);
            }
            Op::Consume(_, queue) => {
                let fresh = known.is_ok() && peer.consumes.insert(queue);
                if fresh {
                    peer.standings.consume(queue);
                }
                let expected = known.and(if fresh { Ok(()) } else { Err(Code::AlreadyConsuming) });
                self.control(Input::Consume { conn, seq, handle: queue as u32, exclusive: false }, expected);
            }
            Op::CancelQueue(_, queue) => {
                let there = peer.consumes.remove(&queue);
                peer.standings.leave(queue);
                let expected = known.and(if there { Ok(()) } else { Err(Code::NotFound) });
                self.control(Input::CancelQueue { conn, seq, handle: queue as u32 }, expected);
            }
            Op::PeerClosing(_) => {
                peer.closed |= known.is_ok();
                self.step(Input::PeerClosing { conn });
            }
            _ if known.is_err() => {}
            Op::DrainWorker(_) => {
                peer.closed = true;
                self.admin(AdminCall::WorkerDrain { worker: name_of(conn) }).expect("the worker is there");
            }
            Op::ResumeWorker(_) => {
                peer.closed = false;
                self.admin(AdminCall::WorkerResume { worker: name_of(conn) }).expect("the worker is there");
            }
            Op::StopWorker { now, .. } => {
                peer.closed = true;
                if now {
                    self.oracle.free_all(conn);
                }
                self.admin(AdminCall::WorkerStop { worker: name_of(conn), now }).expect("the worker is there");
            }
            _ => unreachable!("only a worker's operations come here"),
        }
    }

    pub(super) fn admin(&mut self, call: AdminCall) -> Result<AdminAnswer, Code> {
        let mut effects = self.step(Input::Admin { conn: ADMIN, seq: 0, call });
        loop {
            if let Some(answer) = admin_answer(ADMIN, effects) {
                return answer;
            }
            assert!(!self.disk.loads.is_empty(), "an admin is answered");
            effects = self.read();
        }
    }
}

/// Messages.
impl World {
    fn request(&mut self, place: usize, options: &Options, no_reply: bool, fail_fast: bool) {
        let Some(conn) = self.places[place] else { return };
        let kind = if no_reply { Kind::NoReply } else { Kind::Request };
        let within = options.within_ms.unwrap_or(USUAL_MS);
        let message = self.word(conn, kind, options, Some(within));
        self.step(Input::Request { conn, message: Outgoing { no_reply, fail_fast, ..message } });
    }

    fn send(&mut self, place: usize, options: &Options) {
        let Some(conn) = self.places[place] else { return };
        let message = self.word(conn, Kind::Send, options, options.within_ms);
        let effects = self.step(Input::Send { conn, message });
        match effects.iter().find(|effect| !matches!(effect, Effect::Disk(_))) {
            Some(Effect::Peer(PeerEffect::Native {
                effect: NativeEffect::Stored { durability, duplicate, .. },
                ..
            })) => {
                let disk = self.settings.store.is_some() && !self.volatile[options.queue];
                assert!(
                    *duplicate || (*durability == Durability::Disk) == disk,
                    "a send is as safe as its queue makes it"
                );
            }
            Some(Effect::Peer(PeerEffect::Caller { word: CallerWord::Undelivered { .. }, .. })) => {}
            other => panic!("a send is answered first, not by {other:?}"),
        }
    }

    /// A message in words, entered into the account. Its body is its number.
    fn word(&mut self, conn: ConnId, kind: Kind, options: &Options, within_ms: Option<u32>) -> Outgoing {
        self.seqs += 1;
        let (seq, now) = (self.seqs, self.now.max(self.clock));
        let &Options { queue, cost, priority, retries, within_ms: asked_ms, dedup_id, ends_with_caller } = options;
        let dedup_id = dedup_id.filter(|_| kind == Kind::Send);
        let deadline = within_ms.map(|ms| now.plus_millis(u64::from(ms)));
        let ends_with_caller = ends_with_caller && kind == Kind::Request;
        let own = Message::new(conn, seq, kind, queue, now);
        let entry = Message { priority, cost, deadline, dedup_id, ends_with_caller, ..own };
        let retries_max = if kind == Kind::NoReply { 0 } else { retries };
        self.oracle.messages.insert(seq, Message { retries: retries_max, ..entry });
        let payload = Payload::body(seq.to_string());
        Outgoing {
            deadline_ms: asked_ms,
            retries: Some(retries),
            priority: Some(priority),
            cost: Some(cost),
            dedup_id: dedup_id.and_then(|number| DedupId::new(&[number]).ok()),
            cancel_on_disconnect: ends_with_caller,
            ..Outgoing::new(seq, queue as u32, payload)
        }
    }

    fn settle(&mut self, ago: usize, word: Word, forger: Option<usize>) {
        let Some(at) = self.oracle.deliveries.len().checked_sub(1 + ago) else { return };
        let (receiver, delivery, seq) = self.oracle.deliveries[at];
        let Some(conn) = forger.map_or(Some(receiver), |place| self.places[place]) else { return };
        self.say(conn, delivery, seq, word);
    }

    /// A word about a delivery, from whomever.
    fn say(&mut self, conn: ConnId, delivery: Delivery, seq: u32, word: Word) {
        if self.say_to_cast(conn, delivery, seq, word) {
            return;
        }
        let held = self.oracle.held.get(&seq).copied();
        let held = held.filter(|held| held.worker == conn && held.delivery == delivery);
        let live = held.is_some_and(|held| held.stops.is_none());
        let last = !matches!(word, Word::Piece | Word::Progress | Word::Extend);
        if live {
            self.oracle.speaking = Some(seq);
        }
        if held.is_some() && last {
            self.oracle.held.remove(&seq);
        }
        let message = self.oracle.messages.get_mut(&seq).expect("only known messages are delivered");
        if let Some(peer) = self.oracle.peers.get_mut(&conn)
            && live
            && last
        {
            peer.standings.settle(message.queue, delivery);
        }
        message.settled |= live && matches!(word, Word::Reply | Word::Ack);
        let effects = self.utter(conn, delivery, word);
        self.oracle.speaking = None;
        assert!(held.is_some() || effects.is_empty(), "a stray word does nothing: {effects:?}");
        let message = &self.oracle.messages[&seq];
        let waits = message.kind == Kind::Request && self.oracle.peers.contains_key(&message.caller);
        assert!(!(live && message.settled && waits) || message.ended, "{seq} was answered");
    }

    pub(super) fn utter(&mut self, conn: ConnId, delivery: Delivery, word: Word) -> Vec<Effect> {
        let payload = Payload::body("answer");
        self.step(match word {
            Word::Reply | Word::Piece => {
                Input::worker(conn, delivery, WorkerWord::Reply { more: word == Word::Piece, payload })
            }
            Word::Ack => Input::worker(conn, delivery, WorkerWord::Ack),
            Word::Fail | Word::FailForGood => {
                Input::worker(conn, delivery, WorkerWord::Fail { permanent: word == Word::FailForGood, payload })
            }
            Word::Progress => Input::worker(conn, delivery, WorkerWord::Progress { payload }),
            Word::Extend => Input::worker(conn, delivery, WorkerWord::Extend { lease_ms: 1_000 }),
        })
    }

    fn cancel(&mut self, ago: usize) {
        let Some(seq) = self.seqs.checked_sub(ago as u32) else { return };
        let Some(message) = self.oracle.messages.get_mut(&seq) else { return self.cancel_cast(seq) };
        if !self.oracle.peers.contains_key(&message.caller) {
            return;
        }
        let conn = message.caller;
        let open = message.kind != Kind::Send && !message.ended;
        message.cancelled |= open;
        self.step(Input::Cancel { conn, seq });
        assert!(!open || self.oracle.messages[&seq].ended, "{seq} was cancelled");
    }

    fn cancel_message(&mut self, ago: usize) {
        let message = self.seqs.checked_sub(ago as u32).and_then(|seq| self.oracle.messages.get_mut(&seq));
        let message = message.filter(|message| !message.duplicate);
        let Some((message, id)) = message.and_then(|message| message.id.map(|id| (message, id))) else { return };
        let before = message.cancelled;
        // A no-reply request is over once it is written; what holds the slot may still be stopped.
        message.cancelled = true;
        let (seq, call) = (message.seq, AdminCall::MessageCancel { id: id.to_string() });
        let mut effects = self.step(Input::Admin { conn: ADMIN, seq: 0, call });
        if effects.iter().any(|effect| matches!(effect, Effect::Disk(DiskEffect::Load { .. }))) && effects.len() == 1 {
            // It is cancelled when it was read. Until then, all may happen to it.
            self.cancelled(seq, before);
            (1..self.disk.loads.len()).for_each(|_| drop(self.read()));
            self.cancelled(seq, true);
            effects = self.read();
        }
        if admin_answer(ADMIN, effects).expect("an admin is answered").is_err() {
            self.cancelled(seq, before);
        }
    }

    fn cancelled(&mut self, seq: u32, cancelled: bool) {
        self.oracle.messages.get_mut(&seq).expect("still there").cancelled = cancelled;
    }
}

/// Time, and the end.
impl World {
    /// Ticks exactly when the engine asked for it, so that a deadline announced too late is a deadline missed.
    fn pass(&mut self, millis: u64) {
        let until = self.now.max(self.clock).plus_millis(millis);
        while let Some(next) = self.engine.next_deadline().filter(|next| *next <= until) {
            self.clock = self.now.max(self.clock).max(next);
            self.oracle.end_grace(self.clock);
            self.step(Input::Tick);
            self.oracle.check_deadlines(self.now);
            assert!(self.engine.next_deadline().is_none_or(|next| next > self.now), "a tick does all that is due");
        }
        self.clock = until;
    }

    /// The faults stop: somebody with room consumes everything and everybody settles what they have.
    pub(super) fn settle_everything(&mut self) {
        self.apply(Op::GoOn);
        self.leave(0);
        // What those who are gone have left behind ends, one a millisecond if it must be.
        self.pass((PLACES * IN_FLIGHT_MAX) as u64);
        self.apply(Op::Connect(0));
        self.apply(Op::Ready(0));
        self.apply(Op::Register(0, 5));
        for queue in 0..QUEUES {
            self.apply(Op::Consume(0, queue));
        }
        let mut rounds = 0;
        while !self.oracle.held.is_empty() || !self.disk.loads.is_empty() || !self.oracle.cast_held().is_empty() {
            self.read();
            for (seq, worker, delivery) in self.oracle.cast_held() {
                self.say(worker, delivery, seq, Word::Reply);
            }
            for (seq, held) in self.oracle.held.clone() {
                self.say(held.worker, held.delivery, seq, Word::Reply);
            }
            rounds += 1;
            assert!(rounds < 1_000, "everything drains");
        }
        assert_eq!(self.oracle.unanswered().map(|(seq, _)| seq).next(), None, "every request ends");
        assert_eq!(self.oracle.open_casts(), [0_u32; 0], "every broadcast ends");
        assert_eq!(self.engine.in_flight(), 0);
        self.check_sends();
        let Ok(AdminAnswer::Status { broker }) = self.admin(AdminCall::Status) else { panic!("no status") };
        assert_eq!((broker.ready, broker.slots_used), (0, 0), "nothing waits, nothing is held");
    }

    /// The broker ends: every request of a caller that is there has its outcome when the drain is over.
    pub(super) fn drain(&mut self) {
        self.step(Input::Drain { within_ms: 3_000 });
        for (seq, held) in self.oracle.held.clone() {
            if seq % 3 > 0 {
                self.say(held.worker, held.delivery, seq, [Word::Reply, Word::Fail][seq as usize % 2]);
            }
        }
        self.leave(1);
        self.pass(3_000);
        assert_eq!(self.oracle.drained, 1, "a drain ends, once");
        assert_eq!(self.oracle.unanswered().map(|(seq, _)| seq).next(), None, "every request ends");
        assert_eq!(self.oracle.open_casts(), [0_u32; 0], "every broadcast ends");
        for (seq, held) in self.oracle.held.clone() {
            self.say(held.worker, held.delivery, seq, Word::Reply);
        }
        self.pass(60_000);
        assert_eq!(self.oracle.drained, 1, "a drain ends, once");
        self.check_sends();
    }

    /// Every stored send is settled, cancelled, expired, waiting, held or dead, and nothing else.
    fn check_sends(&mut self) {
        let sends: Vec<Message> = self.oracle.messages.values().filter(|message| message.is_added()).cloned().collect();
        for send in sends {
            let id = send.id.expect("STORED names it").to_string();
            let over = send.settled || send.cancelled;
            let may_be_gone = over || send.deadline.is_some_and(|deadline| deadline <= self.now);
            match self.admin(AdminCall::MessageExplain { id }) {
                Err(code) => assert!(code == Code::NotFound && may_be_gone, "{} is lost", send.seq),
                Ok(AdminAnswer::Message { explanation }) => {
                    let stopping = matches!(explanation.because.0, Reason::Stopping { .. });
                    assert!(!over || stopping, "{} is over, yet {:?}", send.seq, explanation.because.0);
                }
                Ok(other) => panic!("{other:?} explains nothing"),
            }
        }
    }
}

fn name_of(conn: ConnId) -> String {
    format!("p{}g{}", conn.index, conn.generation)
}

/// 5 stands for unlimited.
const fn slots_of(slots: u32) -> Slots {
    if slots >= 5 { Slots::Unlimited } else { Slots::Limited(slots) }
}
