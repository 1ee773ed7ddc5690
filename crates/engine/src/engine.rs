//! The engine itself: the state of a broker and the one door through which everything happens to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use turno_proto::model::link::BrokerId;
use turno_proto::model::topic::{Event, EventRef};
use turno_proto::model::view::BrokerView;
use turno_proto::model::{Code, ConnId, Delivery, Filter, MessageId, Mono, Payload, limits};

use crate::archive::{Archive, ArchiveInput};
use crate::broadcast::Tally;
use crate::chores::Chores;
use crate::cold::Loads;
use crate::crew::Crews;
use crate::dedup::Dedup;
use crate::dispatch::Item;
use crate::drain::Drain;
use crate::durable::Durable;
use crate::effect::{Effect, Sink};
use crate::exclusive::Exclusives;
use crate::input::Input;
use crate::jobs::{Jobs, JobsInput};
use crate::links::Links;
use crate::losses::Losses;
use crate::message::{Flags, Message, Messages, State};
use crate::peer::Peers;
use crate::queue::Queues;
use crate::ring::Host;
use crate::settings::Settings;
use crate::stats::{Buffers, Stats};
use crate::timers::Timers;
use crate::topics::Topics;

/// A broker's state.
#[derive(Debug)]
pub struct Engine {
    pub(crate) settings: Settings,
    /// The latest time it was told.
    pub(crate) now: Mono,
    pub(crate) started: Mono,
    pub(crate) peers: Peers,
    pub(crate) queues: Queues,
    pub(crate) messages: Messages,
    pub(crate) timers: Timers,
    pub(crate) durable: Durable,
    pub(crate) dedup: Dedup,
    pub(crate) loads: Loads,
    pub(crate) exclusives: Exclusives,
    pub(crate) stats: Stats,
    /// What connections hold, as far as the engine was told.
    pub(crate) buffers: Buffers,
    pub(crate) jobs: Jobs,
    pub(crate) topics: Topics,
    pub(crate) archive: Archive,
    pub(crate) links: Links,
    pub(crate) crews: Crews,
    /// The number of the latest delivery.
    pub(crate) stamps: u32,
    /// What the last failure of a dead letter said, by message.
    pub(crate) failures: BTreeMap<u32, Payload>,
    /// How far each broadcast is, by its message.
    pub(crate) broadcasts: BTreeMap<u32, Tally>,
    /// The broker's place in a ring; `None`: it has none.
    pub(crate) ring: Option<Box<Host>>,
    pub(crate) losses: Losses,
    pub(crate) drain: Option<Drain>,
    pub(crate) chores: Chores,
    /// What may go on now because of what just happened. Done at the end of each input, one by one, so that
    /// no chain of consequences can grow the stack.
    pub(crate) agenda: VecDeque<Item>,
    /// When the checker looks at every backlog again (S0.30).
    pub(crate) check_at: Mono,
}

impl Engine {
    /// A broker without queues, workers or messages.
    pub fn new(settings: Settings, now: Mono) -> Self {
        let exclusives = Exclusives::new(settings.term);
        let topics = Topics::new(settings.seed);
        let last_serial = settings.store.map_or(0, |store| store.last_serial);
        Self {
            links: Links::new(BrokerId::new(settings.run), &settings.links, now),
            ring: settings.ring.clone().map(|ring| Box::new(Host::new(ring, now))),
            settings,
            now,
            started: now,
            peers: Peers::default(),
            queues: Queues::default(),
            messages: Messages::after(last_serial),
            timers: Timers::new(now),
            durable: Durable::default(),
            dedup: Dedup::default(),
            loads: Loads::default(),
            exclusives,
            stats: Stats::default(),
            buffers: Buffers::default(),
            jobs: Jobs::default(),
            topics,
            archive: Archive::default(),
            crews: Crews::default(),
            stamps: 0,
            failures: BTreeMap::new(),
            broadcasts: BTreeMap::new(),
            losses: Losses::default(),
            drain: None,
            chores: Chores::default(),
            agenda: VecDeque::new(),
            check_at: now.plus_millis(limits::CHECKER_MS),
        }
    }

    /// Takes one input and says what follows from it. A `now` before the last one counts as the last one.
    pub fn handle(&mut self, now: Mono, input: Input, out: &mut impl Sink) {
        self.now = self.now.max(now);
        self.take(input, out);
        self.follow_up(out);
    }

