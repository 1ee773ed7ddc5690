//! The MessagePack maps inside control frames. Unknown keys are ignored, so that old and new peers agree.

use serde::{Deserialize, Serialize};

use crate::model::{Code, Limits, Slots, limits};

/// The protocol version this crate speaks.
pub const VERSION: u16 = 1;

/// CONNECT: who comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connect {
    /// The protocol version wanted.
    pub version: u16,
    /// A name for people; need not be unique.
    #[serde(default)]
    pub name: String,
    /// The program and its version, for people.
    #[serde(default)]
    pub program: String,
    /// The heartbeat wanted; 0 leaves it to the broker.
    #[serde(default)]
    pub heartbeat_ms: u32,
}

/// CONFIG: what holds on this connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Config {
    /// The protocol version spoken.
    pub version: u16,
    /// The broker's name.
    pub broker: String,
    /// The broker's own version.
    pub program: String,
    /// A PING, or any other frame, is due this often.
    pub heartbeat_ms: u32,
    /// Heartbeats of silence after which either side gives the other up.
    pub liveness: u32,
    /// Longest frame the broker accepts, header included.
    pub frame_bytes_max: u64,
    /// Deadline of a request that names none.
    pub request_deadline_ms: u32,
    /// The brokers a client may turn to, in order, this one among them.
    #[serde(default)]
    pub brokers: Vec<String>,
}

impl Config {
    /// The configuration of a broker with these limits; it has no name, the default heartbeat, and knows of no other broker.
    #[doc(hidden)]
    #[must_use]
    pub fn of(limits: &Limits) -> Self {
        Self {
            version: VERSION,
            broker: String::new(),
            program: String::new(),
            heartbeat_ms: limits::HEARTBEAT_MS,
            liveness: limits::LIVENESS,
            frame_bytes_max: limits.frame_bytes_max as u64,
            request_deadline_ms: limits.request_deadline_ms,
            brokers: Vec::new(),
        }
    }
}

/// REGISTER and RESIZE: how much the worker takes at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// Slots; below zero counts as zero, nil means unlimited. The key must be there: a misspelt one shall not make
    /// a worker unlimited.
    #[serde(deserialize_with = "Option::deserialize")]
    pub slots: Option<i64>,
    /// A name for people; empty keeps the one of CONNECT.
    #[serde(default)]
    pub name: String,
    /// The `Id` of the worker at the foreman, if it runs tasks over a connection there: both have one account of
    /// slots. Empty: it has one of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

impl Register {
    /// For a worker with those slots.
    pub fn new(slots: Slots, name: impl Into<String>) -> Self {
        let slots = match slots {
            Slots::Limited(n) => Some(i64::from(n)),
            Slots::Unlimited => None,
        };
        Self { slots, name: name.into(), key: String::new() }
    }

    /// The same for a worker that the foreman knows by that key.
    #[must_use]
    pub fn known_as(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// The slots meant (S0.13: negative counts as zero).
    pub fn slots(&self) -> Result<Slots, Code> {
        let Some(wanted) = self.slots else { return Ok(Slots::Unlimited) };
        let count = u32::try_from(wanted.max(0)).map_err(|_| Code::BadSlots)?;
        if count > limits::SLOTS_MAX { Err(Code::BadSlots) } else { Ok(Slots::Limited(count)) }
    }
}
