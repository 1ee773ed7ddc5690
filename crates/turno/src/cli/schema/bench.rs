//! Documents of `turno bench`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// The load that was asked for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LoadBody {
    /// Connections that asked.
    pub(crate) clients: u64,
    /// Messages of one client that may wait for their answer at a time.
    pub(crate) parallel: u64,
    /// Workers of this program; 0 if others did the work.
    pub(crate) workers: u64,
    /// Slots of each of them; null without a limit, or without workers.
    pub(crate) slots: Option<u32>,
    /// Bytes of each body.
    pub(crate) body_bytes: u64,
    /// Messages a second that were asked for; null: each as soon as the one before it was answered.
    pub(crate) rate: Option<u64>,
}

/// How long the answers took. With a rate, counted from the moment each message was due.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct LatencyBody {
    pub(crate) min_seconds: f64,
    pub(crate) mean_seconds: f64,
    pub(crate) p50_seconds: f64,
    pub(crate) p90_seconds: f64,
    pub(crate) p99_seconds: f64,
    /// The value that one in a thousand exceeds.
    pub(crate) p999_seconds: f64,
    pub(crate) max_seconds: f64,
    /// Every answer once, in rising order.
    pub(crate) histogram: Vec<BarBody>,
}

/// One bar of the histogram.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct BarBody {
    /// Answers that took longer than the bar before, and up to this.
    pub(crate) up_to_seconds: f64,
    pub(crate) count: u64,
}

/// The result of a load.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BenchDocument {
    /// `request` or `send`.
    pub(crate) kind: String,
    /// The queue it went through.
    pub(crate) queue: String,
    pub(crate) load: LoadBody,
    /// From the first message to the last answer.
    pub(crate) seconds: f64,
    /// Messages that were sent: those answered and those that failed.
    pub(crate) sent: u64,
    /// Requests that got their reply; sends that the broker has.
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    /// Failures by code.
    pub(crate) errors: BTreeMap<String, u64>,
    /// With a rate and a time: messages that were due and that there was no time left to send.
    pub(crate) unsent: u64,
    /// Messages that this program's workers took; null if others did the work.
    pub(crate) worked: Option<u64>,
    /// From the first message until they had taken the last; null if others did the work.
    pub(crate) worked_seconds: Option<f64>,
    /// Answers a second.
    pub(crate) rate: f64,
    /// Bytes of bodies a second, of messages and replies together.
    pub(crate) body_bytes_per_second: f64,
    /// Null if nothing was answered.
    pub(crate) latency: Option<LatencyBody>,
}
