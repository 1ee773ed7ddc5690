//! Many brokers, links that come and go, messages that arrive in any order between links: every request ends once, every send
//! is done or waits at one broker, and when it is quiet nobody waits beside a free slot anywhere.

use std::collections::BTreeMap;

use proptest::prelude::*;
use turno_engine::{Again, CallerMessage, Effect, Input, PeerEffect, WorkerMessage};

use super::net::{Net, Place};
use crate::seen::body;

#[derive(Clone, Debug)]
enum Op {
    Link(usize, usize),
    Unlink(usize),
    Worker(usize, u32),
    Leave(usize),
    Ask(usize, u8),
    Send(usize),
    Arrive(usize, u8),
    Reply(usize),
    Fail(usize, bool),
    Time(u16),
    Cancel(usize),
}

fn op(brokers: usize) -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (0..brokers, 0..brokers).prop_map(|(one, other)| Op::Link(one, other)),
        1 => any::<usize>().prop_map(Op::Unlink),
        2 => (0..brokers, 1..4u32).prop_map(|(at, slots)| Op::Worker(at, slots)),
        1 => any::<usize>().prop_map(Op::Leave),
        4 => (0..brokers, 0..3u8).prop_map(|(at, retries)| Op::Ask(at, retries)),
        4 => (0..brokers).prop_map(Op::Send),
        12 => (any::<usize>(), 1..20u8).prop_map(|(wire, times)| Op::Arrive(wire, times)),
        4 => any::<usize>().prop_map(Op::Reply),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(at, permanent)| Op::Fail(at, permanent)),
        2 => (1..2_000u16).prop_map(Op::Time),
        1 => any::<usize>().prop_map(Op::Cancel),
    ]
}

fn script() -> impl Strategy<Value = (usize, Vec<Op>)> {
    (2..6usize).prop_flat_map(|brokers| (Just(brokers), prop::collection::vec(op(brokers), 1..120)))
}

#[derive(Default)]
struct Book {
    callers: Vec<Place>,
    workers: Vec<Place>,
    asked: Vec<(Place, u32)>,
    ended: BTreeMap<(Place, u32), u32>,
    /// By the text of a send: how often it was acked.
    acked: BTreeMap<String, u32>,
    dead: u64,
    texts: u32,
}

impl Book {
    fn text(&mut self) -> String {
        self.texts += 1;
        format!("m{}", self.texts)
    }

    fn hear(&mut self, net: &mut Net) {
        for (place, effect) in std::mem::take(&mut net.heard) {
            let ended = match effect {
                Effect::Peer(PeerEffect::Caller { seq, message: CallerMessage::Reply { more: false, .. }, .. })
                | Effect::Peer(PeerEffect::Caller { seq, message: CallerMessage::Undelivered { .. }, .. }) => Some(seq),
                _ => None,
            };
            if let Some(seq) = ended.filter(|seq| self.asked.contains(&(place, *seq))) {
                *self.ended.entry((place, seq)).or_default() += 1;
            }
        }
        for (key, times) in &self.ended {
            assert_eq!(*times, 1, "{key:?} ends once");
        }
    }
}

fn play(net: &mut Net, book: &mut Book, op: Op) {
    match op {
        Op::Link(one, other) => {
            if one != other && !net.are_linked(one, other) {
                net.link(one, other);
            }
        }
        Op::Unlink(number) => {
            net.unlink_any(number);
        }
        Op::Worker(at, slots) => {
            let worker = net.worker(at, "q", slots);
            book.workers.push(worker);
        }
        Op::Leave(number) => {
            if !book.workers.is_empty() {
                let worker = book.workers.remove(number % book.workers.len());
                net.put(worker.broker, Input::Disconnected { conn: worker.conn });
                net.given.retain(|given| given.worker != worker);
            }
        }
        Op::Ask(at, retries) => {
            let caller = book.callers[at];
            let text = format!("ask {}", book.text());
            let seq = net.ask(caller, &text, |message| message.retries = Some(retries));
            book.asked.push((caller, seq));
        }
        Op::Send(at) => {
            let text = format!("send {}", book.text());
            net.send(book.callers[at], &text, |_| {});
        }
        Op::Arrive(wire, times) => (0..times).for_each(|_| {
            net.step(wire);
        }),
        Op::Reply(number) => {
            if !net.given.is_empty() {
                let given = net.given.remove(number % net.given.len());
                if given.text.starts_with("send") {
                    *book.acked.entry(given.text.clone()).or_default() += 1;
                    net.ack(&given);
                } else {
                    net.reply(&given, "ok", false);
                }
            }
        }
        Op::Fail(number, permanent) => {
            if !net.given.is_empty() {
                let given = net.given.remove(number % net.given.len());
                let (conn, delivery) = (given.worker.conn, given.delivery);
                net.put(
                    given.worker.broker,
                    Input::worker(
                        conn,
                        delivery,
                        WorkerMessage::Fail {
                            again: if permanent { Again::Never } else { Again::AsSet },
                            payload: body("no"),
                        },
                    ),
                );
            }
        }
        Op::Time(millis) => net.tick(u64::from(millis)),
        Op::Cancel(number) => {
            if !book.asked.is_empty() {
                let (caller, seq) = book.asked[number % book.asked.len()];
                net.put(caller.broker, Input::Cancel { conn: caller.conn, seq });
            }
        }
    }
    book.hear(net);
}

/// In the calm everyone works until nothing is left.
fn calm(net: &mut Net, book: &mut Book, brokers: usize) {
    for at in 1..brokers {
        if !net.are_linked(at - 1, at) {
            net.link(at - 1, at);
        }
    }
    let last = net.worker(brokers - 1, "q", 3);
    book.workers.push(last);
    for _ in 0..2_000 {
        net.settle_for(1_500);
        book.hear(net);
        if net.given.is_empty() {
            break;
        }
        // All of them: who keeps its caller waiting too often is dropped from the queue.
        while !net.given.is_empty() {
            play(net, book, Op::Reply(0));
        }
    }
    for (at, engine) in net.engines.iter().enumerate() {
        let status = engine.status();
        assert_eq!((status.ready, status.in_flight), (0, 0), "b{at}: something waits though there is room");
        book.dead += status.dead;
    }
    for key in &book.asked {
        assert_eq!(book.ended.get(key), Some(&1), "every request ends");
    }
}

proptest! {
    /// I13, I14 over links, and the single owner of a send: nothing is lost, nothing waits for ever, nothing ends twice.
    #[test]
    fn brokers_agree((brokers, script) in script()) {
        let mut net = Net::new(brokers);
        let callers = (0..brokers).map(|at| net.client(at, "q")).collect();
        let mut book = Book { callers, ..Book::default() };
        for op in script {
            play(&mut net, &mut book, op);
        }
        calm(&mut net, &mut book, brokers);
    }
}
