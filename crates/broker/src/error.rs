//! The errors that keep a broker from starting or running.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use turno_proto::model::Code;
use turno_proto::model::ring::Sid;
use turno_store::{CommitError, OpenError, ReadError};

/// Why a broker cannot start, or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address that failed.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The address for other members of the ring cannot be listened on.
    #[error("cannot be broker {sid} of a ring: cannot listen on {address}: {source}")]
    RingListen {
        /// The broker's number.
        sid: Sid,
        /// The address that failed.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The broker could not join its ring, or must not be in it.
    #[error("cannot be broker {sid} of the ring: {}", code.text().what)]
    Ring {
        /// The broker's number.
        sid: Sid,
        /// The member to join at, HOST:PORT.
        next: Option<String>,
        /// The reason.
        code: Code,
    },
    /// No member told a number that is free.
    #[error("{next} gave no free sid: {}", code.text().what)]
    NoSid {
        /// The member that was asked.
        next: String,
        /// The reason.
        code: Code,
    },
    /// It listens on no address, and there is no Unix socket.
    #[error("the broker would be unreachable: it has no listener, and the path of its Unix socket in {} is too long", directory.display())]
    Unreachable {
        /// The data directory.
        directory: PathBuf,
    },
    /// Another process holds the data directory.
    #[error("the data directory {} is in use by another broker", directory.display())]
    DataInUse {
        /// The directory.
        directory: PathBuf,
    },
    /// Something in the data directory cannot be made or opened.
    #[error("cannot {doing} {}: {source}", path.display())]
    Data {
        /// The operation that failed.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error("cannot open the store in {}: {}", directory.display(), with_causes(source))]
    Store {
        /// The directory of the store.
        directory: PathBuf,
        /// The store's error.
        source: StoreError,
    },
    /// The archive cannot be opened.
    #[error("cannot open the archive in {}: {}", directory.display(), with_causes(source))]
    Archive {
        /// The directory of the archive.
        directory: PathBuf,
        /// The error of opening it.
        source: OpenError,
    },
    /// The store failed under the running broker.
    #[error("the store in {} failed: {}", directory.display(), with_causes(source))]
    StoreFailed {
        /// The directory of the store.
        directory: PathBuf,
        /// The store's error.
        source: StoreError,
    },
    /// The broker panicked.
    #[error("the broker failed; its state can no longer be trusted; see the panic in the log")]
    Broken,
    /// The system refused what every broker needs.
    #[error("cannot {doing}: {source}")]
    System {
        /// The operation that failed.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl ServeError {
    /// The code of the error.
    pub fn code(&self) -> Code {
        match self {
            Self::Listen { source, .. } | Self::RingListen { source, .. }
                if source.kind() == io::ErrorKind::AddrInUse =>
            {
                Code::AddressInUse
            }
            Self::Ring { code, .. } | Self::NoSid { code, .. } => *code,
            Self::Unreachable { .. } => Code::BadConfig,
            Self::DataInUse { .. } => Code::DataInUse,
            Self::Store { source: StoreError::Open(OpenError::Newer { .. }), .. }
            | Self::Archive { source: OpenError::Newer { .. }, .. } => Code::DataNewer,
            Self::Store { source: StoreError::Open(OpenError::Damaged { .. }) | StoreError::Unreadable(_), .. }
            | Self::Store { source: StoreError::Read(ReadError::Damaged { .. }), .. } => Code::DataDamaged,
            Self::StoreFailed { .. } => Code::StoreFailed,
            Self::Broken => Code::Internal,
            Self::Listen { .. }
            | Self::RingListen { .. }
            | Self::Data { .. }
            | Self::Store { .. }
            | Self::Archive { .. }
            | Self::System { .. } => Code::Io,
        }
    }
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be written, and what it did with the last batch is unknown.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// It holds a record that this version cannot read.
    #[error("unknown record {0}")]
    Unreadable(String),
}

/// An error with everything it names as its cause.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
