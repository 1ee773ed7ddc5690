//! Why a message waits where a queue is one worker's alone, or where workers were dropped.

use turno_engine::Input;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::view::{Reason, StandingState};
use turno_proto::model::{MessageId, Seconds, WorkerId};

use crate::exclusive::{FIRST, Got, idle};
use crate::harness::{Harness, ask};
use crate::seen::{sent, turn};

fn why(harness: &mut Harness, id: MessageId) -> Reason {
    harness.explain(id).because.0
}

/// Proves S2.24 and S2.26: what waits in an exclusive queue says who has it and is busy, that nobody has it before all is
/// settled, for whom it is kept and for how long, and that nobody wants it.
#[test]
fn why_a_message_waits_in_an_exclusive_queue() {
    let mut harness = Harness::new();
    let (holder, next, client) = (harness.worker(1, &[]), harness.worker(1, &[]), harness.client());
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    harness.stand_by(next, "q");
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(holder, "a").token(FIRST)]);
    let (second, _) = harness.send(client, ask(2, "q", "b"));
    let (third, _) = harness.send(client, ask(3, "q", "c"));
    for (id, ahead) in [(second, 0), (third, 1)] {
        let busy = Reason::ExclusiveBusy { worker: WorkerId(1), name: "w0".to_owned(), used: 1, ahead };
        assert_eq!(why(&mut harness, id), busy);
    }
    assert_eq!(harness.cancel_queue(holder, "q"), Ok(vec![]));
    assert_eq!(why(&mut harness, second), Reason::NotFree { in_flight: 1, waiters: 1 });
    let free = harness.available(next, "q");
    assert_eq!(harness.ack(holder, "a"), [free]);
    let kept = |left_ms| Reason::KeptFor {
        worker: WorkerId(2),
        name: "w1".to_owned(),
        left_seconds: Seconds::from_millis(left_ms),
    };
    assert_eq!(why(&mut harness, second), kept(5_000));
    assert_eq!(harness.pass(4_999), []);
    assert_eq!(why(&mut harness, second), kept(1));
    assert_eq!(harness.pass(1), []);
    assert_eq!(why(&mut harness, second), Reason::NoWorker, "it did not come, and nobody else waits");
    let (got, seen) = harness.ask_for(next, "q", true);
    assert_eq!((got, seen), (Got::Alone(FIRST + 1), vec![sent(next, "b").token(FIRST + 1)]));
}

/// Proves S2.32: what waits says how many workers were dropped from its queue, whether others are left or not, and which
/// of those that are left get one delivery at a time.
#[test]
fn why_a_message_waits_for_dropped_workers() {
    let mut harness = Harness::new();
    let (slow, client) = (harness.worker(3, &["q"]), harness.client());
    for (seq, text) in [(1, "a"), (2, "b")] {
        assert_eq!(harness.request(client, ask(seq, "q", text).within(200)), [turn(slow, text).left(Some(200))]);
        assert!(harness.pass(200).len() >= 2);
        assert_eq!(harness.fail(slow, text, "stopped"), []);
    }
    let (id, _) = harness.send(client, ask(3, "q", "c"));
    assert_eq!(why(&mut harness, id), Reason::WorkersDropped { workers: 1 });
    let busy = harness.joining(turno_proto::model::Slots::Limited(1), &["q"]);
    assert_eq!(busy.1, [sent(busy.0, "c")]);
    let (id, _) = harness.send(client, ask(4, "q", "d"));
    assert_eq!(
        why(&mut harness, id),
        Reason::AllBusy { workers: 1, used: 1, ahead: 0, probing: 0, dropped: 1, not_reading: 0, brokers: 0 }
    );
    assert_eq!(harness.consume(slow, "q"), Ok(vec![sent(slow, "d")]));
    let (id, _) = harness.send(client, ask(5, "q", "e"));
    assert_eq!(
        why(&mut harness, id),
        Reason::AllBusy { workers: 2, used: 2, ahead: 0, probing: 1, dropped: 0, not_reading: 0, brokers: 0 }
    );
    let mut standings: Vec<_> = harness.consumers("q").into_iter().map(|row| row.standing.state).collect();
    standings.sort_unstable();
    assert_eq!(standings, [StandingState::Consuming, StandingState::Probing]);
}

/// Proves S2.32: a holder on probation has slots free, so that it is not the one that is busy: its probe is the reason.
#[test]
fn why_a_message_waits_for_a_holder_on_probation() {
    let mut harness = Harness::new();
    let (holder, client) = (idle(&mut harness), harness.client());
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST));
    for (seq, text) in [(1, "a"), (2, "b")] {
        let handed = turn(holder, text).left(Some(200)).token(FIRST);
        assert_eq!(harness.request(client, ask(seq, "q", text).within(200)), [handed]);
        assert!(harness.pass(200).len() >= 2);
        assert_eq!(harness.fail(holder, text, "stopped"), []);
    }
    assert_eq!(harness.alone(holder, "q"), Got::Alone(FIRST + 1));
    assert_eq!(harness.send(client, ask(3, "q", "probe")).1, [sent(holder, "probe").token(FIRST + 1)]);
    let (id, _) = harness.send(client, ask(4, "q", "waits"));
    assert_eq!(
        why(&mut harness, id),
        Reason::AllBusy { workers: 1, used: 1, ahead: 0, probing: 1, dropped: 0, not_reading: 0, brokers: 0 }
    );
}

/// Proves S2.17: what waits in a broker that is drained for maintenance says that, and so it does of one that ends.
#[test]
fn why_a_message_waits_in_a_drained_broker() {
    let mut harness = Harness::new();
    let (holder, client) = (idle(&mut harness), harness.client());
    let (id, _) = harness.send(client, ask(1, "q", "a"));
    assert_eq!(why(&mut harness, id), Reason::NoWorker);
    assert!(harness.admin(AdminCall::Drain).0.is_ok());
    assert_eq!(why(&mut harness, id), Reason::Maintenance);
    assert_eq!(harness.consume(holder, "q"), Ok(vec![]), "a worker that comes now waits with it");
    assert_eq!(why(&mut harness, id), Reason::Maintenance);
    assert!(harness.admin(AdminCall::Resume).0.is_ok());
    let since = Reason::AtWorker { worker: WorkerId(1), name: "w0".to_owned(), since_seconds: Seconds::from_millis(0) };
    assert_eq!(why(&mut harness, id), since);
    let (second, _) = harness.send(client, ask(2, "none", "b"));
    harness.say(Input::Drain { within_ms: 1_000 });
    assert_eq!(why(&mut harness, second), Reason::Draining);
}
