//! A simulated client: random calls, whose answers go to the oracle.

use std::collections::BTreeMap;

use turno_client::core::{Ask, Core, CoreEvent, Ticket};
use turno_proto::model::limits::{PRIORITY, SEND_RETRIES};
use turno_proto::model::{Code, DedupId, MessageId, Mono, QueueName};
use turno_proto::native::Frame;

use crate::asking::Asking;
use crate::body;
use crate::broadcasts;
use crate::frames::arrive;
use crate::later::is_later;
use crate::oracle::{Oracle, Question};
use crate::rng::Rng;

/// How many questions a client may have open.
const OPEN_MAX: usize = 40;

#[derive(Debug, Default)]
pub(crate) struct Client {
    open: Vec<u64>,
    /// The dedup ids of sends that are open, and their queues.
    named: BTreeMap<u64, (DedupId, QueueName)>,
    /// Those that a full disk refused: another send may have them.
    refused: Vec<(DedupId, QueueName)>,
    /// The message that the broker stored last of those sent again later.
    pub(crate) stored_later: Option<MessageId>,
    /// Judges its output.
    pub(crate) asking: Asking,
    /// The beginning of a frame that has not arrived as a whole.
    partial: Vec<u8>,
}

impl Client {
    /// Asks something, or returns what was asked before and is to be cancelled.
    #[expect(clippy::too_many_arguments, reason = "an actor is handed the world's parts one by one")]
    pub(crate) fn act(
        &mut self,
        now: Mono,
        me: usize,
        core: &mut Core,
        queues: &[QueueName],
        number: &mut u64,
        oracle: &mut Oracle,
        rng: &mut Rng,
    ) -> Option<Ticket> {
        if self.open.len() >= OPEN_MAX {
            return None;
        }
        if rng.once_in(12)
            && let Some(ticket) = self.open.get(rng.index(self.open.len().max(1)))
        {
            self.asking.cancels(*ticket);
            return Some(Ticket(*ticket));
        }
        *number += 1;
        if rng.once_in(16) {
            let ask = broadcasts::some(queues[rng.index(queues.len())].clone(), *number, rng);
            self.shout(now, me, core, ask, *number, &mut oracle.broadcasts);
            return None;
        }
        let send = rng.once_in(4);
        let retries = if rng.once_in(2) { 0 } else { rng.range(0, 4) };
        let timeout_ms = rng.range(100, 8_000);
        let resend = rng.once_in(5);
        let priority = if rng.once_in(4) { u8::try_from(rng.range(0, 10)).expect("small") } else { 4 };
        let mut queue = queues[rng.index(queues.len())].clone();
        let named = send && rng.once_in(2);
        let mut dedup_id = DedupId::new(&number.to_be_bytes()).ok().filter(|_| named);
        if named && let Some((id, at)) = self.refused.pop() {
            (dedup_id, queue) = (Some(id), at);
        }
        let number = *number;
        self.named.extend(dedup_id.iter().map(|id| (number, (id.clone(), queue.clone()))));
        let mut ask = Ask::new(queue, body::payload(number));
        ask.retries = Some(u8::try_from(retries).expect("small"));
        ask.priority = Some(priority);
        ask.resend = resend;
        ask.dedup_id = dedup_id;
        ask.cost = rng.once_in(6).then(|| u16::try_from(rng.range(1, 5)).expect("small"));
        let ticket = Ticket(number);
        // A caller waits for STORED as long as for a reply. How long the message is worth delivering is another time.
        let waits_ms = if send { 30_000 } else { timeout_ms };
        let worth_ms = (send && rng.once_in(5)).then_some(timeout_ms);
        ask.delay_ms = if send { some_delay(rng) } else { 0 };
        // Some work may take longer than its caller waits for it.
        let work_ms = if rng.once_in(5) { rng.range(timeout_ms, 9_000) } else { timeout_ms };
        ask.cancel_on_disconnect = !rng.once_in(3);
        let question = Question {
            client: me,
            send,
            timeout_ms: waits_ms,
            worth_ms,
            delay_ms: ask.delay_ms,
            work_ms,
            ends_with_caller: ask.cancel_on_disconnect,
            retries,
            resend,
            named,
            no_reply: false,
            priority,
            unheard: false,
        };
        self.open.push(number);
        if send {
            oracle.asks(now, number, question);
            ask.timeout_ms = worth_ms.map(|ms| u32::try_from(ms).expect("small"));
            core.send(now, ticket, ask);
        } else {
            ask.timeout_ms = Some(u32::try_from(timeout_ms).expect("small"));
            ask.deadline_ms = (work_ms > timeout_ms).then(|| u32::try_from(work_ms).expect("small"));
            ask.cancel_on_timeout = rng.once_in(2);
            ask.fail_fast = rng.once_in(10);
            ask.no_reply = rng.once_in(10);
            oracle.asks(now, number, Question { no_reply: ask.no_reply, ..question });
            core.request(now, ticket, ask);
        }
        None
    }

    pub(crate) fn opened(&mut self, number: u64) {
        self.open.push(number);
    }

