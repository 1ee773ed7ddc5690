//! What the tests expect to see. A delivery is compared in everything but the engine's own numbers for it,
//! which the harness checks by itself; every other effect is compared as it is.

use std::fmt;

use turno_engine::{CallerMessage, Deliver, Drained, Effect, HostEffect, PeerEffect};
use turno_proto::model::{Closing, ClosingReason, Code, ConnId, Cost, Payload};

/// The deadline of a request that names none.
pub(crate) const USUAL_MS: u32 = 30_000;

/// One effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Turn(Turn),
    Said(Effect),
}

/// A delivery.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) worker: ConnId,
    pub(crate) queue: String,
    pub(crate) payload: Payload,
    pub(crate) attempt: u16,
    pub(crate) cost: Cost,
    pub(crate) deadline_ms: Option<u32>,
    pub(crate) wants_reply: bool,
    pub(crate) token: Option<u64>,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, queue, payload, attempt, cost, deadline_ms, wants_reply, token } = self;
        let kind = if *wants_reply { "request" } else { "one-way" };
        let body = &payload.bytes;
        write!(
            f,
            "w{} gets {body:?} of {queue}: {kind}, attempt {attempt}, {cost:?}, {deadline_ms:?} ms, token {token:?}",
            worker.index
        )
    }
}

/// The first delivery of a request with no options, of the queue "q".
pub(crate) fn turn(worker: ConnId, text: &str) -> Seen {
    Seen::Turn(Turn {
        worker,
        queue: "q".to_owned(),
        payload: body(text),
        attempt: 1,
        cost: Cost::ONE,
        deadline_ms: Some(USUAL_MS),
        wants_reply: true,
        token: None,
    })
}

/// The first delivery of a send with no options, of the queue "q".
pub(crate) fn sent(worker: ConnId, text: &str) -> Seen {
    turn(worker, text).one_way().left(None)
}

impl Seen {
    pub(crate) fn of(self, queue: &str) -> Self {
        self.with(|turn| turn.queue = queue.to_owned())
    }

    pub(crate) fn attempt(self, attempt: u16) -> Self {
        self.with(|turn| turn.attempt = attempt)
    }

    pub(crate) fn cost(self, slots: u16) -> Self {
        self.with(|turn| turn.cost = Cost::from_word(slots))
    }

    pub(crate) fn left(self, deadline_ms: Option<u32>) -> Self {
        self.with(|turn| turn.deadline_ms = deadline_ms)
    }

    pub(crate) fn token(self, token: u64) -> Self {
        self.with(|turn| turn.token = Some(token))
    }

    pub(crate) fn one_way(self) -> Self {
        self.with(|turn| turn.wants_reply = false)
    }

    /// It is the outcome of that caller's request.
    pub(crate) fn ends(&self, caller: ConnId, number: u32) -> bool {
        match self {
            Self::Said(
                Effect::Peer(PeerEffect::Caller { conn, seq, message: CallerMessage::Reply { more: false, .. } })
                | Effect::Peer(PeerEffect::Caller { conn, seq, message: CallerMessage::Undelivered { .. } }),
            ) => (*conn, *seq) == (caller, number),
            _ => false,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Turn)) -> Self {
        if let Self::Turn(turn) = &mut self {
            change(turn);
        }
        self
    }
}

pub(crate) fn body(text: &str) -> Payload {
    Payload::body(text.as_bytes().to_vec())
}

/// The last REPLY to a caller.
pub(crate) fn reply(conn: ConnId, seq: u32, text: &str) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Caller {
        conn,
        seq,
        message: CallerMessage::Reply { more: false, payload: body(text) },
    }))
}

/// A piece of an answer.
pub(crate) fn piece(conn: ConnId, seq: u32, text: &str) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Caller {
        conn,
        seq,
        message: CallerMessage::Reply { more: true, payload: body(text) },
    }))
}

pub(crate) fn progress(conn: ConnId, seq: u32, text: &str) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Caller { conn, seq, message: CallerMessage::Progress { payload: body(text) } }))
}

pub(crate) fn delivered(conn: ConnId, seq: u32) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Caller { conn, seq, message: CallerMessage::Delivered }))
}

pub(crate) fn undelivered(conn: ConnId, seq: u32, code: Code) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Caller {
        conn,
        seq,
        message: CallerMessage::Undelivered { code, payload: Payload::default() },
    }))
}

/// UNDELIVERED with what the worker said.
pub(crate) fn failed(conn: ConnId, seq: u32, text: &str) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Caller {
        conn,
        seq,
        message: CallerMessage::Undelivered { code: Code::Failed, payload: body(text) },
    }))
}

pub(crate) fn closing(conn: ConnId, reason: ClosingReason, within_ms: u64) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Closing { conn, closing: Closing { reason, within_ms } }))
}

pub(crate) fn drained(returned: u64, cut: u64, lost: u64) -> Seen {
    Seen::Said(Effect::Host(HostEffect::Drained(Drained { returned, cut, lost })))
}

/// The connection that an effect is for, if it is for one.
pub(crate) fn conn_of(effect: &Effect) -> Option<ConnId> {
    let Effect::Peer(effect) = effect else { return None };
    match effect {
        PeerEffect::Deliver(Deliver { conn, .. })
        | PeerEffect::Caller { conn, .. }
        | PeerEffect::Answer { conn, .. }
        | PeerEffect::Stop { conn, .. }
        | PeerEffect::Closing { conn, .. }
        | PeerEffect::Native { conn, .. }
        | PeerEffect::Link { conn, .. }
        | PeerEffect::Foreman { conn, .. } => Some(*conn),
        PeerEffect::Event { .. } | PeerEffect::Dial { .. } | PeerEffect::Ring(_) => None,
    }
}
