//! Topics, as commands and raw peers use them.

use serde_json::Value;
use turno_proto::model::Filter;
use turno_proto::native::{Frame, Raw, RawEvent};

use crate::{Background, Broker, Peer, wait};

impl Broker {
    /// Starts `turno sub` with these arguments and waits until it listens.
    #[track_caller]
    pub fn listen(&self, arguments: &[&str]) -> Background {
        let listening = self.start_turno(&[&["sub"], arguments].concat());
        listening.expect_line("subscribed to");
        listening
    }

    /// Publishes an event, and returns when it is on its way to everyone.
    #[track_caller]
    pub fn publish(&self, topic: &str, body: &str) {
        self.run(&["pub", topic, body, "--confirm"]).expect(0);
    }

    /// The rows of `topic subscribers`.
    #[track_caller]
    pub fn subscribers(&self) -> Vec<Value> {
        let mut listed = self.run(&["topic", "subscribers", "--json"]).expect(0).document("turno.subscriber_list/1");
        match listed["subscribers"].take() {
            Value::Array(rows) => rows,
            other => panic!("a list: {other}"),
        }
    }

    /// Waits until there are so many of them.
    #[track_caller]
    pub fn await_subscribers(&self, count: usize) {
        wait::until("so many listen", || self.subscribers().len() == count);
    }
}

impl Peer {
    /// Listens, and waits until the broker says that it may.
    #[track_caller]
    pub fn subscribe(&mut self, filter: &str, or_close: bool) {
        let seq = self.next_seq();
        self.say(&Frame::Subscribe { seq, filter: filter.parse::<Filter>().expect("a filter"), or_close });
        self.hear(|frame| assert_eq!(frame, Frame::Ok { seq }));
    }

    /// Publishes an event; the number of the frame.
    pub fn publish(&mut self, topic: &str, body: &[u8], confirm: bool) -> u32 {
        let seq = self.next_seq();
        let event = RawEvent { topic: topic.as_bytes(), payload: Raw { headers: false, bytes: body } };
        self.say(&Frame::Publish { seq, confirm, event });
        seq
    }

    /// Waits for an event: its topic and what it says, or how many are missing here.
    #[track_caller]
    pub fn event(&mut self) -> Result<(String, Vec<u8>), u32> {
        self.hear(|frame| match frame {
            Frame::Event(event) => {
                let topic = String::from_utf8(event.topic.to_vec()).expect("topics are text");
                Ok((topic, event.payload.bytes.to_vec()))
            }
            Frame::EventsDropped { count } => Err(count),
            other => panic!("expected EVENT: {other:?}"),
        })
    }
}
