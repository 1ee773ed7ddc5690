//! The report of a load, for people and for programs.

use std::fmt::Write as _;
use std::time::Duration;

use turno_client::Slots;

use super::LoadArgs;
use super::load::{Kind, Load};
use crate::cli::schema::bench::{BenchDocument, LatencyBody, LoadBody};
use crate::cli::shown::Page;
use crate::cli::{size, table};

/// Columns of the longest bar.
const BAR: usize = 40;

pub(super) fn document(load: &Load, args: &LoadArgs, worked: Option<(u64, f64)>) -> BenchDocument {
    let (plan, tally) = (load.plan(), load.tally());
    BenchDocument {
        kind: match plan.kind {
            Kind::Request => "request".to_owned(),
            Kind::Send => "send".to_owned(),
        },
        queue: plan.queue.clone(),
        load: LoadBody {
            clients: args.clients,
            parallel: plan.parallel as u64,
            workers: worked.map_or(0, |_| args.workers),
            slots: match args.slots {
                Slots::Limited(slots) if worked.is_some() => Some(slots),
                _ => None,
            },
            body_bytes: plan.body.len() as u64,
            rate: plan.rate,
        },
        seconds: tally.elapsed().as_secs_f64(),
        sent: tally.sent(),
        answered: tally.answered,
        failed: tally.failed,
        errors: tally.errors.iter().map(|(code, count)| ((*code).to_owned(), *count)).collect(),
        unsent: load.unsent(),
        worked: worked.map(|(count, _)| count),
        worked_seconds: worked.map(|(_, seconds)| seconds),
        rate: tally.per_second(tally.answered),
        body_bytes_per_second: tally.per_second(tally.body_bytes),
        latency: tally.latency(),
    }
}

pub(super) fn text(document: &BenchDocument) -> Page {
    let BenchDocument { queue, load, seconds, sent, answered, failed, .. } = document;
    let (answers, bodies) = match document.kind.as_str() {
        "send" => ("stored", "out"),
        _ => ("answered", "out and back"),
    };
    let mut facts = vec![
        ("queue", queue.clone()),
        ("load", loaded(load)),
        (answers, format!("{answered} of {sent} in {seconds:.1}s, {failed} failed")),
    ];
    if *failed > 0 {
        let errors: Vec<String> = document.errors.iter().map(|(code, count)| format!("{count} {code}")).collect();
        facts.push(("failures", errors.join(", ")));
    }
    if document.unsent > 0 {
        facts.push(("unsent", format!("{} not sent in time", document.unsent)));
    }
    facts.push(("rate", format!("{}/s", figure(document.rate))));
    if let (true, Some(count), Some(seconds)) = (document.kind == "send", document.worked, document.worked_seconds) {
        facts.push(("worked", format!("{count} in {seconds:.1}s, {}/s", figure(per_second(count, seconds)))));
    }
    facts.push(("bodies", format!("{} MB/s {bodies}", figure(document.body_bytes_per_second / 1e6))));
    let Some(latency) = &document.latency else { return table::facts(&facts) };
    for (name, seconds) in [
        ("p50", latency.p50_seconds),
        ("p90", latency.p90_seconds),
        ("p99", latency.p99_seconds),
        ("p99.9", latency.p999_seconds),
        ("max", latency.max_seconds),
    ] {
        facts.push((name, short(Duration::from_secs_f64(seconds))));
    }
    let mut page = table::facts(&facts);
    page.line("");
    page.append(&histogram(latency));
    page
}

fn loaded(load: &LoadBody) -> String {
    let many = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut text = format!("{}, {} in flight each", many(load.clients, "client"), load.parallel);
    if load.workers > 0 {
        let slots = load.slots.map_or_else(|| "unlimited".to_owned(), |slots| slots.to_string());
        let _ = write!(text, "; {}, {slots} slots each", many(load.workers, "worker"));
    } else {
        text.push_str("; external workers");
    }
    let _ = write!(text, "; {} bodies", size::short(load.body_bytes));
    if let Some(rate) = load.rate {
        let _ = write!(text, "; target {rate}/s");
    }
    text
}

