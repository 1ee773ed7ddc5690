//! Calls of an admin, also about a queue as a whole.

use std::ops::RangeInclusive;

use turno_engine::{DiskEffect, Effect, Input, NativeEffect, PeerEffect};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::RETRY_DELAY_MS_MAX;
use turno_proto::model::view::{MessageState, QueueSettings};
use turno_proto::model::{Code, ConnId, MessageId, Mono};

use super::World;
use crate::NAMES;
use crate::message::Kind;

/// Somebody looks at messages. Those that only the store holds are shown later, and not to the admin.
const LOOKER: ConnId = ConnId { index: 1_001, generation: 1 };

impl World {
    pub(super) fn maintain(&mut self) {
        let expected = self.is_ending().then_some(Code::Closing);
        self.oracle.closing = true;
        assert_eq!(self.admin(AdminCall::Drain).err(), expected, "it may be drained until it ends");
    }

    pub(super) fn go_on(&mut self) {
        let expected = self.is_ending().then_some(Code::Closing);
        self.oracle.closing = expected.is_some();
        assert_eq!(self.admin(AdminCall::Resume).err(), expected, "it may go on until it ends");
    }

    /// Anything may be asked for at any time.
    pub(super) fn look(&mut self, view: u8, at: u32) {
        let queue = || NAMES[at as usize % NAMES.len()].to_owned();
        let (worker, limit) = ((at + 1).to_string(), at);
        let message = self.seqs.checked_sub(at).and_then(|seq| self.oracle.messages.get(&seq));
        let id = message.and_then(|message| message.id).map_or_else(|| "x".to_owned(), |id| id.to_string());
        let after = at > 10;
        let call = match view {
            0 => AdminCall::Status,
            1 => AdminCall::QueueLs { after: after.then(queue), limit },
            2 => AdminCall::QueueShow { queue: queue() },
            3 => AdminCall::QueueConsumers { queue: queue() },
            4 => AdminCall::WorkerLs { after: after.then_some(1), limit },
            5 => AdminCall::WorkerShow { worker },
            6 => AdminCall::MessageExplain { id },
            7 => AdminCall::DeadLs { queue: queue(), after: after.then_some(id), limit },
            8 => AdminCall::DeadShow { queue: queue(), id, from: at.into() },
            _ if after => AdminCall::TopicLs { after: None, limit },
            _ => AdminCall::TopicSubscribers { topic: None, after: None, limit },
        };
        // Tables of inputs and effects judge the answer; here it changes nothing and breaks nothing.
        let _: Result<AdminAnswer, Code> = self.admin(call);
    }

    /// The sends of a queue that are in that state.
    fn sends_in(&mut self, queue: usize, state: MessageState) -> Vec<u32> {
        let known: Vec<(u32, MessageId)> = self
            .oracle
            .messages
            .values()
            .filter(|message| message.queue == queue && message.kind == Kind::Send && message.is_added())
            .filter_map(|message| Some((message.seq, message.id?)))
            .collect();
        known.into_iter().filter(|(_, id)| self.state_of(*id) == Some(state)).map(|(seq, _)| seq).collect()
    }

    /// Only a look, so that nothing has to be checked behind it.
    pub(super) fn state_of(&mut self, id: MessageId) -> Option<MessageState> {
        let mut effects = Vec::new();
        let call = AdminCall::MessageExplain { id: id.to_string() };
        self.engine.handle(self.engine_time(self.now), Input::Admin { conn: LOOKER, seq: 0, call }, &mut effects);
        match effects.pop() {
            Some(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) => {
                match *answer {
                    AdminAnswer::Message { explanation } => Some(explanation.message.state),
                    other => panic!("{other:?} explains nothing"),
                }
            }
            // Only the store has it, and so it waits. The answer comes some time.
            Some(Effect::Disk(DiskEffect::Load { serial })) => {
                self.disk.loads.push_back(serial);
                Some(MessageState::Ready)
            }
            // The same, while another question is read and there is no memory for this one.
            Some(Effect::Peer(PeerEffect::Answer {
                result: Err(Code::OverMemory | Code::TooManyInFlight), ..
            })) => {
                assert!(!self.disk.loads.is_empty(), "a question alone is read");
                Some(MessageState::Ready)
            }
            _ => None,
        }
    }

