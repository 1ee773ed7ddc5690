//! The engine itself: the state of a broker with its single entry for inputs.

mod admin;
mod check;
mod lost;
mod machines;
mod memory;
mod recover;
mod ring;
mod watch;

use std::sync::Arc;

use turno_proto::model::link::LinkMessage;
use turno_proto::model::topic::{Event, EventRef};
use turno_proto::model::view::BrokerView;
use turno_proto::model::{Code, ConnId, Filter, Mono};

pub use self::memory::Buffers;
use crate::archive::{Archive, ArchiveInput};
use crate::effect::{PeerEffect, Sink, answer};
use crate::input::Input;
use crate::jobs::{Jobs, JobsInput};
use crate::messages::Messages;
use crate::ring::{RingHost, RingInput};
use crate::settings::Settings;
use crate::topics::Topics;

/// A broker's state: its machines.
#[derive(Debug)]
pub struct Engine {
    messages: Messages,
    jobs: Jobs,
    topics: Topics,
    archive: Archive,
    /// The broker's place in a ring; `None`: it has none.
    ring: Option<Box<RingHost>>,
    /// Bytes in buffers of connections, as far as the engine was told.
    buffers: Buffers,
}

impl Engine {
    /// A broker without queues, workers or messages.
    pub fn new(settings: Settings, now: Mono) -> Self {
        let ring = settings.ring.clone().map(|ring| Box::new(RingHost::new(ring, now)));
        let topics = Topics::new(settings.seed);
        let mut messages = Messages::new(settings, now);
        messages.set_ring(ring.as_ref().and_then(|host| host.origin()));
        Self { ring, topics, messages, jobs: Jobs::default(), archive: Archive::default(), buffers: Buffers::default() }
    }

    /// Takes one input and says what follows from it. A `now` before the last one counts as the last one.
    pub fn handle(&mut self, now: Mono, input: Input, out: &mut impl Sink) {
        self.messages.begin(now);
        self.take(input, out);
        self.follow_up(out);
    }

    /// Messages, which have just heard how much memory all else holds.
    #[inline]
    fn with_memory(&mut self) -> &mut Messages {
        let elsewhere = self.bytes_elsewhere();
        self.messages.share_memory(elsewhere);
        &mut self.messages
    }

    /// Consequences of an input: for queues, then for the machines that depend on them, then for the disk.
    fn follow_up(&mut self, out: &mut impl Sink) {
        self.messages.work_off_agenda(out);
        self.messages.tell_job_workers(&mut self.jobs);
        if self.jobs.is_due() {
            self.work_off_jobs(out);
        }
        if self.messages.loads_are_due() {
            self.with_memory().load(out);
        }
        if self.archive.has_news() {
            self.archive.tell_news(out);
        }
        self.messages.tell_links_if_due(self.topics.anyone_listens(), out);
        self.messages.persist_if_changed(out);
        if self.ring.as_ref().is_none_or(|host| host.is_off()) {
            self.messages.end_drain_if_idle(out);
        }
    }

