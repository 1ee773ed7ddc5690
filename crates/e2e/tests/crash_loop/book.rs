//! What was said and what was heard, and whether both can be true of a broker that loses nothing.

use std::sync::Mutex;

use turno_proto::model::{Durability, MessageId};

/// Redeliveries of a message that every worker fails.
pub(crate) const POISON_RETRIES: u8 = 2;
/// Redeliveries of one that only crashes and lost workers hold up.
pub(crate) const RETRIES: u8 = 255;
/// Workers of each life that are lost.
const MORTAL_WORKERS: usize = 2;
/// The queue of all of it.
pub(crate) const QUEUE: &str = "crash";

/// Every so many messages one that no worker can do.
const POISON_EVERY: u64 = 19;
/// Every so many a long one, so that batches are torn in the middle of bodies.
const LONG_EVERY: u64 = 23;

/// What is known of one message.
#[derive(Debug, Default)]
struct Fate {
    id: Option<MessageId>,
    is_confirmed: bool,
    is_refused: bool,
    /// Life of the broker and attempt, in the order in which they came.
    deliveries: Vec<(u32, u16)>,
    /// The life in which a worker that stayed said that it is done.
    acked: Option<u32>,
    /// A worker that went away afterwards said so: the broker may not have heard it.
    is_perhaps_acked: bool,
    /// A broker that ended in order had heard that it is done.
    is_settled: bool,
}

/// The book of the whole test. What cannot be is noted, not panicked about: the other threads go on.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    fates: Vec<Fate>,
    wrong: Vec<String>,
}

pub(crate) const fn is_poison(number: u64) -> bool {
    number % POISON_EVERY == 3
}

/// The whole body follows from its number: any other byte is damage.
pub(crate) fn body_of(number: u64) -> Vec<u8> {
    let len = if number % LONG_EVERY == 5 { 20_000 } else { 8 + number % 200 };
    let mut body = number.to_le_bytes().to_vec();
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    while (body.len() as u64) < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        body.extend_from_slice(&state.to_le_bytes());
    }
    body
}

impl Book {
    fn with<R>(&self, with: impl FnOnce(&mut Pages) -> R) -> R {
        with(&mut self.pages.lock().expect("no writer of the book panics"))
    }

    /// A message will be sent; its number.
    pub(crate) fn next(&self) -> u64 {
        self.with(|pages| {
            pages.fates.push(Fate::default());
            pages.fates.len() as u64 - 1
        })
    }

    pub(crate) fn confirmed(&self, number: u64, id: MessageId, durability: Durability) {
        self.with(|pages| {
            pages.must(durability == Durability::Disk, || format!("{number} is stored in {durability:?}"));
            pages.must_have_id(number, id);
            pages.fate(number).is_confirmed = true;
        });
    }

    pub(crate) fn refused(&self, number: u64) {
        self.with(|pages| pages.fate(number).is_refused = true);
    }

    /// A delivery came; the number of what it carries, if there is such a message.
    pub(crate) fn delivered(&self, life: u32, id: MessageId, attempt: u16, body: &[u8]) -> Option<u64> {
        let number = body.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        self.with(|pages| {
            let Some(number) = number.filter(|number| *number < pages.fates.len() as u64 && body == body_of(*number))
            else {
                pages.wrong.push(format!("life {life}: nobody sent {number:?} with {} bytes", body.len()));
                return None;
            };
            pages.must_have_id(number, id);
            pages.must_be_due(number, life, attempt);
            pages.fate(number).deliveries.push((life, attempt));
            Some(number)
        })
    }

    /// A worker is about to say that it is done. One that does not stay may not be heard.
    pub(crate) fn acked(&self, number: u64, life: u32, stays: bool) {
        self.with(|pages| {
            let fate = pages.fate(number);
            fate.is_perhaps_acked = true;
            if stays {
                fate.acked = Some(life);
            }
        });
    }

