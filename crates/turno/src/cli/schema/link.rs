//! Links and the brokers behind them: columns and listings.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::link::view::{BrokerNode, LinkView};

use crate::cli::table::{Column, Row, columns};
use crate::cli::words::one_line;

fn told(text: Option<&String>) -> String {
    text.map(|text| one_line(text)).unwrap_or_default()
}

impl Row for LinkView {
    const COLUMNS: &'static [Column<Self>] = columns![
        name = |row, _| told(row.name.as_ref());
        state;
        round_trip_seconds;
        offered;
        wide backlog;
        wide forwarded;
        wide received;
        wide returned;
        target = |row, _| told(row.target.as_ref());
        wide since_at;
        code = |row, _| told(row.code.as_ref());
        wide broker = |row, _| told(row.broker.as_ref());
        wide address = |row, _| told(row.address.as_ref());
    ];

    /// The argument of `turno link rm`.
    fn name(&self) -> String {
        let words = [&self.target, &self.broker, &self.name];
        words.into_iter().flatten().next().map(|word| one_line(word)).unwrap_or_default()
    }
}

/// Links.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkListDocument<'a> {
    /// Those that are wanted, then those that other brokers dialled.
    pub(crate) links: &'a [LinkView],
    /// Always null: there is one page.
    pub(crate) next: Option<String>,
}

/// One link.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkDocument<'a> {
    /// As it is now; of one that was removed, as it was.
    pub(crate) link: &'a LinkView,
}

fn names(names: &[String], between: &str) -> String {
    names.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(between)
}

impl Row for BrokerNode {
    const COLUMNS: &'static [Column<Self>] = columns![
        name = |row, _| one_line(&row.name);
        hops;
        way as "PATH" = |row, _| names(&row.way, ">");
        neighbours = |row, _| names(&row.neighbours, ",");
        wide broker;
        wide way_ids as "PATH IDS" = |row, _| row.way_ids.join(">");
        wide neighbour_ids;
    ];

    fn name(&self) -> String {
        one_line(&self.name)
    }
}

/// All brokers and the links between them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkGraphDocument<'a> {
    /// The one that was asked first, then the others by their names.
    pub(crate) brokers: &'a [BrokerNode],
}
