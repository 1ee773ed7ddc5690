//! Random operations of an engine.

use turno_proto::model::limits::{DELAY_MS_MAX, RETRY_DELAY_MS_MAX};
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{Again, Seconds, Slots};

use crate::chance::Chance;
use crate::{HOUR_MS, NAMES, PLACES};

/// Something that happens. Peers are named by the place they sit at, messages and deliveries by how long ago they were.
#[derive(Clone, Debug)]
pub enum Op {
    /// Somebody connects, and opens the first queues.
    Connect(usize),
    /// Somebody goes; perhaps before it had read all.
    Leave {
        place: usize,
        unread: bool,
    },
    /// Somebody goes, and comes back as a worker of three slots.
    Rejoin(usize),
    Ready(usize),
    /// A paced worker has read its deliveries.
    HasRead(usize),
    Open {
        place: usize,
        handle: u32,
        queue: usize,
    },
    Register(usize, Slots),
    Resize(usize, Slots),
    Deregister(usize),
    Consume {
        place: usize,
        handle: u32,
        exclusive: bool,
    },
    Notify {
        place: usize,
        handle: u32,
    },
    CancelQueue {
        place: usize,
        handle: u32,
    },
    PeerClosing(usize),
    Request {
        place: usize,
        options: Options,
        no_reply: bool,
        fail_fast: bool,
    },
    Send {
        place: usize,
        options: Options,
    },
    Broadcast {
        place: usize,
        handle: u32,
        within_ms: Option<u32>,
        no_reply: bool,
        skip_self: bool,
        large: bool,
    },
    /// A report about a delivery, by its receiver or by the peer at that place.
    Settle {
        ago: usize,
        report: DeliveryReport,
        forger: Option<usize>,
        fence: Fence,
    },
    /// A message, by its caller.
    Cancel(u32),
    /// The same by an admin.
    CancelMessage(u32),
    /// A message goes on at once, by an admin.
    RetryMessage(u32),
    /// A command of an admin about a worker.
    Worker(usize, WorkerOp),
    /// An admin ends so many of the messages that wait in a queue.
    Purge {
        queue: usize,
        most: u32,
    },
    /// An admin puts so many of a queue's dead letters back.
    RetryDead {
        queue: usize,
        most: u32,
    },
    /// An admin removes so many of a queue's dead letters.
    PurgeDead {
        queue: usize,
        most: u32,
    },
    /// An admin changes a queue's own settings, or takes them back.
    SetQueue(usize, Option<QueueSettings>),
    /// An admin asks for one of the views; it changes nothing.
    Look {
        view: u8,
        at: u32,
    },
    Topic(usize, TopicOp),
    /// An admin drains the broker for maintenance.
    Maintain,
    /// An admin lets it go on.
    GoOn,
    /// The broker is to end.
    Drain {
        within_ms: u64,
    },
    /// So many microseconds pass, and the shell ticks as told.
    Pass(u64),
    /// The same, and nobody ticks.
    Jump(u64),
    /// The clock steps back.
    Back(u64),
    /// A tick that may not be due.
    Tick,
    /// The disk reads so many of the messages that the engine wants.
    Read(usize),
    /// A disk that lags stores so many groups.
    Store(usize),
    /// It refuses the next one.
    Refuse,
    /// The broker dies, and another one takes over what is on its disk: so many groups were stored that nobody heard of.
    Restart {
        unheard: usize,
    },
}

/// The options of a message.
#[derive(Clone, Debug)]
pub struct Options {
    pub handle: u32,
    pub cost: Option<u16>,
    pub priority: Option<u8>,
    pub retries: Option<u8>,
    pub within_ms: Option<u32>,
    /// Of a send.
    pub delay_ms: u64,
    /// Of a send.
    pub dedup_id: Option<u8>,
    /// Of a request.
    pub ends_with_caller: bool,
    /// A body that fills a small memory soon.
    pub large: bool,
}

/// A worker's report about a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryReport {
    Reply,
    Piece,
    Ack,
    Fail { again: Again },
    Progress,
    Extend(u32),
}

