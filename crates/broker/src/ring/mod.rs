//! The ring membership of a broker, from its settings to its end.

mod ask;
mod find;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;
use tracing::{info, warn};
use turno_engine::Settings as EngineSettings;
use turno_engine::ring::{RingSettings, RingTimers};
use turno_proto::model::ring::{Member, Origin};
use turno_proto::model::{Code, Mono, limits};

use super::connections::{Nonces, RingReport, RingWireSettings};
use super::error::ServeError;
use super::run::{Bound, listener_on};
use super::settings::{IfUnreachable, RingConfig, RingLinks, RingOrder, RingTiming, Settings, SidSource};
use super::threads::BrokerThreads;

pub use self::ask::ask_for_sid;
pub use self::find::{Finding, run_finding};

/// Why the broker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingEnd {
    /// Somebody asked for it, here or of the whole ring.
    Asked,
    /// It could not join its ring, or must not be in it.
    RingFailed(Code),
}

/// Where other members reach it.
pub(super) fn listen(ring: &RingConfig) -> Result<TcpListener, ServeError> {
    let address = ring.listen;
    listener_on(address).map_err(|source| ServeError::RingListen { sid: ring.sid, address, source })
}

/// Gives the engine its place in the ring. Its term is the incarnation: both rise with each start.
pub(super) fn enter(
    settings: &Settings,
    bound: &Bound,
    engine: &mut EngineSettings,
    now: Mono,
) -> Option<RingWireSettings> {
    let (ring, natives, bound) = (settings.ring.as_ref()?, &bound.native, bound.ring?);
    let origin = Origin { sid: ring.sid, incarnation: incarnation(engine.term, now.as_millis()) };
    let address = |listener| address_of(ring.advertise.as_deref(), listener);
    let native = natives.first().copied().map(address).unwrap_or_default();
    let me = Member { origin, address: address(bound), native };
    let (next_sid, next) = ring.next.clone().map_or((None, None), |(sid, next)| (sid, Some(next)));
    let (timers, beat_ms) = match ring.timing {
        RingTiming::Usual => (RingTimers::default(), limits::RING_BEAT_MS),
        RingTiming::Fast => (RingTimers::fast(), limits::RING_BEAT_FAST_MS),
    };
    let usual = RingSettings::new(me.clone(), next);
    let (wait, sorted) = (ring.if_unreachable == IfUnreachable::Retry, ring.order == RingOrder::BySid);
    let links = ring.links == RingLinks::Neighbours;
    let has_secret = ring.secret.is_some();
    engine.ring = Some(RingSettings { next_sid, wait, sorted, links, has_secret, timers, ..usual });
    let (secret, nonces, dial_ms) = (ring.secret.clone(), Nonces::System, timers.dial_ms);
    Some(RingWireSettings { me, secret, nonces, beat_ms, dial_ms })
}

/// A term that is more than a year ahead of the clock is from a start with a wrong one. No ring has ever taken such an incarnation,
/// so that the clock is high enough; tokens stay above those that were given out.
fn incarnation(term: u64, clock_ms: u64) -> u64 {
    let latest = clock_ms.saturating_add(limits::RING_INCARNATION_AHEAD_MS);
    if clock_ms < limits::CLOCK_MIN_MS || term <= latest {
        return term;
    }
    warn!(
        term,
        clock_ms, "an earlier start had a clock more than a year ahead: the incarnation is taken from the clock"
    );
    clock_ms
}

/// HOST:PORT that others are told. A broker that listens on all addresses and sets none is reached on its own machine.
fn address_of(host: Option<&str>, bound: SocketAddr) -> String {
    match host {
        Some(host) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{}", bound.port()),
        Some(host) => format!("{host}:{}", bound.port()),
        None if !bound.ip().is_unspecified() => bound.to_string(),
        None if bound.is_ipv4() => SocketAddr::from((Ipv4Addr::LOCALHOST, bound.port())).to_string(),
        None => SocketAddr::from((Ipv6Addr::LOCALHOST, bound.port())).to_string(),
    }
}

/// Waits until the ring ends the broker. `settled` is called when the ring has taken it in; or when it cannot be joined yet, if
/// the broker got its number when it was started.
pub(super) async fn ends(shell: &BrokerThreads, ring: Option<&RingConfig>, mut settled: impl FnMut()) -> RingEnd {
    let may_wait = ring.is_some_and(|ring| ring.sid_source == SidSource::Configured);
    loop {
        for report in shell.ring_reports().await {
            match report {
                RingReport::Stop => {
                    info!("the whole ring is shutting down");
                    return RingEnd::Asked;
                }
                RingReport::Failed(code) => {
                    warn!(%code, "this broker cannot join the ring");
                    return RingEnd::RingFailed(code);
                }
                RingReport::Joined => settled(),
                RingReport::Waiting if may_wait => settled(),
                RingReport::Waiting => {}
                RingReport::Left => info!("left the ring"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A broker that once started with its clock far ahead is not refused by its ring for ever.
    #[test]
    fn an_incarnation_is_one_that_the_ring_takes() {
        let (now, year) = (limits::CLOCK_MIN_MS + 5, limits::RING_INCARNATION_AHEAD_MS);
        let table = [
            (now, now, now),
            (now + 1, now, now + 1),
            (now + year, now, now + year),
            (now + year + 1, now, now),
            (u64::MAX, now, now),
            // A clock that was never set judges nothing.
            (now, 0, now),
        ];
        for (term, clock_ms, expected) in table {
            assert_eq!(incarnation(term, clock_ms), expected, "{term} at {clock_ms}");
        }
    }

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
