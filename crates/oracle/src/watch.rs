//! The effects of one input, each taken to the account that it concerns.

use std::collections::BTreeSet;

use turno_engine::{CallerMessage, Effect, HostEffect, NativeEffect, PeerEffect, Report};
use turno_proto::model::{Code, ConnId, Cost, Durability, Mono};

use crate::message::Kind;
use crate::oracle::{Oracle, number};

impl Oracle {
    /// Takes the effects of one input, in order.
    pub(crate) fn watch(&mut self, now: Mono, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Peer(effect) => self.watch_peer(now, effect),
                // The disk has an account of its own.
                Effect::Disk(_) => {}
                Effect::Host(HostEffect::Drained(_)) => {
                    self.drained += 1;
                    assert_eq!(self.drained, 1, "a drain ends once");
                }
                Effect::Host(HostEffect::Report(Report::Missing { serial })) => {
                    panic!("I1: {serial} was stored and is missing")
                }
                Effect::Host(HostEffect::Report(_)) => {}
                Effect::Host(HostEffect::Ring(_)) | Effect::Archive(_) => {
                    panic!("{effect:?}: there are no jobs, no ring")
                }
            }
        }
        assert!(self.peers.values().all(|peer| peer.standings.is_told()), "S2.30: a worker is dropped in time");
        assert!(self.receivers.is_empty(), "S3.33: an event does not reach {:?}", self.receivers);
    }

    fn watch_peer(&mut self, now: Mono, effect: &PeerEffect) {
        match effect {
            PeerEffect::Deliver(deliver) if deliver.cost == Cost::Broadcast => self.cast_delivered(now, deliver),
            PeerEffect::Deliver(deliver) => self.watch_delivery(now, deliver),
            PeerEffect::Caller { conn, seq, message } => self.watch_caller(now, *conn, *seq, message),
            PeerEffect::Native { conn, effect } => self.watch_native(now, *conn, effect),
            PeerEffect::Stop { conn, delivery, reason } => {
                if !self.cast_stopped(now, *conn, *delivery, *reason) {
                    self.stop(now, *conn, *delivery, *reason);
                }
            }
            PeerEffect::Closing { conn, .. } => assert!(self.peers.contains_key(conn)),
            PeerEffect::Answer { conn, result: Ok(()), .. } => self.consuming(now, *conn, Some(None)),
            PeerEffect::Answer { result: Err(code), .. } => {
                self.asking = None;
                if let Some(expected) = self.expected.take() {
                    expected.judge(Err(*code), |event| number(&event.payload));
                }
            }
            PeerEffect::Event { listeners, .. } => {
                let conns: BTreeSet<ConnId> = listeners.iter().map(|listener| listener.conn).collect();
                assert_eq!(conns.len(), listeners.len(), "S3.33: each gets it once");
                assert_eq!(conns, std::mem::take(&mut self.receivers), "S3.33: who wants it gets it");
            }
            PeerEffect::Link { .. } | PeerEffect::Foreman { .. } | PeerEffect::Dial { .. } | PeerEffect::Ring(_) => {
                panic!("{effect:?}, though there are no jobs and links here, and no ring")
            }
        }
    }

    fn watch_caller(&mut self, now: Mono, conn: ConnId, seq: u32, message: &CallerMessage) {
        match message {
            CallerMessage::Reply { more, payload } => {
                assert_eq!(self.speaking, Some(seq), "only the holder's message reaches a caller");
                assert!(payload.is_empty() || payload.bytes == "answer", "{seq}: the text is the holder's");
                if *more {
                    self.open(conn, seq)
                } else {
                    self.end(conn, seq)
                };
            }
            CallerMessage::Progress { .. } => {
                assert_eq!(self.speaking, Some(seq), "only the holder's message reaches a caller");
                self.open(conn, seq);
            }
            CallerMessage::Delivered => {
                assert_eq!(self.end(conn, seq), Kind::NoReply);
                assert!(self.held.contains_key(&seq), "{seq} was written to a worker");
            }
            CallerMessage::Undelivered { code, .. } => {
                if !self.cast_refused(now, conn, seq, *code) {
                    self.undelivered(now, conn, seq, *code);
                }
            }
            CallerMessage::BroadcastAnswer(_) => self.cast_answered(conn, seq),
            CallerMessage::BroadcastEnd(end) => self.cast_ended(conn, seq, end),
        }
    }

    fn watch_native(&mut self, now: Mono, conn: ConnId, effect: &NativeEffect) {
        match effect {
            NativeEffect::Stored { seq, id, durability, duplicate } => {
                self.stored(conn, *seq, *id, *duplicate);
                self.messages.entry(*seq).and_modify(|message| message.on_disk = *durability == Durability::Disk);
            }
            NativeEffect::Consuming { token, .. } => {
                assert!(*token > self.token, "I8: tokens rise");
                self.token = *token;
                self.consuming(now, conn, Some(Some(*token)));
            }
            NativeEffect::QueueFull { .. } => self.consuming(now, conn, None),
            NativeEffect::QueueAvailable { handle, .. } => self.available(now, conn, *handle),
            NativeEffect::CancelQueue { handle, reason } => {
                assert_eq!(*reason, Code::Dropped);
                let peer = self.peers.get_mut(&conn).expect("a worker that is gone is told nothing");
                let queue = peer.handles[handle];
                assert_eq!(peer.consumes.remove(&queue), Some(*handle), "only a consumer is dropped");
                peer.standings.drop_from(queue);
                self.exclusive[queue].loses(conn);
            }
            NativeEffect::Admin { answer, .. } => {
                if let Some(expected) = self.expected.take() {
                    expected.judge(Ok(answer), |event| number(&event.payload));
                }
            }
            NativeEffect::Pace => {
                self.peers.get_mut(&conn).expect("a worker that is gone is told nothing").paced = true;
            }
        }
    }
}
