//! The budget: what Turno must reach in each work, beside whom, and how a chart says so.

use crate::parallel::PER_SECOND;
use crate::report::{Bound, SystemResult, Verdict};
use crate::spread::{MIB, Spread};
use crate::works::Work;

/// One line of the budget.
pub(crate) struct Budget {
    /// The measured figure, as in "rate / relay's".
    pub(crate) figure: &'static str,
    pub(crate) bound: Bound,
    pub(crate) of: fn(&SystemResult) -> Option<Spread>,
    /// None where Turno stands alone.
    pub(crate) chart: Option<Chart>,
}

/// How a line of the budget is drawn.
pub(crate) struct Chart {
    /// Of its file.
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) subtitle: &'static str,
}

/// Turno's budgets for a work.
pub(crate) const fn of(work: Work) -> &'static [Budget] {
    match work {
        Work::W1 => W1,
        Work::W2 => W2,
        Work::W3 => W3,
        Work::W4 => W4,
        Work::W5 => W5,
        Work::W6 => W6,
        Work::W7 => W7,
    }
}

/// Compares Turno's figures with the budget.
pub(crate) fn judge(work: Work, turno: Option<&SystemResult>) -> Vec<Verdict> {
    let verdict = |budget: &Budget| {
        let value = turno.and_then(budget.of).map(|spread| spread.median);
        Verdict::of(budget.figure, budget.bound, value)
    };
    of(work).iter().map(verdict).collect()
}

const W1: &[Budget] = &[Budget {
    figure: "p50 / relay's",
    bound: Bound::AtMost(1.3),
    of: |one| one.ratios.p50,
    chart: Some(Chart {
        key: "p50",
        title: "One request at a time: how long it takes",
        subtitle: "p50 beside the relay's in the same minute, everything on one core; lower is better",
    }),
}];

const W2: &[Budget] = &[
    Budget {
        figure: "rate / relay's",
        bound: Bound::AtLeast(0.7),
        of: |one| one.ratios.rate,
        chart: Some(Chart {
            key: "rate",
            title: "A hundred requests in flight: how many a second",
            subtitle: "rate beside the relay's in the same minute; higher is better",
        }),
    },
    Budget {
        figure: "CPU / relay's",
        bound: Bound::AtMost(1.4),
        of: |one| one.ratios.cpu,
        chart: Some(Chart {
            key: "cpu",
            title: "A hundred requests in flight: what each costs",
            subtitle: "server CPU per request beside the relay's in the same minute; lower is better",
        }),
    },
    Budget {
        figure: "p99 / relay's",
        bound: Bound::AtMost(2.0),
        of: |one| one.ratios.p99,
        chart: Some(Chart {
            key: "p99",
            title: "A hundred requests in flight: how long the slow ones take",
            subtitle: "p99 beside the relay's in the same minute; lower is better",
        }),
    },
    Budget {
        figure: "rate beside 10,000 durable sends a second / alone",
        bound: Bound::AtLeast(0.75),
        of: |one| one.ratios.beside,
        chart: None,
    },
    Budget {
        figure: "durable sends a second beside",
        bound: Bound::AtLeast(0.95 * PER_SECOND),
        of: |one| Some(Spread::flat(one.figures.beside_sends_per_s?)),
        chart: None,
    },
];

const W3: &[Budget] = &[Budget {
    figure: "rate / relay's",
    bound: Bound::AtLeast(2.0),
    of: |one| one.ratios.rate,
    chart: Some(Chart {
        key: "rate",
        title: "Sends through a queue in memory: how many a second",
        subtitle: "send, take and ack; rate beside the relay's requests in the same minute; higher is better",
    }),
}];

const W4: &[Budget] = &[
    Budget {
        figure: "rate / relay's",
        bound: Bound::AtLeast(1.2),
        of: |one| one.ratios.rate,
        chart: Some(Chart {
            key: "rate",
            title: "Sends through a queue on disk: how many a second",
            subtitle: "synced before the answer; rate beside the relay's requests in the same minute; higher is better",
        }),
    },
    Budget { figure: "rate / plain log's", bound: Bound::AtLeast(0.6), of: |one| one.ratios.plain_log, chart: None },
    Budget { figure: "rate / Redis'", bound: Bound::AtLeast(4.0), of: |one| one.ratios.redis, chart: None },
];

