//! The ring: what a publication costs its members, how long it takes to the farthest, and how long the circle is open when a
//! member is killed.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use turno_proto::model::ring::RingState;
use turno_proto::model::ring::view::RingView;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use super::admin;
use super::figures::RuleSample;
use crate::fanout;
use crate::link::{Link, scratch};
use crate::report::Figures;
use crate::server::{Keeps, Server, free_ports, routers};
use crate::system::System;
use crate::tasks::block_on;

/// Members of the ring whose CPU time is taken together.
const THREE: usize = 3;
/// Members of the one that loses one.
const FIVE: usize = 5;
/// Members of the one that is timed.
const SEVEN: usize = 7;
/// The one that is killed: neither the one that others joined at nor its neighbour.
const KILLED: usize = 2;
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Whether the timers are those of the document or the quick ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Usual,
    Fast,
}

/// Members of a ring, the first of which the others joined at.
struct Ring(Vec<Server>);

impl Ring {
    fn start(count: usize, pace: Pace, router_count: usize) -> Result<Self> {
        let mut ring = Self(Vec::new());
        let ports: Vec<u16> = (0..count).map(|_| free_ports().map(|[port, ..]| port)).collect::<Result<_>>()?;
        for (at, port) in ports.iter().enumerate() {
            let mut settings = vec![
                routers(router_count),
                ("TURNO_RING__SID", (at + 1).to_string()),
                ("TURNO_RING__PORT", port.to_string()),
                ("TURNO_RING__FAST", (pace == Pace::Fast).to_string()),
            ];
            if at > 0 {
                settings.push(("TURNO_RING__NEXT", format!("1@127.0.0.1:{}", ports[0])));
            }
            ring.0.push(Server::start(System::Turno, false, Keeps::Memory, &settings)?);
            ring.wait_whole(&(0..=at).collect::<Vec<_>>())?;
        }
        Ok(ring)
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|server| server.address).collect()
    }

    fn pids(&self) -> Vec<u32> {
        self.0.iter().flat_map(Server::pids).collect()
    }

    /// Waits until these are one circle, as each of them sees it.
    fn wait_whole(&self, members: &[usize]) -> Result<()> {
        let begun = Instant::now();
        let mut open: Vec<usize> = members.to_vec();
        while let Some(at) = open.last() {
            let RingView { state, whole, members: seen, .. } = view(self.0[*at].address)?;
            if whole && seen.len() == members.len() && matches!(state, RingState::Member | RingState::Alone) {
                open.pop();
            } else if begun.elapsed() > PATIENCE {
                bail!("the ring is not whole after {PATIENCE:?}");
            } else {
                std::thread::sleep(LOOK_AGAIN);
            }
        }
        Ok(())
    }
}

fn view(address: SocketAddr) -> Result<RingView> {
    block_on(async {
        let mut link = Link::client(System::Turno, address, &scratch(), 0..0).await?;
        match admin::ask(&mut link, AdminCall::Ring {}).await? {
            AdminAnswer::Ring { ring } => Ok(*ring),
            other => bail!("not a ring: {other:?}"),
        }
    })
}

/// CPU time of all members for a publication with a subscriber at each, beside that of one broker with as many subscribers.
pub(super) fn cost(router_count: usize, dice: &mut Rng) -> Result<RuleSample> {
    // Deliveries are counted; each publication is three of them.
    let cpu = |figures: &Figures| anyhow::Ok(figures.cpu_us.context("CPU time")? * THREE as f64);
    let alone = || {
        let server = Server::start(System::Turno, false, Keeps::Memory, &[routers(router_count)])?;
        fanout::run(System::Turno, server.address, &server.pids(), THREE)
    };
    let together = || {
        let ring = Ring::start(THREE, Pace::Usual, router_count)?;
        let at = ring.addresses();
        fanout::run_apart(System::Turno, at[0], &at, &ring.pids())
    };
    let (one, three) = if dice.bool() {
        let one = alone()?;
        (one, together()?)
    } else {
        let three = together()?;
        (alone()?, three)
    };
    let (one_us, three_us) = (cpu(&one)?, cpu(&three)?);
    let rate = three.rate_per_s.context("a rate")? / THREE as f64;
    Ok(RuleSample(vec![
        ("CPU of three / of one", three_us / one_us),
        ("us of one", one_us),
        ("us of three", three_us),
        ("publications/s round three", rate),
    ]))
}

/// Milliseconds from the end of a member of five until the other four are a circle.
pub(super) fn healing(pace: Pace, router_count: usize) -> Result<RuleSample> {
    let mut ring = Ring::start(FIVE, pace, router_count)?;
    let begun = Instant::now();
    ring.0[KILLED].stop();
    let others: Vec<usize> = (0..FIVE).filter(|at| *at != KILLED).collect();
    ring.wait_whole(&others)?;
    Ok(RuleSample(vec![("ms until whole", begun.elapsed().as_secs_f64() * 1e3)]))
}

/// From a publisher to a subscriber at each member: the farthest beside the next.
pub(super) fn hops(router_count: usize) -> Result<RuleSample> {
    let ring = Ring::start(SEVEN, Pace::Usual, router_count)?;
    let at = ring.addresses();
    // In the order of the circle: each joined in front of the first, so that they follow each other.
    let delays = fanout::delays(at[0], &at)?;
    let (here, next, last) = (delays[0], delays[1], delays[SEVEN - 1]);
    Ok(RuleSample(vec![
        ("us to the farthest / one hop", last / next),
        ("us here", here),
        ("us one hop", next),
        ("us six hops", last),
    ]))
}
