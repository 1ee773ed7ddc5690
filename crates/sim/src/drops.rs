//! Workers at which deliveries expire: dropped from the queue in time and not before, back with one delivery at a time.
//!
//! Judged by what a worker sees on one connection. What the broker says comes in the broker's order: CANCEL, then
//! CANCEL_QUEUE. What the worker says arrives some time later, so both ways are counted with care: a settlement that may
//! have come too late may be an expiry, and one clears the worker for certain only if its caller had the reply before
//! the last expiry can have been.

use std::collections::BTreeMap;

use turno_client::core::{Handed, Held};
use turno_proto::model::{Code, Mono, QueueName};

/// A settlement arrives within this time on a wire that nothing holds up.
const ARRIVAL_MS: u64 = 200;

/// A delivery is at its worker within this time on a wire that nothing holds up.
const LEASE_SLACK_MS: u64 = 500;

/// Deliveries in a row that expire at a worker until this broker drops it; 0: never. It changes with every start.
pub(crate) fn drop_after(broker: usize, run: u64) -> u16 {
    [2, 1, 3, 2, 0][usize::try_from(run).expect("few starts").wrapping_add(broker) % 5]
}

/// When a request was asked for and when its work is worth nothing any more, at the earliest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTimes {
    pub(crate) asked: Mono,
    pub(crate) over: Mono,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DropPlace {
    #[default]
    Consumer,
    Away,
    /// Comes back with one delivery: this one.
    Probing(Option<Held>),
}

#[derive(Clone, Copy, Debug)]
struct Delivery {
    number: u64,
    times: RequestTimes,
    /// It had at least half of its time left.
    fair: bool,
    /// How often the worker had been dropped before, and had lost the queue to another broker's.
    term: u32,
    losses: u32,
}

#[derive(Clone, Copy, Debug)]
struct Settled {
    number: u64,
    at: Mono,
    over: Mono,
    /// When its caller had the reply.
    replied: Option<Mono>,
    /// The worker had it before it was dropped: that may be an expiry, and proves nothing.
    is_old: bool,
}

/// A worker in one queue, on one connection.
#[derive(Debug, Default)]
struct QueueStanding {
    place: DropPlace,
    term: u32,
    losses: u32,
    /// It came back, and perhaps no probe was settled in time.
    on_probation: bool,
    /// Expiries: not before the first, not after the second.
    expired: Vec<(Mono, Mono)>,
    settled: Vec<Settled>,
    /// As many for certain, in a row.
    in_a_row: u16,
}

impl QueueStanding {
    /// Expiries since the worker was cleared for certain, at most; and whether it was.
    fn counted(&self, now: Mono) -> (usize, bool) {
        let last = self.expired.last().map(|(from, _)| *from);
        let clears = |settled: &&Settled| {
            !settled.is_old && settled.replied.zip(last).is_some_and(|(replied, last)| replied < last)
        };
        let cleared = self.settled.iter().filter(clears).map(|settled| settled.at).max();
        let since = cleared.unwrap_or(Mono::ZERO);
        let expired = self.expired.iter().filter(|(_, until)| *until >= since).count();
        let maybe = |settled: &&Settled| settled.at >= since && settled.replied.is_none() && settled.over <= now;
        (expired + self.settled.iter().filter(maybe).count(), cleared.is_some())
    }

    fn begin(&mut self, place: DropPlace) {
        self.place = place;
        self.expired.clear();
        self.settled.clear();
        self.in_a_row = 0;
    }
}

/// One worker's connection: the wire, and what its broker's threshold is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerOutput {
    pub(crate) wire: usize,
    pub(crate) after: u16,
    /// Nothing was ever held up or lost on the wire.
    pub(crate) flawless: bool,
    /// How long the worker may hold a delivery.
    pub(crate) lease_ms: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Drops {
    held: BTreeMap<(usize, Held), (QueueName, Delivery)>,
    standings: BTreeMap<(usize, QueueName), QueueStanding>,
    /// The worker that settled it last.
    settled: BTreeMap<u64, (usize, QueueName)>,
}

impl Drops {
    /// A worker got a request or a send, perhaps over a link; `times` only of a request that wants a reply.
    pub(crate) fn handed(
        &mut self,
        now: Mono,
        post: WorkerOutput,
        number: u64,
        (handed, is_far): (&Handed, bool),
        times: Option<RequestTimes>,
    ) {
        let standing = self.standings.entry((post.wire, handed.queue.clone())).or_default();
        let QueueStanding { place, in_a_row, term, losses, .. } = standing;
        assert!(*place != DropPlace::Away, "S2.32: a worker gets {number} from a queue that it was dropped from");
        // A worker that settled its probe in time is a consumer like others.
        let enough = if matches!(place, DropPlace::Probing(_)) { 1 } else { post.after };
        assert!(
            post.after == 0 || *in_a_row < enough,
            "S2.30: {in_a_row} deliveries expired, and the worker gets {number}"
        );
        if let DropPlace::Probing(probe) = place {
            assert!(probe.is_none(), "S2.32: a worker on probation gets {number} before it settled its probe");
            *probe = Some(handed.held);
        }
        // A delivery without a deadline never expires, but shows that somebody works there.
        let times = times.unwrap_or(RequestTimes { asked: now, over: Mono::from_millis(u64::MAX / 2_000) });
        // A message that was long on its way over a link has a later deadline than its owner's: then half of it is needed.
        let spent_ms = now.millis_since(times.asked) * if is_far { 2 } else { 1 };
        let fair = handed.deadline_ms.is_some_and(|left| spent_ms < u64::from(left));
        // The lease began when it was handed out, some time before it arrived.
        let lease = post.lease_ms.map(|lease_ms| now.plus_millis(lease_ms.saturating_sub(LEASE_SLACK_MS)));
        let times = RequestTimes { over: lease.map_or(times.over, |lease| lease.min(times.over)), ..times };
        let delivery = Delivery { number, times, fair, term: *term, losses: *losses };
        self.held.insert((post.wire, handed.held), (handed.queue.clone(), delivery));
    }

