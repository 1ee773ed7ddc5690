//! Messages that outlived the broker: what their records say becomes messages again.

use turno_proto::model::{Cost, Mono, Payload};

use crate::messages::Messages;
use crate::messages::disk::persist::{AttemptMark, Record, RecoveredMessage, Wait};
use crate::messages::queues::priority_level::Cold;
use crate::messages::stats::bytes_of;
use crate::messages::table::chain::ChainLinks;
use crate::messages::table::message::{Flags, Message, MessageStage, Wants};

impl Messages {
    /// Takes back a message that outlived the last run. For the start, before the first input, in the order of the
    /// serials. One that was tried before stays in memory, before those that only the store holds.
    pub(crate) fn recover(&mut self, survivor: RecoveredMessage) {
        let RecoveredMessage { serial, record, mark } = survivor;
        let name = &record.queue;
        let number = self.queues.number_of(name).unwrap_or_else(|| self.queues.create(name.clone()));
        self.durable.len += 1;
        self.messages.go_on_after(serial);
        let Some(AttemptMark { attempts, failure, wait }) = mark else {
            return self.recover_fresh(number, serial, record);
        };
        let mut message = self.revive(number, serial, record, attempts);
        message.flags.set(Flags::MARKED);
        self.add_bytes(number, bytes_of(message.bytes.len()));
        let index = self.messages.insert_again(message);
        if let Some(failure) = failure {
            return self.lay(index, Payload::body(failure));
        }
        // A clock that was set back makes no wait longer than it was.
        let until = wait.map(|Wait { until_unix_ms, all_ms }| {
            self.settings.mono_within(until_unix_ms, self.started, u64::from(all_ms))
        });
        match until {
            Some(until) if until > self.now => self.delay(index, until),
            _ => self.recover_waiting(number, index),
        }
    }

    /// One that was never tried.
    fn recover_fresh(&mut self, number: u32, serial: u64, record: Record) {
        let (priority, length) = (record.priority, record.payload.len());
        if let Some(until) = self.due_of(serial, &record).filter(|until| *until > self.now) {
            return self.keep_delayed_cold(number, (until, serial), priority, length);
        }
        if self.stays_cold(number, priority, bytes_of(length)) {
            self.keep_cold(number, priority, Cold::new(serial, length));
            self.stats.ready += 1;
            return;
        }
        let message = self.revive(number, serial, record, 0);
        self.add_bytes(number, bytes_of(message.bytes.len()));
        let index = self.messages.insert_again(message);
        self.recover_waiting(number, index);
    }

    fn recover_waiting(&mut self, number: u32, index: u32) {
        self.queues.at_mut(number).backlog.push_hot(&mut self.messages, index);
        self.stats.ready += 1;
        self.arm_deadline(index);
    }

    /// When a message arrived. By a clock that was set back since, what came before the start may be in the future. It may also be
    /// read from the disk long after the start.
    fn born(&self, serial: u64, born_unix_ms: u64) -> Mono {
        let came_before = self.settings.store.is_some_and(|store| serial <= store.last_serial);
        let latest = if came_before { self.started } else { self.now };
        self.settings.mono_within(born_unix_ms, latest, 0)
    }

    /// When a message is due whose sender delayed it.
    fn due_of(&self, serial: u64, record: &Record) -> Option<Mono> {
        let Record { born_unix_ms, due_unix_ms, .. } = *record;
        due_unix_ms.map(|due_unix_ms| {
            let all_ms = due_unix_ms.saturating_sub(born_unix_ms);
            self.settings.mono_within(due_unix_ms, self.born(serial, born_unix_ms), all_ms)
        })
    }

    /// The message that a record was made of, as one that waits.
    pub(in crate::messages) fn revive(&self, queue: u32, serial: u64, record: Record, attempts: u16) -> Message {
        let Record { priority, cost, retries, born_unix_ms, deadline_unix_ms, payload, .. } = record;
        let born = self.born(serial, born_unix_ms);
        let deadline = deadline_unix_ms.map(|deadline_unix_ms| {
            let all_ms = deadline_unix_ms.saturating_sub(born_unix_ms);
            self.settings.mono_within(deadline_unix_ms, born, all_ms)
        });
        let mut flags = Flags::with_headers(payload.headers);
        flags.set(Flags::DURABLE);
        if attempts > 0 {
            flags.set(Flags::MARKED);
        }
        Message {
            serial,
            bytes: payload.bytes,
            flags,
            origin: None,
            state: MessageStage::Waiting,
            wants: Wants::Settling,
            queue,
            stamp: 0,
            born,
            deadline,
            timer: None,
            attempts,
            retries,
            priority,
            cost: Cost::from_word(cost),
            place: ChainLinks::default(),
            owned: ChainLinks::default(),
        }
    }
}
