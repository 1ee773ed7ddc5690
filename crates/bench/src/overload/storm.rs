//! Three times what can be done, for a while.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::clients::{ClientGroup, Interval};
use super::figures::{MIB, StormResult};
use super::workers::QueueWorkers;
use crate::process;
use crate::report::{Bound, Verdict};
use crate::server::{Keeps, Server, routers};
use crate::system::System;
use crate::tasks::block_on;

const PEAK_SECONDS: f64 = 3.0;
/// So many unanswered per client keep every slot busy, and find the peak.
const PEAK_UNANSWERED: usize = 20;
/// The rate at which latency is called normal, as a part of the peak.
const NORMAL_PART: f64 = 0.5;
const NORMAL_SECONDS: f64 = 2.0;
const OVERLOAD: f64 = 3.0;
const MEMORY_LOOK: Duration = Duration::from_millis(100);
const WINDOW_SECONDS: f64 = 0.1;
/// So many good windows in a row are a recovery.
const GOOD_WINDOWS: usize = 5;
const RECOVERY_SECONDS_MAX: f64 = 5.0;
const RECOVERY_PATIENCE_SECONDS: f64 = 20.0;
const THROUGHPUT_MIN: f64 = 0.8;
/// Bytes that a broker may take beside its messages: code, tables, buffers of connections.
const MEMORY_BESIDE_BYTES: u64 = 64 << 20;
/// Workers take their time, so that they are the limit and not the broker, which shares its cores with the callers.
const WORK_TIME: Duration = Duration::from_millis(5);
/// The codes with which requests may end.
const RIGHT_CODES: [&str; 2] = ["over_memory", "timed_out"];

/// One kind of storm.
pub(super) struct Storm {
    part: &'static str,
    about: &'static str,
    memory_limit_bytes: u64,
    deadline_ms: u32,
}

pub(super) const REFUSED: Storm = Storm {
    part: "refused",
    about: "workers of 5 ms, memory for about a second of waiting: the rest is refused",
    memory_limit_bytes: 8 << 20,
    deadline_ms: 5_000,
};

pub(super) const EXPIRED: Storm = Storm {
    part: "expired",
    about: "workers of 5 ms, memory for everything, half a second to answer: the rest expires",
    memory_limit_bytes: 256 << 20,
    deadline_ms: 500,
};

impl Storm {
    pub(super) fn run(&self, seconds: usize, count: usize) -> Result<StormResult> {
        println!("\n{}: {}", self.part, self.about);
        let limit = ("TURNO_LIMITS__MEMORY", self.memory_limit_bytes.to_string());
        let server = Server::start(System::Turno, false, Keeps::ByDefault, &[limit, routers(count)])?;
        let _workers = QueueWorkers::hire(server.address, WORK_TIME)?;
        block_on(self.rage(&server, seconds as f64))
    }

    async fn rage(&self, server: &Server, seconds: f64) -> Result<StormResult> {
        let pids = server.pids();
        let clients = ClientGroup::gather(server.address, self.deadline_ms).await?;
        clients.keep_asking(PEAK_UNANSWERED);
        clients.watch(0.5).await?;
        let cpu_before = process::cpu_seconds(&pids);
        let peak = clients.watch(PEAK_SECONDS).await?;
        let reply_us = (process::cpu_seconds(&pids) - cpu_before) * 1e6 / peak.replies as f64;
        let peak_per_s = peak.rate();
        clients.keep_asking(0);
        clients.empty(Duration::from_secs(5)).await?;
        let normal = clients.offer(peak_per_s * NORMAL_PART, NORMAL_SECONDS, || ()).await?;
        let normal_p99_us = normal.p99_us();
        println!("  peak {peak_per_s:.0} replies/s; at half of it p99 {:.1} ms", normal_p99_us / 1e3);

        let (mut memory_bytes, mut looked) = (process::memory_bytes(&pids), Instant::now());
        let look = || {
            if looked.elapsed() > MEMORY_LOOK {
                memory_bytes = memory_bytes.max(process::memory_bytes(&pids));
                looked = Instant::now();
            }
        };
        let cpu_before = process::cpu_seconds(&pids);
        let storm = clients.offer(peak_per_s * OVERLOAD, seconds, look).await?;
        let cpu_seconds = process::cpu_seconds(&pids) - cpu_before;
        let recovery_s = recovery(&clients, peak_per_s * NORMAL_PART, normal_p99_us).await?;
        let lost = clients.empty(Duration::from_millis(u64::from(self.deadline_ms) + 3_000)).await?;
        let mut result = StormResult {
            part: self.part.to_owned(),
            about: self.about.to_owned(),
            memory_limit_bytes: self.memory_limit_bytes,
            peak_per_s,
            normal_p99_us,
            offered_per_s: storm.asked as f64 / storm.seconds,
            held_back: storm.held_back,
            replies_per_s: storm.rate(),
            p99_us: storm.p99_us(),
            refusal_us: refusal_us(&storm, cpu_seconds, reply_us),
            refusals: storm.refusals,
            memory_bytes,
            reply_us,
            recovery_s,
            lost,
            bars: Vec::new(),
        };
        result.bars = bars(&result);
        report(&result);
        Ok(result)
    }
}

