//! Links and the brokers behind them, as programs read them.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::link::view::{BrokerNode, LinkState, LinkView};

use super::Document;
use crate::cli::table::{Column, Row};
use crate::cli::time::{Clock, micros, rfc3339};
use crate::cli::words::one_line;

/// A link, or an address that one is wanted to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkRow {
    /// The name of the broker at the other end; null while it is not known.
    pub(crate) name: Option<String>,
    /// `up`, `closing`, `dialling`, `down`, `itself` or `doubled`.
    pub(crate) state: String,
    /// The latest round trip; null while there was none.
    pub(crate) round_trip_seconds: Option<f64>,
    /// Free slots that the other end offers, over all queues.
    pub(crate) offered: u64,
    /// Messages that crossed to the other end and are not settled.
    pub(crate) backlog: u64,
    /// Messages that crossed to the other end so far.
    pub(crate) forwarded: u64,
    /// Messages that came from there.
    pub(crate) received: u64,
    /// Messages that crossed and came back, because there was no room any more.
    pub(crate) returned: u64,
    /// The address as it was given; null if the other broker dialled.
    pub(crate) target: Option<String>,
    /// Since when it is in that state.
    pub(crate) since_at: String,
    /// Why it is not up: a word of `turno explain`.
    pub(crate) code: Option<String>,
    /// The id of the broker at the other end; another one each time that broker starts.
    pub(crate) broker: Option<String>,
    /// Where the other end is.
    pub(crate) address: Option<String>,
    #[serde(skip)]
    since: jiff::Timestamp,
}

impl LinkRow {
    pub(crate) fn new(view: &LinkView, clock: &Clock) -> Self {
        let since = clock.ago(view.since_ms);
        Self {
            name: view.name.clone(),
            state: state(view.state).to_owned(),
            round_trip_seconds: view.round_trip_us.map(micros),
            offered: view.offered,
            backlog: view.backlog,
            forwarded: view.forwarded,
            received: view.received,
            returned: view.returned,
            target: view.target.clone(),
            since_at: rfc3339(since),
            code: view.code.clone(),
            broker: view.broker.clone(),
            address: view.address.clone(),
            since,
        }
    }
}

/// A state in one word.
pub(crate) const fn state(state: LinkState) -> &'static str {
    match state {
        LinkState::Up => "up",
        LinkState::Closing => "closing",
        LinkState::Dialling => "dialling",
        LinkState::Down => "down",
        LinkState::Itself => "itself",
        LinkState::Doubled => "doubled",
    }
}

impl Document for LinkRow {
    const SCHEMA: &'static str = "turno.link_row/1";
}

fn told(text: Option<&String>) -> String {
    text.map(|text| one_line(text)).unwrap_or_default()
}

impl Row for LinkRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("name", |row, _| told(row.name.as_ref())),
        Column::new("state", |row, _| row.state.clone()),
        Column::new("round_trip_seconds", |row, _| row.round_trip_seconds.map(|it| it.to_string()).unwrap_or_default()),
        Column::new("offered", |row, _| row.offered.to_string()),
        Column::new("backlog", |row, _| row.backlog.to_string()),
        Column::new("forwarded", |row, _| row.forwarded.to_string()),
        Column::new("received", |row, _| row.received.to_string()),
        Column::new("returned", |row, _| row.returned.to_string()),
        Column::new("target", |row, _| told(row.target.as_ref())),
        Column::new("since_at", |row, clock| clock.cell(row.since)),
        Column::new("code", |row, _| told(row.code.as_ref())),
        Column::wide("broker", |row, _| told(row.broker.as_ref())),
        Column::wide("address", |row, _| told(row.address.as_ref())),
    ];

    /// What `turno link rm` takes.
    fn name(&self) -> String {
        let words = [&self.target, &self.broker, &self.name];
        words.into_iter().flatten().next().map(|word| one_line(word)).unwrap_or_default()
    }
}

/// Links.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkListDocument<'a> {
    /// Those that are wanted, then those that other brokers dialled.
    pub(crate) links: &'a [LinkRow],
    /// Always null: there is one page.
    pub(crate) next: Option<String>,
}

impl Document for LinkListDocument<'_> {
    const SCHEMA: &'static str = "turno.link_list/1";
}

/// One link.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkDocument {
    /// As it is now; of one that was removed, as it was.
    pub(crate) link: LinkRow,
}

impl Document for LinkDocument {
    const SCHEMA: &'static str = "turno.link/1";
}

/// A broker of the graph.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BrokerRow {
    /// Its name.
    pub(crate) name: String,
    /// Links on the way to it; 0: it is the one that was asked.
    pub(crate) hops: u64,
    /// Brokers on the way to it, itself included: their names, or their ids where those are not known.
    pub(crate) way: Vec<String>,
    /// Those that it has links with, likewise.
    pub(crate) neighbours: Vec<String>,
    /// Its id; another one each time it starts.
    pub(crate) broker: String,
    /// The way by ids.
    pub(crate) way_ids: Vec<String>,
    /// Those that it has links with by ids.
    pub(crate) neighbour_ids: Vec<String>,
}

impl BrokerRow {
    /// The rows of a graph, in its order.
    pub(crate) fn all(nodes: &[BrokerNode]) -> Vec<Self> {
        let name = |id: &String| {
            let known = nodes.iter().find(|node| node.broker == *id);
            known.map_or_else(|| id.clone(), |node| node.name.clone())
        };
        let row = |node: &BrokerNode| {
            // In the order of their names, not of the connections, so that the same links look the same everywhere.
            let mut neighbours: Vec<(String, String)> =
                node.neighbours.iter().map(|id| (name(id), id.clone())).collect();
            neighbours.sort_unstable();
            let (neighbours, neighbour_ids) = neighbours.into_iter().unzip();
            Self {
                name: node.name.clone(),
                hops: node.path.len() as u64,
                way: node.path.iter().map(name).collect(),
                neighbours,
                broker: node.broker.clone(),
                way_ids: node.path.clone(),
                neighbour_ids,
            }
        };
        nodes.iter().map(row).collect()
    }
}

impl Document for BrokerRow {
    const SCHEMA: &'static str = "turno.broker_row/1";
}

fn names(names: &[String], between: &str) -> String {
    names.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(between)
}

impl Row for BrokerRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("name", |row, _| one_line(&row.name)),
        Column::new("hops", |row, _| row.hops.to_string()),
        Column::new("way", |row, _| names(&row.way, ">")),
        Column::new("neighbours", |row, _| names(&row.neighbours, ",")),
        Column::wide("broker", |row, _| row.broker.clone()),
        Column::wide("way_ids", |row, _| row.way_ids.join(">")),
        Column::wide("neighbour_ids", |row, _| row.neighbour_ids.join(",")),
    ];

    fn name(&self) -> String {
        one_line(&self.name)
    }
}

/// Who is linked to whom.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LinkGraphDocument<'a> {
    /// The one that was asked first, then the others by their names.
    pub(crate) brokers: &'a [BrokerRow],
}

impl Document for LinkGraphDocument<'_> {
    const SCHEMA: &'static str = "turno.link_graph/1";
}
