//! The four things that grow, and the sizes at which each is looked at.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::load::GrowthShape;

/// The growing quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Curve {
    Workers,
    Queues,
    Waiting,
    Bodies,
}

/// Which of a point's ratios the bar is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// Turno's cost beside its own at the smallest size.
    Alone,
    /// The same, divided by what the relay shows: growing connections and bodies cost the system calls of both alike.
    BesideRelay,
}

impl Curve {
    pub(crate) const ALL: [Self; 4] = [Self::Workers, Self::Queues, Self::Waiting, Self::Bodies];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::Queues => "queues",
            Self::Waiting => "waiting",
            Self::Bodies => "bodies",
        }
    }

    /// The label of the x axis.
    pub(crate) const fn axis(self) -> &'static str {
        match self {
            Self::Workers => "workers, each with its own connection",
            Self::Queues => "queues, all consumed by each of ten workers",
            Self::Waiting => "requests waiting in the broker",
            Self::Bodies => "bytes of a body",
        }
    }

    /// The smallest first: the others are measured beside it.
    pub(crate) const fn sizes(self) -> &'static [usize] {
        match self {
            Self::Workers | Self::Queues => &[10, 100, 1_000, 10_000],
            Self::Waiting => &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
            Self::Bodies => &[16, 64, 256, 1_024, 4_096, 16_384, 65_536],
        }
    }

    pub(crate) const fn judged(self) -> Judged {
        match self {
            Self::Workers | Self::Bodies => Judged::BesideRelay,
            // The relay knows neither queues nor waiting.
            Self::Queues | Self::Waiting => Judged::Alone,
        }
    }

    pub(crate) const fn shape(self, size: usize) -> GrowthShape {
        let plain = GrowthShape { workers: 10, queues: 1, waiting: 0, body: 256 };
        match self {
            Self::Workers => GrowthShape { workers: size, ..plain },
            Self::Queues => GrowthShape { queues: size, ..plain },
            Self::Waiting => GrowthShape { waiting: size, ..plain },
            Self::Bodies => GrowthShape { body: size, ..plain },
        }
    }
}
