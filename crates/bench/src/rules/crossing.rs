//! Requests that cross one link: clients at one broker, workers at another. What both brokers do for a request, beside what
//! one does that has all of them.

use anyhow::{Context, Result};
use fastrand::Rng;

use super::figures::RuleSample;
use crate::load;
use crate::protocol::talk;
use crate::report::Figures;
use crate::server::{Keeps, Server, routers};
use crate::system::System;
use crate::works::Work;

/// One after the other, in any order.
pub(super) fn measure(router_count: usize, dice: &mut Rng) -> Result<RuleSample> {
    let (local, crossing) = if dice.bool() {
        let local = local(router_count)?;
        (local, crossing(router_count)?)
    } else {
        let crossing = crossing(router_count)?;
        (local(router_count)?, crossing)
    };
    let ratio = |of: fn(&Figures) -> Option<f64>, what: &'static str| {
        let (local, crossing) = (of(&local).context(what)?, of(&crossing).context(what)?);
        anyhow::Ok((crossing / local, local, crossing))
    };
    let (cpu, local_us, crossing_us) = ratio(|figures| figures.cpu_us, "CPU time")?;
    let (rate, ..) = ratio(|figures| figures.rate_per_s, "a rate")?;
    let (p50, ..) = ratio(|figures| figures.p50_us, "a median")?;
    Ok(RuleSample(vec![
        ("CPU of both brokers / of one", cpu),
        ("us of one", local_us),
        ("us of both", crossing_us),
        ("rate / of one", rate),
        ("p50 / of one", p50),
    ]))
}

fn broker(settings: &[(&str, String)]) -> Result<Server> {
    Server::start(System::Turno, false, Keeps::ByDefault, settings)
}

fn local(router_count: usize) -> Result<Figures> {
    let server = broker(&[routers(router_count)])?;
    let shape = Work::W2.shape().context("W2 has a shape")?;
    load::run(System::Turno, server.address, &server.pids(), shape)
}

fn crossing(router_count: usize) -> Result<Figures> {
    let far = broker(&[routers(router_count)])?;
    let near = broker(&[routers(router_count), ("TURNO_LINK__TO", far.address.to_string())])?;
    let shape = Work::W2.shape().context("W2 has a shape")?;
    let pids = [near.pids(), far.pids()].concat();
    load::run_apart(&|seat| talk(System::Turno, seat), (near.address, far.address), &pids, shape)
}
