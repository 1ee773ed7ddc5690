//! A worker at which deliveries expire is dropped from their queue, told so, and comes back on probation.

use turno_engine::{Effect, Input, NativeEffect, PeerEffect, Settings};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::view::{QueueSettings, Standing, StandingState};
use turno_proto::model::{Code, ConnId, Moment};

use crate::harness::{Harness, START_MS, ask};
use crate::seen::{Seen, reply, sent, turn, undelivered};

const SHORT_MS: u32 = 200;

fn dropped(worker: ConnId, handle: u32) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Native {
        conn: worker,
        effect: NativeEffect::CancelQueue { handle, reason: Code::Dropped },
    }))
}

/// A request that goes to that worker at once and expires there; what was told besides its end.
fn expire(harness: &mut Harness, client: ConnId, worker: ConnId, queue: &str, seq: u32) -> Vec<Seen> {
    let text = format!("m{seq}");
    let handed = turn(worker, &text).of(queue).left(Some(SHORT_MS));
    assert_eq!(harness.request(client, ask(seq, queue, &text).within(SHORT_MS)), [handed]);
    let mut seen = harness.pass(SHORT_MS.into());
    let end = [undelivered(client, seq, Code::TimedOut), harness.stopped(worker, &text, Code::TimedOut)];
    assert_eq!(seen.drain(..2).collect::<Vec<Seen>>(), end);
    assert_eq!(harness.fail(worker, &text, "stopped"), [], "late, and only the slot comes back");
    seen
}

/// Lets the worker be dropped from the queue.
fn expire_twice(harness: &mut Harness, client: ConnId, worker: ConnId, queue: &str, seq: u32) {
    let handle = harness.handle(worker, queue);
    assert_eq!(expire(harness, client, worker, queue, seq), []);
    assert_eq!(expire(harness, client, worker, queue, seq + 1), [dropped(worker, handle)]);
}

/// How a worker stands that was dropped at that moment, after two deliveries.
fn dropped_after_two(at_ms: u64, reason: &str) -> Standing {
    Standing {
        state: StandingState::Dropped,
        expired: 2,
        dropped_at: Some(Moment::from_unix_ms(START_MS + at_ms)),
        reason: Some(reason.to_owned()),
    }
}

/// How a worker stands in the queue "q": what it comes to, and how many expired in a row.
fn standing(harness: &mut Harness, worker: ConnId) -> Option<(StandingState, u32)> {
    let name = format!("w{}", worker.index);
    let row = harness.consumers("q").into_iter().find(|row| row.name == name).expect("it is listed");
    let Standing { state, expired, .. } = row.standing;
    (state != StandingState::Consuming).then_some((state, expired))
}

/// Proves S2.29, S2.30 and S2.32: one expired delivery is not enough, two in a row are; the worker is told on its own
/// handle, keeps its other queues and its connection, and the message after it waits for others.
#[test]
fn two_in_a_row_drop_the_worker_from_that_queue_alone() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["other", "q"]), harness.client());
    assert_eq!(expire(&mut harness, client, worker, "q", 1), []);
    assert_eq!(standing(&mut harness, worker), Some((StandingState::Suspect, 1)));
    assert_eq!(expire(&mut harness, client, worker, "q", 2), [dropped(worker, 1)]);
    assert_eq!(
        (harness.counters().dropped, harness.queue("q").counters.dropped, harness.counters().expired),
        (1, 1, 2)
    );
    assert_eq!(harness.queue("q").consumers, 0);
    assert_eq!(harness.request(client, ask(3, "q", "waits")), []);
    assert_eq!(harness.request(client, ask(4, "other", "x")), [turn(worker, "x").of("other")]);
    assert_eq!(harness.reply(worker, "x", "r"), [reply(client, 4, "r")]);
}

