//! Queues with a single consumer: who gets one, who waits for it, and what its token is good for.

use turno_engine::{
    Again, DiskEffect, Effect, Input, NativeEffect, PeerEffect, Persist, Settings, StoreSettings, WorkerMessage,
};
use turno_proto::model::view::{Counters, ExclusiveView, HoldingView};
use turno_proto::model::{Code, ConnId, Delivery, Slots, Token, WorkerId};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, body, reply, sent, turn};

/// The first token of a run with the usual term.
pub(crate) const FIRST: u64 = (1 << 20) + 1;

/// What CONSUME was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Shared,
    Alone(u64),
    Full,
    Error(Code),
}

impl Harness {
    /// CONSUME, its answer, and what follows from it.
    pub(crate) fn ask_for(&mut self, conn: ConnId, queue: &str, exclusive: bool) -> (Got, Vec<Seen>) {
        let handle = self.handle(conn, queue);
        let mut seen = self.say(Input::Consume { conn, seq: 77, handle, exclusive });
        let got = match seen.remove(0) {
            Seen::Said(Effect::Peer(PeerEffect::Answer { conn: to, seq: 77, result: Ok(()) })) if to == conn => {
                Got::Shared
            }
            Seen::Said(Effect::Peer(PeerEffect::Native {
                conn: to,
                effect: NativeEffect::Consuming { seq: 77, token },
            })) if to == conn => Got::Alone(token),
            Seen::Said(Effect::Peer(PeerEffect::Native {
                conn: to,
                effect: NativeEffect::QueueFull { seq: 77, handle: of },
            })) if to == conn && of == handle => Got::Full,
            Seen::Said(Effect::Peer(PeerEffect::Answer { conn: to, seq: 77, result: Err(code) })) if to == conn => {
                Got::Error(code)
            }
            other => panic!("{other:?} is no answer to CONSUME"),
        };
        (got, seen)
    }

    pub(crate) fn alone(&mut self, conn: ConnId, queue: &str) -> Got {
        let (got, seen) = self.ask_for(conn, queue, true);
        assert_eq!(seen, [], "nothing waits");
        got
    }

    pub(crate) fn shared(&mut self, conn: ConnId, queue: &str) -> Got {
        let (got, seen) = self.ask_for(conn, queue, false);
        assert_eq!(seen, [], "nothing waits");
        got
    }

    pub(crate) fn notify(&mut self, conn: ConnId, queue: &str) -> Vec<Seen> {
        let handle = self.handle(conn, queue);
        self.say(Input::QueueAvailableNotify { conn, seq: 88, handle })
    }

    /// Refused, and in the line.
    pub(crate) fn stand_by(&mut self, conn: ConnId, queue: &str) {
        assert_eq!(self.alone(conn, queue), Got::Full);
        assert_eq!(self.notify(conn, queue), []);
    }

    pub(crate) fn available(&mut self, conn: ConnId, queue: &str) -> Seen {
        let handle = self.handle(conn, queue);
        Seen::Said(Effect::Peer(PeerEffect::Native { conn, effect: NativeEffect::QueueAvailable { seq: 88, handle } }))
    }
}

/// A connection that is registered and consumes nothing.
pub(crate) fn idle(harness: &mut Harness) -> ConnId {
    harness.worker(10, &[])
}

pub(crate) fn refusal(conn: ConnId, code: Code) -> Vec<Seen> {
    vec![Seen::Said(Effect::Peer(PeerEffect::Answer { conn, seq: 88, result: Err(code) }))]
}

/// Proves S2.19, S2.20 and S2.21: a queue that nobody consumes is given with a token; after that everybody is refused,
/// and the holder's own second CONSUME is a mistake of its own.
#[test]
fn an_exclusive_queue_has_one_consumer() {
    let mut harness = Harness::new();
    let (holder, second, third) = (idle(&mut harness), idle(&mut harness), idle(&mut harness));
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    assert_eq!(harness.alone(second, "q"), Got::Full);
    assert_eq!(harness.shared(third, "q"), Got::Full);
    for exclusive in [true, false] {
        assert_eq!(harness.ask_for(holder, "q", exclusive), (Got::Error(Code::AlreadyConsuming), vec![]));
    }
    assert_eq!(harness.alone(second, "other"), Got::Alone(FIRST + 1), "tokens rise over all queues");
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(holder, "a").token(FIRST)]);
    assert_eq!(harness.reply(holder, "a", "A"), [reply(client, 1, "A")]);
}