    /// The worker settles a delivery.
    pub(crate) fn settled(&mut self, now: Mono, wire: usize, held: Held) {
        let Some((queue, delivery)) = self.held.remove(&(wire, held)) else { return };
        let Some(standing) = self.standings.get_mut(&(wire, queue.clone())) else { return };
        if standing.place == DropPlace::Away {
            return;
        }
        let is_old = standing.term != delivery.term;
        let Delivery { number, times, .. } = delivery;
        standing.settled.push(Settled { number, at: now, over: times.over, replied: None, is_old });
        self.settled.insert(number, (wire, queue));
        if is_old {
            return;
        }
        standing.in_a_row = 0;
        if standing.place == DropPlace::Probing(Some(held)) {
            standing.place = DropPlace::Consumer;
        }
    }

    /// Somebody else has it, of whom no standing is kept: whatever its caller hears, it hears of that one.
    pub(crate) fn handed_elsewhere(&mut self, number: u64) {
        self.settled.remove(&number);
    }

    /// The caller of what was written only once has its reply: it was settled in time.
    pub(crate) fn replied(&mut self, now: Mono, number: u64) {
        let Some(key) = self.settled.remove(&number) else { return };
        let Some(standing) = self.standings.get_mut(&key) else { return };
        if let Some(settled) = standing.settled.iter_mut().rev().find(|settled| settled.number == number) {
            settled.replied = Some(now);
        }
    }

    /// The broker wants a delivery no more.
    pub(crate) fn stopped(&mut self, now: Mono, post: WorkerOutput, held: Held, reason: Code) {
        let Some((queue, delivery)) = self.held.remove(&(post.wire, held)) else { return };
        let Some(standing) = self.standings.get_mut(&(post.wire, queue)) else { return };
        if standing.place == DropPlace::Away {
            return;
        }
        if let DropPlace::Probing(probe) = &mut standing.place {
            probe.take_if(|probe| *probe == held);
        }
        let is_lease = reason == Code::LeaseExpired;
        if !is_lease && reason != Code::TimedOut {
            return;
        }
        // Deliveries from before it was dropped count too, once it is a consumer like others again.
        standing.expired.push((delivery.times.over, now));
        // A settlement may have arrived after the expiry before this one.
        let spoke = standing.settled.last().is_some_and(|last| last.at.plus_millis(ARRIVAL_MS) > delivery.times.over);
        if (spoke && standing.in_a_row == 0) || !post.flawless {
            standing.in_a_row = 0;
        } else if (delivery.fair || is_lease) && (standing.term, standing.losses) == (delivery.term, delivery.losses) {
            standing.in_a_row += 1;
        }
    }

    /// The broker drops the worker from a queue.
    pub(crate) fn dropped(&mut self, now: Mono, post: WorkerOutput, queue: &QueueName) {
        let standing = self.standings.entry((post.wire, queue.clone())).or_default();
        assert!(post.after > 0, "S2.31: a worker was dropped though nobody ever is");
        let (counted, cleared) = standing.counted(now);
        let enough = if standing.on_probation && !cleared { 1 } else { usize::from(post.after) };
        assert!(counted >= enough, "S2.30: a worker was dropped after {counted} expiries in a row, not {enough}");
        standing.begin(DropPlace::Away);
        standing.term += 1;
    }

    /// The worker has lost the queue to one that has it to itself elsewhere, as if it had left. What it still has of it
    /// counts against it only if it has the queue again by then.
    pub(crate) fn lost(&mut self, wire: usize, queue: &QueueName) {
        let standing = self.standings.entry((wire, queue.clone())).or_default();
        if let DropPlace::Probing(probe) = &mut standing.place {
            *probe = None;
        }
        standing.in_a_row = 0;
        standing.losses += 1;
    }

    /// The broker takes the worker again.
    pub(crate) fn returned(&mut self, wire: usize, queue: &QueueName) {
        let standing = self.standings.entry((wire, queue.clone())).or_default();
        standing.begin(DropPlace::Probing(None));
        standing.on_probation = true;
    }

    /// Whether the worker was dropped from the queue, or is about to be.
    pub(crate) fn is_away(&self, wire: usize, queue: &QueueName) -> bool {
        self.standings.get(&(wire, queue.clone())).is_some_and(|standing| standing.place == DropPlace::Away)
    }
}
