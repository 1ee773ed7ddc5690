//! A queue: the messages that wait, the workers that may take them, and the table of all queues.

use std::collections::BTreeMap;

use turno_proto::model::view::{Counters, QueueSettings};
use turno_proto::model::{ConnId, Mono, QueueName, limits};

use crate::backlog::Backlog;
use crate::chain::Chain;
use crate::exclusive::Exclusive;
use crate::rota::Rota;
use crate::service::Service;

/// A worker in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consumer {
    pub(crate) worker: ConnId,
    /// The worker's own handle of the queue.
    pub(crate) handle: u32,
}

#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) name: QueueName,
    /// Its own settings, if it has any.
    settings: Option<QueueSettings>,
    /// Messages a worker takes from it in each round over its queues.
    weight: u8,
    pub(crate) backlog: Backlog,
    pub(crate) dead: Chain,
    pub(crate) in_flight: u32,
    /// Messages that wait for the disk.
    pub(crate) storing: u32,
    /// Bytes of its messages with overhead, in memory or on disk.
    pub(crate) bytes: u64,
    /// Those of them that come back from a worker once their attempt is written down.
    pub(crate) returning: u32,
    /// Whose it is, if it is one worker's alone.
    pub(crate) exclusive: Option<Exclusive>,
    consumers: Vec<Option<Consumer>>,
    consumers_len: usize,
    pub(crate) rota: Rota,
    /// The crews that consume it beside those in its own rota.
    pub(crate) crews: Vec<u32>,
    /// Handles that point here, of all connections.
    pub(crate) handles: u32,
    /// The worker kept free for the head of the backlog, which costs more than anyone has free.
    pub(crate) reserved: Option<ConnId>,
    pub(crate) service: Service,
    /// Workers lost in a row that had settled nothing, while they held sends of it.
    pub(crate) lost_in_a_row: u32,
    /// Workers that begin to consume it get nothing before then.
    pub(crate) paused_until: Mono,
    pub(crate) counters: Counters,
}

impl Queue {
    fn new(name: QueueName) -> Self {
        Self {
            name,
            settings: None,
            weight: limits::WEIGHT,
            backlog: Backlog::default(),
            dead: Chain::default(),
            in_flight: 0,
            storing: 0,
            returning: 0,
            exclusive: None,
            bytes: 0,
            consumers: Vec::new(),
            consumers_len: 0,
            rota: Rota::default(),
            crews: Vec::new(),
            handles: 0,
            reserved: None,
            service: Service::default(),
            lost_in_a_row: 0,
            paused_until: Mono::ZERO,
            counters: Counters::default(),
        }
    }

    /// A worker joins. Returns its number among the consumers.
    pub(crate) fn join(&mut self, worker: ConnId, handle: u32) -> u32 {
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

    pub(crate) fn leave(&mut self, number: u32) {
        self.consumers[number as usize] = None;
        self.consumers_len -= 1;
        while self.consumers.last().is_some_and(Option::is_none) {
            self.consumers.pop();
        }
    }

    #[inline]
    pub(crate) fn consumer(&self, number: u32) -> &Consumer {
        self.consumers[number as usize].as_ref().expect("the rota holds consumers that are there")
    }

    /// How many workers consume it.
    pub(crate) const fn consumers_len(&self) -> usize {
        self.consumers_len
    }

    /// Its consumers, in no order.
    pub(crate) fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.consumers.iter().flatten()
    }

    /// Whether sends to it are stored, if the broker has a store.
    pub(crate) fn is_durable(&self) -> bool {
        self.settings.and_then(|settings| settings.durable).unwrap_or(true)
    }

    pub(crate) const fn settings(&self) -> Option<QueueSettings> {
        self.settings
    }

    pub(crate) fn set(&mut self, settings: Option<QueueSettings>) {
        self.settings = settings;
        self.weight = settings.and_then(|settings| settings.weight).unwrap_or(limits::WEIGHT);
    }

    pub(crate) const fn weight(&self) -> u8 {
        self.weight
    }

    /// The token of its holder, if it is one worker's alone.
    pub(crate) fn token(&self) -> Option<u64> {
        self.exclusive.map(|exclusive| exclusive.token)
    }

    /// Nobody consumes it, or still has something of it, or had it a moment ago.
    pub(crate) const fn is_unused(&self) -> bool {
        self.consumers_len == 0 && self.in_flight == 0 && self.returning == 0
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.handles == 0
            && self.settings.is_none()
            && self.consumers_len == 0
            && self.in_flight == 0
            && self.storing == 0
            && self.backlog.is_empty()
            && self.dead.is_empty()
    }
}

/// All queues, by number and by name. Numbers are reused; nothing keeps one of a queue that is gone.
#[derive(Debug, Default)]
pub(crate) struct QueueTable {
    by_number: Vec<Option<Queue>>,
    by_name: BTreeMap<QueueName, u32>,
    vacant: Vec<u32>,
}

impl QueueTable {
    pub(crate) fn number_of(&self, name: &QueueName) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        name.parse().ok().and_then(|name| self.number_of(&name))
    }

    pub(crate) fn create(&mut self, name: QueueName) -> u32 {
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
    pub(crate) fn forget_if_idle(&mut self, number: u32) {
        let place = &mut self.by_number[number as usize];
        if let Some(queue) = place.take_if(|queue| queue.is_idle()) {
            self.by_name.remove(&queue.name);
            self.vacant.push(number);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// QueueTable by name, those after `after`.
    pub(crate) fn after(&self, after: Option<&str>) -> impl Iterator<Item = (u32, &Queue)> {
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
    pub(crate) fn at(&self, number: u32) -> &Queue {
        self.by_number[number as usize].as_ref().expect("rooms hold numbers of queues that are there")
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, number: u32) -> &mut Queue {
        self.by_number[number as usize].as_mut().expect("rooms hold numbers of queues that are there")
    }
}