/// Proves S2.21: a queue that is shared cannot be taken, until the last of its workers has left it.
#[test]
fn a_shared_queue_cannot_be_taken() {
    let mut harness = Harness::new();
    let (one, two, wants) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]), idle(&mut harness));
    assert_eq!(harness.alone(wants, "q"), Got::Full);
    assert_eq!(harness.alone(one, "q"), Got::Error(Code::AlreadyConsuming));
    assert_eq!(harness.cancel_queue(one, "q"), Ok(vec![]));
    assert_eq!(harness.alone(wants, "q"), Got::Full);
    assert_eq!(harness.leave(two), []);
    assert_eq!(harness.alone(wants, "q"), Got::Alone(FIRST));
    assert_eq!(harness.shared(one, "q"), Got::Full);
    assert_eq!(harness.cancel_queue(wants, "q"), Ok(vec![]));
    assert_eq!(harness.shared(one, "q"), Got::Shared, "free again, and for everybody");
    assert_eq!(harness.shared(wants, "q"), Got::Shared);
}

/// Proves S2.22, S2.24 and S2.25: those who wait are told one at a time and in their order; the queue is kept for the
/// one that was told, and nobody else is told again.
#[test]
fn who_waits_is_told_in_order() {
    let mut harness = Harness::new();
    let holder = idle(&mut harness);
    let [first, second, other] = [idle(&mut harness), idle(&mut harness), idle(&mut harness)];
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    harness.stand_by(first, "q");
    harness.stand_by(second, "q");
    let told = harness.available(first, "q");
    assert_eq!(harness.leave(holder), [told]);
    for exclusive in [true, false] {
        assert_eq!(harness.ask_for(other, "q", exclusive), (Got::Full, vec![]), "kept for the first");
        assert_eq!(harness.ask_for(second, "q", exclusive), (Got::Full, vec![]), "it has its place in the line");
    }
    assert_eq!(harness.alone(first, "q"), Got::Alone(FIRST + 1));
    assert_eq!(harness.pass(20_000), [], "told once");
    let told = harness.available(second, "q");
    assert_eq!(harness.cancel_queue(first, "q"), Ok(vec![told]));
    assert_eq!(harness.shared(second, "q"), Got::Shared, "the one that was told may also share");
    assert_eq!(harness.shared(other, "q"), Got::Shared);
}

/// Proves S2.24: a standby that does not come within five seconds is passed over, and has no place in the line any more.
#[test]
fn an_offer_ends_after_five_seconds() {
    let mut harness = Harness::new();
    let [holder, first, second, other] =
        [idle(&mut harness), idle(&mut harness), idle(&mut harness), idle(&mut harness)];
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    harness.stand_by(first, "q");
    harness.stand_by(second, "q");
    let told = harness.available(first, "q");
    assert_eq!(harness.leave(holder), [told]);
    assert_eq!(harness.pass(4_999), []);
    assert_eq!(harness.alone(other, "q"), Got::Full);
    let told = harness.available(second, "q");
    assert_eq!(harness.pass(1), [told]);
    assert_eq!(harness.notify(first, "q"), refusal(first, Code::NotRefused), "its refusal is used up");
    assert_eq!(harness.alone(first, "q"), Got::Full);
    assert_eq!(harness.pass(4_999), []);
    assert_eq!(harness.alone(second, "q"), Got::Alone(FIRST + 1), "in the last moment");
    assert_eq!(harness.cancel_queue(second, "q"), Ok(vec![]), "nobody waits");
    harness.stand_by_again(first);
}

