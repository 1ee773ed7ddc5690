//! Each message by its id: whether it was confirmed as stored, when it was delivered, how it ended.
//!
//! A broker with a store has several lives, and its messages outlive them. What they may and may not do is judged here:
//! nothing that was confirmed as stored on disk is lost (I1), and nothing is handed out more often than allowed (I2).

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::MessageId;

use crate::clocks::{Clocks, Span};

/// The contents of a store, read without the broker's help.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreContents {
    /// The number that the ids of its messages share.
    pub(crate) run: u64,
    /// The serials of its messages.
    pub(crate) messages: BTreeSet<u64>,
    /// Those whose attempts are written down.
    pub(crate) marked: BTreeSet<u64>,
    /// Those that are dead letters.
    pub(crate) dead: BTreeSet<u64>,
    /// The numbers that their bodies say, by serial.
    pub(crate) numbers: BTreeMap<u64, u64>,
}

/// One way through a broker: what was handed out, in which of its lives, as which attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptSeen {
    /// Only sends may come again as the same attempt: when their worker was lost and it is not clear what of.
    pub(crate) send: bool,
    pub(crate) id: MessageId,
    /// The life of the broker that wrote it.
    pub(crate) life: u64,
    pub(crate) attempt: u16,
    pub(crate) retries: u64,
}

/// A message that its sender knows to be on disk.
#[derive(Clone, Copy, Debug)]
struct AcknowledgedMessage {
    number: u64,
    /// How long it is worth delivering, if not for ever.
    worth: Option<Span>,
    /// How long it is to be held back.
    delay: Option<Span>,
}

#[derive(Debug, Default)]
pub(crate) struct Letters {
    told: BTreeMap<MessageId, AcknowledgedMessage>,
    /// Deliveries, by message, life and attempt. Ids of requests may come again in another life.
    handed: BTreeMap<(u64, MessageId), BTreeSet<(u64, u16)>>,
    /// Connections over which sends were handed out.
    wires: BTreeMap<(MessageId, u64, u16), BTreeSet<usize>>,
    /// A worker that left may have given it back, and then that attempt never was.
    returnable: BTreeSet<(u64, MessageId)>,
    /// A worker did it and said so.
    done: BTreeSet<MessageId>,
    /// The same of workers that are not told ids, by the number of the message.
    done_numbers: BTreeSet<u64>,
    /// The numbers of messages, by run and serial, as far as a disk or a sender has told.
    numbers: BTreeMap<(u64, u64), u64>,
    /// Dead letters that a broker found on its disk, and the first life that did.
    dead: BTreeMap<(u64, u64), u64>,
}

impl Letters {
    /// A sender heard that its message is on disk.
    pub(crate) fn told(&mut self, number: u64, id: MessageId, worth: Option<Span>, delay: Option<Span>) {
        self.numbers.insert((id.run(), id.serial()), number);
        let before = self.told.insert(id, AcknowledgedMessage { number, worth, delay });
        assert!(before.is_none(), "I1: two messages were stored under one id");
    }

    /// A worker got a message (I2): once for each of its attempts, and once more for each life of the broker that
    /// ended before the outcome was on disk. A send may come again as the same attempt, but not while its last worker
    /// is there: see `hearing`.
    pub(crate) fn handed(&mut self, number: u64, handing: AttemptSeen) {
        let AttemptSeen { send, id, life, attempt, retries } = handing;
        let all = self.handed.entry((number, id)).or_default();
        // In any order: an attempt may be on its way when the next one arrives.
        let first = all.insert((life, attempt)) || send || self.returnable.contains(&(number, id));
        assert!(first, "I2: {number} comes as attempt {attempt} twice");
        let lives: BTreeSet<u64> = all.iter().map(|(life, _)| *life).collect();
        let (count, most) = (all.len() as u64, retries + lives.len() as u64);
        assert!(count <= most, "I2: {number} was handed out {count} times in {} lives, {most} allowed", lives.len());
        let died = self.dead.get(&(id.run(), id.serial())).filter(|_| is_durable(id));
        assert!(died.is_none_or(|found| life < *found), "I2: {number} was a dead letter, and is handed out again");
    }

    /// A worker gets a message that its broker handed out just now: not after its time is over, whatever became of clocks
    /// while the broker was away (S2.38).
    pub(crate) fn judge_time(&self, clocks: &Clocks, id: MessageId, life: u64, late_ms: u64) {
        let Some(AcknowledgedMessage { number, worth: Some(worth), .. }) = self.told.get(&id).copied() else { return };
        let over_ms = clocks.over_for_ms(clocks.broker_of(id.run()), life, worth);
        assert!(over_ms <= late_ms, "S2.38: {number} is handed out {over_ms} ms after its time");
    }

