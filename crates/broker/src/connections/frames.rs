//! Incoming bytes, split into frames and passed to the engine as inputs, for one turn.

use tracing::info;
use turno_engine::{Event, Input};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::limits::TURN_WORK_HEAVY;
use turno_proto::model::{Code, ConnId, Mono};
use turno_proto::native::{Fault, Frame, SessionStep, encode};

use super::super::log_limit::{self, LogKind};
use super::super::turn::{Budget, Turn, work_of, work_of_events};
use super::brokers::PeerRead;
use super::inward::input_of;
use super::table::{Connection, ConnectionPhase, PeerProtocol};
use super::{Connections, EngineHandle};

impl<D: EngineHandle> Connections<D> {
    /// Works through the whole frames of a buffer, for one turn; returns the bytes they took.
    pub(super) fn take_frames(&mut self, now: Mono, id: ConnId, buffer: &[u8]) -> (usize, Turn) {
        let mut used = 0;
        let mut budget = Budget(self.turn_work);
        while let Some(Connection { protocol, phase: ConnectionPhase::Greeting | ConnectionPhase::Open, .. }) =
            self.table.get_mut(id)
        {
            if budget.is_spent() && used < buffer.len() {
                return (used, Turn::Cut);
            }
            let session = match protocol {
                PeerProtocol::Native(session) => session,
                // A job worker waits for the answer to each of its requests: it can never say much at once.
                PeerProtocol::Foreman(_) => return (self.take_from_worker(now, id, buffer), Turn::Done),
                PeerProtocol::Link(_) | PeerProtocol::Ring(_) | PeerProtocol::Zmtp(_) => {
                    let rest = &buffer[used..];
                    let heard = match protocol {
                        PeerProtocol::Ring(_) => self.take_from_ring(now, id, rest),
                        PeerProtocol::Zmtp(_) => self.take_from_zmq(now, id, rest),
                        PeerProtocol::Link(_) | PeerProtocol::Native(_) | PeerProtocol::Foreman(_) => {
                            self.take_from_link(now, id, rest)
                        }
                    };
                    match heard {
                        PeerRead::NeedMore => return (used, Turn::Done),
                        PeerRead::Took(taken, work) => {
                            used += taken;
                            budget.spend(work);
                            continue;
                        }
                        PeerRead::Over => break,
                    }
                }
            };
            // The session writes into a buffer of its own and rarely: most frames are the engine's.
            let mut said = Vec::new();
            let step = session.step(&buffer[used..], &self.config, &mut said);
            if !said.is_empty() {
                self.table.write(id, |out| out.extend_from_slice(&said));
            }
            match step {
                Ok((SessionStep::NeedMore, _)) => return (used, Turn::Done),
                Ok((SessionStep::Link, _)) => {
                    if !self.become_link(now, id) {
                        break;
                    }
                }
                Ok((step, taken)) => {
                    used += taken;
                    budget.spend(self.take_step(now, id, step));
                }
                Err(fault) => {
                    if log_limit::admits(LogKind::Protocol) {
                        let address =
                            self.table.get(id).map(|connection| connection.address.as_str()).unwrap_or_default();
                        info!(address, code = %fault.code, "closing a connection after a protocol error");
                    }
                    self.part(now, id, fault.code);
                    break;
                }
            }
        }
        (buffer.len(), Turn::Done)
    }

    /// Returns what it weighs.
    fn take_step(&mut self, now: Mono, id: ConnId, step: SessionStep<'_>) -> u32 {
        let input = match step {
            SessionStep::NeedMore | SessionStep::Done | SessionStep::Refused(_) | SessionStep::Link => return 1,
            SessionStep::Opened(connect) => {
                let Some(connection) = self.table.get_mut(id) else { return 1 };
                connection.phase = ConnectionPhase::Open;
                let address = connection.address.clone();
                let name = if connect.name.is_empty() { address.clone() } else { connect.name };
                Input::Connected { conn: id, name, address }
            }
            SessionStep::Ready => Input::Ready { conn: id },
            // Endpoints are the host's: the engine does not know of them.
            SessionStep::Frame(Frame::AdminCall { seq, call: AdminCall::ZmqLs {} }) => {
                self.tell_endpoints(id, seq);
                return TURN_WORK_HEAVY;
            }
            SessionStep::Frame(frame) if !self.may_be_submitted(id, &frame) => return 1,
            SessionStep::Frame(frame) => match self.note(id, frame) {
                Ok(input) => input,
                Err(fault) => {
                    self.refuse(now, id, fault);
                    return 1;
                }
            },
        };
        let work = work_of(&input);
        self.table.copies = 0;
        self.engine_handle.put(now, input, &mut self.table);
        work + self.work_of_events()
    }

    /// The work of the events that the last input made.
    pub(super) fn work_of_events(&mut self) -> u32 {
        work_of_events(self.table.copies, self.engine_handle.take_matches())
    }

    /// The input that a frame is.
    fn note(&mut self, id: ConnId, frame: Frame<'_>) -> Result<Input, Fault> {
        match frame {
            Frame::Publish { seq, confirm, event } => {
                let topic = self.last_topic.of(event.topic).map_err(|_| Fault::refusal(Code::BadTopic, seq))?;
                // In a ring it is known who publishes: should that be too fast, these are slowed down.
                if self.ring.is_some()
                    && let Some(connection) = self.table.get_mut(id)
                {
                    connection.publishes = true;
                }
                let event = Event { topic: topic.clone(), payload: event.payload.to_payload() };
                Ok(Input::Publish { conn: id, seq, confirm, event })
            }
            other => input_of(id, other),
        }
    }

    /// The inside of a frame made no sense: the peer is told, and goes on unless that is fatal.
    pub(super) fn refuse(&mut self, now: Mono, id: ConnId, Fault { code, seq, fatal }: Fault) {
        let detail = code.text().what;
        self.table.write(id, |out| encode(&Frame::Error { seq, code, fatal, detail }, out));
        if fatal {
            self.part(now, id, code);
        }
    }
}