impl Harness {
    /// Refused before, and told at once because the queue is free by now.
    fn stand_by_again(&mut self, conn: ConnId) {
        let told = self.available(conn, "q");
        assert_eq!(self.notify(conn, "q"), [told], "free already when NOTIFY comes");
        assert_eq!(self.pass(5_000), [], "nobody else waits");
        assert_eq!(self.alone(conn, "q"), Got::Alone(FIRST + 2), "late, but nobody was before it");
    }
}

/// Proves S2.24 and S2.25: a queue that is free when the wish to be told comes is offered at once.
#[test]
fn a_free_queue_is_offered_at_once() {
    let mut harness = Harness::new();
    let [holder, next] = [idle(&mut harness), idle(&mut harness)];
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    assert_eq!(harness.alone(next, "q"), Got::Full);
    assert_eq!(harness.deregister(holder), Ok(vec![]), "nobody asked to be told");
    let told = harness.available(next, "q");
    assert_eq!(harness.notify(next, "q"), [told]);
    assert_eq!(harness.alone(next, "q"), Got::Alone(FIRST + 1));
}

/// Proves S2.24: who leaves in whatever way waits no more, and what was kept for it goes to the next.
#[test]
fn who_leaves_waits_no_more() {
    type Leave = fn(&mut Harness, ConnId) -> Vec<Seen>;
    let ways: [Leave; 4] = [
        |harness, conn| harness.leave(conn),
        |harness, conn| harness.deregister(conn).expect("a worker"),
        |harness, conn| harness.cancel_queue(conn, "q").expect("it waits"),
        |harness, conn| {
            let handle = harness.handle(conn, "q");
            harness.open(conn, handle, "elsewhere").expect("nobody consumes with it")
        },
    ];
    for leave in ways {
        let mut harness = Harness::new();
        let [holder, first, second, third] =
            [idle(&mut harness), idle(&mut harness), idle(&mut harness), idle(&mut harness)];
        assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
        for conn in [first, second, third] {
            harness.stand_by(conn, "q");
        }
        assert_eq!(leave(&mut harness, first), [], "in the line");
        let told = harness.available(second, "q");
        assert_eq!(harness.leave(holder), [told]);
        let told = harness.available(third, "q");
        assert_eq!(leave(&mut harness, second), [told], "while the queue is kept for it");
        assert_eq!(leave(&mut harness, third), []);
        let late = idle(&mut harness);
        assert_eq!(harness.alone(late, "q"), Got::Alone(FIRST + 1));
        assert_eq!(harness.pass(10_000), []);
    }
}

/// CANCEL_QUEUE of a queue that is neither consumed nor waited for is a mistake, also after a refusal.
#[test]
fn a_refusal_alone_is_nothing_to_cancel() {
    let mut harness = Harness::new();
    let [holder, refused] = [idle(&mut harness), idle(&mut harness)];
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    assert_eq!(harness.alone(refused, "q"), Got::Full);
    assert_eq!(harness.cancel_queue(refused, "q"), Err(Code::NotFound));
    assert_eq!(harness.notify(refused, "q"), []);
}

/// Proves S2.19 and S2.26: what a lost holder had goes to the next one in order, with its token, and nothing that came
/// meanwhile overtakes it.
#[test]
fn the_next_holder_begins_where_the_last_one_stopped() {
    let mut harness = Harness::new();
    let [holder, next] = [idle(&mut harness), idle(&mut harness)];
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    harness.stand_by(next, "q");
    let client = harness.client();
    for (seq, text) in [(1, "a"), (2, "b")] {
        assert_eq!(harness.send(client, ask(seq, "q", text)).1, [sent(holder, text).token(FIRST)]);
    }
    let told = harness.available(next, "q");
    assert_eq!(harness.leave(holder), [told]);
    assert_eq!(harness.send(client, ask(3, "q", "c")).1, [], "it waits while there is no holder");
    let token = FIRST + 1;
    let again = |text| sent(next, text).token(token);
    let expected = vec![again("a"), again("b"), sent(next, "c").token(token)];
    assert_eq!(harness.ask_for(next, "q", true), (Got::Alone(token), expected));
}