    /// A worker has a message: not before its delay was over, by whatever clock, though the broker restarted meanwhile (S2.42, S2.43).
    pub(crate) fn judge_delay(&self, clocks: &Clocks, id: MessageId) {
        let Some(AcknowledgedMessage { number, delay: Some(delay), .. }) = self.told.get(&id).copied() else { return };
        let over = clocks.may_be_over(clocks.broker_of(id.run()), delay);
        assert!(over, "S2.42: {number} is handed out before its time: {delay:?}, it is {:?}", clocks.now);
    }

    /// Where a send was handed out as that attempt, over all of its deliveries.
    pub(crate) fn holders(&mut self, id: MessageId, life: u64, attempt: u16, wire: usize) -> Vec<usize> {
        let wires = self.wires.entry((id, life, attempt)).or_default();
        wires.insert(wire);
        wires.iter().copied().collect()
    }

    /// An operator puts the dead letters of that store back into their queues: attempts begin anew, and a time that is over
    /// counts no more.
    pub(crate) fn put_back(&mut self, run: u64) {
        for ((_, serial), _) in self.dead.extract_if((run, 0)..=(run, u64::MAX), |_, _| true) {
            let letter = MessageId::new(run, serial, u32::MAX);
            self.handed.retain(|(_, id), _| *id != letter);
            if let Some(told) = self.told.get_mut(&letter) {
                told.worth = None;
            }
        }
        self.wires.retain(|(id, ..), _| id.run() != run);
    }

    pub(crate) fn may_come_back(&mut self, number: u64, id: MessageId) {
        self.returnable.insert((number, id));
    }

    pub(crate) fn done(&mut self, id: MessageId) {
        self.done.insert(id);
    }

    /// The same of a worker that was not told its id.
    pub(crate) fn done_number(&mut self, number: u64) {
        self.done_numbers.insert(number);
    }

    pub(crate) fn is_done(&self, id: MessageId) -> bool {
        let number = self.numbers.get(&(id.run(), id.serial())).filter(|_| is_durable(id));
        self.done.contains(&id) || number.is_some_and(|number| self.done_numbers.contains(number))
    }

    /// Whether a worker that was not told its id has done it.
    pub(crate) fn is_number_done(&self, number: u64) -> bool {
        self.done_numbers.contains(&number)
    }

    /// A message is on a disk. `is_stored`: nobody was told so, and it is a promise all the same.
    pub(crate) fn found(&mut self, run: u64, serial: u64, number: u64, is_stored: bool) {
        self.numbers.insert((run, serial), number);
        if is_stored {
            self.told.entry(MessageId::new(run, serial, u32::MAX)).or_insert(AcknowledgedMessage {
                number,
                worth: None,
                delay: None,
            });
        }
    }

    /// A broker came back to its disk. What it does not find there is lost: nobody's promise may be among it.
    pub(crate) fn reopened(&mut self, clocks: &Clocks, life: u64, truth: &StoreContents) {
        let StoreContents { run, messages, marked, dead, .. } = truth;
        for (id, told) in self.told.iter().filter(|(id, _)| id.run() == *run) {
            let expired = told.worth.is_some_and(|worth| clocks.may_be_over(clocks.broker_of(id.run()), worth));
            let over = self.is_done(*id) || self.is_number_done(told.number) || expired;
            let there = messages.contains(&id.serial());
            let AcknowledgedMessage { number, worth, .. } = told;
            assert!(
                there || over,
                "I1: {number} was confirmed, nobody has done it, and it is not on disk; worth {worth:?}"
            );
        }
        for (_, serial) in self.dead.range((*run, 0)..=(*run, u64::MAX)).map(|(key, _)| key) {
            assert!(dead.contains(serial), "I2: {serial} was a dead letter on disk, and is none any more");
        }
        let stray = marked.difference(messages).next();
        assert!(stray.is_none(), "I2: the disk counts attempts of {stray:?}, which is gone");
        for serial in dead {
            self.dead.entry((*run, *serial)).or_insert(life);
        }
    }

    /// All is quiet: a message that is still on the disk is a dead letter, and every dead letter is on the disk.
    pub(crate) fn judge(&mut self, clocks: &Clocks, life: u64, truth: &StoreContents, dead: u64) {
        self.reopened(clocks, life, truth);
        let left = truth.messages.difference(&truth.dead).next();
        assert!(left.is_none(), "I1: {left:?} is on the disk, and the broker knows nothing of it");
        let written = truth.dead.len() as u64;
        assert_eq!(written, dead, "I2: {dead} dead letters, {written} of them on the disk");
    }
}

/// Ids that hold in every life of a broker name no place.
pub(crate) fn is_durable(id: MessageId) -> bool {
    id.place().is_none()
}
