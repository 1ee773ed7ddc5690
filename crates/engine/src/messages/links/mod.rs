//! Links to other brokers: messages cross if no local worker has free slots and a remote one has.
//!
//! A message that crosses stays its owner's: here it is a delivery whose worker is the link. Nothing that came over a link
//! waits here: it goes to a worker at once, further on, or back (ADR 16).

mod arrive;
pub(crate) mod check;
mod claims;
mod cross;
mod greet;
mod lost;
mod offers;
mod presence;
mod spread;
mod targets;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::link::{BrokerId, Offer, Path, Presence, Room};
use turno_proto::model::ring::Origin;
use turno_proto::model::{ConnId, MessageId, Mono, QueueName};

use self::claims::Claims;
pub(in crate::messages) use self::spread::Shares;
use self::targets::Targets;
pub(in crate::messages) use self::view::{FarWorkers, LinkCounts};
use crate::messages::table::numbered::Numbered;

/// All links.
#[derive(Debug)]
pub(in crate::messages) struct Links {
    pub(in crate::messages) me: BrokerId,
    by_conn: BTreeMap<ConnId, Link>,
    targets: Targets,
    claims: Claims,
    /// Messages that came over a link, by their place.
    foreign: Numbered<CrossedMessage>,
    /// Messages of which something may have to be told.
    changed: BTreeSet<QueueName>,
    /// Shared rotas whose members' room changed: of all their queues something may have to be told.
    changed_shared_rotas: BTreeSet<u32>,
    /// The broker's identity in its ring; `None`: it is in none.
    ring: Option<Origin>,
    /// Neighbours may have to be told which brokers can be reached.
    presence_changed: bool,
    /// When what changed may be told.
    tell_at: Mono,
    /// Somebody here listens to topics.
    listens: bool,
    /// Counts events that were published here.
    events: u64,
    /// The number of the latest event of each broker that was for somebody here.
    latest_events: BTreeMap<BrokerId, u64>,
    /// Counts crossings, so that links take turns.
    turns: u64,
    /// There was a link once.
    were_up: bool,
}

/// A link that is up.
#[derive(Debug)]
struct Link {
    broker: BrokerId,
    name: String,
    address: String,
    /// The target, if this end dialled.
    target: Option<u32>,
    since: Mono,
    /// Bytes of the longest message that it takes.
    payload_max: u64,
    /// The other end takes nothing new.
    closing: bool,
    round_trip_us: Option<u64>,
    /// Offers of the other end, by queue.
    far: BTreeMap<QueueName, RemoteQueue>,
    /// Handles given out on this link.
    handles: u32,
    /// Messages that crossed and are not settled, by the number of the crossing.
    out: Numbered<u32>,
    /// Slots that messages from there take here and further on, by queue; none are 0.
    held: BTreeMap<QueueName, u32>,
    /// The last offers to the other end.
    told: BTreeMap<QueueName, Offer>,
    told_presence: Vec<Presence>,
    /// Brokers that can be reached over it.
    presence: Vec<Presence>,
    turn: u64,
    forwarded: u64,
    received: u64,
    returned: u64,
}

/// A queue at the other end.
#[derive(Debug, Default)]
struct RemoteQueue {
    held: u32,
    rooms: Vec<Room>,
    /// Slots of what crossed and is not settled.
    in_flight: u32,
    handle: Option<u32>,
    /// Messages in a row that came back.
    returns: u32,
    paused_until: Option<Mono>,
}

impl RemoteQueue {
    /// Slots that a message which came that way may take there.
    fn room_for(&self, path: &Path) -> u32 {
        let mut rooms = self.rooms.iter().filter(|room| !room.path.meets(path)).peekable();
        if rooms.peek().is_none() {
            return 0;
        }
        let free: u32 = rooms.map(|room| room.free).sum();
        (self.held + free).saturating_sub(self.in_flight)
    }

    /// How far the nearest workers are.
    fn nearest(&self, path: &Path) -> usize {
        let rooms = self.rooms.iter().filter(|room| !room.path.meets(path));
        rooms.map(|room| room.path.len()).min().unwrap_or(usize::MAX)
    }

    /// The rooms as others may be told of them.
    fn rooms_now(&self) -> impl Iterator<Item = Room> {
        let room = self.room_for(&Path::default());
        let told: u32 = self.rooms.iter().map(|room| room.free).sum();
        // Crossings that ended since have freed slots that nobody needed to tell us of.
        let freed = room.saturating_sub(told);
        self.rooms.iter().map(move |there| Room { free: (there.free + freed).min(room), ..there.clone() })
    }
}

/// A message that came over a link.
#[derive(Debug)]
struct CrossedMessage {
    link: ConnId,
    id: MessageId,
    /// Brokers it came through.
    path: Path,
}

impl Links {
    pub(in crate::messages) fn new(me: BrokerId, targets: &[String], now: Mono) -> Self {
        Self {
            me,
            by_conn: BTreeMap::new(),
            targets: Targets::new(me, targets, now),
            claims: Claims::default(),
            foreign: Numbered::default(),
            changed: BTreeSet::new(),
            changed_shared_rotas: BTreeSet::new(),
            ring: None,
            presence_changed: false,
            tell_at: now,
            listens: false,
            events: 0,
            latest_events: BTreeMap::new(),
            turns: 0,
            were_up: false,
        }
    }

    /// Whether other brokers may give out tokens beside this one, now or when a cut is over.
    #[inline]
    pub(in crate::messages) fn are_used(&self) -> bool {
        self.were_up || self.targets.len() > 0
    }

    #[inline]
    pub(in crate::messages) fn is_empty(&self) -> bool {
        self.by_conn.is_empty()
    }

    pub(in crate::messages) fn is_link(&self, conn: ConnId) -> bool {
        self.by_conn.contains_key(&conn)
    }

    /// The id under which its owner knows a message that came over a link.
    pub(in crate::messages) fn foreign_id(&self, index: u32) -> Option<MessageId> {
        self.foreign.get(&index).map(|foreign| foreign.id)
    }

    /// The message that its owner knows under that id, if it came here.
    pub(in crate::messages) fn find_foreign(&self, id: MessageId) -> Option<u32> {
        self.foreign.iter().filter(|(_, foreign)| foreign.id == id).map(|(index, _)| *index).min()
    }

    fn link(&self, conn: ConnId) -> &Link {
        self.by_conn.get(&conn).expect("rooms hold links that are up")
    }

    fn link_mut(&mut self, conn: ConnId) -> &mut Link {
        self.by_conn.get_mut(&conn).expect("rooms hold links that are up")
    }

    fn to_broker(&self, broker: BrokerId) -> Option<ConnId> {
        self.by_conn.iter().find(|(_, link)| link.broker == broker).map(|(conn, _)| *conn)
    }

    /// When something is to be done though nothing happens.
    #[inline]
    pub(in crate::messages) fn next_deadline(&self) -> Option<Mono> {
        if !self.are_used() {
            return None;
        }
        let dial = self.targets.next_deadline();
        let tell = self.has_news().then_some(self.tell_at);
        [dial, tell, self.claims.next_deadline()].into_iter().flatten().min()
    }

    fn has_news(&self) -> bool {
        !self.by_conn.is_empty()
            && (self.presence_changed || !self.changed.is_empty() || !self.changed_shared_rotas.is_empty())
    }

    /// Whether neighbours are to be told something now.
    pub(in crate::messages) fn are_due(&self, now: Mono) -> bool {
        self.has_news() && self.tell_at <= now
    }
}
