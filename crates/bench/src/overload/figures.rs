//! Figures of overload, as they are written with `--json`, and as tables.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::report::{Head, Verdict};
use crate::spread::Spread;

pub(super) const MIB: f64 = 1_048_576.0;

/// A run of overload.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Overload {
    #[serde(flatten)]
    pub(crate) head: Head,
    /// How long each storm lasted.
    pub(crate) seconds: usize,
    pub(crate) storms: Vec<StormResult>,
    pub(crate) readers: Vec<ReaderResult>,
}

/// More was asked than could be done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StormResult {
    pub(crate) part: String,
    pub(crate) about: String,
    /// `limits.memory` of the broker.
    pub(crate) memory_limit_bytes: u64,
    /// Replies that could be had without overload.
    pub(crate) peak_per_s: f64,
    /// At half the peak, before the storm.
    pub(crate) normal_p99_us: f64,
    pub(crate) offered_per_s: f64,
    /// Not asked because the socket took nothing.
    pub(crate) held_back: u64,
    pub(crate) replies_per_s: f64,
    /// Of everything that ended, however it did.
    pub(crate) p99_us: f64,
    /// Requests that ended without a reply, by code.
    pub(crate) refusals: BTreeMap<String, u64>,
    /// The most that the broker held.
    pub(crate) memory_bytes: u64,
    /// The broker's CPU time per reply at the peak.
    pub(crate) reply_us: f64,
    /// The broker's CPU time per refusal in the storm, if replies cost what they did at the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refusal_us: Option<f64>,
    /// From the end of the storm until half the peak was answered as before; none if that did not come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recovery_s: Option<f64>,
    /// Requests that never ended.
    pub(crate) lost: u64,
    pub(crate) bars: Vec<Verdict>,
}

/// Someone stopped reading.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReaderResult {
    /// Worker or client.
    pub(crate) stuck: String,
    /// The others' rate beside it, over that without it.
    pub(crate) kept: Spread,
    pub(crate) bars: Vec<Verdict>,
}

impl Overload {
    /// The bars that were missed, each with its part.
    pub(crate) fn missed(&self) -> Vec<String> {
        let storms = self.storms.iter().map(|storm| (storm.part.as_str(), &storm.bars));
        let readers = self.readers.iter().map(|reader| (reader.stuck.as_str(), &reader.bars));
        let all = storms.chain(readers).flat_map(|(part, bars)| bars.iter().map(move |bar| (part, bar)));
        all.filter(|(_, bar)| bar.met != Some(true)).map(|(part, bar)| format!("{part}: {bar}")).collect()
    }

    /// Tables for people, in Markdown.
    pub(crate) fn tables(&self) -> String {
        let mut text = String::new();
        if !self.storms.is_empty() {
            text += "\
| part | peak | offered | replies | memory at most | CPU per reply, per refusal | p99 before, in the storm | normal again |
|---|---:|---:|---:|---:|---:|---:|---:|\n";
        }
        for storm in &self.storms {
            let peak = storm.peak_per_s;
            let part_of_peak = |rate: f64| rate / peak;
            let or_dash = |value: Option<f64>, digits: usize, unit: &str| {
                value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$} {unit}"))
            };
            let cells = [
                format!("`{}`", storm.part),
                format!("{peak:.0}/s"),
                format!("{:.2} of the peak", part_of_peak(storm.offered_per_s)),
                format!("{:.2} of the peak", part_of_peak(storm.replies_per_s)),
                format!("{:.0} MiB", storm.memory_bytes as f64 / MIB),
                format!("{:.1} us, {}", storm.reply_us, or_dash(storm.refusal_us, 1, "us")),
                format!("{:.1} ms, {:.0} ms", storm.normal_p99_us / 1e3, storm.p99_us / 1e3),
                or_dash(storm.recovery_s, 1, "s"),
            ];
            text += &format!("| {} |\n", cells.join(" | "));
        }
        if !self.readers.is_empty() {
            text += "\n| who stops reading | what the others keep of their rate |\n|---|---:|\n";
        }
        for ReaderResult { stuck, kept, .. } in &self.readers {
            text += &format!("| a {stuck} | {kept} |\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Bound;

    fn overload() -> Overload {
        let bar = |value| vec![Verdict::of("kept", Bound::AtLeast(0.95), Some(value))];
        let storm = StormResult {
            part: "refused".into(),
            about: String::new(),
            memory_limit_bytes: 8 << 20,
            peak_per_s: 1000.0,
            normal_p99_us: 6_500.0,
            offered_per_s: 3000.0,
            held_back: 0,
            replies_per_s: 990.0,
            p99_us: 1_200_000.0,
            refusals: [("over_memory".to_owned(), 7)].into(),
            memory_bytes: 20 << 20,
            reply_us: 5.0,
            refusal_us: None,
            recovery_s: None,
            lost: 0,
            bars: bar(0.99),
        };
        let reader = |stuck: &str, median| {
            let kept = Spread { median, min: 0.9, max: 1.1 };
            ReaderResult { stuck: stuck.to_owned(), kept, bars: bar(median) }
        };
        let readers = vec![reader("worker", 0.99), reader("client", 0.5)];
        Overload { head: Head::now(1).unwrap(), seconds: 60, storms: vec![storm], readers }
    }

    #[test]
    fn missed_bars_are_named_with_their_part() {
        assert_eq!(overload().missed(), ["client: kept ≥ 0.95 missed (0.50)"]);
    }

    #[test]
    fn tables_have_as_many_cells_in_every_line() {
        let text = overload().tables();
        for table in text.split("\n\n") {
            let cells: Vec<usize> = table.lines().map(|line| line.matches('|').count()).collect();
            assert!(cells.windows(2).all(|pair| pair[0] == pair[1]), "{table}");
        }
        assert!(
            text.contains("| `refused` | 1000/s | 3.00 of the peak | 0.99 of the peak | 20 MiB | 5.0 us, – |"),
            "{text}"
        );
    }

    #[test]
    fn what_is_written_can_be_read() {
        let text = serde_json::to_string(&overload()).unwrap();
        let read: Overload = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
