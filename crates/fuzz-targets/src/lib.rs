//! Fuzz targets: one function each, any bytes in, a panic if something is wrong.
//!
//! They live in the workspace so that plain tests replay the committed corpora with them; `fuzz/` only gives them to
//! libFuzzer. Nothing here decides what is right about queues: each target holds the real thing to its own promises.

mod config_file;
mod engine_ops;
mod foreman_end;
mod foreman_frame;
mod foreman_peer;
mod lmq_message;
mod names;
mod native_frame;
mod session;
mod store_ops;
mod store_record;
mod store_recovery;
mod worker_end;
mod zmtp_session;

pub use config_file::config_file;
pub use engine_ops::engine_ops;
pub use foreman_end::foreman_end;
pub use foreman_frame::foreman_frame;
pub use lmq_message::lmq_message;
pub use names::names;
pub use native_frame::native_frame;
pub use session::session;
pub use store_ops::store_ops;
pub use store_record::store_record;
pub use store_recovery::store_recovery;
pub use worker_end::worker_end;
pub use zmtp_session::zmtp_session;

/// A target: any bytes are fine, a panic is a finding.
pub type Target = fn(&[u8]);

/// Every target, by its name.
pub const TARGETS: &[(&str, Target)] = &[
    ("native_frame", native_frame),
    ("session", session),
    ("engine_ops", engine_ops),
    ("config_file", config_file),
    ("names", names),
    ("store_record", store_record),
    ("store_recovery", store_recovery),
    ("store_ops", store_ops),
    ("foreman_frame", foreman_frame),
    ("foreman_end", foreman_end),
    ("worker_end", worker_end),
    ("zmtp_session", zmtp_session),
    ("lmq_message", lmq_message),
];
