//! Failures of a broker's start or run, with advice.

use std::io::ErrorKind;
use std::net::SocketAddr;

use turno_broker::ServeError;
use turno_proto::model::Code;

use crate::cli::error::{Failure, remedy};
use crate::cli::ring::told;

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let failure = Self::new(error.code(), error.to_string());
        match &error {
            ServeError::Listen { address, .. } if error.code() == Code::AddressInUse => {
                failure.fix(format!("stop it, or choose another port: turno serve --listen {}:0", bare(address)))
            }
            ServeError::RingListen { .. } if error.code() == Code::AddressInUse => failure
                .why("another broker with this sid runs on this machine, or another program uses its port")
                .fix("choose another --sid, or another port with --ring-port"),
            ServeError::Ring { sid, next: Some(next), code } => {
                told::not_joined(*code, format!("cannot be broker {sid} of the ring"), next)
            }
            ServeError::NoSid { next, code } => told::not_joined(*code, format!("{next} assigned no free sid"), next),
            ServeError::Listen { source, .. } | ServeError::RingListen { source, .. }
                if source.kind() == ErrorKind::PermissionDenied =>
            {
                failure
                    .why("this user may not listen there; ports below 1024 require privileges")
                    .fix("choose a port of 1024 or above, or start the broker as a privileged user")
            }
            ServeError::Data { source, .. } => failure
                .why("the broker needs access to its data directory")
                .fix(format!("{}; or choose another directory with --data", remedy(source))),
            ServeError::Listen { source, .. }
            | ServeError::RingListen { source, .. }
            | ServeError::System { source, .. }
                if error.code() == Code::Io =>
            {
                failure.why("the operating system reported this error").fix(remedy(source))
            }
            _ => failure,
        }
    }
}

fn bare(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) => v4.ip().to_string(),
        SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
    }
}
