//! Exclusive queues in any order of events.

use proptest::prelude::*;
use turno_engine::{Deliver, Effect, Input, NativeEffect, Outgoing, PeerEffect, WorkerWord};
use turno_proto::model::{ConnId, Delivery, Slots};

use crate::desk::Desk;
use crate::exclusive::{Got, idle};
use crate::seen::{Seen, body};

/// What peers may do in any order.
#[derive(Clone, Copy, Debug)]
enum Op {
    Consume { exclusive: bool },
    Notify,
    CancelQueue,
    Deregister,
    Register,
    Leave,
    Send,
    Settle,
    Pass(u64),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => any::<bool>().prop_map(|exclusive| Op::Consume { exclusive }),
        4 => Just(Op::Notify),
        2 => Just(Op::CancelQueue),
        1 => Just(Op::Deregister),
        1 => Just(Op::Register),
        2 => Just(Op::Leave),
        4 => Just(Op::Send),
        4 => Just(Op::Settle),
        2 => (1_u64..6_000).prop_map(Op::Pass),
    ]
}

proptest! {
    /// Proves I8, S2.21 and S2.24 in any order of events: tokens rise, only who has a queue to itself gets its messages
    /// under a token, one worker at a time is told, and a queue that nobody uses is never kept from everybody.
    #[test]
    fn whatever_happens_a_queue_has_one_holder(ops in prop::collection::vec((0_usize..4, 0_usize..2, any_op()), 1..120)) {
        let mut desk = Desk::new();
        let mut workers: Vec<ConnId> = (0..4).map(|_| idle(&mut desk)).collect();
        let client = desk.client();
        let (mut last, mut seq) = (0, 0);
        let mut holders: [Option<(ConnId, u64)>; 2] = [None, None];
        for (who, which, op) in ops {
            let (conn, queue) = (workers[who], ["q", "r"][which]);
            let handle = desk.handle(conn, queue);
            seq += 1;
            let input = match op {
                Op::Consume { exclusive } => Input::Consume { conn, seq, handle, exclusive },
                Op::Notify => Input::QueueAvailableNotify { conn, seq, handle },
                Op::CancelQueue => Input::CancelQueue { conn, seq, handle },
                Op::Deregister => Input::Deregister { conn, seq },
                Op::Register => Input::Register { conn, seq, slots: Slots::Limited(3), name: String::new() },
                Op::Leave => Input::Disconnected { conn },
                Op::Send => {
                    let handle = desk.handle(client, queue);
                    let message = Outgoing::new(seq, handle, body(&seq.to_string()));
                    Input::Send { conn: client, message }
                }
                Op::Settle => match desk.any_held(conn) {
                    Some((delivery, Some(token))) if which == 0 => {
                        Input::worker(conn, delivery, WorkerWord::Ack).fenced(token)
                    }
                    Some((delivery, _)) => Input::worker(conn, delivery, WorkerWord::Ack),
                    None => continue,
                },
                Op::Pass(millis) => {
                    for seen in desk.pass(millis) {
                        // A worker on trial gets its next delivery when its pause or its trial ends.
                        let fits = matches!(seen, Seen::Said(Effect::Peer(PeerEffect::Native { effect: NativeEffect::QueueAvailable { .. }, .. })) | Seen::Turn(_));
                        prop_assert!(fits, "{seen:?}");
                    }
                    continue;
                }
            };
            let effects = desk.step(input);
            if matches!(op, Op::Leave) {
                desk.forget_handles(conn);
                workers[who] = idle(&mut desk);
            }
            for effect in effects {
                match effect {
                    Effect::Peer(PeerEffect::Native { conn, effect: NativeEffect::Consuming { token, .. } }) => {
                        prop_assert!(token > last);
                        last = token;
                        holders[which] = Some((conn, token));
                    }
                    Effect::Peer(PeerEffect::Deliver(Deliver { conn, handle, token: Some(token), .. })) => {
                        let of = usize::from(desk.queue_of(conn, handle) == "r");
                        prop_assert_eq!(holders[of], Some((conn, token)));
                    }
                    _ => {}
                }
            }
        }
        // Everybody leaves: the queues are anybody's.
        for conn in workers {
            desk.leave(conn);
        }
        let heir = desk.worker(1, &[]);
        for queue in ["q", "r"] {
            let (got, _) = desk.ask_for(heir, queue, true);
            prop_assert!(matches!(got, Got::Alone(token) if token > last), "{:?}", got);
        }
    }
}

impl Desk {
    /// Something the worker was given last, and its token.
    fn any_held(&self, worker: ConnId) -> Option<(Delivery, Option<u64>)> {
        self.log().iter().rev().find_map(|effect| match effect {
            Effect::Peer(PeerEffect::Deliver(Deliver { conn, delivery, token, .. })) if *conn == worker => {
                Some((*delivery, *token))
            }
            _ => None,
        })
    }
}