/// Proves S2.26: a holder that leaves in order keeps the queue until it has settled what it holds, and so does a worker
/// that shared it.
#[test]
fn anyone_who_still_holds_something_has_not_left() {
    for exclusive in [true, false] {
        let mut harness = Harness::new();
        let [holder, next] = [idle(&mut harness), idle(&mut harness)];
        let (_, seen) = harness.ask_for(holder, "q", exclusive);
        assert_eq!(seen, []);
        let client = harness.client();
        let seen = harness.request(client, ask(1, "q", "a"));
        assert_eq!(seen, [if exclusive { turn(holder, "a").token(FIRST) } else { turn(holder, "a") }]);
        assert_eq!(harness.deregister(holder), Ok(vec![]));
        harness.stand_by(next, "q");
        let third = idle(&mut harness);
        assert_eq!(harness.shared(third, "q"), Got::Full, "nobody overtakes who waits");
        let told = harness.available(next, "q");
        assert_eq!(harness.reply(holder, "a", "A"), [reply(client, 1, "A"), told]);
        assert_eq!(harness.alone(next, "q"), Got::Alone(FIRST + u64::from(exclusive)));
    }
}

/// How many were late, doubled and forged.
fn strays(counters: Counters) -> (u64, u64, u64) {
    (counters.late, counters.doubled, counters.forged)
}

/// Everything that can be said about a delivery.
fn words(conn: ConnId, delivery: Delivery) -> [Input; 6] {
    [
        Input::worker(conn, delivery, WorkerMessage::Reply { more: false, payload: body("x") }),
        Input::worker(conn, delivery, WorkerMessage::Reply { more: true, payload: body("x") }),
        Input::worker(conn, delivery, WorkerMessage::Ack),
        Input::worker(conn, delivery, WorkerMessage::Fail { again: Again::Never, payload: body("x") }),
        Input::worker(conn, delivery, WorkerMessage::Progress { payload: body("x") }),
        Input::worker(conn, delivery, WorkerMessage::Extend { lease_ms: 1 }),
    ]
}

/// Proves I8: a message about a delivery is taken under the token of its queue and no other; without a token the holder is
/// checked alone.
#[test]
fn another_token_is_refused_and_counted() {
    let mut harness = Harness::new();
    let [holder, other] = [idle(&mut harness), idle(&mut harness)];
    assert_eq!(harness.alone(other, "before"), Got::Alone(FIRST));
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST + 1));
    assert_eq!(harness.alone(other, "after"), Got::Alone(FIRST + 2));
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(holder, "a").token(FIRST + 1)]);
    let delivery = harness.held(holder, "a");
    let (mut late, mut forged) = (0, 0);
    for token in [0, FIRST - 1, FIRST, FIRST + 2, FIRST + 3, u64::MAX] {
        for input in words(holder, delivery) {
            assert_eq!(harness.say(input.fenced(token)), [], "token {token}");
            let given_out = token <= FIRST + 2;
            late += u64::from(given_out);
            forged += u64::from(!given_out);
            assert_eq!(strays(harness.counters()), (late, 0, forged), "token {token}");
        }
    }
    for input in words(other, delivery) {
        assert_eq!(harness.say(input.fenced(FIRST + 1)), [], "the token alone is not enough");
        forged += 1;
        assert_eq!(strays(harness.counters()), (late, 0, forged));
    }
    let right =
        Input::worker(holder, delivery, WorkerMessage::Reply { more: false, payload: body("A") }).fenced(FIRST + 1);
    assert_eq!(harness.say(right.clone()), [reply(client, 1, "A")]);
    assert_eq!(harness.say(right), []);
    assert_eq!(strays(harness.counters()), (late, 1, forged), "twice");
    assert_eq!(harness.request(client, ask(2, "q", "b")), [turn(holder, "b").token(FIRST + 1)]);
    assert_eq!(harness.reply(holder, "b", "B"), [reply(client, 2, "B")], "without a token");
}