    /// Asks without any option but a cost.
    pub(crate) fn ask_plainly(
        &mut self,
        now: Mono,
        me: usize,
        core: &mut Core,
        (queue, cost): (&QueueName, u16),
        number: u64,
        oracle: &mut Oracle,
    ) {
        let plain =
            Question { client: me, timeout_ms: 30_000, work_ms: 30_000, priority: PRIORITY, ..Question::default() };
        oracle.asks(now, number, plain);
        self.open.push(number);
        let mut ask = Ask::new(queue.clone(), body::payload(number));
        ask.cost = Some(cost);
        core.request(now, Ticket(number), ask);
    }

    /// Sends without any option.
    pub(crate) fn send_plainly(
        &mut self,
        now: Mono,
        me: usize,
        core: &mut Core,
        queue: &QueueName,
        number: u64,
        oracle: &mut Oracle,
    ) {
        let (timeout_ms, retries, priority) = (30_000, u64::from(SEND_RETRIES), PRIORITY);
        let plain = Question { client: me, send: true, timeout_ms, retries, priority, ..Question::default() };
        oracle.asks(now, number, plain);
        self.open.push(number);
        core.send(now, Ticket(number), Ask::new(queue.clone(), body::payload(number)));
    }

    /// A new connection: nothing of the last one follows.
    pub(crate) fn connected(&mut self) {
        self.partial.clear();
        self.asking.connected();
    }

    pub(crate) fn overhear(&mut self, me: usize, bytes: &[u8], oracle: &Oracle) {
        if overhear(&mut self.partial, me, bytes, oracle) {
            self.asking.gave_back();
        }
    }

    /// These bytes are about to leave it.
    pub(crate) fn writes(&mut self, bytes: &[u8]) {
        self.asking.writes(bytes, &self.open);
    }

    /// The connection is another's to read.
    pub(crate) fn take_partial(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.partial)
    }

    /// Hears of an outcome.
    pub(crate) fn hear(&mut self, now: Mono, me: usize, event: &CoreEvent, oracle: &mut Oracle) {
        match event {
            CoreEvent::Stored { ticket, id, .. } if is_later(*ticket) => self.stored_later = Some(*id),
            CoreEvent::Failed { ticket, .. } if is_later(*ticket) => {}
            CoreEvent::Answer { .. } => oracle.broadcasts.hear(now, me, event),
            CoreEvent::BroadcastEnd { ticket, .. } => {
                self.ended(*ticket);
                oracle.broadcasts.hear(now, me, event);
            }
            CoreEvent::Failed { ticket, .. } if broadcasts::is_one(ticket.0) => {
                self.ended(*ticket);
                oracle.broadcasts.hear(now, me, event);
            }
            CoreEvent::Reply { ticket, more: false, payload } => {
                self.ended(*ticket);
                oracle.fences.replied(ticket.0, body::raw(payload));
                oracle.replied(now, me, ticket.0, body::is_answer(body::raw(payload), ticket.0));
            }
            CoreEvent::Reply { ticket, more: true, payload } | CoreEvent::Progress { ticket, payload } => {
                assert_eq!(body::number(body::raw(payload)), Some(ticket.0), "I12: a piece of another's answer");
            }
            CoreEvent::Stored { ticket, id, durability, .. } => {
                self.ended(*ticket);
                oracle.stored(now, me, ticket.0, *id, *durability);
            }
            CoreEvent::Delivered { ticket } => {
                self.ended(*ticket);
                oracle.failed(now, me, ticket.0, None);
            }
            CoreEvent::Failed { ticket, code, .. } => {
                if *code == Code::OverDisk {
                    self.refused.extend(self.named.remove(&ticket.0));
                }
                self.ended(*ticket);
                oracle.failed(now, me, ticket.0, Some(*code));
            }
            _ => {}
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    fn ended(&mut self, ticket: Ticket) {
        self.open.retain(|open| *open != ticket.0);
        self.named.remove(&ticket.0);
    }
}

/// Looks at the bytes themselves: the core drops an answer it does not know, and nobody would see that it was meant for
/// another. Returns whether the broker gave something back because it closes.
pub(crate) fn overhear(partial: &mut Vec<u8>, me: usize, bytes: &[u8], oracle: &Oracle) -> bool {
    let mut gave_back = false;
    arrive(partial, bytes, |frame| {
        let answer = match frame {
            Frame::Reply { raw, .. } => body::number_of_answer(raw),
            Frame::Answer(answer) if !answer.failed => body::number_of_answer(answer.raw),
            Frame::Undelivered { code: Code::Closing, .. } | Frame::Error { code: Code::Closing, .. } => {
                gave_back = true;
                None
            }
            _ => None,
        };
        if let Some(number) = answer {
            oracle.overhears(me, number);
        }
    });
    gave_back
}

/// Some sends are to be delivered later. Draws nothing from the generator: what follows stays the same for a seed.
fn some_delay(rng: &Rng) -> u64 {
    let mut chance = Rng::new(rng.clone().next());
    if chance.once_in(4) { chance.range(1, 15_000) } else { 0 }
}
