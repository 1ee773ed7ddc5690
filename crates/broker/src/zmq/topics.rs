//! PUB and SUB sockets: they publish and subscribe.

use std::collections::BTreeMap;

use bytes::Bytes;
use turno_engine::{Event, EventRef, Input};
use turno_proto::model::{Code, Filter, Topic, limits};
use turno_proto::zmtp::Message;

use super::dialect::DialectOutput;
use super::endpoint::Count;
use super::frames::{Frames, part, payload_behind, whole_publication};

/// Topics have no white space; what stands before it in a subscription or a publication of one frame is the topic.
fn before_space(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| byte.is_ascii_whitespace() || *byte == 0).next().unwrap_or_default()
}

/// The event that a message of a PUB socket is: its first frame is the topic. Of one frame the text before the first white space
/// is; the frame is the body as well. `None` if the topic is invalid; an error is why the connection ends.
pub(super) fn publication(message: &Message<'_>, prefix: &str) -> Result<Option<Event>, Code> {
    let first = message.part(0).unwrap_or_default();
    let (topic, payload) = match payload_behind(message, 1)? {
        Some(payload) => (first, Some(payload)),
        None => (before_space(first), whole_publication(message)),
    };
    let topic = Topic::from_bytes(&[prefix.as_bytes(), topic].concat()).ok();
    Ok(topic.zip(payload).map(|(topic, payload)| Event { topic, payload }))
}

/// An event as a message for a SUB socket.
pub(crate) fn event_frames(event: EventRef<'_>, prefix: &str) -> Frames {
    let Event { topic, payload } = event.to_event();
    let parted = part(&payload);
    if parted.has_topic {
        return parted.frames;
    }
    let topic = topic.as_str();
    let topic = topic.strip_prefix(prefix).unwrap_or(topic);
    let mut frames = vec![Bytes::copy_from_slice(topic.as_bytes())];
    frames.extend(parted.frames);
    frames
}

/// A SUB or XSUB socket.
#[derive(Debug, Default)]
pub(crate) struct SubSocket {
    /// The filters of the engine, and how many subscriptions each stands for: of a subscription with white space the engine
    /// hears only what stands before that, and the socket itself drops what it does not want.
    filters: BTreeMap<Bytes, u32>,
}

impl SubSocket {
    pub(super) fn hear(&mut self, wanted: &[u8], wants: bool, out: &mut DialectOutput<'_>) {
        let prefix = [out.endpoint.settings().topic.as_bytes(), before_space(wanted)].concat();
        let Ok(filter) = Filter::prefix(&prefix) else { return out.count(Count::BadTopic) };
        let (conn, seq) = (out.conn, 0);
        if wants {
            if self.add(prefix.into(), out) {
                out.put(Input::Subscribe { conn, seq, filter, or_close: false });
            }
        } else if self.remove(&prefix) {
            out.put(Input::Unsubscribe { conn, seq, filter });
        }
    }

    /// Whether the filter is a new one.
    fn add(&mut self, prefix: Bytes, out: &DialectOutput<'_>) -> bool {
        if self.filters.len() >= limits::SUBSCRIPTIONS_MAX && !self.filters.contains_key(&prefix) {
            out.count(Count::Refused);
            return false;
        }
        let count = self.filters.entry(prefix).or_default();
        *count = count.saturating_add(1);
        *count == 1
    }

    /// Whether nobody wants the filter any more.
    fn remove(&mut self, prefix: &[u8]) -> bool {
        let Some(count) = self.filters.get_mut(prefix) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            self.filters.remove(prefix);
        }
        is_last
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.filters.len() * limits::MESSAGE_OVERHEAD_BYTES
    }
}