/// Proves I8: a holder that was cut off and comes back is late, with its old token as without.
#[test]
fn an_old_holder_is_late() {
    let mut harness = Harness::new();
    let [holder, next] = [idle(&mut harness), idle(&mut harness)];
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    let client = harness.client();
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(holder, "a").token(FIRST)]);
    let old = harness.held(holder, "a");
    assert_eq!(harness.leave(holder), []);
    let again = sent(next, "a").token(FIRST + 1);
    assert_eq!(harness.ask_for(next, "q", true), (Got::Alone(FIRST + 1), vec![again]));
    let back = idle(&mut harness);
    let message = Input::worker(back, old, WorkerMessage::Ack);
    assert_eq!(harness.say(message.clone()), []);
    assert_eq!(harness.say(message.fenced(FIRST)), []);
    assert_eq!(strays(harness.counters()), (2, 0, 0));
    assert_eq!(harness.ack(next, "a"), []);
}

/// Proves S2.19 and I8: a holder that fell silent is disconnected like one that hung up. Whatever it says when it wakes,
/// on the old connection or a new one, with its token or without, before the next one has the queue or after, is refused
/// and counted, and the caller has the one reply of the next one.
#[test]
fn a_holder_that_was_silent_is_late() {
    let mut harness = Harness::new();
    let [holder, next] = [idle(&mut harness), idle(&mut harness)];
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    harness.stand_by(next, "q");
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "q", "a").retries(1)), [turn(holder, "a").token(FIRST)]);
    let old = harness.held(holder, "a");
    let told = harness.available(next, "q");
    assert_eq!(harness.say(Input::Disconnected { conn: holder }), [told]);
    let back = idle(&mut harness);
    let mut late = 0;
    let mut wake = |harness: &mut Harness| {
        for conn in [holder, back] {
            for input in words(conn, old) {
                for input in [input.clone(), input.fenced(FIRST)] {
                    assert_eq!(harness.say(input.clone()), [], "{input:?}");
                    late += 1;
                    assert_eq!(strays(harness.counters()), (late, 0, 0), "{input:?}");
                }
            }
        }
    };
    wake(&mut harness);
    let token = FIRST + 1;
    let again = turn(next, "a").attempt(2).token(token);
    assert_eq!(harness.ask_for(next, "q", true), (Got::Alone(token), vec![again]));
    wake(&mut harness);
    assert_eq!(harness.reply(next, "a", "A"), [reply(client, 1, "A")]);
    wake(&mut harness);
    assert_eq!(harness.counters().replied, 1);
}

/// Proves I8: a token on a delivery of a shared queue is nobody's, and settles nothing.
#[test]
fn a_shared_queue_has_no_token() {
    let mut harness = Harness::new();
    let worker = harness.worker(1, &["q"]);
    let client = harness.client();
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(worker, "a")]);
    let message = Input::worker(worker, harness.held(worker, "a"), WorkerMessage::Ack);
    assert_eq!(harness.say(message.clone().fenced(0)), []);
    assert_eq!(strays(harness.counters()), (1, 0, 0));
    assert_eq!(harness.say(message), []);
    assert_eq!(strays(harness.counters()), (1, 0, 0));
}

/// Proves I8: every run's tokens are above those of all runs with a lower term, however many it gave out.
#[test]
fn tokens_rise_over_restarts() {
    let mut last = 0;
    for term in [1, 2, 1_790_000_000_000, 1_790_000_000_001] {
        let mut harness = Harness::with(Settings { term, ..Settings::default() });
        let worker = idle(&mut harness);
        for _ in 0..10 {
            let Got::Alone(token) = harness.alone(worker, "q") else { panic!("nobody else is there") };
            assert!(token > last, "{token} after {last}");
            assert_eq!(token >> 20, term);
            last = token;
            assert_eq!(harness.cancel_queue(worker, "q"), Ok(vec![]));
        }
    }
}