    /// The direct effects of an input; its consequences are on the agenda.
    #[inline]
    fn take(&mut self, input: Input, out: &mut impl Sink) {
        match input {
            Input::Connected { conn, name, address } => self.messages.connected(conn, name, address, out),
            Input::Ready { conn } => self.messages.ready(conn),
            Input::Unread { conn } => self.messages.left_unread(conn),
            Input::HasRead { conn } => self.messages.has_read(conn),
            Input::Disconnected { conn } => self.disconnected(conn, out),
            Input::Open { conn, seq, handle, queue } => answer(conn, seq, self.messages.open(conn, handle, queue), out),
            Input::Register { conn, seq, slots, name } => self.messages.register(conn, seq, slots, name, out),
            Input::RegisterAs { conn, seq, slots, name, key } => self.register_as(conn, seq, slots, name, &key, out),
            Input::RegisterKeeping { conn, seq, slots, name } => {
                self.messages.register_keeping(conn, seq, slots, name, out)
            }
            Input::GiveBack { conn } => self.messages.gives_back(conn),
            Input::Relay { to, payload } => self.messages.pass_to_peer(to, payload, out),
            Input::Resize { conn, seq, slots } => answer(conn, seq, self.messages.resize(conn, slots), out),
            Input::Deregister { conn, seq } => answer(conn, seq, self.deregister(conn), out),
            Input::Consume { conn, seq, handle, exclusive } => self.messages.consume(conn, seq, handle, exclusive, out),
            Input::QueueAvailableNotify { conn, seq, handle } => {
                if let Err(code) = self.messages.notify(conn, seq, handle) {
                    out.peer(PeerEffect::Answer { conn, seq, result: Err(code) });
                }
            }
            Input::CancelQueue { conn, seq, handle } => {
                answer(conn, seq, self.messages.cancel_queue(conn, handle), out)
            }
            Input::Request { conn, message } => self.with_memory().request(conn, message, out),
            Input::Broadcast { conn, broadcast } => self.with_memory().broadcast(conn, broadcast, out),
            Input::Send { conn, message } => self.with_memory().send(conn, message, out),
            Input::Worker { conn, delivery, token, message } => {
                self.messages.worker_says(conn, delivery, token, message, out)
            }
            Input::Cancel { conn, seq } => self.messages.cancel_own(conn, seq, Code::Cancelled, out),
            Input::PeerClosing { conn } => self.messages.peer_closing(conn),
            Input::Admin { conn, seq, call } => self.admin(conn, seq, call, out),
            Input::Subscribe { conn, seq, filter, or_close } => self.subscribe(conn, seq, &filter, or_close, out),
            Input::Unsubscribe { conn, seq, filter } => answer(conn, seq, self.topics.unsubscribe(conn, &filter), out),
            Input::Publish { conn, seq, confirm, event } => self.publish(conn, seq, confirm, event, out),
            Input::EventsDropped { conn, count } => self.topics.note_missed(conn, count),
            Input::Greeted { conn, target, broker } => self.messages.greeted(conn, target, broker, out),
            Input::Linked { conn, target, neighbour } => self.messages.linked(conn, target, neighbour, out),
            Input::DialFailed { target, code } => self.messages.dial_failed(target, code),
            Input::RoundTrip { conn, micros } => self.messages.round_trip(conn, micros),
            Input::Forwarded { conn, forward } => self.with_memory().forwarded(conn, *forward, out),
            Input::Far { conn, seq, message } => self.messages.far_says(conn, seq, message, out),
            Input::FarCancel { conn, seq, reason } => self.messages.far_cancelled(conn, seq, reason, out),
            Input::Link { conn, message } => self.link_says(conn, *message, out),
            Input::Ring { input } => self.ring(input, out),
            Input::Foreman { conn, event } => self.tell_jobs(JobsInput::Foreman { conn, event: *event }, out),
            Input::Drain { within_ms } => self.begin_drain(within_ms, out),
            Input::Persisted { group } => self.persisted(group, out),
            Input::Refused { group, code } => self.refused(group, code, out),
            Input::Loaded { serial, record } => self.messages.loaded(serial, record, out),
            Input::Archived { ticket, answer } => {
                self.tell_archive(ArchiveInput::Archived { ticket, answer }, out);
            }
            Input::Tick => self.tick(out),
        }
    }

    fn subscribe(&mut self, conn: ConnId, seq: u32, filter: &Filter, or_close: bool, out: &mut impl Sink) {
        if self.messages.is_connected(conn) {
            answer(conn, seq, self.topics.subscribe(conn, filter, or_close), out);
        }
    }

