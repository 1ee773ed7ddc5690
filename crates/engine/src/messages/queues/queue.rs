//! A queue: its messages and workers; and the table of all queues.

use std::collections::BTreeMap;

use turno_proto::model::view::{Counters, QueueSettings};
use turno_proto::model::{ConnId, Mono, QueueName, limits};

use crate::messages::queues::backlog::Backlog;
use crate::messages::queues::delayed::Delayed;
use crate::messages::queues::exclusive::Exclusive;
use crate::messages::queues::service_time::ServiceTime;
use crate::messages::table::chain::Chain;
use crate::messages::workers::rota::Rota;

/// A worker in a queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::messages) struct Consumer {
    pub(crate) worker: ConnId,
    /// The worker's own handle of the queue.
    pub(in crate::messages) handle: u32,
}

#[derive(Debug)]
pub(in crate::messages) struct Queue {
    pub(crate) name: QueueName,
    /// Its own settings, if it has any.
    settings: Option<QueueSettings>,
    /// Messages a worker takes from it in each round over its queues.
    weight: u8,
    pub(in crate::messages) backlog: Backlog,
    pub(in crate::messages) delayed: Delayed,
    pub(in crate::messages) dead: Chain,
    pub(in crate::messages) in_flight: u32,
    /// Messages that wait for the disk.
    pub(in crate::messages) storing: u32,
    /// Bytes of its messages with overhead, in memory or on disk.
    pub(in crate::messages) bytes: u64,
    /// Those of dead letters.
    pub(in crate::messages) dead_bytes: u64,
    /// Those of them that come back from a worker once their attempt is written down.
    pub(in crate::messages) returning: u32,
    /// The holder and the standbys, if it is exclusive.
    pub(in crate::messages) exclusive: Option<Exclusive>,
    consumers: Vec<Option<Consumer>>,
    consumers_len: usize,
    pub(in crate::messages) rota: Rota,
    /// The shared rotas that consume it beside those in its own rota.
    pub(in crate::messages) shared_rotas: Vec<u32>,
    /// Handles that point here, of all connections.
    pub(in crate::messages) handles: u32,
    /// The worker kept free for the head of the backlog, which costs more than anyone has free.
    pub(in crate::messages) reserved: Option<ConnId>,
    pub(in crate::messages) service: ServiceTime,
    /// Workers lost in a row that had settled nothing, while they held sends of it.
    pub(in crate::messages) lost_in_a_row: u32,
    /// Workers that begin to consume it get nothing before then.
    pub(in crate::messages) paused_until: Mono,
    pub(in crate::messages) counters: Counters,
}

impl Queue {
    fn new(name: QueueName) -> Self {
        Self {
            name,
            settings: None,
            weight: limits::WEIGHT,
            backlog: Backlog::default(),
            delayed: Delayed::default(),
            dead: Chain::default(),
            in_flight: 0,
            storing: 0,
            returning: 0,
            exclusive: None,
            bytes: 0,
            dead_bytes: 0,
            consumers: Vec::new(),
            consumers_len: 0,
            rota: Rota::default(),
            shared_rotas: Vec::new(),
            handles: 0,
            reserved: None,
            service: ServiceTime::default(),
            lost_in_a_row: 0,
            paused_until: Mono::ZERO,
            counters: Counters::default(),
        }
    }

    /// A worker joins. Returns its number among the consumers.
    pub(in crate::messages) fn join(&mut self, worker: ConnId, handle: u32) -> u32 {
        let consumer = Some(Consumer { worker, handle });
        let number = self.consumers.iter().position(Option::is_none).unwrap_or(self.consumers.len());
        if number == self.consumers.len() {
            self.consumers.push(consumer);
        } else {
            self.consumers[number] = consumer;
        }
        self.consumers_len += 1;
        u32::try_from(number).expect("fewer consumers than connections, fewer of those than 2^32")
    }

    pub(in crate::messages) fn leave(&mut self, number: u32) {
        self.consumers[number as usize] = None;
        self.consumers_len -= 1;
        while self.consumers.last().is_some_and(Option::is_none) {
            self.consumers.pop();
        }
    }