    /// What follows from an input.
    pub(crate) fn follow_up(&mut self, out: &mut impl Sink) {
        self.work_off_agenda(out);
        if self.jobs.is_due() {
            self.work_off_jobs(out);
        }
        if self.loads.are_due() {
            self.load(out);
        }
        if self.archive.has_news() {
            self.archive.tell_news(out);
        }
        if !self.links.is_empty() {
            self.links.note_listening(self.topics.anyone_listens());
            if self.links.are_due(self.now) {
                self.tell_links(out);
            }
        }
        if self.durable.has_ops() {
            self.persist(out);
        }
        self.end_drain_if_idle(out);
    }

    /// What an input does itself; what follows from it is on the agenda.
    #[inline]
    pub(crate) fn take(&mut self, input: Input, out: &mut impl Sink) {
        match input {
            Input::Connected { conn, name, address } => self.connected(conn, name, address, out),
            Input::Ready { conn } => self.ready(conn),
            Input::Unread { conn } => self.left_unread(conn),
            Input::Disconnected { conn } => self.disconnected(conn, out),
            Input::Open { conn, seq, handle, queue } => {
                let result = self.open(conn, handle, queue);
                answer(conn, seq, result, out);
            }
            Input::Register { conn, seq, slots, name } => self.register(conn, seq, slots, name, out),
            Input::RegisterAs { conn, seq, slots, name, key } => {
                self.register_as(conn, seq, slots, (name, &key), out);
            }
            Input::Resize { conn, seq, slots } => {
                let result = self.resize(conn, slots);
                answer(conn, seq, result, out);
            }
            Input::Deregister { conn, seq } => {
                let result = self.deregister(conn);
                answer(conn, seq, result, out);
            }
            Input::Consume { conn, seq, handle, exclusive } => self.consume(conn, seq, handle, exclusive, out),
            Input::QueueAvailableNotify { conn, seq, handle } => {
                if let Err(code) = self.notify(conn, seq, handle) {
                    out.effect(Effect::Error { conn, seq, code });
                }
            }
            Input::Fenced { token, input } => self.fenced(token, *input, out),
            Input::CancelQueue { conn, seq, handle } => {
                let result = self.cancel_queue(conn, handle);
                answer(conn, seq, result, out);
            }
            Input::Request { conn, message, no_reply, fail_fast } => {
                self.request(conn, message, no_reply, fail_fast, out);
            }
            Input::Broadcast { conn, broadcast } => self.broadcast(conn, broadcast, out),
            Input::Send { conn, message } => self.send(conn, message, out),
            Input::Reply { conn, delivery, more, payload } => self.reply(conn, delivery, more, payload, out),
            Input::Ack { conn, delivery } => self.ack(conn, delivery, out),
            Input::Fail { conn, delivery, permanent, payload } => self.fail(conn, delivery, permanent, payload, out),
            Input::Progress { conn, delivery, payload } => self.progress(conn, delivery, payload, out),
            Input::Extend { conn, delivery, lease_ms } => self.extend(conn, delivery, lease_ms),
            Input::Cancel { conn, seq } => self.cancel_own(conn, seq, Code::Cancelled, out),
            Input::PeerClosing { conn } => self.peer_closing(conn),
            Input::Admin { conn, seq, call } => self.admin(conn, seq, call, out),
            Input::Subscribe { conn, seq, filter, or_close } => self.subscribe(conn, seq, &filter, or_close, out),
            Input::Unsubscribe { conn, seq, filter } => answer(conn, seq, self.topics.unsubscribe(conn, &filter), out),
            Input::Publish { conn, seq, confirm, event } => self.publish(conn, seq, confirm, event, out),
            Input::EventsDropped { conn, count } => self.topics.note_missed(conn, count),
            Input::Greeted { conn, target, broker } => self.greeted(conn, target, broker, out),
            Input::Linked { conn, target, broker, name, address, payload_max } => {
                self.linked(conn, target, (broker, name, address, payload_max), out);
            }
            Input::DialFailed { target, code } => self.dial_failed(target, code),
            Input::RoundTrip { conn, micros } => self.round_trip(conn, micros),
            Input::Forwarded { conn, forward } => self.forwarded(conn, *forward, out),
            Input::Far { conn, seq, word } => self.far_says(conn, seq, word, out),
            Input::FarCancel { conn, seq, reason } => self.far_cancelled(conn, seq, reason, out),
            Input::Link { conn, word } => self.link_says(conn, *word, out),
            Input::Ring { input } => self.ring(input, out),
            Input::Foreman { conn, event } => self.tell_jobs(JobsInput::Foreman { conn, event: *event }, out),
            Input::Drain { within_ms } => self.begin_drain(within_ms, out),
            Input::Persisted { group } => self.persisted(group, out),
            Input::Refused { group, code } => self.refused(group, code, out),
            Input::Loaded { serial, record } => self.loaded(serial, record, out),
            Input::Archived { ticket, answer } => {
                self.tell_archive(ArchiveInput::Archived { ticket, answer }, out);
            }
            Input::Tick => self.tick(out),
        }
    }

