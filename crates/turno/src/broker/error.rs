//! Why a broker cannot start, or go on.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use turno_proto::model::Code;

/// Why a broker cannot start, or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
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
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A task of the broker panicked.
    #[error("the broker failed, and what it knows is not to be trusted any more; the log has the panic")]
    Broken,
    /// The system refused what every broker needs.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl ServeError {
    /// The stated outcome.
    pub fn code(&self) -> Code {
        match self {
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => Code::AddressInUse,
            Self::DataInUse { .. } => Code::DataInUse,
            Self::Broken => Code::Internal,
            Self::Listen { .. } | Self::Data { .. } | Self::System { .. } => Code::Io,
        }
    }
}
