//! Topics.

use turno_engine::{Effect, Event, Input, PeerEffect};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{Code, Filter, Payload, Topic};

use super::{ADMIN, World};
use crate::op::TopicOp;

const TOPICS: [&str; 6] = ["a", "a.b", "a.b.c", "b.b", "c", "b"];
const PATTERNS: [&str; 8] = ["a", "a.*", "a.>", ">", "*.b", "*", "a.b.c", "*.*.c"];
const PREFIXES: [&str; 4] = ["", "a", "a.", "b.b"];
const IDS: [&str; 2] = ["x", "y"];

fn filter(number: usize) -> Filter {
    match PATTERNS.get(number) {
        Some(pattern) => pattern.parse().expect("a pattern"),
        None => Filter::prefix(PREFIXES[number % PREFIXES.len()].as_bytes()).expect("short"),
    }
}

impl World {
    pub(super) fn topic(&mut self, place: usize, what: TopicOp) {
        let Some(conn) = self.places[place] else { return };
        let id = |id: usize| IDS[id].to_owned();
        match what {
            TopicOp::Subscribe { filter: number, or_close } => {
                self.oracle.listeners.subscribe(conn, filter(number));
                self.control(Input::Subscribe { conn, seq: 0, filter: filter(number), or_close }, Ok(()));
            }
            TopicOp::Unsubscribe { filter: number } => {
                let had = self.oracle.listeners.unsubscribe(conn, &filter(number));
                let expected = if had { Ok(()) } else { Err(Code::NotFound) };
                self.control(Input::Unsubscribe { conn, seq: 0, filter: filter(number) }, expected);
            }
            TopicOp::Dropped(count) => drop(self.step(Input::EventsDropped { conn, count: count.into() })),
            TopicOp::Publish { topic, confirm } => {
                self.seqs += 1;
                let topic: Topic = TOPICS[topic % TOPICS.len()].parse().expect("a topic");
                self.oracle.receivers = self.oracle.listeners.publish(&topic, u64::from(self.seqs));
                let event = Event { topic, payload: Payload::body(self.seqs.to_string()) };
                let effects = self.step(Input::Publish { conn, seq: 0, confirm, event: event.clone() });
                let told = effects
                    .iter()
                    .any(|effect| matches!(effect, Effect::Peer(PeerEffect::Answer { result: Ok(()), .. })));
                assert_eq!(told, confirm, "a publisher hears of it if it wants to");
                for effect in effects {
                    if let Effect::Peer(PeerEffect::Event { event: got, .. }) = effect {
                        assert_eq!(*got, event, "S3.33: it is what was published");
                    }
                }
            }
            TopicOp::Create { id: number, filter } => {
                let filters = vec![PATTERNS[filter % PATTERNS.len()].to_owned()];
                self.topic_call(AdminCall::TopicCreate { id: id(number), filters });
            }
            TopicOp::Fetch { id: number, most } => {
                self.topic_call(AdminCall::TopicRecv { id: id(number), limit: most });
            }
            TopicOp::Destroy { id: number } => self.topic_call(AdminCall::TopicDestroy { id: id(number) }),
        }
    }

    fn topic_call(&mut self, call: AdminCall) {
        self.oracle.expected = self.oracle.listeners.call(&call);
        self.step(Input::Admin { conn: ADMIN, seq: 0, call });
        assert_eq!(self.oracle.expected, None, "who fetches is answered");
    }
}