/// Proves S2.30: a reply in between resets the count, and so do ACK and FAIL; a late one does not.
#[test]
fn a_word_in_time_clears_the_worker() {
    type Message = fn(&mut Harness, ConnId, &str) -> Vec<Seen>;
    let messages: [Message; 3] = [
        |harness, worker, text| harness.reply(worker, text, "r"),
        |harness, worker, text| harness.ack(worker, text),
        |harness, worker, text| harness.fail_for_good(worker, text, "no"),
    ];
    for message in messages {
        let mut harness = Harness::new();
        let (worker, client) = (harness.worker(1, &["q"]), harness.client());
        for round in 0..5 {
            assert_eq!(expire(&mut harness, client, worker, "q", 10 * round + 1), []);
            assert_eq!(harness.request(client, ask(10 * round + 2, "q", "ok")), [turn(worker, "ok")]);
            assert_eq!(message(&mut harness, worker, "ok").len(), 1);
            assert_eq!(standing(&mut harness, worker), None);
        }
        expire_twice(&mut harness, client, worker, "q", 100);
    }
}

/// Proves S2.31: what expires in the backlog counts against nobody, however much of it.
#[test]
fn expiry_in_the_backlog_counts_for_nothing() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "long")), [turn(worker, "long")]);
    for seq in 2..10 {
        assert_eq!(harness.request(client, ask(seq, "q", "x").within(SHORT_MS)), []);
        assert_eq!(harness.pass(SHORT_MS.into()), [undelivered(client, seq, Code::TimedOut)]);
    }
    assert_eq!(standing(&mut harness, worker), None);
    assert_eq!(harness.reply(worker, "long", "r"), [reply(client, 1, "r")]);
}

/// A request of whose time the backlog took more than half counts against nobody either; half is the worker's.
#[test]
fn time_that_the_backlog_took_is_not_the_workers() {
    for (waits_ms, counts) in [(99, true), (100, true), (101, false), (199, false)] {
        let mut harness = Harness::new();
        let (worker, client) = (harness.worker(1, &["q"]), harness.client());
        assert_eq!(harness.request(client, ask(1, "q", "long")), [turn(worker, "long")]);
        assert_eq!(harness.request(client, ask(2, "q", "x").within(SHORT_MS)), []);
        assert_eq!(harness.pass(waits_ms), []);
        let left = SHORT_MS - u32::try_from(waits_ms).expect("below 200");
        let told = [reply(client, 1, "r"), turn(worker, "x").left(Some(left))];
        assert_eq!(harness.reply(worker, "long", "r"), told);
        let told = [undelivered(client, 2, Code::TimedOut), harness.stopped(worker, "x", Code::TimedOut)];
        assert_eq!(harness.pass(left.into()), told);
        assert_eq!(standing(&mut harness, worker), counts.then_some((StandingState::Suspect, 1)), "{waits_ms}");
    }
}

/// Proves S2.31: the threshold is the queue's own, or the broker's; 0 is never.
#[test]
fn the_threshold_is_a_setting() {
    for (of_broker, of_queue, expected) in
        [(2, None, 2), (3, None, 3), (0, Some(1), 1), (2, Some(0), 0), (2, Some(4), 4)]
    {
        let mut harness = Harness::with(Settings { drop_after: of_broker, ..Settings::default() });
        if let Some(drop_after) = of_queue {
            let settings = Some(QueueSettings { drop_after: Some(drop_after), ..QueueSettings::default() });
            harness.admin(AdminCall::QueueSet { queue: "q".to_owned(), settings }).0.expect("it may be set");
        }
        let (worker, client) = (harness.worker(1, &["q"]), harness.client());
        for seq in 1..=6 {
            let told = expire(&mut harness, client, worker, "q", seq);
            assert_eq!(!told.is_empty(), seq == expected, "{of_broker} {of_queue:?}: {seq}");
            if seq == expected {
                break;
            }
        }
        assert_eq!(harness.counters().dropped, u64::from(expected > 0));
    }
}

/// Leases that run out count like deadlines; the message goes on to another worker, or waits.
#[test]
fn a_lease_that_runs_out_counts() {
    let mut harness = Harness::with(Settings { lease_ms: Some(1_000), ..Settings::default() });
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(worker, "a")]);
    let told = harness.stopped(worker, "a", Code::LeaseExpired);
    assert_eq!(harness.pass(1_000), [told, sent(worker, "a").attempt(2)], "once is not enough");
    let told = harness.stopped(worker, "a", Code::LeaseExpired);
    assert_eq!(harness.pass(1_000), [told, dropped(worker, 0)]);
    let row = &harness.consumers("q")[0];
    assert_eq!((row.turn, row.standing.clone()), (None, dropped_after_two(2_000, "lease_expired")));
    assert_eq!(harness.consume(worker, "q"), Ok(vec![sent(worker, "a").attempt(3)]));
    assert_eq!(harness.ack(worker, "a"), []);
}

