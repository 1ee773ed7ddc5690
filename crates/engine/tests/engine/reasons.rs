//! Why a message waits where a queue is one worker's alone, or where workers were dropped.

use turno_engine::Input;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::view::{Reason, StandingState};
use turno_proto::model::{MessageId, Seconds, WorkerId};

use crate::desk::{Desk, ask};
use crate::exclusive::{FIRST, Got, idle};
use crate::seen::{sent, turn};

fn why(desk: &mut Desk, id: MessageId) -> Reason {
    desk.explain(id).because.0
}

/// Proves S2.24 and S2.26: what waits in an exclusive queue says who has it and is busy, that nobody has it before all is
/// settled, for whom it is kept and for how long, and that nobody wants it.
#[test]
fn why_a_message_waits_in_an_exclusive_queue() {
    let mut desk = Desk::new();
    let (holder, next, client) = (desk.worker(1, &[]), desk.worker(1, &[]), desk.client());
    assert_eq!(desk.alone(holder, "q"), Got::Alone(FIRST));
    desk.stand_by(next, "q");
    assert_eq!(desk.send(client, ask(1, "q", "a")).1, [sent(holder, "a").token(FIRST)]);
    let (second, _) = desk.send(client, ask(2, "q", "b"));
    let (third, _) = desk.send(client, ask(3, "q", "c"));
    for (id, ahead) in [(second, 0), (third, 1)] {
        let busy = Reason::ExclusiveBusy { worker: WorkerId(1), name: "w0".to_owned(), used: 1, ahead };
        assert_eq!(why(&mut desk, id), busy);
    }
    assert_eq!(desk.cancel_queue(holder, "q"), Ok(vec![]));
    assert_eq!(why(&mut desk, second), Reason::NotFree { in_flight: 1, waiters: 1 });
    let free = desk.available(next, "q");
    assert_eq!(desk.ack(holder, "a"), [free]);
    let kept = |left_ms| Reason::KeptFor {
        worker: WorkerId(2),
        name: "w1".to_owned(),
        left_seconds: Seconds::from_millis(left_ms),
    };
    assert_eq!(why(&mut desk, second), kept(5_000));
    assert_eq!(desk.pass(4_999), []);
    assert_eq!(why(&mut desk, second), kept(1));
    assert_eq!(desk.pass(1), []);
    assert_eq!(why(&mut desk, second), Reason::NoWorker, "it did not come, and nobody else waits");
    let (got, seen) = desk.ask_for(next, "q", true);
    assert_eq!((got, seen), (Got::Alone(FIRST + 1), vec![sent(next, "b").token(FIRST + 1)]));
}

/// Proves S2.32: what waits says how many workers were dropped from its queue, whether others are left or not, and which
/// of those that are left get one delivery at a time.
#[test]
fn why_a_message_waits_for_dropped_workers() {
    let mut desk = Desk::new();
    let (slow, client) = (desk.worker(3, &["q"]), desk.client());
    for (seq, text) in [(1, "a"), (2, "b")] {
        assert_eq!(desk.request(client, ask(seq, "q", text).within(200)), [turn(slow, text).left(Some(200))]);
        assert!(desk.pass(200).len() >= 2);
        assert_eq!(desk.fail(slow, text, "stopped"), []);
    }
    let (id, _) = desk.send(client, ask(3, "q", "c"));
    assert_eq!(why(&mut desk, id), Reason::WorkersDropped { workers: 1 });
    let busy = desk.joining(turno_proto::model::Slots::Limited(1), &["q"]);
    assert_eq!(busy.1, [sent(busy.0, "c")]);
    let (id, _) = desk.send(client, ask(4, "q", "d"));
    assert_eq!(
        why(&mut desk, id),
        Reason::AllBusy { workers: 1, used: 1, ahead: 0, probing: 0, dropped: 1, not_reading: 0, brokers: 0 }
    );
    assert_eq!(desk.consume(slow, "q"), Ok(vec![sent(slow, "d")]));
    let (id, _) = desk.send(client, ask(5, "q", "e"));
    assert_eq!(
        why(&mut desk, id),
        Reason::AllBusy { workers: 2, used: 2, ahead: 0, probing: 1, dropped: 0, not_reading: 0, brokers: 0 }
    );
    let mut standings: Vec<_> = desk.consumers("q").into_iter().map(|row| row.standing.state).collect();
    standings.sort_unstable();
    assert_eq!(standings, [StandingState::Consuming, StandingState::Probing]);
}

/// Proves S2.32: a holder on probation has slots free, so that it is not the one that is busy: its probe is the reason.
#[test]
fn why_a_message_waits_for_a_holder_on_probation() {
    let mut desk = Desk::new();
    let (holder, client) = (idle(&mut desk), desk.client());
    assert_eq!(desk.alone(holder, "q"), Got::Alone(FIRST));
    for (seq, text) in [(1, "a"), (2, "b")] {
        let handed = turn(holder, text).left(Some(200)).token(FIRST);
        assert_eq!(desk.request(client, ask(seq, "q", text).within(200)), [handed]);
        assert!(desk.pass(200).len() >= 2);
        assert_eq!(desk.fail(holder, text, "stopped"), []);
    }
    assert_eq!(desk.alone(holder, "q"), Got::Alone(FIRST + 1));
    assert_eq!(desk.send(client, ask(3, "q", "probe")).1, [sent(holder, "probe").token(FIRST + 1)]);
    let (id, _) = desk.send(client, ask(4, "q", "waits"));
    assert_eq!(
        why(&mut desk, id),
        Reason::AllBusy { workers: 1, used: 1, ahead: 0, probing: 1, dropped: 0, not_reading: 0, brokers: 0 }
    );
}

/// Proves S2.17: what waits in a broker that is drained for maintenance says that, and so it does of one that ends.
#[test]
fn why_a_message_waits_in_a_drained_broker() {
    let mut desk = Desk::new();
    let (holder, client) = (idle(&mut desk), desk.client());
    let (id, _) = desk.send(client, ask(1, "q", "a"));
    assert_eq!(why(&mut desk, id), Reason::NoWorker);
    assert!(desk.admin(AdminCall::Drain).0.is_ok());
    assert_eq!(why(&mut desk, id), Reason::Maintenance);
    assert_eq!(desk.consume(holder, "q"), Ok(vec![]), "whoever comes now waits with it");
    assert_eq!(why(&mut desk, id), Reason::Maintenance);
    assert!(desk.admin(AdminCall::Resume).0.is_ok());
    let since = Reason::AtWorker { worker: WorkerId(1), name: "w0".to_owned(), since_seconds: Seconds::from_millis(0) };
    assert_eq!(why(&mut desk, id), since);
    let (second, _) = desk.send(client, ask(2, "none", "b"));
    desk.say(Input::Drain { within_ms: 1_000 });
    assert_eq!(why(&mut desk, second), Reason::Draining);
}
