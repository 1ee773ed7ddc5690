//! Views of topics and of named subscribers, for admin calls.

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::{PAGE_WORK, TOPIC_PAGE_MAX, VIEW_MESSAGES_MAX};
use turno_proto::model::topic::view::{EventView, SubscriberView, TopicView};
use turno_proto::model::{Code, Filter, Moment, Mono, Topic};

use super::fetch::Fetched;
use super::{Receiver, ReceiverId, Topics};
use crate::messages::workers::peer::Peers;

impl Topics {
    /// Answers a call about topics. Connections have their names from `peers`; `moment` dates what is shown.
    pub(crate) fn call(
        &mut self,
        moment: impl Fn(Mono) -> Moment,
        call: AdminCall,
        peers: &Peers,
    ) -> Result<AdminAnswer, Code> {
        match call {
            AdminCall::TopicLs { after, limit } => {
                let after = after.map(|after| after.parse()).transpose().map_err(|_| Code::BadTopic)?;
                Ok(self.topic_page(moment, after.as_ref(), limit))
            }
            AdminCall::TopicSubscribers { topic, after, limit } => {
                let topic = topic.map(|topic| topic.parse()).transpose().map_err(|_| Code::BadTopic)?;
                Ok(self.subscriber_page(topic.as_ref(), after, limit, peers))
            }
            AdminCall::TopicCreate { id, filters } => {
                let filters: Result<Vec<Filter>, _> = filters.iter().map(|filter| filter.parse()).collect();
                let number = self.create(&id, &filters.map_err(|_| Code::BadTopic)?)?;
                Ok(AdminAnswer::Subscribers { subscribers: vec![self.subscriber_view(number, peers)], next: None })
            }
            AdminCall::TopicRecv { id, limit } => {
                let Fetched { events, missed, left } = self.fetch(&id, limit)?;
                let events = events.iter().map(|event| EventView {
                    topic: event.topic.to_string(),
                    headers: event.payload.headers,
                    payload: event.payload.bytes.clone(),
                });
                Ok(AdminAnswer::Events { events: events.collect(), missed, left: left as u64 })
            }
            AdminCall::TopicDestroy { id } => {
                let number = *self.by_id.get(id.as_str()).ok_or(Code::NotFound)?;
                let subscriber = self.subscriber_view(number, peers);
                self.destroy(&id)?;
                Ok(AdminAnswer::Subscribers { subscribers: vec![subscriber], next: None })
            }
            _ => Err(Code::BadCall),
        }
    }

    fn topic_page(&mut self, moment: impl Fn(Mono) -> Moment, after: Option<&Topic>, limit: u32) -> AdminAnswer {
        let limit = limit.clamp(1, TOPIC_PAGE_MAX) as usize;
        let (page, more) = self.counted.after(after, limit);
        let (mut topics, mut more) = (Vec::new(), more);
        let mut work = 0;
        for (topic, count) in page {
            if work >= PAGE_WORK {
                more = true;
                break;
            }
            let subscribers = self.matching(&topic).len();
            work += subscribers + self.take_work() as usize;
            topics.push(TopicView {
                subscribers: subscribers as u64,
                topic: topic.to_string(),
                events: count.events,
                bytes: count.bytes,
                latest_at: moment(count.latest),
            });
        }
        let next = topics.last().filter(|_| more).map(|topic| topic.topic.clone());
        AdminAnswer::Topics { topics, next }
    }

    fn subscriber_page(&mut self, topic: Option<&Topic>, after: Option<u32>, limit: u32, peers: &Peers) -> AdminAnswer {
        let limit = limit.clamp(1, TOPIC_PAGE_MAX) as usize;
        let mut numbers = match topic {
            Some(topic) => self.matching(topic),
            None => (0..).zip(&self.receivers).filter_map(|(number, there)| there.as_ref().map(|_| number)).collect(),
        };
        numbers.sort_unstable();
        let mut page = numbers.into_iter().filter(|number| after.is_none_or(|after| *number > after));
        let shown: Vec<u32> = page.by_ref().take(limit).collect();
        let next = page.next().and_then(|_| shown.last().copied());
        let subscribers = shown.into_iter().map(|number| self.subscriber_view(number, peers)).collect();
        AdminAnswer::Subscribers { subscribers, next }
    }

    fn subscriber_view(&self, number: u32, peers: &Peers) -> SubscriberView {
        let receiver = self.receivers[number as usize].as_ref();
        let Receiver { who, filters, or_close, events, dropped, .. } = receiver.expect("it was just found");
        let (name, address, waiting) = match who {
            ReceiverId::Fetcher(fetcher) => (fetcher.id.to_string(), None, Some(fetcher.waiting() as u64)),
            ReceiverId::Conn(conn) => {
                let peer = peers.get(*conn);
                let name = peer.map_or_else(String::new, |peer| peer.name().to_owned());
                (name, Some(peer.map_or_else(String::new, |peer| peer.address().to_owned())), None)
            }
        };
        SubscriberView {
            number,
            name,
            address,
            filters: filters.iter().take(VIEW_MESSAGES_MAX).map(ToString::to_string).collect(),
            filters_all: filters.len() as u64,
            or_close: *or_close,
            events: *events,
            dropped: *dropped,
            waiting,
        }
    }
}