impl DeliveryReport {
    /// Nothing is to be said after it.
    pub(crate) const fn is_last(self) -> bool {
        matches!(self, Self::Reply | Self::Ack | Self::Fail { .. })
    }
}

/// The token that a report comes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    None,
    /// That of the delivery, if it has one.
    Own,
    /// One that was given out so many tokens ago, or with 0 never.
    Other(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerOp {
    Drain,
    Resume,
    Stop { now: bool },
    Resize(Slots),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicOp {
    Subscribe {
        filter: usize,
        or_close: bool,
    },
    Unsubscribe {
        filter: usize,
    },
    Publish {
        topic: usize,
        confirm: bool,
    },
    /// The shell left so many events out.
    Dropped(u32),
    Create {
        id: usize,
        filter: usize,
    },
    Fetch {
        id: usize,
        most: u32,
    },
    Destroy {
        id: usize,
    },
}

/// Which operations come more often than others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    #[default]
    All,
    /// Exclusive queues, those who wait for them, and tokens.
    Exclusive,
    /// Dedup ids on a disk that is behind, refuses, and outlives broker after broker.
    Disk,
}

/// Microseconds.
const MS: u64 = 1_000;

impl Op {
    /// The next operation.
    pub fn draw(chance: &mut impl Chance, focus: Focus) -> Self {
        match focus {
            Focus::Exclusive if chance.once_in(2) => Self::exclusive(chance),
            Focus::Disk if chance.once_in(2) => Self::disk(chance),
            _ => Self::any(chance),
        }
    }

    fn any(chance: &mut impl Chance) -> Self {
        match chance.below(180) {
            0..22 => Self::request(chance),
            22..38 => Self::Send { place: place(chance), options: Options::draw(chance) },
            38..44 => Self::broadcast(chance),
            44..78 => Self::settle(chance),
            78..98 => Self::of_peer(chance),
            98..114 => Self::of_admin(chance),
            114..122 => Self::Topic(place(chance), TopicOp::draw(chance)),
            122..124 => Self::Connect(place(chance)),
            124..126 => Self::Leave { place: place(chance), unread: chance.once_in(4) },
            126 => Self::Rejoin(place(chance)),
            127..130 => Self::Cancel(chance.word(20)),
            130 => Self::CancelMessage(chance.word(20)),
            131 => Self::RetryMessage(chance.word(20)),
            132 if chance.once_in(8) => Self::Drain { within_ms: chance.below(5_000) },
            132 => Self::Maintain,
            133..136 => Self::GoOn,
            136..144 => Self::Pass(chance.below(3_000) * MS),
            144 => Self::Pass(chance.range(3_000, 40_000) * MS),
            145..147 => Self::Pass(chance.below(20_000)),
            147..149 => Self::Jump(chance.below(3_000) * MS),
            149 => Self::Jump(HOUR_MS * MS),
            150 => Self::Jump(chance.below(1 << 32) * MS),
            151 => Self::Back(chance.below(3_000_000)),
            152..154 => Self::Tick,
            154..162 => Self::Read(1 + chance.index(3)),
            162..172 => Self::Store(1 + chance.index(4)),
            172..174 => Self::Refuse,
            174 => Self::Restart { unheard: chance.index(4) },
            _ => Self::HasRead(place(chance)),
        }
    }

    /// An operation of a worker about itself.
    fn of_peer(chance: &mut impl Chance) -> Self {
        let place = place(chance);
        match chance.below(20) {
            0..3 => Self::Ready(place),
            3..6 => Self::Register(place, slots(chance)),
            6..8 => Self::Resize(place, slots(chance)),
            8 => Self::Deregister(place),
            9..13 => Self::Consume { place, handle: handle(chance), exclusive: false },
            13 => Self::Consume { place, handle: handle(chance), exclusive: true },
            14 => Self::Notify { place, handle: handle(chance) },
            15..17 => Self::CancelQueue { place, handle: handle(chance) },
            17 => Self::PeerClosing(place),
            _ => {
                let handle = if chance.once_in(8) { chance.word(u32::MAX) } else { chance.word(5) };
                Self::Open { place, handle, queue: chance.index(NAMES.len()) }
            }
        }
    }

    fn of_admin(chance: &mut impl Chance) -> Self {
        let queue = chance.index(NAMES.len());
        match chance.below(16) {
            0 => Self::Worker(place(chance), WorkerOp::Drain),
            1..3 => Self::Worker(place(chance), WorkerOp::Resume),
            3 => Self::Worker(place(chance), WorkerOp::Stop { now: chance.once_in(2) }),
            4 => Self::Worker(place(chance), WorkerOp::Resize(slots(chance))),
            5 => Self::Purge { queue, most: most(chance) },
            6..9 => Self::RetryDead { queue, most: most(chance) },
            9 => Self::PurgeDead { queue, most: most(chance) },
            10..12 => Self::SetQueue(queue, settings(chance)),
            _ => Self::Look { view: u8::try_from(chance.below(10)).expect("small"), at: chance.word(20) },
        }
    }

    fn request(chance: &mut impl Chance) -> Self {
        let (place, options) = (place(chance), Options::draw(chance));
        Self::Request { place, options, no_reply: chance.once_in(7), fail_fast: chance.once_in(10) }
    }

    fn broadcast(chance: &mut impl Chance) -> Self {
        let (place, handle, within_ms) = (place(chance), handle(chance), within_ms(chance));
        let (no_reply, skip_self, large) = (chance.once_in(5), chance.once_in(2), chance.once_in(16));
        Self::Broadcast { place, handle, within_ms, no_reply, skip_self, large }
    }

    fn settle(chance: &mut impl Chance) -> Self {
        let (ago, report) = (chance.index(10), DeliveryReport::draw(chance));
        let forger = if chance.once_in(10) { Some(place(chance)) } else { None };
        let fence = match chance.below(8) {
            0..5 => Fence::Own,
            5..7 => Fence::None,
            _ => Fence::Other(chance.below(4)),
        };
        Self::Settle { ago, report, forger, fence }
    }

    /// Four workers want two queues.
    fn exclusive(chance: &mut impl Chance) -> Self {
        let (place, handle) = (chance.index(4), chance.word(2));
        match chance.below(26) {
            0..6 => Self::Consume { place, handle, exclusive: chance.once_in(2) },
            6..10 => Self::Notify { place, handle },
            10..12 => Self::CancelQueue { place, handle },
            12 => Self::Deregister(place),
            13 => Self::Register(place, Slots::Limited(3)),
            14..16 => Self::Rejoin(place),
            16..20 => Self::Send { place: 4, options: Options::plain(handle) },
            20..24 => {
                Self::Settle { ago: chance.index(4), report: DeliveryReport::Ack, forger: None, fence: Fence::Own }
            }
            _ => Self::Pass(chance.range(1, 6_000) * MS),
        }
    }

    fn disk(chance: &mut impl Chance) -> Self {
        match chance.below(28) {
            0..10 => {
                // Some ids and queues are the same written one behind the other.
                let options = Options::plain(chance.pick(&[0, 2]));
                let dedup_id = Some(chance.pick(&[0, 1, 2]));
                Self::Send { place: 4, options: Options { dedup_id, ..options } }
            }
            10..16 => Self::Store(1 + chance.index(3)),
            16..18 => Self::Refuse,
            18..22 => {
                Self::Settle { ago: chance.index(4), report: DeliveryReport::Ack, forger: None, fence: Fence::Own }
            }
            22..24 => Self::Pass(chance.below(200) * MS),
            24..26 => Self::Pass(chance.range(HOUR_MS / 3, HOUR_MS + 1) * MS),
            _ => Self::Restart { unheard: chance.index(4) },
        }
    }
}

impl Options {
    /// Mostly cheap, of the usual priority, and with time enough.
    pub fn draw(chance: &mut impl Chance) -> Self {
        let handle = handle(chance);
        let cost = match chance.below(64) {
            0..42 => Some(1),
            42..54 => Some(2),
            54..60 => Some(3),
            60..63 => None,
            _ => Some(0),
        };
        let priority = match chance.below(64) {
            0..40 => Some(4),
            40..50 => Some(0),
            50..60 => Some(9),
            60..63 => None,
            _ => Some(10),
        };
        let retries = match chance.below(32) {
            few @ 0..30 => Some(u8::try_from(few % 3).expect("small")),
            30 => None,
            _ => Some(u8::MAX),
        };
        let within_ms = within_ms(chance);
        let dedup_id = match chance.below(10) {
            0..6 => None,
            number => Some(u8::try_from(number - 6).expect("small")),
        };
        let (ends_with_caller, large) = (chance.once_in(2), chance.once_in(16));
        let delay_ms = match chance.below(32) {
            0..24 => 0,
            24..31 => 1 + chance.below(10_000),
            _ => DELAY_MS_MAX + 1 + chance.below(2),
        };
        Self { handle, cost, priority, retries, within_ms, delay_ms, dedup_id, ends_with_caller, large }
    }

    const fn plain(handle: u32) -> Self {
        Self {
            handle,
            cost: None,
            priority: None,
            retries: None,
            within_ms: None,
            delay_ms: 0,
            dedup_id: None,
            ends_with_caller: false,
            large: false,
        }
    }
}

impl DeliveryReport {
    fn draw(chance: &mut impl Chance) -> Self {
        match chance.below(19) {
            17 => Self::Fail { again: Again::After(chance.word(20_000)) },
            18 => Self::Fail { again: Again::Uncounted(chance.pick(&[None, Some(0), Some(1_500)])) },
            0..6 => Self::Reply,
            6..10 => Self::Ack,
            10..13 => Self::Fail { again: Again::AsSet },
            13 => Self::Fail { again: Again::Never },
            14 => Self::Piece,
            15 => Self::Progress,
            _ => Self::Extend(if chance.once_in(4) { chance.word(u32::MAX) } else { 1_000 }),
        }
    }
}

impl TopicOp {
    fn draw(chance: &mut impl Chance) -> Self {
        let (filter, id) = (chance.index(16), chance.index(2));
        match chance.below(16) {
            0..3 => Self::Subscribe { filter, or_close: chance.once_in(4) },
            3 => Self::Unsubscribe { filter },
            4 => Self::Dropped(chance.word(1_000)),
            5..7 => Self::Create { id, filter },
            7..10 => Self::Fetch { id, most: 1 + chance.word(4) },
            10 => Self::Destroy { id },
            _ => Self::Publish { topic: filter, confirm: chance.once_in(2) },
        }
    }
}

fn place(chance: &mut impl Chance) -> usize {
    chance.index(PLACES)
}

/// Mostly one that a connection opened first.
fn handle(chance: &mut impl Chance) -> u32 {
    match chance.word(64) {
        extra @ 60.. => extra - 57,
        usual => usual % 3,
    }
}

fn slots(chance: &mut impl Chance) -> Slots {
    match chance.word(12) {
        11 if chance.once_in(4) => Slots::Limited(chance.word(u32::MAX)),
        10.. => Slots::Unlimited,
        few => Slots::Limited(few % 5),
    }
}

fn within_ms(chance: &mut impl Chance) -> Option<u32> {
    match chance.below(32) {
        0..9 => None,
        9..27 => Some(1 + chance.word(20_000)),
        27..31 => Some(chance.word(50)),
        _ => Some(chance.word(u32::MAX)),
    }
}

fn most(chance: &mut impl Chance) -> u32 {
    if chance.once_in(3) { chance.word(4) } else { u32::MAX }
}

fn settings(chance: &mut impl Chance) -> Option<QueueSettings> {
    let durable = chance.pick(&[Some(true), Some(false), None]);
    let drop_after = chance.pick(&[None, None, None, Some(0), Some(1), Some(2)]);
    let weight = chance.pick(&[None, None, Some(1), Some(3), Some(9), Some(0)]);
    let seconds = |ms: Option<u64>| ms.map(Seconds::from_millis);
    let retry_delay_seconds = seconds(chance.pick(&[None, None, None, Some(0), Some(700)]));
    let retry_delay_max_seconds = seconds(chance.pick(&[None, None, None, Some(1_000), Some(RETRY_DELAY_MS_MAX + 1)]));
    if chance.once_in(3) {
        return None;
    }
    Some(QueueSettings { durable, drop_after, weight, retry_delay_seconds, retry_delay_max_seconds })
}