    /// An event: to everyone here whose filters match, the publisher too if one of its own does; then round the ring, and
    /// over links.
    fn publish(&mut self, conn: ConnId, seq: u32, confirm: bool, event: Event, out: &mut impl Sink) {
        let passing = EventRef::from(&event);
        self.topics.deliver(self.messages.now(), passing, out);
        self.send_round(passing, out);
        if self.messages.has_links() {
            self.messages.spread_event(&Arc::new(event), self.ring.as_deref(), out);
        }
        if confirm {
            out.peer(PeerEffect::Answer { conn, seq, result: Ok(()) });
        }
    }

    /// When [`Input::Tick`] is due.
    pub fn next_deadline(&self) -> Option<Mono> {
        let mut next = self.messages.next_deadline();
        let mut or_at = |at: Mono| next = Some(next.map_or(at, |next| next.min(at)));
        if self.jobs.has_pending_writes() {
            or_at(self.messages.next_check());
        }
        if let Some(at) = self.jobs.next_deadline() {
            or_at(at);
        }
        if let Some(at) = self.ring.as_ref().and_then(|host| host.next_deadline()) {
            or_at(at);
        }
        next
    }

    /// A neighbour says something over a link.
    fn link_says(&mut self, conn: ConnId, message: LinkMessage, out: &mut impl Sink) {
        if let Some(event) = self.with_memory().link_says(conn, message, out) {
            self.topics.deliver(self.messages.now(), EventRef::from(&*event), out);
        }
    }

    /// Ends in order (S2.16, S2.17): the broker leaves its ring, and everyone is told.
    fn begin_drain(&mut self, within_ms: u64, out: &mut impl Sink) {
        if self.messages.begin_drain(within_ms) {
            self.ring(RingInput::Leave, out);
            self.messages.turn_away(out);
        }
    }

    /// Everything up to that group is on disk.
    fn persisted(&mut self, group: u64, out: &mut impl Sink) {
        while let Some(then) = self.messages.persisted(group, out) {
            self.tell_jobs(JobsInput::Stored(then), out);
        }
    }

    /// A group was not stored, and will not be.
    fn refused(&mut self, group: u64, code: Code, out: &mut impl Sink) {
        while let Some(then) = self.messages.refused(group, code, out) {
            self.tell_jobs(JobsInput::NotStored(then, code), out);
        }
    }

    /// Time passed: everything that is due happens now.
    fn tick(&mut self, out: &mut impl Sink) {
        self.messages.tick_messages(out);
        self.tell_jobs(JobsInput::Tick, out);
        if self.messages.check_if_due() {
            self.tell_jobs(JobsInput::TryDiskAgain, out);
        }
        self.tick_ring(out);
        self.messages.tick(out);
    }

    /// How many filters, and nodes of their tree, were looked at for events since the last call, at most; beside one filter for
    /// each connection that an event went to.
    pub const fn take_matches(&mut self) -> u32 {
        self.topics.take_work()
    }

    /// The run that the ids of sends name, unless they are in memory beside a store.
    pub fn run(&self) -> u64 {
        self.messages.run()
    }

    /// The broker as a whole, as an admin sees it.
    pub fn status(&self) -> BrokerView {
        self.broker_view()
    }

    /// Everyone who is connected.
    pub fn connections(&self) -> impl Iterator<Item = ConnId> {
        self.messages.connections()
    }

    /// Deliveries that workers hold now.
    pub fn in_flight(&self) -> u64 {
        self.messages.in_flight()
    }

    /// Whether something is on its way to the disk, or will be as soon as there is room.
    pub fn waits_for_disk(&self) -> bool {
        self.messages.waits_for_disk()
    }

    /// Whether a message is on its way to the disk, or will be as soon as there is room.
    pub fn messages_wait_for_disk(&self) -> bool {
        self.messages.messages_wait_for_disk()
    }

    /// Messages that end with the broker, because nothing but its memory holds them.
    pub fn held_in_memory(&self) -> u64 {
        self.messages.held_in_memory()
    }
}
