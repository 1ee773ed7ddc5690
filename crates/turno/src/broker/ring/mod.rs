//! The broker's place in a ring, from its settings to its end.

mod ask;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpListener;
use tracing::{info, warn};
use turno_engine::ring::{RingInput, RingSettings, RingTimers};
use turno_engine::{Input, Settings as EngineSettings};
use turno_proto::model::ring::{Member, Origin};
use turno_proto::model::{Code, limits};

use super::error::ServeError;
use super::run::{Bound, listener_on};
use super::settings::{RingConfig, Settings};
use super::shell::Shell;
use super::switchboard::{Nonces, RingReport, RingWireSettings};

pub use self::ask::ask_for_sid;

/// By how much leaving may take longer than the node gives it: nothing of the broker's end may hang on it.
const LEAVE_SLACK_MS: u64 = 1_000;

/// Why the broker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Somebody asked for it, here.
    Asked,
    /// The whole ring ends.
    RingStops,
    /// It could not join its ring, or must not be in it.
    RingFailed(Code),
}

/// Where other members reach it.
pub(super) fn listen(ring: &RingConfig) -> Result<TcpListener, ServeError> {
    let address = ring.listen;
    listener_on(address).map_err(|source| ServeError::RingListen { sid: ring.sid, address, source })
}

/// Gives the engine its place in the ring. Its term is the incarnation: both rise with each start.
pub(super) fn enter(settings: &Settings, bound: &Bound, engine: &mut EngineSettings) -> Option<RingWireSettings> {
    let (ring, bound) = (settings.ring.as_ref()?, bound.ring?);
    let origin = Origin { sid: ring.sid, incarnation: engine.term };
    let me = Member { origin, address: address_of(ring.advertise.as_deref(), bound) };
    let (next_sid, next) = ring.next.clone().map_or((None, None), |(sid, next)| (sid, Some(next)));
    let timers = timers(ring);
    let usual = RingSettings::new(me.clone(), next);
    engine.ring = Some(RingSettings { next_sid, wait: ring.wait, sorted: ring.sorted, timers, ..usual });
    let beat_ms = if ring.fast { limits::RING_BEAT_FAST_MS } else { limits::RING_BEAT_MS };
    let (secret, nonces, dial_ms) = (ring.secret.clone(), Nonces::System, timers.dial_ms);
    Some(RingWireSettings { me, secret, nonces, beat_ms, dial_ms })
}

fn timers(ring: &RingConfig) -> RingTimers {
    if ring.fast { RingTimers::fast() } else { RingTimers::default() }
}

/// HOST:PORT that others are told. Whoever listens everywhere and says nothing else is reached on its own machine.
fn address_of(host: Option<&str>, bound: SocketAddr) -> String {
    match host {
        Some(host) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{}", bound.port()),
        Some(host) => format!("{host}:{}", bound.port()),
        None if !bound.ip().is_unspecified() => bound.to_string(),
        None if bound.is_ipv4() => SocketAddr::from((Ipv4Addr::LOCALHOST, bound.port())).to_string(),
        None => SocketAddr::from((Ipv6Addr::LOCALHOST, bound.port())).to_string(),
    }
}

/// Waits until the ring ends the broker.
pub(super) async fn ends(shell: &Shell) -> Why {
    loop {
        for report in shell.ring_reports().await {
            match report {
                RingReport::Stop => {
                    info!("the whole ring ends");
                    return Why::RingStops;
                }
                RingReport::Failed(code) => {
                    warn!(%code, "this broker cannot be in the ring");
                    return Why::RingFailed(code);
                }
                RingReport::Left => info!("out of the ring"),
            }
        }
    }
}

/// Leaves the ring, so that the others need not miss this broker first.
pub(super) async fn leave(shell: &Shell, ring: &RingConfig) {
    shell.handle(Input::Ring { input: Box::new(RingInput::Leave) });
    let out = async { while !shell.ring_reports().await.iter().any(|report| *report != RingReport::Stop) {} };
    let limit = Duration::from_millis(timers(ring).leave_ms + LEAVE_SLACK_MS);
    if tokio::time::timeout(limit, out).await.is_err() {
        warn!("leaving the ring took too long");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_told_an_address_that_they_can_reach() {
        let table = [
            (None, "10.0.0.3:8003", "10.0.0.3:8003"),
            (None, "0.0.0.0:8003", "127.0.0.1:8003"),
            (None, "[::]:8003", "[::1]:8003"),
            (None, "[2001:db8::1]:8003", "[2001:db8::1]:8003"),
            (Some("rb-3"), "0.0.0.0:8003", "rb-3:8003"),
            (Some("2001:db8::1"), "[::]:8003", "[2001:db8::1]:8003"),
            (Some("[2001:db8::1]"), "[::]:8003", "[2001:db8::1]:8003"),
        ];
        for (host, bound, address) in table {
            assert_eq!(address_of(host, bound.parse().unwrap()), address);
        }
    }
}