/// Proves S2.32: what it still holds of that queue it may settle, and that its connection was never in question.
#[test]
fn what_it_holds_it_may_still_settle() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(3, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "long")), [turn(worker, "long")]);
    expire_twice(&mut harness, client, worker, "q", 2);
    assert_eq!(harness.reply(worker, "long", "r"), [reply(client, 1, "r")]);
    assert_eq!(standing(&mut harness, worker), Some((StandingState::Dropped, 2)), "that was from before");
}

/// Proves S2.32: a dropped worker may consume again. It gets a single probe at a time, however many slots it has,
/// until it settles one.
#[test]
fn it_comes_back_with_one_probe_at_a_time() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(3, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "before")), [turn(worker, "before")]);
    expire_twice(&mut harness, client, worker, "q", 2);
    for text in ["a", "b", "c"] {
        assert_eq!(harness.send(client, ask(9, "q", text)).1, []);
    }
    assert_eq!(harness.consume(worker, "q"), Ok(vec![sent(worker, "a")]));
    assert_eq!(harness.consume(worker, "q"), Err(Code::AlreadyConsuming));
    assert_eq!(standing(&mut harness, worker), Some((StandingState::Probing, 2)));
    assert_eq!(harness.queue("q").slots_free, 0, "its other slots are not for this queue");
    assert_eq!(
        harness.reply(worker, "before", "r"),
        [reply(client, 1, "r")],
        "that was from before, and proves nothing"
    );
    assert_eq!(standing(&mut harness, worker), Some((StandingState::Probing, 2)));
    assert_eq!(harness.ack(worker, "a"), [sent(worker, "b"), sent(worker, "c")]);
    assert_eq!(standing(&mut harness, worker), None);
    assert_eq!(expire(&mut harness, client, worker, "q", 10), [], "one alone is not enough again");
}

/// A probe that expires drops the worker again at once; one that is cancelled is followed by another.
#[test]
fn a_probe_that_expires_drops_it_again() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    expire_twice(&mut harness, client, worker, "q", 1);
    assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
    assert_eq!(harness.request(client, ask(3, "q", "probe")), [turn(worker, "probe")]);
    assert_eq!(harness.request(client, ask(4, "q", "next")), []);
    let told = [undelivered(client, 3, Code::Cancelled), harness.stopped(worker, "probe", Code::Cancelled)];
    assert_eq!(harness.cancel(client, 3), told);
    assert_eq!(harness.fail(worker, "probe", "stopped"), [turn(worker, "next")]);
    assert_eq!(harness.reply(worker, "next", "r"), [reply(client, 4, "r")]);

    expire_twice(&mut harness, client, worker, "q", 5);
    for seq in 7..10 {
        assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
        assert_eq!(expire(&mut harness, client, worker, "q", seq), [dropped(worker, 0)], "{seq}");
    }
    assert_eq!(harness.worker_view("w0").dropped, 5);
}

/// Neither leaving nor a patient queue is a way around a probe by accident: leaving keeps it, patience forgives.
#[test]
fn leaving_does_not_clear_it_but_patience_does() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    expire_twice(&mut harness, client, worker, "q", 1);
    assert_eq!(harness.cancel_queue(worker, "q"), Err(Code::NotFound), "it is out already");
    assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
    assert_eq!(harness.cancel_queue(worker, "q"), Ok(vec![]));
    assert_eq!(standing(&mut harness, worker), Some((StandingState::Dropped, 2)));
    let settings = Some(QueueSettings { drop_after: Some(0), ..QueueSettings::default() });
    harness.admin(AdminCall::QueueSet { queue: "q".to_owned(), settings }).0.expect("it may be set");
    assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
    assert_eq!(standing(&mut harness, worker), None);
}

