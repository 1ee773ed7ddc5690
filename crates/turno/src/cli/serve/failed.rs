//! Why a broker did not start or go on, with what to do about it.

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
                .why("another broker with that sid runs on this machine, or something else has its port")
                .fix("choose another --sid, or another port: --ring-port"),
            ServeError::Ring { sid, next: Some(next), code } => {
                told::not_joined(*code, format!("cannot be broker {sid} of the ring"), next)
            }
            ServeError::NoSid { next, code } => told::not_joined(*code, format!("{next} gave no free sid"), next),
            ServeError::Listen { source, .. } | ServeError::RingListen { source, .. }
                if source.kind() == ErrorKind::PermissionDenied =>
            {
                failure
                    .why("the system does not let this user listen there; ports below 1024 are for privileged users")
                    .fix("choose a port from 1024 on, or start the broker as a user who may listen there")
            }
            ServeError::Data { source, .. } => failure
                .why("the broker keeps what it stores there, and the system does not let it")
                .fix(format!("{}; or choose another directory with --data", remedy(source))),
            ServeError::Listen { source, .. }
            | ServeError::RingListen { source, .. }
            | ServeError::System { source, .. }
                if error.code() == Code::Io =>
            {
                failure.why("the system refused it, for the reason that it gives").fix(remedy(source))
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