    #[inline]
    pub(in crate::messages) fn consumer(&self, number: u32) -> &Consumer {
        self.consumers[number as usize].as_ref().expect("the rota holds consumers that are there")
    }

    /// How many workers consume it.
    pub(in crate::messages) const fn consumers_len(&self) -> usize {
        self.consumers_len
    }

    /// Its consumers, in no order.
    pub(in crate::messages) fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.consumers.iter().flatten()
    }

    /// Whether sends to it are stored, if the broker has a store.
    pub(in crate::messages) fn is_durable(&self) -> bool {
        self.settings.and_then(|settings| settings.durable).unwrap_or(true)
    }

    pub(in crate::messages) const fn settings(&self) -> Option<QueueSettings> {
        self.settings
    }

    pub(in crate::messages) fn set(&mut self, settings: Option<QueueSettings>) {
        self.settings = settings;
        self.weight = settings.and_then(|settings| settings.weight).unwrap_or(limits::WEIGHT);
    }

    pub(in crate::messages) const fn weight(&self) -> u8 {
        self.weight
    }

    /// The token of its holder, if it is one worker's alone.
    pub(in crate::messages) fn token(&self) -> Option<u64> {
        self.exclusive.map(|exclusive| exclusive.token)
    }

    /// Nobody consumes it, or still has something of it, or had it a moment ago.
    pub(in crate::messages) const fn is_unused(&self) -> bool {
        self.consumers_len == 0 && self.in_flight == 0 && self.returning == 0
    }

    pub(in crate::messages) fn is_idle(&self) -> bool {
        self.handles == 0
            && self.settings.is_none()
            && self.consumers_len == 0
            && self.in_flight == 0
            && self.storing == 0
            && self.backlog.is_empty()
            && self.delayed.is_empty()
            && self.dead.is_empty()
    }
}

/// All queues, by number and by name. Numbers are reused; nothing keeps one of a queue that is gone.
#[derive(Debug, Default)]
pub(in crate::messages) struct QueueTable {
    by_number: Vec<Option<Queue>>,
    by_name: BTreeMap<QueueName, u32>,
    vacant: Vec<u32>,
}

impl QueueTable {
    pub(in crate::messages) fn number_of(&self, name: &QueueName) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(in crate::messages) fn find(&self, name: &str) -> Option<u32> {
        name.parse().ok().and_then(|name| self.number_of(&name))
    }

    pub(in crate::messages) fn create(&mut self, name: QueueName) -> u32 {
        let queue = Some(Queue::new(name.clone()));
        let number = match self.vacant.pop() {
            Some(number) => {
                self.by_number[number as usize] = queue;
                number
            }
            None => {
                self.by_number.push(queue);
                u32::try_from(self.by_number.len() - 1).expect("limits keep queues far below 2^32")
            }
        };
        self.by_name.insert(name, number);
        number
    }

    /// Forgets a queue that nobody uses and that holds nothing.
    #[inline]
    pub(in crate::messages) fn forget_if_idle(&mut self, number: u32) {
        if self.get(number).is_some_and(Queue::is_idle) {
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u32) {
        if let Some(queue) = self.by_number[number as usize].take() {
            self.by_name.remove(&queue.name);
            self.vacant.push(number);
        }
    }

    pub(in crate::messages) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// QueueTable by name, those after `after`.
    pub(in crate::messages) fn after(&self, after: Option<&str>) -> impl Iterator<Item = (u32, &Queue)> {
        let skip = after.map(str::to_owned);
        self.by_name
            .iter()
            .filter(move |(name, _)| skip.as_deref().is_none_or(|skip| name.as_str() > skip))
            .map(|(_, number)| (*number, self.at(*number)))
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Queue> {
        self.by_number.get(number as usize)?.as_ref()
    }

    #[inline]
    pub(in crate::messages) fn at(&self, number: u32) -> &Queue {
        self.by_number[number as usize].as_ref().expect("rooms hold numbers of queues that are there")
    }

    #[inline]
    pub(in crate::messages) fn at_mut(&mut self, number: u32) -> &mut Queue {
        self.by_number[number as usize].as_mut().expect("rooms hold numbers of queues that are there")
    }
}