/// The handle of a queue it was dropped from may be given to another queue; then nothing is left of it.
#[test]
fn a_handle_given_to_another_queue_ends_it() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    expire_twice(&mut harness, client, worker, "q", 1);
    assert_eq!(harness.open(worker, 0, "r"), Ok(vec![]));
    assert_eq!(harness.worker_view("w0").standings, Some(vec![]));
    assert_eq!(harness.consumers("q"), []);
}

/// A worker that deregisters, or is lost, is a new one when it returns.
#[test]
fn a_new_registration_begins_anew() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    expire_twice(&mut harness, client, worker, "q", 1);
    assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
    assert_eq!(harness.request(client, ask(3, "q", "probe")), [turn(worker, "probe")]);
    assert_eq!(harness.deregister(worker), Ok(vec![]));
    assert_eq!(harness.reply(worker, "probe", "r"), [reply(client, 3, "r")]);
    assert_eq!(harness.register(worker, turno_proto::model::Slots::Limited(2)), Ok(vec![]));
    assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
    assert_eq!(standing(&mut harness, worker), None);
    expire_twice(&mut harness, client, worker, "q", 4);
    assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
    assert_eq!(harness.request(client, ask(6, "q", "probe")), [turn(worker, "probe")]);
    assert_eq!(harness.leave(worker), [undelivered(client, 6, Code::WorkerLost)]);
}

/// A costly head is not kept for a worker that has its probe, and a worker that was kept for it is free when dropped.
#[test]
fn a_costly_head_waits_for_no_one_on_probation() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q", "other"]), harness.client());
    expire_twice(&mut harness, client, worker, "q", 1);
    assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
    assert_eq!(harness.request(client, ask(3, "q", "probe").within(SHORT_MS)), [turn(worker, "probe").left(Some(200))]);
    assert_eq!(harness.send(client, ask(4, "q", "dear").cost(2)).1, []);
    assert_eq!(
        harness.request(client, ask(5, "other", "x")),
        [turn(worker, "x").of("other")],
        "its room is for others"
    );
    let told = [undelivered(client, 3, Code::TimedOut), harness.stopped(worker, "probe", Code::TimedOut)];
    assert_eq!(harness.pass(200), [&told[..], &[dropped(worker, 0)]].concat());

    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q", "other"]), harness.client());
    assert_eq!(expire(&mut harness, client, worker, "q", 1), []);
    assert_eq!(harness.request(client, ask(2, "q", "a").within(SHORT_MS)), [turn(worker, "a").left(Some(200))]);
    assert_eq!(harness.send(client, ask(3, "q", "dear").cost(2)).1, []);
    assert_eq!(harness.request(client, ask(4, "other", "x")), [], "kept for the costly head");
    let told = [undelivered(client, 2, Code::TimedOut), harness.stopped(worker, "a", Code::TimedOut)];
    assert_eq!(
        harness.pass(200),
        [&told[..], &[dropped(worker, 0), turn(worker, "x").of("other").left(Some(29_800))]].concat()
    );
}

/// A worker of many queues stands in one rota for all of them. On probation it does so for the others, and the queue
/// it probes is none of the starved.
#[test]
fn a_worker_of_many_queues_is_dropped_from_one() {
    for own_rotas_max in [0, 1, 8] {
        let mut harness = Harness::with(Settings { own_rotas_max, ..Settings::default() });
        let (worker, client) = (harness.worker(1, &["a", "q", "z"]), harness.client());
        let pair = harness.worker(1, &["a", "z"]);
        assert_eq!(harness.request(client, ask(1, "a", "t")), [turn(worker, "t").of("a")]);
        assert_eq!(harness.request(client, ask(2, "a", "u")), [turn(pair, "u").of("a")]);
        assert_eq!(harness.reply(worker, "t", "r"), [reply(client, 1, "r")]);
        expire_twice(&mut harness, client, worker, "q", 3);
        for (seq, queue) in [(5, "q"), (6, "q"), (7, "a"), (8, "z"), (9, "a")] {
            let seen = harness.request(client, ask(seq, queue, &format!("m{seq}")));
            assert_eq!(seen, if seq == 7 { vec![turn(worker, "m7").of("a")] } else { vec![] }, "{own_rotas_max}");
        }
        assert_eq!(harness.consume(worker, "q"), Ok(vec![]));
        let mut order = Vec::new();
        let mut last = "m7".to_owned();
        for _ in 0..4 {
            let seen = harness.reply(worker, &last, "r");
            let [_, Seen::Turn(next)] = &seen[..] else { panic!("{seen:?}") };
            last = String::from_utf8_lossy(&next.payload.bytes).into_owned();
            order.push(next.queue.clone());
        }
        assert_eq!(order[0], "q", "{own_rotas_max}: {order:?}");
        order.sort();
        assert_eq!(order, ["a", "q", "q", "z"], "{own_rotas_max}");
        assert_eq!(standing(&mut harness, worker), None);
    }
}