    fn subscribe(&mut self, conn: ConnId, seq: u32, filter: &Filter, or_close: bool, out: &mut impl Sink) {
        if self.peers.get(conn).is_some() {
            answer(conn, seq, self.topics.subscribe(conn, filter, or_close), out);
        }
    }

    /// An event: to everyone here whose filters match, the publisher too if one of its own does; then round the ring, and
    /// over links.
    fn publish(&mut self, conn: ConnId, seq: u32, confirm: bool, event: Event, out: &mut impl Sink) {
        let passing = EventRef::from(&event);
        self.topics.deliver(self.now, passing, out);
        self.send_round(passing, out);
        if !self.links.is_empty() {
            self.spread_event(&Arc::new(event), out);
        }
        if confirm {
            out.effect(Effect::Ok { conn, seq });
        }
    }

    /// When [`Input::Tick`] is due.
    pub fn next_deadline(&self) -> Option<Mono> {
        let mut next = self.timers.next_deadline();
        let mut or_at = |at: Mono| next = Some(next.map_or(at, |next| next.min(at)));
        if self.stats.ready > 0 || !self.durable.owed.is_empty() || self.jobs.owes() {
            or_at(self.check_at);
        }
        if let Some(until) = self.drain.as_ref().and_then(Drain::until) {
            or_at(until);
        }
        if let Some(due) = self.jobs.next_deadline() {
            or_at(due);
        }
        if let Some(at) = self.losses.next_deadline() {
            or_at(at);
        }
        if let Some(sweep) = self.dedup.next_sweep() {
            or_at(sweep);
        }
        if let Some(at) = self.chores.next_deadline() {
            or_at(at);
        }
        if let Some(until) = self.exclusives.next_deadline() {
            or_at(until);
        }
        if let Some(at) = self.links.next_deadline() {
            or_at(at);
        }
        if let Some(at) = self.ring.as_ref().and_then(|host| host.next_deadline()) {
            or_at(at);
        }
        next
    }

    /// How many filters, and nodes of their tree, were looked at for events since the last call, at most; beside one filter for
    /// each connection that an event went to.
    pub const fn take_matches(&mut self) -> u32 {
        self.topics.take_work()
    }

    /// The run that the ids of sends name, unless they are in memory beside a store.
    pub fn run(&self) -> u64 {
        self.settings.store_run()
    }

    /// The broker as a whole, as an admin sees it.
    pub fn status(&self) -> BrokerView {
        self.broker_view()
    }

    /// Everyone who is connected.
    pub fn connections(&self) -> impl Iterator<Item = ConnId> {
        self.peers.iter().map(|peer| peer.id)
    }

    /// Deliveries that workers hold now.
    pub fn in_flight(&self) -> u64 {
        self.stats.in_flight
    }

    /// Whether something is on its way to the disk, or will be as soon as there is room.
    pub fn waits_for_disk(&self) -> bool {
        !self.durable.is_idle()
    }

    /// Messages that end with the broker, because nothing but its memory holds them.
    pub fn held_in_memory(&self) -> u64 {
        let here = |message: &&Message| matches!(message.state, State::Waiting | State::Dead);
        let volatile = |message: &&Message| !message.flags.has(Flags::DURABLE);
        self.messages.iter().map(|(_, message)| message).filter(here).filter(volatile).count() as u64
    }

    #[inline]
    pub(crate) fn id_of(&self, index: u32) -> MessageId {
        let message = &self.messages[index];
        if message.flags.has(Flags::FORWARDED) {
            return self.links.foreign_id(index).expect("what came over a link is known as such");
        }
        self.messages.id_of(index, &self.settings)
    }

    #[inline]
    pub(crate) fn delivery_of(&self, index: u32) -> Delivery {
        Delivery { index, stamp: self.messages[index].stamp }
    }
}

/// Says OK or ERROR.
pub(crate) fn answer(conn: ConnId, seq: u32, result: Result<(), Code>, out: &mut impl Sink) {
    out.effect(match result {
        Ok(()) => Effect::Ok { conn, seq },
        Err(code) => Effect::Error { conn, seq, code },
    });
}