/// A worker of so many queues that it has a shared rota may have them to itself all the same.
#[test]
fn many_queues_may_be_one_workers_alone() {
    let mut harness = Harness::new();
    let [holder, next] = [harness.worker(100, &[]), idle(&mut harness)];
    let queues: Vec<String> = (0..20).map(|n| format!("q{n}")).collect();
    for queue in &queues {
        assert!(matches!(harness.alone(holder, queue), Got::Alone(_)));
        harness.stand_by(next, queue);
    }
    let told: Vec<Seen> = queues.iter().map(|queue| harness.available(next, queue)).collect();
    assert_eq!(harness.leave(holder), told);
    for queue in &queues {
        assert!(matches!(harness.alone(next, queue), Got::Alone(_)));
    }
}

/// `queue show`, `queue consumers` and `worker show` tell who has a queue to itself, with which token, and who waits.
#[test]
fn views_tell_who_has_a_queue_and_who_waits() {
    let mut harness = Harness::new();
    let [holder, next] = [idle(&mut harness), idle(&mut harness)];
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    harness.stand_by(next, "q");
    assert_eq!(harness.joining(Slots::Limited(1), &["other"]).1, []);
    let queue = harness.queue("q");
    assert_eq!(
        (queue.exclusive, queue.waiters),
        (Some(ExclusiveView { token: Token(FIRST), worker: Some(WorkerId(1)) }), 1)
    );
    let other = harness.queue("other");
    assert_eq!((other.exclusive, other.waiters), (None, 0));
    let rows: Vec<_> =
        harness.consumers("q").iter().map(|row| (row.worker.0, row.turn, row.token, row.waits)).collect();
    assert_eq!(rows, [(1, Some(1), Some(Token(FIRST)), None), (2, None, None, Some(1))]);
    let shown = harness.worker_view("1");
    assert_eq!(shown.exclusive, [HoldingView { queue: "q".to_owned(), token: Token(FIRST) }]);
    assert!(shown.waits_for.is_empty());
    let shown = harness.worker_view("2");
    assert!(shown.exclusive.is_empty());
    assert_eq!(shown.waits_for, ["q"]);
}

/// Proves S2.26: what a lost holder had is written down and back in its place before the next one begins, so that nothing
/// overtakes it; a disk without room stops nobody.
#[test]
fn the_next_one_is_told_when_everything_is_back() {
    for room in [true, false] {
        let store = Some(StoreSettings { run: 1, unix_ms: 0, last_serial: 40 });
        let mut harness = Harness::with(Settings { store, ..Settings::default() });
        let [holder, next, third] = [idle(&mut harness), idle(&mut harness), idle(&mut harness)];
        assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
        harness.stand_by(next, "q");
        let client = harness.client();
        assert_eq!(harness.try_send(client, ask(1, "q", "a")).len(), 1);
        let given = harness.say(Input::Persisted { group: 1 });
        assert_eq!(given.last(), Some(&sent(holder, "a").token(FIRST)));
        // One that settled something before: its loss counts.
        harness.try_send(client, ask(2, "q", "b"));
        harness.say(Input::Persisted { group: 2 });
        harness.ack(holder, "b");
        let attempts = Persist::Attempts { serial: 41, attempts: 1, wait: None };
        assert_eq!(harness.leave(holder), [Seen::Said(Effect::Disk(DiskEffect::Persist { group: 4, op: attempts }))]);
        assert_eq!(harness.queue("q").exclusive, Some(ExclusiveView { token: Token(FIRST), worker: None }));
        assert_eq!(harness.alone(third, "q"), Got::Full, "its message is on its way back");
        let told = harness.available(next, "q");
        let disk = if room { Input::Persisted { group: 4 } } else { Input::Refused { group: 4, code: Code::OverDisk } };
        assert_eq!(harness.say(disk), [told]);
        let expected = if room { vec![sent(next, "a").attempt(2).token(FIRST + 1)] } else { vec![] };
        assert_eq!(harness.ask_for(next, "q", true), (Got::Alone(FIRST + 1), expected));
    }
}