/// Proves S2.29: an admin sees who was dropped, when and why.
#[test]
fn an_admin_sees_who_was_dropped() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    expire_twice(&mut harness, client, worker, "q", 1);
    assert_eq!(harness.pass(1_234), []);
    let shown = harness.worker_view("w0");
    let expected = dropped_after_two(400, "timed_out");
    let listed: Vec<_> =
        shown.standings.iter().flatten().map(|view| (view.queue.as_str(), view.standing.clone())).collect();
    assert_eq!((listed, shown.dropped), (vec![("q", expected.clone())], 1));
    assert_eq!(shown.queues, Vec::<String>::new());
    let row = harness.consumers("q").remove(0);
    assert_eq!((row.turn, row.standing, row.in_flight), (None, expected, 0));
    assert_eq!(harness.say(Input::PeerClosing { conn: worker }), []);
}

/// Proves I11: a worker with a shared rota that is on probation in two queues is given what waits in the second if nobody can take the
/// head of the first.
#[test]
fn on_probation_in_two_queues() {
    let mut harness = Harness::with(Settings { own_rotas_max: 1, drop_after: 1, ..Settings::default() });
    let (worker, client) = (harness.worker(1, &["a", "b", "c"]), harness.client());
    for (seq, queue) in [(1, "a"), (2, "b")] {
        let handle = harness.handle(worker, queue);
        assert_eq!(expire(&mut harness, client, worker, queue, seq), [dropped(worker, handle)]);
        assert_eq!(harness.consume(worker, queue), Ok(vec![]));
    }
    assert_eq!(harness.request(client, ask(3, "c", "busy")), [turn(worker, "busy").of("c")]);
    assert_eq!(harness.request(client, ask(4, "a", "too large for it").cost(2)), []);
    assert_eq!(harness.request(client, ask(5, "b", "waits")), []);
    assert_eq!(harness.reply(worker, "busy", "r"), [reply(client, 3, "r"), turn(worker, "waits").of("b")]);
}

/// Proves I11: a worker that shares its queues with another, and is dropped from one of them, has its room in the others at once.
#[test]
fn one_of_a_shared_rota_that_is_dropped_has_room_in_its_other_queues() {
    let mut harness = Harness::with(Settings { own_rotas_max: 1, drop_after: 1, ..Settings::default() });
    let client = harness.client();
    let [one, other] = [(); 2].map(|()| harness.worker(2, &["a", "b", "c"]));
    for (seq, worker) in [(1, one), (2, other)] {
        let text = format!("m{seq}");
        assert_eq!(harness.request(client, ask(seq, "a", &text)), [turn(worker, &text).of("a")]);
        assert_eq!(harness.reply(worker, &text, "r"), [reply(client, seq, "r")]);
    }
    let late = turn(one, "late").of("a").left(Some(SHORT_MS));
    assert_eq!(harness.request(client, ask(3, "a", "late").within(SHORT_MS)), [late]);
    let handle = harness.handle(one, "a");
    let end =
        [undelivered(client, 3, Code::TimedOut), harness.stopped(one, "late", Code::TimedOut), dropped(one, handle)];
    assert_eq!(harness.pass(SHORT_MS.into()), end);
    assert_eq!(harness.request(client, ask(4, "b", "wide").cost(2)), [turn(other, "wide").of("b").cost(2)]);
    assert_eq!(harness.request(client, ask(5, "b", "next")), [turn(one, "next").of("b")], "it has stopped nothing yet");
}
