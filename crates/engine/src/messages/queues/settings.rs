//! Queue settings and purges.

use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::limits::{DROP_AFTER_MAX, PORTION_MAX, RETRY_DELAY_MS_MAX, WEIGHT_MAX};
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{Code, ConnId, QueueName, Seconds};

use crate::effect::{PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::queues::queue::Queue;

impl Messages {
    /// Removes messages that wait, a portion at most. What runs, what is being stored and what is dead stays.
    pub(in crate::messages) fn purge(
        &mut self,
        queue: &str,
        limit: u32,
        out: &mut impl Sink,
    ) -> Result<AdminAnswer, Code> {
        let number = self.queues.find(queue).ok_or(Code::NotFound)?;
        let mut done = 0;
        while done < limit.min(PORTION_MAX) as usize && self.purge_one(number, out) {
            done += 1;
        }
        Ok(self.portion(done, number, |queue| u64::from(queue.backlog.len()) + queue.delayed.len()))
    }

    /// Ends the message whose turn it is; false if none waits. With the last one the queue may be forgotten.
    fn purge_one(&mut self, number: u32, out: &mut impl Sink) -> bool {
        let Some(queue) = self.queues.get(number) else { return false };
        if let Some(head) = queue.backlog.head() {
            self.cancel(head, out);
        } else if let Some((priority, serial)) = queue.backlog.first_cold() {
            self.cancel_cold(number, priority, serial);
        } else {
            return self.purge_delayed(number, out);
        }
        true
    }

    /// How much a call has done, and how much of that kind is left.
    pub(in crate::messages) fn portion(&self, done: usize, number: u32, left: impl Fn(&Queue) -> u64) -> AdminAnswer {
        let left = self.queues.get(number).map_or(0, left);
        AdminAnswer::Portion { done: done as u64, left }
    }

    /// Changes those of a queue's own settings that are given, or takes all back; `None`: the usual ones. They hold, and
    /// the admin is answered, once they are on disk.
    pub(in crate::messages) fn set_queue(
        &mut self,
        conn: ConnId,
        seq: u32,
        queue: &str,
        settings: Option<QueueSettings>,
        out: &mut impl Sink,
    ) {
        match self.may_set(queue, settings) {
            Err(code) => out.peer(PeerEffect::Answer { conn, seq, result: Err(code) }),
            Ok(queue) => {
                let settings = settings.map(|change| self.latest_settings(&queue).changed_by(change));
                match self.settings.store {
                    Some(_) => self.store_settings(conn, seq, queue, settings),
                    None => self.settings_hold(conn, seq, queue, settings, out),
                }
            }
        }
    }

    /// The settings of the queue once all changes on their way are stored.
    fn latest_settings(&self, queue: &QueueName) -> QueueSettings {
        let held = || self.queues.number_of(queue).and_then(|number| self.queues.at(number).settings());
        self.durable.latest_settings(queue).unwrap_or_else(held).unwrap_or_default()
    }

    fn may_set(&self, queue: &str, settings: Option<QueueSettings>) -> Result<QueueName, Code> {
        let name: QueueName = queue.parse().map_err(|_| Code::BadName)?;
        let known = self.queues.number_of(&name).is_some();
        match settings {
            None if !known => Err(Code::NotFound),
            Some(_) if !known && self.queues.len() >= self.settings.limits.queues_max => Err(Code::TooManyQueues),
            Some(QueueSettings { durable: Some(true), .. }) if self.settings.store.is_none() => Err(Code::NoStore),
            Some(QueueSettings { drop_after: Some(count), .. }) if count > DROP_AFTER_MAX => Err(Code::BadCall),
            Some(settings) if !self.fit_waits(&name, settings) => Err(Code::BadCall),
            Some(QueueSettings { weight: Some(weight), .. }) if !(1..=WEIGHT_MAX).contains(&weight) => {
                Err(Code::BadCall)
            }
            _ => Ok(name),
        }
    }

    /// Whether the waits that a queue would have are allowed, and the first is not longer than the longest.
    fn fit_waits(&self, queue: &QueueName, change: QueueSettings) -> bool {
        let QueueSettings { retry_delay_seconds: first, retry_delay_max_seconds: most, .. } =
            self.latest_settings(queue).changed_by(change);
        let allowed = |wait: Option<Seconds>| wait.is_none_or(|wait| wait.as_millis() <= RETRY_DELAY_MS_MAX);
        allowed(first) && allowed(most) && first.zip(most).is_none_or(|(first, most)| first <= most)
    }

    /// From now on they count.
    pub(in crate::messages) fn settings_hold(
        &mut self,
        conn: ConnId,
        seq: u32,
        queue: QueueName,
        settings: Option<QueueSettings>,
        out: &mut impl Sink,
    ) {
        let number = self.put_settings(queue, settings);
        let answer = Box::new(AdminAnswer::Queue { queue: Box::new(self.queue_view(number)) });
        self.queues.forget_if_idle(number);
        out.peer(PeerEffect::admin(conn, seq, answer));
    }

    /// Takes back the settings of a queue that outlived the last run. For the start, before the first input.
    pub(crate) fn recover_queue(&mut self, queue: QueueName, settings: QueueSettings) {
        self.put_settings(queue, Some(settings));
    }

    fn put_settings(&mut self, queue: QueueName, settings: Option<QueueSettings>) -> u32 {
        let number = self.queues.number_of(&queue).unwrap_or_else(|| self.queues.create(queue));
        self.queues.at_mut(number).set(settings);
        number
    }
}
