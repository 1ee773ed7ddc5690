//! Explanations: the reason why a message waits.

use turno_proto::model::view::{Because, Explanation, MessageState, MessageView, Reason};
use turno_proto::model::{ConnId, MessageId, Mono, Seconds, WorkerId};

use crate::messages::Messages;
use crate::messages::links::{FarWorkers, LinkCounts};
use crate::messages::table::chain::Lane;
use crate::messages::table::message::{Message, MessageStage};
use crate::messages::worker_lost::WorkerTrust;

impl Messages {
    /// Messages that go before it are counted no further than `ahead_max`: a long backlog is not walked to its end.
    pub(super) fn explain(&self, index: u32, ahead_max: u64) -> Explanation {
        Explanation { message: self.message_view(index), because: Because(self.reason(index, ahead_max)) }
    }

    /// The same of a message that only the store holds, which `message` was made of.
    pub(super) fn explain_cold(&self, message: &Message, ahead_max: u64) -> Explanation {
        let backlog = &self.queues.at(message.queue).backlog;
        let ahead = backlog.ahead_of_cold(&self.messages, message.priority, message.serial, ahead_max);
        let id = self.settings.id(message.serial, None);
        let has_room = self.drain.is_none() && self.pick(message.queue, message.cost.slots().into()).is_some();
        let reason = match self.loads.is_short(message.queue) && has_room {
            true => Reason::WaitsForMemory { ahead },
            false => self.why_waiting(message, ahead),
        };
        Explanation { message: self.view_of(message, id), because: Because(reason) }
    }

    /// The same of a delayed message that only the store holds.
    pub(super) fn explain_delayed(&self, message: &Message, until: Mono) -> Explanation {
        let id = self.settings.id(message.serial, None);
        Explanation { message: self.view_of(message, id), because: Because(self.why_delayed(message, until)) }
    }

    fn why_delayed(&self, message: &Message, until: Mono) -> Reason {
        let left_seconds = Seconds::from_millis(until.millis_left(self.now));
        Reason::Delayed { until: self.settings.moment(until), left_seconds, failed: u64::from(message.attempts) }
    }

    fn reason(&self, index: u32, ahead_max: u64) -> Reason {
        let message = &self.messages[index];
        match message.state {
            MessageStage::Held { worker, age_ms, .. } => {
                let since_ms = self.now.millis_since(message.born.plus_millis(u64::from(age_ms)));
                let since_seconds = Seconds::from_millis(since_ms);
                if let Some((broker, name)) = self.links.far_end(worker) {
                    return Reason::AtLink { broker, name, since_seconds };
                }
                let record = self.peers.worker(worker).expect("a delivery's holder is a worker");
                Reason::AtWorker { worker: WorkerId(record.id), name: record.name.clone(), since_seconds }
            }
            MessageStage::Broadcast => {
                let tally = &self.broadcasts[&index];
                let parts = tally.parts.iter(&self.messages, Lane::Owned);
                let far = parts.filter(|part| self.is_at_link(*part)).count() as u64;
                // A broker counts as one consumer until it tells how many there were.
                let (consumers, open) = (u64::from(tally.end.consumers), u64::from(tally.parts.len()));
                Reason::AtConsumers { consumers: consumers - far, open: open - far, brokers: far }
            }
            MessageStage::Asked { broadcast, .. } => self.reason(broadcast, ahead_max),
            MessageStage::Answered { worker } => {
                let record = self.peers.worker(worker).expect("a delivery's holder is a worker");
                Reason::Answered { worker: WorkerId(record.id) }
            }
            MessageStage::Stopping { worker, .. } => {
                if let Some((broker, name)) = self.links.far_end(worker) {
                    return Reason::StoppingAtLink { broker, name };
                }
                let record = self.peers.worker(worker).expect("a delivery's holder is a worker");
                Reason::Stopping { worker: WorkerId(record.id) }
            }
            MessageStage::Dead => {
                let failure = self.failures.get(&index).map(|failure| &failure.bytes[..]).unwrap_or_default();
                Reason::Dead { failure: String::from_utf8_lossy(failure).into_owned() }
            }
            MessageStage::Storing { .. } => Reason::Storing,
            MessageStage::Delayed { until } => self.why_delayed(message, until),
            MessageStage::Waiting => {
                let backlog = &self.queues.at(message.queue).backlog;
                self.why_waiting(message, backlog.ahead_of(&self.messages, index, ahead_max))
            }
        }
    }

