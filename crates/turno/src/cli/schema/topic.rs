//! Topics, events and subscribers: columns, listings, and events as they are printed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use turno_client::Event;
use turno_proto::model::topic::view::{SubscriberView, TopicView};

use super::reply::MessageContent;
use crate::cli::size;
use crate::cli::table::{Column, Row, columns};

/// Something that was published.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventDocument {
    /// The topic of the event.
    pub(crate) topic: String,
    #[serde(flatten)]
    pub(crate) content: MessageContent,
    /// Its headers.
    pub(crate) headers: BTreeMap<String, String>,
}

impl From<&Event> for EventDocument {
    fn from(Event { topic, headers, body, .. }: &Event) -> Self {
        let content = MessageContent::new(headers, body);
        Self { topic: topic.to_string(), content, headers: headers.clone() }
    }
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

/// Printed by `turno pub`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PublishedDocument {
    /// The topic of the events.
    pub(crate) topic: String,
    /// How many there were.
    pub(crate) events: u64,
    /// Whether the broker has said that it passed them on.
    pub(crate) confirmed: bool,
}

impl Row for TopicView {
    const COLUMNS: &'static [Column<Self>] = columns![
        topic;
        events;
        wide bytes as "SIZE" = |row, _| size::short(row.bytes);
        subscribers;
        latest_at;
    ];

    fn name(&self) -> String {
        self.topic.clone()
    }
}

/// Topics.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TopicListDocument<'a> {
    /// The rows.
    pub(crate) topics: &'a [TopicView],
    /// Where the next page begins; null at the end.
    pub(crate) next: Option<String>,
}

/// Its filters in one cell.
pub(crate) fn filters(subscriber: &SubscriberView) -> String {
    let more = subscriber.filters_all.saturating_sub(subscriber.filters.len() as u64);
    let list = subscriber.filters.join(",");
    if more > 0 { format!("{list} and {more} more") } else { list }
}

impl Row for SubscriberView {
    const COLUMNS: &'static [Column<Self>] = columns![
        wide number;
        name;
        wide address;
        filters = |row, _| filters(row);
        events;
        dropped;
        waiting;
        wide or_close;
    ];

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Subscribers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubscriberListDocument<'a> {
    /// The rows.
    pub(crate) subscribers: &'a [SubscriberView],
    /// Where the next page begins; null at the end.
    pub(crate) next: Option<String>,
}

/// One subscriber.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SubscriberDocument<'a> {
    /// The subscriber.
    pub(crate) subscriber: &'a SubscriberView,
}