/// One line a bar: up to when, how many, and how many that is as a picture.
fn histogram(latency: &LatencyBody) -> Page {
    let bars = &latency.histogram;
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    let ends: Vec<String> = bars.iter().map(|bar| short(Duration::from_secs_f64(bar.up_to_seconds))).collect();
    let end_width = ends.iter().map(String::len).max().unwrap_or(0);
    let count_width = most.to_string().len();
    let mut page = Page::new();
    for (bar, end) in bars.iter().zip(ends) {
        // At least one sign for at least one answer: a slow one must not be overlooked.
        let signs = usize::try_from(u128::from(bar.count) * BAR as u128 / u128::from(most)).unwrap_or(BAR);
        let signs = if bar.count > 0 { signs.max(1) } else { 0 };
        let line = format!("up to {end:>end_width$}  {:>count_width$}  {}", bar.count, "#".repeat(signs));
        page.line(line.trim_end());
    }
    page
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds.max(f64::MIN_POSITIVE)
}

/// Three digits: `0.82`, `24.7`, `48211`.
pub(super) fn figure(number: f64) -> String {
    let digits = match number {
        number if number < 10.0 => 2,
        number if number < 100.0 => 1,
        _ => 0,
    };
    format!("{number:.digits$}")
}

/// Three digits and a unit: `38.2us`, `1.24ms`, `5.00s`.
pub(super) fn short(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    // A value that would be rounded to a thousand gets the next unit.
    match micros {
        micros if micros < 999.5 => format!("{}us", figure(micros)),
        micros if micros < 999_500.0 => format!("{}ms", figure(micros / 1e3)),
        micros => format!("{}s", figure(micros / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cli::schema::bench::BarBody;

    fn measured() -> BenchDocument {
        let bar = |up_to_seconds, count| BarBody { up_to_seconds, count };
        BenchDocument {
            kind: "request".to_owned(),
            queue: "hello".to_owned(),
            load: LoadBody { clients: 1, parallel: 10, workers: 2, slots: Some(5), body_bytes: 256, rate: None },
            seconds: 2.0,
            sent: 90_005,
            answered: 90_000,
            failed: 5,
            errors: BTreeMap::from([("failed".to_owned(), 3), ("timed_out".to_owned(), 2)]),
            unsent: 0,
            worked: Some(90_000),
            worked_seconds: Some(2.5),
            rate: 45_000.0,
            body_bytes_per_second: 23_040_000.0,
            latency: Some(LatencyBody {
                min_seconds: 0.000_07,
                mean_seconds: 0.000_12,
                p50_seconds: 0.000_12,
                p90_seconds: 0.000_2,
                p99_seconds: 0.000_4,
                p999_seconds: 0.002,
                max_seconds: 0.004_321,
                histogram: vec![bar(0.000_1, 20_000), bar(0.000_15, 69_998), bar(0.000_2, 0), bar(0.005, 2)],
            }),
        }
    }

    #[test]
    fn people_read_columns() {
        let expected = format!(
            "queue     hello\n\
             load      1 client, 10 in flight each; 2 workers, 5 slots each; 256B bodies\n\
             answered  90000 of 90005 in 2.0s, 5 failed\n\
             failures  3 failed, 2 timed_out\n\
             rate      45000/s\n\
             bodies    23.0 MB/s out and back\n\
             p50       120us\n\
             p90       200us\n\
             p99       400us\n\
             p99.9     2.00ms\n\
             max       4.32ms\n\
             \n\
             up to  100us  20000  {}\n\
             up to  150us  69998  {}\n\
             up to  200us      0\n\
             up to 5.00ms      2  #\n",
            "#".repeat(11),
            "#".repeat(40),
        );
        assert_eq!(text(&measured()), expected);
        assert!(expected.lines().all(|line| line.len() < 80), "a terminal has 80 columns");
    }

    #[test]
    fn sends_are_stored_and_then_worked_on() {
        let text = text(&BenchDocument { kind: "send".to_owned(), ..measured() });
        assert!(text.contains("stored    90000 of 90005 in 2.0s, 5 failed\n"), "{text}");
        assert!(text.contains("worked    90000 in 2.5s, 36000/s\nbodies    23.0 MB/s out\n"), "{text}");
    }

    #[test]
    fn what_there_is_not_is_not_told() {
        let nothing = BenchDocument {
            answered: 0,
            latency: None,
            load: LoadBody { workers: 0, slots: None, rate: Some(100), ..measured().load },
            unsent: 7,
            ..measured()
        };
        let text = text(&nothing);
        assert!(text.contains("external workers; 256B bodies; target 100/s\n"), "{text}");
        assert!(text.contains("unsent    7 not sent in time\n") && !text.contains("p50"), "{text}");
    }

    #[test]
    fn times_have_three_digits() {
        let table = [(0, "0.00us"), (900, "0.90us"), (38_200, "38.2us"), (999_600, "1.00ms"), (5_000_000_000, "5.00s")];
        for (nanos, expected) in table {
            assert_eq!(short(Duration::from_nanos(nanos)), expected);
        }
    }
}