    /// That life ended in order: what was done in it is done for good.
    pub(crate) fn ended_in_order(&self, life: u32) {
        self.with(|pages| {
            for fate in pages.fates.iter_mut().filter(|fate| fate.acked == Some(life)) {
                fate.is_settled = true;
            }
        });
    }

    /// Some messages that surely wait: confirmed, and nobody had them yet.
    pub(crate) fn waiting(&self, count: usize) -> Vec<MessageId> {
        self.with(|pages| {
            let waiting = pages.fates.iter().filter(|fate| fate.is_confirmed && fate.deliveries.is_empty());
            waiting.filter_map(|fate| fate.id).take(count).collect()
        })
    }

    /// The messages that must be dead letters at the end, with their numbers.
    pub(crate) fn dead(&self) -> Vec<(u64, MessageId)> {
        self.with(|pages| {
            let poison = (0..).zip(&pages.fates).filter(|(number, _)| is_poison(*number));
            poison.filter_map(|(number, fate)| Some((number, fate.id?))).collect()
        })
    }

    /// How many may be dead letters though nobody knows their ids: the broker ended before it confirmed them, and every
    /// worker that had them was gone before it read them.
    fn dead_unheard(&self) -> u64 {
        self.with(|pages| {
            let poison = (0..).zip(&pages.fates).filter(|(number, _)| is_poison(*number));
            poison.filter(|(_, fate)| fate.id.is_none() && !fate.is_refused).count() as u64
        })
    }

    /// Whether so many dead letters are all that must be and none that cannot be.
    pub(crate) fn can_be_dead(&self, count: u64) -> bool {
        let known = self.dead().len() as u64;
        (known..=known + self.dead_unheard()).contains(&count)
    }

    /// Confirmed messages of which nobody said that they are done. At the end there must be none.
    pub(crate) fn open(&self) -> Vec<u64> {
        self.with(|pages| {
            let all = (0..).zip(&pages.fates).filter(|(number, _)| !is_poison(*number));
            all.filter(|(_, fate)| fate.is_confirmed && !fate.is_perhaps_acked).map(|(number, _)| number).collect()
        })
    }

    /// How many were sent, confirmed, and delivered more than once.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        self.with(|pages| {
            let count = |is: fn(&Fate) -> bool| pages.fates.iter().filter(|fate| is(fate)).count();
            (pages.fates.len(), count(|fate| fate.is_confirmed), count(|fate| fate.deliveries.len() > 1))
        })
    }

    /// What cannot be.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.with(|pages| pages.wrong.clone())
    }
}

impl Pages {
    fn fate(&mut self, number: u64) -> &mut Fate {
        &mut self.fates[usize::try_from(number).expect("few messages")]
    }

    fn must(&mut self, is_true: bool, or: impl FnOnce() -> String) {
        if !is_true {
            self.wrong.push(or());
        }
    }

    /// A message has one id, for ever.
    fn must_have_id(&mut self, number: u64, id: MessageId) {
        let known = *self.fate(number).id.get_or_insert(id);
        self.must(known == id, || format!("{number} was {known} and is {id}"));
    }

    /// An attempt is written down before the next one, so a crash repeats at most the last one: attempts do not fall. Within
    /// a life one comes again only after its worker was lost, and two workers of each life are.
    fn must_be_due(&mut self, number: u64, life: u32, attempt: u16) {
        let retries = if is_poison(number) { POISON_RETRIES } else { RETRIES };
        let fate = self.fate(number);
        let is_due = match fate.deliveries.last() {
            None => true,
            Some((_, last)) => *last <= attempt,
        };
        let same = fate.deliveries.iter().filter(|delivery| **delivery == (life, attempt)).count();
        let is_due = is_due && same <= MORTAL_WORKERS;
        let is_due = is_due && attempt <= u16::from(retries) + 1;
        let is_over = fate.is_refused || fate.is_settled || fate.acked == Some(life);
        let known = format!("{number}, attempt {attempt} in life {life}: {fate:?}");
        self.must(is_due, || format!("out of turn: {known}"));
        self.must(!is_over, || format!("delivered although it is over: {known}"));
    }
}
