//! What an admin does to a queue as a whole, in the world of the property test.

use std::ops::RangeInclusive;

use turno_engine::{DiskEffect, Effect, Input, NativeEffect, PeerEffect};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{MessageState, QueueSettings};
use turno_proto::model::{Code, MessageId};

use super::oracle::Kind;
use super::world::{ADMIN, NAMES, World};

impl World {
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
    fn state_of(&mut self, id: MessageId) -> Option<MessageState> {
        let mut effects = Vec::new();
        let call = AdminCall::MessageExplain { id: id.to_string() };
        self.engine.handle(self.now, Input::Admin { conn: ADMIN, seq: 0, call }, &mut effects);
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
            _ => None,
        }
    }

    pub(super) fn purge(&mut self, queue: usize) {
        let mut waiting = self.sends_in(queue, MessageState::Ready);
        let asked = self.oracle.unanswered().filter(|(_, request)| request.queue == queue);
        waiting.extend(asked.map(|(seq, _)| seq).filter(|seq| !self.oracle.held.contains_key(seq)));
        self.gone(&waiting);
        // Those that have lost their caller may still be there, or not.
        let abandoned = self.oracle.abandoned(queue);
        let call = AdminCall::QueuePurge { queue: NAMES[queue].to_owned(), limit: u32::MAX };
        self.portion(call, waiting.len()..=waiting.len() + abandoned);
    }

    pub(super) fn retry_dead(&mut self, queue: usize) {
        let dead = self.sends_in(queue, MessageState::Dead);
        let now = self.now.max(self.clock);
        for seq in &dead {
            let letter = self.oracle.messages.get_mut(seq).expect("found a moment ago");
            letter.deadline = letter.deadline.filter(|deadline| *deadline > now);
        }
        let call = AdminCall::DeadRetry { queue: NAMES[queue].to_owned(), ids: Vec::new(), oldest: u32::MAX };
        self.portion(call, dead.len()..=dead.len());
    }

    pub(super) fn purge_dead(&mut self, queue: usize) {
        let dead = self.sends_in(queue, MessageState::Dead);
        self.gone(&dead);
        let call = AdminCall::DeadPurge { queue: NAMES[queue].to_owned(), ids: Vec::new(), oldest: u32::MAX };
        self.portion(call, dead.len()..=dead.len());
    }

    fn gone(&mut self, seqs: &[u32]) {
        for seq in seqs {
            self.oracle.messages.get_mut(seq).expect("found a moment ago").cancelled = true;
        }
    }

    fn portion(&mut self, call: AdminCall, expected: RangeInclusive<usize>) {
        match self.admin(call) {
            Ok(AdminAnswer::Portion { done, left }) => {
                assert!(expected.contains(&(done as usize)) && left == 0, "{done} of {expected:?}, {left} left");
            }
            Err(Code::NotFound) => assert_eq!(*expected.start(), 0, "a queue with messages is there"),
            other => panic!("{other:?} is no portion"),
        }
    }

    pub(super) fn set_queue(&mut self, queue: usize, durable: Option<bool>) {
        let settings = durable.map(|durable| QueueSettings { durable: Some(durable), ..QueueSettings::default() });
        match self.admin(AdminCall::QueueSet { queue: NAMES[queue].to_owned(), settings }) {
            Ok(AdminAnswer::Queue { queue: view }) => {
                self.volatile[queue] = durable == Some(false);
                assert_eq!(
                    (view.settings, view.durable),
                    (settings, self.settings.store.is_some() && !self.volatile[queue])
                );
            }
            Err(Code::NoStore) => assert!(self.settings.store.is_none() && durable == Some(true)),
            Err(Code::NotFound) => assert_eq!((durable, self.volatile[queue]), (None, false)),
            other => panic!("{other:?} is no queue"),
        }
    }
}