    fn why_waiting(&self, message: &Message, ahead: u64) -> Reason {
        let queue = self.queues.at(message.queue);
        if self.is_in_maintenance() {
            return Reason::Maintenance;
        }
        if self.drain.is_some() {
            return Reason::Draining;
        }
        let far = self.far_workers(message);
        if let Some(reason) = self.why_nobody(message.queue) {
            return self.why_not_elsewhere(message, reason, far, ahead);
        }
        let sizes = queue.consumers().filter_map(|consumer| self.peers.worker(consumer.worker));
        let (mut workers, mut used, mut largest, mut probing, mut not_reading) = (0, 0, 0, 0, 0);
        for worker in sizes {
            workers += 1;
            probing += u64::from(worker.standings.is_probing(message.queue) || worker.trust != WorkerTrust::Full);
            not_reading += u64::from(worker.must_read);
            used += u64::from(worker.used());
            largest = largest.max(worker.slots.as_count());
        }
        if u32::from(message.cost.slots()) > largest && far.brokers > 0 {
            return far.busy(ahead);
        }
        if u32::from(message.cost.slots()) > largest {
            return Reason::TooCostly { cost: message.cost.slots(), largest };
        }
        if ahead == 0
            && let Some(worker) = queue.reserved.and_then(|reserved| self.peers.worker(reserved))
        {
            return Reason::Reserved { worker: WorkerId(worker.id), cost: message.cost.slots(), free: worker.room() };
        }
        if ahead > 0 && (far.free || self.pick(message.queue, 1).is_some()) {
            return Reason::Behind { ahead };
        }
        // A holder on probation, or that does not read, may have slots free: then that is the better reason.
        if probing + not_reading == 0
            && let Some((worker, name)) = queue.exclusive.and_then(|exclusive| self.named(exclusive.holder))
        {
            return Reason::ExclusiveBusy { worker, name, used, ahead };
        }
        let dropped = self.dropped_from(message.queue);
        Reason::AllBusy { workers, used, ahead, probing, dropped, not_reading, brokers: far.brokers }
    }

    /// Nobody here takes it: perhaps somebody elsewhere would, if there were room or a link.
    fn why_not_elsewhere(&self, message: &Message, here: Reason, far: FarWorkers, ahead: u64) -> Reason {
        if matches!(here, Reason::KeptFor { .. }) {
            return here;
        }
        if far.brokers > 0 {
            return if far.free && ahead > 0 { Reason::Behind { ahead } } else { far.busy(ahead) };
        }
        if let Some(largest) = far.too_long_for {
            return Reason::TooLong { bytes: message.bytes.len() as u64, largest };
        }
        match (&here, self.links.counts()) {
            (Reason::NoWorker, LinkCounts { down: down @ 1.., wanted, .. }) => Reason::LinksDown { down, wanted },
            _ => here,
        }
    }

    fn is_at_link(&self, index: u32) -> bool {
        self.messages[index].holder().is_some_and(|holder| self.links.is_link(holder))
    }

    fn named(&self, worker: ConnId) -> Option<(WorkerId, String)> {
        self.peers.worker(worker).map(|worker| (WorkerId(worker.id), worker.name.clone()))
    }

    /// Nobody could take anything from this queue, however long it waits as things are.
    fn why_nobody(&self, number: u32) -> Option<Reason> {
        let queue = self.queues.at(number);
        let (mut workers, mut greeting, mut draining) = (0, 0, 0);
        for consumer in queue.consumers() {
            let peer = self.peers.get(consumer.worker).expect("consumers are connected");
            let worker = peer.worker.as_deref().expect("consumers are workers");
            workers += 1;
            greeting += u64::from(!peer.ready);
            draining += u64::from(peer.ready && worker.draining);
        }
        match workers {
            0 => Some(self.why_no_consumer(number)),
            all if draining == all => Some(Reason::WorkersDraining { workers: all }),
            all if greeting + draining == all => Some(Reason::WorkersGreeting { workers: greeting }),
            _ => None,
        }
    }

    /// Nobody consumes the queue.
    fn why_no_consumer(&self, number: u32) -> Reason {
        let queue = self.queues.at(number);
        let waiters = self.waiters_of(number);
        if let Some((offered, left_ms)) = self.kept_for(number)
            && let Some((worker, name)) = self.named(offered)
        {
            return Reason::KeptFor { worker, name, left_seconds: Seconds::from_millis(left_ms) };
        }
        if queue.exclusive.is_some() || waiters > 0 {
            return Reason::NotFree { in_flight: u64::from(queue.in_flight + queue.returning), waiters };
        }
        match self.dropped_from(number) {
            0 => Reason::NoWorker,
            workers => Reason::WorkersDropped { workers },
        }
    }

    pub(super) fn message_view(&self, index: u32) -> MessageView {
        let view = self.view_of(&self.messages[index], self.id_of(index));
        MessageView { came_by: self.links.came_by(index), ..view }
    }

    fn view_of(&self, message: &Message, id: MessageId) -> MessageView {
        let holder = message.holder().and_then(|worker| self.peers.worker(worker));
        let holder = holder.filter(|worker| !worker.is_link);
        MessageView {
            id: id.to_string(),
            queue: self.queues.at(message.queue).name.to_string(),
            kind: message.kind(),
            state: match message.state {
                MessageStage::Waiting => MessageState::Ready,
                MessageStage::Held { .. } | MessageStage::Broadcast | MessageStage::Asked { .. } => {
                    MessageState::InFlight
                }
                MessageStage::Stopping { .. } => MessageState::Stopping,
                MessageStage::Answered { .. } => MessageState::Answered,
                MessageStage::Storing { .. } => MessageState::Storing,
                MessageStage::Delayed { .. } => MessageState::Delayed,
                MessageStage::Dead => MessageState::Dead,
            },
            attempts: message.attempts,
            attempts_max: message.attempts_max(),
            priority: message.priority,
            cost: message.cost.slots(),
            bytes: message.bytes.len() as u64,
            received_at: self.settings.moment(message.born),
            age_seconds: Seconds::from_millis(self.now.millis_since(message.born)),
            deadline_at: message.deadline.map(|deadline| self.settings.moment(deadline)),
            delayed_until: match message.state {
                MessageStage::Delayed { until } => Some(self.settings.moment(until)),
                _ => None,
            },
            worker: holder.map(|worker| WorkerId(worker.id)),
            came_by: Vec::new(),
        }
    }
}