    pub(super) fn purge(&mut self, queue: usize, most: u32) {
        let mut sends = self.sends_in(queue, MessageState::Ready);
        sends.extend(self.sends_in(queue, MessageState::Delayed));
        let asked = self.oracle.unanswered().filter(|(_, request)| request.queue == queue);
        let asked = asked.filter(|(seq, _)| !self.oracle.held.contains_key(seq)).count();
        // Those that have lost their caller may still be there, or not.
        let (count, abandoned) = (sends.len() + asked, self.oracle.abandoned(queue));
        self.oracle.purging = Some(queue);
        let call = AdminCall::QueuePurge { queue: NAMES[queue].to_owned(), limit: most };
        self.portion(call, count..=count + abandoned, most);
        self.oracle.purging = None;
        self.mark_gone(&sends);
    }

    /// Those of these sends that are gone.
    fn mark_gone(&mut self, sends: &[u32]) {
        for seq in sends {
            let id = self.oracle.messages[seq].id.expect("it was stored");
            if self.state_of(id).is_none() {
                self.mark_cancelled(*seq, true);
            }
        }
    }

    pub(super) fn retry_dead(&mut self, queue: usize, most: u32) {
        let dead = self.sends_in(queue, MessageState::Dead);
        let now = self.now.max(self.clock);
        for seq in &dead {
            let letter = self.oracle.messages.get_mut(seq).expect("found a moment ago");
            letter.deadline = letter.deadline.filter(|deadline| *deadline > now);
            letter.not_before = Mono::ZERO;
        }
        let call = AdminCall::DeadRetry { queue: NAMES[queue].to_owned(), ids: Vec::new(), oldest: most };
        self.portion(call, dead.len()..=dead.len(), most);
    }

    pub(super) fn purge_dead(&mut self, queue: usize, most: u32) {
        let dead = self.sends_in(queue, MessageState::Dead);
        let call = AdminCall::DeadPurge { queue: NAMES[queue].to_owned(), ids: Vec::new(), oldest: most };
        self.portion(call, dead.len()..=dead.len(), most);
        self.mark_gone(&dead);
    }

    /// So many are done, as far as there are as many.
    fn portion(&mut self, call: AdminCall, there: RangeInclusive<usize>, most: u32) {
        let most = most as usize;
        let expected = *there.start().min(&most)..=*there.end().min(&most);
        match self.admin(call) {
            Ok(AdminAnswer::Portion { done, left }) => {
                let done = done as usize;
                let fits = expected.contains(&done) && (left == 0 || done == most);
                assert!(fits, "{done} of {expected:?}, {left} left");
            }
            // Without ids it must be said how many.
            Err(Code::BadCall) => assert_eq!(most, 0, "so many may be done"),
            Err(Code::NotFound) => assert_eq!(*there.start(), 0, "a queue with messages is there"),
            other => panic!("{other:?} is no portion"),
        }
    }

    pub(super) fn set_queue(&mut self, queue: usize, change: Option<QueueSettings>) {
        let before = self.oracle.settings[queue];
        let settings = change.map(|change| before.unwrap_or_default().changed_by(change));
        match self.admin(AdminCall::QueueSet { queue: NAMES[queue].to_owned(), settings: change }) {
            Ok(AdminAnswer::Queue { queue: view }) => {
                self.oracle.settings[queue] = settings;
                assert_eq!((view.settings, view.durable), (settings, self.is_durable(queue)));
            }
            Err(Code::NoStore) => {
                let durable = change.is_some_and(|change| change.durable == Some(true));
                assert!(self.settings.store.is_none() && durable);
            }
            Err(Code::NotFound) => assert_eq!((change, before), (None, None)),
            Err(Code::TooManyQueues) => assert!(self.settings.limits.queues_max <= 3, "there are few queues"),
            Err(Code::BadCall) => {
                let QueueSettings { retry_delay_seconds: first, retry_delay_max_seconds: most, .. } =
                    settings.unwrap_or_default();
                let too_long = most.is_some_and(|most| most.as_millis() > RETRY_DELAY_MS_MAX);
                let bad = too_long || first.zip(most).is_some_and(|(first, most)| first > most);
                assert!(bad || change.and_then(|change| change.weight) == Some(0), "{change:?} is fine");
            }
            other => panic!("{other:?} is not a queue"),
        }
    }
}
