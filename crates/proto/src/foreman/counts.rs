//! The values of arg0 in OK and in STOP.

use std::num::NonZeroU32;

use crate::model::limits::FOREMAN_PROCS_MAX;

/// The pair in an OK: processors in use and processors free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Processors in use, bytes 12 and 13 of the header.
    pub nrun: u16,
    /// Processors free, bytes 14 and 15.
    pub nproc: u16,
}

impl Counts {
    /// In the foreman's first OK, and after a stop at once.
    pub const ZERO: Self = Self { nrun: 0, nproc: 0 };
    /// Not counts at all: "I know nothing of you, send HELLO".
    pub const SEND_HELLO: Self = Self { nrun: u16::MAX, nproc: u16::MAX };

    /// The counts of a worker that may have `max` processors busy and has `nrun` of them so. This rule holds after every
    /// event: a worker told to shrink keeps nothing free until enough has ended.
    pub fn new(max: u16, nrun: u16) -> Self {
        Self { nrun, nproc: max.saturating_sub(nrun).min(FOREMAN_PROCS_MAX) }
    }

    /// As arg0.
    pub const fn to_word(self) -> u32 {
        let [r0, r1] = self.nrun.to_le_bytes();
        let [p0, p1] = self.nproc.to_le_bytes();
        u32::from_le_bytes([r0, r1, p0, p1])
    }

    /// From arg0.
    pub const fn from_word(word: u32) -> Self {
        let [r0, r1, p0, p1] = word.to_le_bytes();
        Self { nrun: u16::from_le_bytes([r0, r1]), nproc: u16::from_le_bytes([p0, p1]) }
    }
}

/// The order of a STOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Give up so many processors, the free ones first, the others as their tasks end.
    Processors(NonZeroU32),
    /// Give up all of them: finish what runs, then leave.
    All,
    /// Kill what runs and leave.
    Immediate,
}

impl Stop {
    /// As arg0.
    pub const fn to_word(self) -> u32 {
        match self {
            Self::Processors(count) => count.get(),
            Self::All => 0,
            Self::Immediate => u32::MAX,
        }
    }

    /// From arg0.
    pub const fn from_word(word: u32) -> Self {
        match NonZeroU32::new(word) {
            None => Self::All,
            Some(NonZeroU32::MAX) => Self::Immediate,
            Some(count) => Self::Processors(count),
        }
    }

    /// How many of `max` processors stay in use.
    pub fn left_of(self, max: u16) -> u16 {
        match self {
            Self::Processors(count) => max.saturating_sub(u16::try_from(count.get()).unwrap_or(u16::MAX)),
            Self::All | Self::Immediate => 0,
        }
    }
}
