//! The systems that are measured: the limit, Turno, and the peers.

use std::fmt;

/// The system that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum System {
    Relay,
    Turno,
    Nats,
    Zmq,
    Redis,
    Gearman,
    Beanstalkd,
    RabbitMq,
}

impl System {
    pub(crate) const ALL: [Self; 8] =
        [Self::Relay, Self::Turno, Self::Nats, Self::Zmq, Self::Redis, Self::Gearman, Self::Beanstalkd, Self::RabbitMq];

    pub(crate) const PEERS: [Self; 6] =
        [Self::Nats, Self::Zmq, Self::Redis, Self::Gearman, Self::Beanstalkd, Self::RabbitMq];

    /// As it stands in tables and in the figures' file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Turno => "turno",
            Self::Nats => "nats",
            Self::Zmq => "libzmq",
            Self::Redis => "redis",
            Self::Gearman => "gearman",
            Self::Beanstalkd => "beanstalkd",
            Self::RabbitMq => "rabbitmq",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|system| system.name() == name)
    }
}

impl fmt::Display for System {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}
