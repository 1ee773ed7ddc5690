//! Documents of `turno doctor`.

use schemars::JsonSchema;
use serde::Serialize;

/// A look at a data directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DoctorDocument {
    /// The data directory.
    pub(crate) data: String,
    /// Whether nothing is wrong; a warning is not.
    pub(crate) healthy: bool,
    /// The findings, in order.
    pub(crate) findings: Vec<Finding>,
    /// The contents of the store; null if there is none, if it is damaged, or if a broker runs.
    pub(crate) store: Option<StoreBody>,
    /// The lost and the intact parts; null unless the store is damaged.
    pub(crate) damage: Option<DamageBody>,
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing; a broker would start.
    Warn,
    /// A broker would not start, or something is lost.
    Error,
}

impl Level {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Finding {
    /// The subject: `directory`, `lock`, `disk`, `archive`, `access`, `exposure`, `store`, `format`, `segments`, `messages`, `end`, `memory`, `dead` or `ring`.
    pub(crate) check: &'static str,
    /// How grave it is.
    pub(crate) level: Level,
    /// The finding.
    pub(crate) what: String,
    /// Advice.
    pub(crate) advice: Option<String>,
    /// The code that a broker would end with here.
    pub(crate) code: Option<&'static str>,
    /// The file of the store or the archive that it is about.
    pub(crate) file: Option<String>,
    /// The byte of that file.
    pub(crate) offset: Option<u64>,
}

/// The contents of a store.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoreBody {
    /// The format of its files.
    pub(crate) format: u32,
    /// Segments of the log.
    pub(crate) segments: u64,
    /// Batches in them.
    pub(crate) batches: u64,
    /// Records in those, deleted ones included.
    pub(crate) records: u64,
    /// Messages that are kept, dead letters included.
    pub(crate) messages: u64,
    /// Bytes of everything that is kept.
    pub(crate) live_bytes: u64,
    /// Bytes the files take.
    pub(crate) disk_bytes: u64,
    /// The number of the last commit.
    pub(crate) last_commit: u64,
    /// How often the store was opened.
    pub(crate) epoch: u64,
    /// Whether its last batch was begun and not completed.
    pub(crate) torn: bool,
}

/// The lost and the intact parts of a store.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DamageBody {
    /// Bytes that held batches and no longer do.
    pub(crate) places: Vec<PlaceBody>,
    /// Segments of the log that are in no file.
    pub(crate) missing: Vec<u64>,
    /// Batches that are lost for certain.
    pub(crate) lost_batches: u64,
    /// Batches that are whole.
    pub(crate) whole_batches: u64,
    /// Records in those, deleted ones included.
    pub(crate) whole_records: u64,
}

/// A damaged part of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlaceBody {
    /// The file's name in the store's directory.
    pub(crate) file: String,
    /// The first damaged byte.
    pub(crate) from: u64,
    /// The first byte after the damage.
    pub(crate) until: u64,
}
