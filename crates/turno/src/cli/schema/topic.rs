//! Topics, events and subscribers, as programs read them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use turno_client::Event;
use turno_proto::model::topic::view::{SubscriberView, TopicView};

use super::Document;
use super::reply::Content;
use crate::cli::table::{Column, Row};
use crate::cli::time::{Clock, rfc3339};

/// Something that was published.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventDocument {
    /// What it is about.
    pub(crate) topic: String,
    #[serde(flatten)]
    pub(crate) content: Content,
    /// Its headers.
    pub(crate) headers: BTreeMap<String, String>,
}

impl From<&Event> for EventDocument {
    fn from(Event { topic, headers, body, .. }: &Event) -> Self {
        Self { topic: topic.to_string(), content: Content::from(&body[..]), headers: headers.clone() }
    }
}

impl Document for EventDocument {
    const SCHEMA: &'static str = "turno.event/1";
}

/// Events that were heard or fetched.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventListDocument {
    /// In the order they came.
    pub(crate) events: Vec<EventDocument>,
    /// Events that are missing among them.
    pub(crate) dropped: u64,
    /// Events that still wait to be fetched; null where events are listened to.
    pub(crate) left: Option<u64>,
}

impl Document for EventListDocument {
    const SCHEMA: &'static str = "turno.event_list/1";
}

/// Printed by `turno pub`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PublishedDocument {
    /// What the events are about.
    pub(crate) topic: String,
    /// How many there were.
    pub(crate) events: u64,
    /// Whether the broker has said that it passed them on.
    pub(crate) confirmed: bool,
}

impl Document for PublishedDocument {
    const SCHEMA: &'static str = "turno.published/1";
}

/// A topic that something was published about.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TopicRow {
    /// Its name.
    pub(crate) topic: String,
    /// Events so far.
    pub(crate) events: u64,
    /// Bytes of what they carried.
    pub(crate) bytes: u64,
    /// Who listens now.
    pub(crate) subscribers: u64,
    /// When the latest came.
    pub(crate) latest_at: String,
    #[serde(skip)]
    latest: Timestamp,
}

impl TopicRow {
    pub(crate) fn new(view: &TopicView, clock: &Clock) -> Self {
        let latest = clock.ago(view.latest_ms);
        Self {
            topic: view.topic.clone(),
            events: view.events,
            bytes: view.bytes,
            subscribers: view.subscribers,
            latest_at: rfc3339(latest),
            latest,
        }
    }
}

impl Document for TopicRow {
    const SCHEMA: &'static str = "turno.topic_row/1";
}

impl Row for TopicRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("topic", |row, _| row.topic.clone()),
        Column::new("events", |row, _| row.events.to_string()),
        Column::wide("bytes", |row, _| row.bytes.to_string()),
        Column::new("subscribers", |row, _| row.subscribers.to_string()),
        Column::new("latest_at", |row, clock| clock.cell(row.latest)),
    ];

    fn name(&self) -> String {
        self.topic.clone()
    }
}

/// Topics.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TopicListDocument<'a> {
    /// The rows.
    pub(crate) topics: &'a [TopicRow],
    /// Where the next page begins; null at the end.
    pub(crate) next: Option<String>,
}

impl Document for TopicListDocument<'_> {
    const SCHEMA: &'static str = "turno.topic_list/1";
}

/// Somebody who listens.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SubscriberRow {
    /// Its number, which another may get when it is gone.
    pub(crate) number: u32,
    /// The name of the connection, or the id of one that fetches.
    pub(crate) name: String,
    /// Where it is; null for one that fetches.
    pub(crate) address: Option<String>,
    /// Its filters, the first of them.
    pub(crate) filters: Vec<String>,
    /// How many it has.
    pub(crate) filters_all: u64,
    /// It is disconnected if it reads too slowly, instead of missing events.
    pub(crate) or_close: bool,
    /// Events that were for it.
    pub(crate) events: u64,
    /// Those of them that it missed.
    pub(crate) dropped: u64,
    /// Events that wait to be fetched; null for a connection.
    pub(crate) waiting: Option<u64>,
}

impl From<&SubscriberView> for SubscriberRow {
    fn from(view: &SubscriberView) -> Self {
        let SubscriberView { number, name, address, filters, filters_all, or_close, events, dropped, waiting } =
            view.clone();
        Self { number, name, address, filters, filters_all, or_close, events, dropped, waiting }
    }
}

impl SubscriberRow {
    /// Its filters in one cell.
    pub(crate) fn filters(&self) -> String {
        let more = self.filters_all.saturating_sub(self.filters.len() as u64);
        let list = self.filters.join(",");
        if more > 0 { format!("{list} and {more} more") } else { list }
    }
}

impl Document for SubscriberRow {
    const SCHEMA: &'static str = "turno.subscriber_row/1";
}

impl Row for SubscriberRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::wide("number", |row, _| row.number.to_string()),
        Column::new("name", |row, _| row.name.clone()),
        Column::new("address", |row, _| row.address.clone().unwrap_or_default()),
        Column::new("filters", |row, _| row.filters()),
        Column::new("events", |row, _| row.events.to_string()),
        Column::new("dropped", |row, _| row.dropped.to_string()),
        Column::new("waiting", |row, _| row.waiting.map_or_else(String::new, |waiting| waiting.to_string())),
        Column::wide("or_close", |row, _| row.or_close.to_string()),
    ];

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Subscribers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubscriberListDocument<'a> {
    /// The rows.
    pub(crate) subscribers: &'a [SubscriberRow],
    /// Where the next page begins; null at the end.
    pub(crate) next: Option<String>,
}

impl Document for SubscriberListDocument<'_> {
    const SCHEMA: &'static str = "turno.subscriber_list/1";
}

/// One subscriber.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubscriberDocument {
    /// The subscriber.
    pub(crate) subscriber: SubscriberRow,
}

impl Document for SubscriberDocument {
    const SCHEMA: &'static str = "turno.subscriber/1";
}