const W5: &[Budget] = &[
    Budget {
        figure: "deliveries to 1 subscriber / Redis'",
        bound: Bound::AtLeast(1.5),
        of: |one| one.ratios.events[0],
        chart: None,
    },
    Budget {
        figure: "deliveries to 10 subscribers / Redis'",
        bound: Bound::AtLeast(1.5),
        of: |one| one.ratios.events[1],
        chart: None,
    },
    Budget {
        figure: "deliveries to 100 subscribers / Redis'",
        bound: Bound::AtLeast(1.5),
        of: |one| one.ratios.events[2],
        chart: Some(Chart {
            key: "events",
            title: "Events to a hundred subscribers: how many deliveries a second",
            subtitle: "rate beside Redis' in the same round; higher is better",
        }),
    },
];

const W6: &[Budget] = &[
    Budget {
        figure: "KiB per idle connection",
        bound: Bound::AtMost(2.0),
        of: |one| Some(Spread::flat(one.figures.connection_bytes? / 1024.0)),
        chart: Some(Chart {
            key: "connection",
            title: "Ten thousand idle connections: what each takes",
            subtitle: "KiB of the server's memory per connection; lower is better",
        }),
    },
    Budget {
        figure: "bytes per queued message",
        bound: Bound::AtMost(400.0),
        of: |one| Some(Spread::flat(one.figures.message_bytes?)),
        chart: Some(Chart {
            key: "message",
            title: "Messages waiting in memory: what each takes",
            subtitle: "bytes of the server's memory per message of 256 bytes, of 400,000; lower is better",
        }),
    },
    Budget {
        figure: "bytes of memory per durable message",
        bound: Bound::AtMost(120.0),
        of: |one| Some(Spread::flat(one.figures.durable_message_bytes?)),
        chart: None,
    },
    Budget {
        figure: "seconds to restart, per million of them",
        bound: Bound::AtMost(10.0),
        of: |one| Some(Spread::flat(one.figures.restart_s? / (one.figures.pending? / 1e6).max(1.0))),
        chart: None,
    },
    Budget {
        figure: "MiB on disk beyond 2x the live, after a drain",
        bound: Bound::AtMost(256.0),
        of: |one| Some(Spread::flat(one.figures.disk_spare_bytes? / MIB)),
        chart: None,
    },
];

const W7: &[Budget] = &[Budget {
    figure: "takeover / beanstalkd's",
    bound: Bound::AtMost(1.2),
    of: |one| one.ratios.takeover,
    chart: Some(Chart {
        key: "takeover",
        title: "A worker is killed: when its messages are with another",
        subtitle: "time beside beanstalkd's in the same round; lower is better",
    }),
}];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::report::{Figures, Ratios};

    fn turno(p50: f64) -> SystemResult {
        let ratios = Ratios { p50: Some(Spread { median: p50, min: 0.0, max: 9.0 }), ..Ratios::default() };
        SystemResult {
            name: "turno".into(),
            version: String::new(),
            figures: Figures::default(),
            ratios,
            rounds: Vec::new(),
            failure: None,
        }
    }

    #[test]
    fn budgets_are_met_or_missed_or_not_measured() {
        let met = |result: Option<&SystemResult>| judge(Work::W1, result)[0].met;
        assert_eq!(met(Some(&turno(1.3))), Some(true));
        assert_eq!(met(Some(&turno(1.31))), Some(false));
        assert_eq!(met(None), None);
        assert_eq!(judge(Work::W1, None)[0].bound, "≤ 1.3");
        assert_eq!(judge(Work::W3, None)[0].bound, "≥ 2");
    }

    #[test]
    fn no_two_lines_of_a_work_share_a_key() {
        for work in Work::ALL {
            let keys: Vec<&str> = of(work).iter().filter_map(|line| Some(line.chart.as_ref()?.key)).collect();
            assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{work:?}");
        }
    }
}