fn bars(storm: &StormResult) -> Vec<Verdict> {
    let memory_max = 2 * storm.memory_limit_bytes + MEMORY_BESIDE_BYTES;
    let wrong = storm.refusals.iter().filter(|(code, _)| !RIGHT_CODES.contains(&code.as_str()));
    let wrong: u64 = wrong.map(|(_, count)| count).sum();
    let at_most = |figure: &str, most: f64, value: f64| Verdict::of(figure, Bound::AtMost(most), Some(value));
    let kept = storm.replies_per_s / storm.peak_per_s;
    vec![
        Verdict::of("replies / the peak's", Bound::AtLeast(THROUGHPUT_MIN), Some(kept)),
        at_most("MiB of memory", memory_max as f64 / MIB, storm.memory_bytes as f64 / MIB),
        at_most(&format!("ends other than a reply, {}", RIGHT_CODES.join(" or ")), 0.0, wrong as f64),
        at_most(
            "seconds until all is normal again",
            RECOVERY_SECONDS_MAX,
            storm.recovery_s.unwrap_or(RECOVERY_PATIENCE_SECONDS),
        ),
        at_most("requests that never ended", 0.0, storm.lost as f64),
    ]
}

fn report(storm: &StormResult) {
    println!(
        "  offered {:.0}/s, {:.1} times the peak; {} more held back by the sockets; p99 {:.0} ms",
        storm.offered_per_s,
        storm.offered_per_s / storm.peak_per_s,
        storm.held_back,
        storm.p99_us / 1e3,
    );
    let refusal = storm.refusal_us.map(|us| format!(", {us:.2} us a refusal in the storm")).unwrap_or_default();
    println!("  the broker's CPU: {:.2} us a reply at the peak{refusal}", storm.reply_us);
    println!("  without a reply: {:?}", storm.refusals);
    for bar in &storm.bars {
        println!("  {bar}");
    }
}

/// The CPU time of a request without a reply, if replies cost as much as at the peak.
fn refusal_us(storm: &Interval, cpu_seconds: f64, reply_us: f64) -> Option<f64> {
    let refused: u64 = storm.refusals.values().sum();
    (refused > 0).then(|| (cpu_seconds * 1e6 - storm.replies as f64 * reply_us) / refused as f64)
}

/// Seconds from now until requests at a normal rate take no longer than before.
async fn recovery(clients: &ClientGroup, rate: f64, normal_us: f64) -> Result<Option<f64>> {
    let begun = Instant::now();
    let mut good = 0;
    while begun.elapsed().as_secs_f64() < RECOVERY_PATIENCE_SECONDS {
        let window = clients.offer(rate, WINDOW_SECONDS, || ()).await?;
        good = if is_normal(&window, normal_us) { good + 1 } else { 0 };
        if good == GOOD_WINDOWS {
            let since = begun.elapsed().as_secs_f64() - WINDOW_SECONDS * GOOD_WINDOWS as f64;
            return Ok(Some(since.max(0.0)));
        }
    }
    Ok(None)
}

/// Short windows see few requests, so that their p99 is rougher than that of the long one before the storm.
fn is_normal(window: &Interval, normal_us: f64) -> bool {
    const ROUGHNESS_US: f64 = 10_000.0;
    window.replies > 0
        && window.refusals.is_empty()
        && window.p99_us() <= (2.0 * normal_us).max(normal_us + ROUGHNESS_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replies_do_not_cost_refusals_do() {
        let refusals = [("over_memory".to_owned(), 150), ("timed_out".to_owned(), 50)].into();
        let storm = Interval { replies: 100, refusals, ..Interval::default() };
        assert!((refusal_us(&storm, 0.000_3, 1.0).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(refusal_us(&Interval::default(), 0.000_3, 1.0), None);
    }

    #[test]
    fn a_refusal_is_not_normal_however_quick() {
        let good = Interval { seconds: 0.1, replies: 10, micros: vec![7_000], ..Interval::default() };
        assert!(is_normal(&good, 6_000.0));
        assert!(!is_normal(&Interval { micros: vec![70_000], ..good.clone() }, 6_000.0));
        assert!(!is_normal(&Interval { refusals: [("over_memory".to_owned(), 1)].into(), ..good.clone() }, 6_000.0));
        assert!(!is_normal(&Interval { replies: 0, ..good }, 6_000.0));
    }
}
