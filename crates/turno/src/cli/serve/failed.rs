//! Why a broker did not start or go on, with what to do about it.

use std::net::SocketAddr;

use turno_proto::model::Code;

use crate::broker::ServeError;
use crate::cli::error::Failure;
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
