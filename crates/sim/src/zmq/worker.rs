//! ZeroMQ peers that work: they answer well, late, twice, for others, or not at all.

use std::collections::VecDeque;

use bytes::Bytes;
use turno_proto::model::Mono;

use super::kind::{Kind, MdpCommand};
use crate::body;
use crate::rng::Rng;

/// A plan for a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryPlan {
    Answer,
    /// First a piece.
    Stream,
    Twice,
    /// It answers for another delivery as well.
    Forge,
    /// First without an envelope, so that the broker does not know what it answers.
    Bare,
    /// Not before somebody makes it.
    Never,
}

#[derive(Clone, Debug)]
struct ZmqDelivery {
    /// The envelope that it came in.
    name: Bytes,
    number: u64,
    manner: DeliveryPlan,
}

#[derive(Debug)]
pub(crate) struct ZmqWorker {
    kind: Kind,
    slots: usize,
    /// Never forges, hangs or dawdles.
    good: bool,
    jobs: VecDeque<ZmqDelivery>,
}

/// A delivery, as a number that the agenda can hold.
pub(crate) type Key = u64;

impl ZmqWorker {
    pub(crate) const fn new(kind: Kind, slots: usize, good: bool) -> Self {
        Self { kind, slots, good, jobs: VecDeque::new() }
    }

    pub(crate) fn parted(&mut self) {
        self.jobs.clear();
    }

    /// The weather is over: what it never meant to finish is finished.
    pub(crate) fn behave(&mut self) -> Vec<Key> {
        self.good = true;
        let hung = self.jobs.iter_mut().filter(|job| job.manner == DeliveryPlan::Never);
        let key_of = |job: &mut ZmqDelivery| {
            job.manner = DeliveryPlan::Answer;
            key(&job.name)
        };
        hung.map(key_of).collect()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Something came. If it is a delivery that is begun now: which, and when it will be done.
    pub(crate) fn hear(&mut self, now: Mono, parts: &[Bytes], rng: &mut Rng) -> Option<(Key, Mono)> {
        let [name, _, parts @ ..] = parts.strip_prefix(&self.kind.head(MdpCommand::Request)[..])? else { return None };
        let number = body::number_of_parts(parts).expect("I4: a ZeroMQ worker gets other frames than were sent");
        let manner = match rng.range(0, if self.good { 6 } else { 16 }) {
            0 if self.streams() => DeliveryPlan::Stream,
            6 if self.kind != Kind::Rep => DeliveryPlan::Twice,
            7 if self.kind != Kind::Rep => DeliveryPlan::Forge,
            8 if self.kind != Kind::Rep => DeliveryPlan::Bare,
            9 if rng.once_in(3) => DeliveryPlan::Never,
            _ => DeliveryPlan::Answer,
        };
        self.jobs.push_back(ZmqDelivery { name: name.clone(), number, manner });
        // A REP socket has its program look at one after the other.
        if self.kind == Kind::Rep && self.jobs.len() > 1 { None } else { self.begins(now, self.jobs.len() - 1, rng) }
    }

    fn streams(&self) -> bool {
        matches!(self.kind, Kind::MdpWorker { version: super::kind::Version::Two, .. })
    }

    fn begins(&self, now: Mono, at: usize, rng: &mut Rng) -> Option<(Key, Mono)> {
        let job = self.jobs.get(at)?;
        let due = match job.manner {
            DeliveryPlan::Never => return None,
            _ if !self.good && rng.once_in(20) => now.plus_millis(rng.range(1_000, 9_000)),
            _ => Mono::from_micros(now.as_micros() + rng.range(0, 60_000)),
        };
        Some((key(&job.name), due))
    }

    /// The time for a delivery has come: what it says, and what it begins next.
    pub(crate) fn finish(&mut self, now: Mono, done: Key, rng: &mut Rng) -> (Vec<Vec<Bytes>>, Option<(Key, Mono)>) {
        let Some(at) = self.jobs.iter().position(|job| key(&job.name) == done) else { return (Vec::new(), None) };
        let Some(job) = self.jobs.remove(at) else { return (Vec::new(), None) };
        let next = if self.kind == Kind::Rep { self.begins(now, 0, rng) } else { None };
        let right = self.reply(MdpCommand::Final, &job.name, body::answer_parts(job.number));
        let says = match job.manner {
            DeliveryPlan::Answer | DeliveryPlan::Never => vec![right],
            DeliveryPlan::Stream => vec![self.reply(MdpCommand::Partial, &job.name, body::parts_of(job.number)), right],
            DeliveryPlan::Twice => vec![right.clone(), right],
            DeliveryPlan::Forge => {
                vec![self.reply(MdpCommand::Final, &self.other(&job, rng), vec!["forged".into()]), right]
            }
            DeliveryPlan::Bare => vec![body::answer_parts(job.number), right],
        };
        (says, next)
    }

    /// A delivery that is none of its own, as near as can be guessed.
    fn other(&self, job: &ZmqDelivery, rng: &mut Rng) -> Bytes {
        let (index, stamp) = (key(&job.name) >> 32, key(&job.name) & u64::from(u32::MAX));
        // Only older ones: a newer one might be its own and still on the way.
        let claimed = (index + rng.range(0, 3)) << 32 | stamp.saturating_sub(rng.range(self.slots as u64, 20));
        let own = self.jobs.iter().any(|job| key(&job.name) == claimed);
        if own { Bytes::from_static(b"nobody's") } else { Bytes::copy_from_slice(&claimed.to_be_bytes()) }
    }

    fn reply(&self, word: MdpCommand, name: &Bytes, parts: Vec<Bytes>) -> Vec<Bytes> {
        let mut frames = self.kind.head(word);
        frames.extend([name.clone(), Bytes::new()]);
        frames.extend(parts);
        frames
    }
}

/// The number of a delivery. The ledger has seen that there is one.
fn key(name: &Bytes) -> Key {
    name.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
