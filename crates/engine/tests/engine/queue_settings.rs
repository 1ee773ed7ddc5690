//! What an admin does to a queue as a whole.

use turno_engine::{
    DiskEffect, Effect, Input, NativeEffect, PeerEffect, Persist, Record, RecoveredMessage, Settings, StoreSettings,
};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{QueueSettings, QueueView};
use turno_proto::model::{Code, ConnId, Durability, Limits, Payload, limits};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, delivered, sent, turn, undelivered};

const IN_MEMORY: QueueSettings = QueueSettings {
    durable: Some(false),
    drop_after: None,
    weight: None,
    retry_delay_seconds: None,
    retry_delay_max_seconds: None,
};
const VOLATILE: Option<QueueSettings> = Some(IN_MEMORY);
const DURABLE: Option<QueueSettings> = Some(QueueSettings { durable: Some(true), ..IN_MEMORY });

fn purge(limit: u32) -> AdminCall {
    AdminCall::QueuePurge { queue: "q".to_owned(), limit }
}

fn portion(done: u64, left: u64) -> Result<AdminAnswer, Code> {
    Ok(AdminAnswer::Portion { done, left })
}

fn set(queue: &str, settings: Option<QueueSettings>) -> AdminCall {
    AdminCall::QueueSet { queue: queue.to_owned(), settings }
}

fn view(answer: Result<AdminAnswer, Code>) -> QueueView {
    match answer {
        Ok(AdminAnswer::Queue { queue }) => *queue,
        other => panic!("{other:?} is not a queue"),
    }
}

fn harness_with_store() -> Harness {
    Harness::with(Settings { store: Some(StoreSettings { run: 1, unix_ms: 0, last_serial: 0 }), ..Settings::default() })
}

fn persist(group: u64, op: Persist) -> Seen {
    Seen::Said(Effect::Disk(DiskEffect::Persist { group, op }))
}

fn record() -> Record {
    Record {
        queue: "q".parse().expect("a good name"),
        priority: 4,
        cost: 1,
        retries: 9,
        born_unix_ms: 0,
        deadline_unix_ms: None,
        due_unix_ms: None,
        payload: Payload::default(),
    }
}

/// How the broker answers a send, and what it stores.
fn send(harness: &mut Harness, client: ConnId, text: &str) -> (Option<Durability>, bool) {
    let effects = harness.try_send(client, ask(1, "q", text));
    let durability = effects.iter().find_map(|seen| match seen {
        Seen::Said(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Stored { durability, .. }, .. })) => {
            Some(*durability)
        }
        _ => None,
    });
    (durability, effects.iter().any(|seen| matches!(seen, Seen::Said(Effect::Disk(DiskEffect::Persist { .. })))))
}

/// A purge ends what waits, next first; what runs and what is dead stays, and callers hear of it.
#[test]
fn a_purge_removes_what_waits() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    harness.send(client, ask(1, "q", "dead"));
    harness.fail_for_good(worker, "dead", "no");
    assert_eq!(harness.request(client, ask(2, "q", "runs")), [turn(worker, "runs")]);
    harness.send(client, ask(3, "q", "a"));
    harness.request(client, ask(4, "q", "b"));
    harness.request(client, ask(5, "q", "c").no_reply());
    harness.send(client, ask(6, "q", "urgent").priority(9));
    assert_eq!(harness.admin(purge(0)), (portion(0, 4), vec![]));
    assert_eq!(harness.admin(purge(2)), (portion(2, 2), vec![]), "the urgent one, and a");
    let [b, c] = [4, 5].map(|seq| undelivered(client, seq, Code::Cancelled));
    assert_eq!(harness.admin(purge(u32::MAX)), (portion(2, 0), vec![b, c]));
    let queue = harness.queue("q");
    assert_eq!((queue.ready, queue.in_flight, queue.dead), (0, 1, 1));
    assert_eq!(harness.counters().cancelled, 4);
    assert_eq!(harness.admin(purge(9)), (portion(0, 0), vec![]));
    assert_eq!(harness.look(AdminCall::QueuePurge { queue: "nowhere".to_owned(), limit: 1 }), Err(Code::NotFound));
}

/// A long backlog goes in portions, and with the last message a queue that nobody uses is forgotten.
#[test]
fn a_purge_comes_in_portions() {
    let mut harness = harness_with_store();
    let many = limits::PORTION_MAX;
    for serial in 1..=u64::from(many) + 1 {
        harness.engine.recover(RecoveredMessage { serial, record: record(), mark: None });
    }
    assert_eq!(harness.admin(purge(u32::MAX)).0, portion(u64::from(many), 1));
    assert_eq!(harness.admin(purge(u32::MAX)).0, portion(1, 0));
    assert_eq!(harness.look(purge(1)), Err(Code::NotFound), "the queue is forgotten");
    assert_eq!((harness.status().queues, harness.status().bytes), (0, 0));
}

/// A costly head keeps a worker; when it is purged, what comes behind it has the slots.
#[test]
fn a_purged_head_gives_its_worker_free() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q", "other"]), harness.client());
    harness.send(client, ask(1, "q", "runs"));
    harness.send(client, ask(2, "q", "costly").cost(2));
    assert_eq!(harness.request(client, ask(3, "other", "x").no_reply()), []);
    let (answer, seen) = harness.admin(purge(1));
    assert_eq!((answer, seen), (portion(1, 0), vec![turn(worker, "x").of("other").one_way(), delivered(client, 3)]));
}

/// Proves I1: what a purge removes is removed from the disk before the admin hears of it.
#[test]
fn a_purge_reaches_the_disk() {
    let mut harness = harness_with_store();
    let client = harness.client();
    harness.try_send(client, ask(1, "q", "a"));
    harness.try_send(client, ask(2, "q", "b"));
    harness.say(Input::Persisted { group: 1 });
    assert_eq!(harness.look(purge(0)), portion(0, 1), "what is being stored does not wait yet");
    let (answer, seen) = harness.admin(purge(9));
    let remove = |group, serial| persist(group, Persist::Remove { serial, marked: false });
    let Some(Seen::Said(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Stored { seq: 2, .. }, .. }))) =
        seen.get(1)
    else {
        panic!("{seen:?}")
    };
    assert_eq!((answer, &seen[0]), (portion(1, 0), &remove(3, 1)));
    assert_eq!(harness.queue("q").ready, 1, "it came after the purge");
    let refused = |group| Input::Refused { group, code: Code::OverDisk };
    assert_eq!(harness.admin_then(purge(9), refused).0, Err(Code::OverDisk));
}

/// Sends to a volatile queue are kept in memory alone; durable is the default, and what is stored stays stored.
#[test]
fn a_queue_is_durable_or_volatile() {
    let mut harness = harness_with_store();
    let client = harness.client();
    assert_eq!(send(&mut harness, client, "a"), (None, true));
    harness.say(Input::Persisted { group: 1 });
    assert!(harness.queue("q").durable && harness.queue("q").settings.is_none());

    let queue = || "q".parse().expect("a good name");
    let (answer, seen) = harness.admin(set("q", VOLATILE));
    assert_eq!(seen, [persist(2, Persist::SetQueue { queue: queue(), settings: IN_MEMORY })]);
    let shown = view(answer);
    assert_eq!((shown.durable, shown.settings, shown.ready), (false, VOLATILE, 1));
    assert_eq!(send(&mut harness, client, "b"), (Some(Durability::Memory), false));
    assert_eq!(harness.engine.held_in_memory(), 1, "the first one is on disk all the same");

    assert!(view(harness.admin(set("q", DURABLE)).0).durable);
    assert_eq!(send(&mut harness, client, "c"), (None, true));
    harness.say(Input::Persisted { group: 4 });
    let (answer, seen) = harness.admin(set("q", None));
    assert_eq!(seen, [persist(5, Persist::UnsetQueue { queue: queue() })]);
    assert_eq!((view(answer).settings, harness.queue("q").durable), (None, true));
    assert_eq!(harness.queue("q").ready, 3);
}

/// A setting holds once it is on disk, and not at all if it does not get there.
#[test]
fn a_setting_holds_once_it_is_stored() {
    let mut harness = harness_with_store();
    let client = harness.client();
    harness.handle(client, "q");
    let admin = ConnId { index: 77, generation: 1 };
    harness.say(Input::Admin { conn: admin, seq: 1, call: set("q", VOLATILE) });
    assert_eq!(harness.queue("q").settings, None);
    let told = harness.say(Input::Refused { group: 1, code: Code::OverDisk });
    assert_eq!(
        told,
        [Seen::Said(Effect::Peer(PeerEffect::Answer { conn: admin, seq: 1, result: Err(Code::OverDisk) }))]
    );
    assert_eq!(harness.queue("q").settings, None);
    assert_eq!(send(&mut harness, client, "a"), (None, true));
}

/// A queue with settings of its own is there before its first message and after its last one; without them it is
/// forgotten as every other.
#[test]
fn a_queue_with_settings_is_not_forgotten() {
    let mut harness = harness_with_store();
    assert_eq!(view(harness.admin(set("q", VOLATILE)).0).name, "q");
    let client = harness.client();
    assert_eq!(send(&mut harness, client, "a"), (Some(Durability::Memory), false));
    harness.leave(client);
    assert_eq!(harness.admin(purge(9)), (portion(1, 0), vec![]));
    assert_eq!(harness.queue("q").settings, VOLATILE);
    assert_eq!(view(harness.admin(set("q", None)).0).settings, None);
    assert_eq!(harness.look(AdminCall::QueueShow { queue: "q".to_owned() }), Err(Code::NotFound));
    assert_eq!(harness.look(set("q", None)), Err(Code::NotFound));
}

/// Settings outlive the broker as messages do.
#[test]
fn settings_come_back_at_the_start() {
    let mut harness = harness_with_store();
    harness.engine.recover_queue("q".parse().expect("a good name"), IN_MEMORY);
    harness.engine.sanity_check();
    assert_eq!((harness.queue("q").settings, harness.queue("q").durable), (VOLATILE, false));
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(worker, "a")]);
}

/// A broker without a disk can promise none: its queues are volatile, and may be told so.
#[test]
fn without_a_disk_no_queue_is_durable() {
    let mut harness =
        Harness::with(Settings { limits: Limits { queues_max: 1, ..Limits::default() }, ..Settings::default() });
    assert_eq!(harness.look(set("q", DURABLE)), Err(Code::NoStore));
    let (answer, seen) = harness.admin(set("q", VOLATILE));
    assert_eq!((view(answer).durable, seen), (false, vec![]));
    assert_eq!(harness.look(set("r", VOLATILE)), Err(Code::TooManyQueues));
    assert_eq!(harness.look(set("a b", VOLATILE)), Err(Code::BadName));
    assert_eq!(view(harness.look(set("q", None))).settings, None);
}

/// A call changes what it names and leaves the rest, also while another is on its way to the disk.
#[test]
fn settings_are_changed_one_by_one() {
    let mut harness = harness_with_store();
    let admin = harness.client();
    let patient = QueueSettings { drop_after: Some(5), ..QueueSettings::default() };
    let heavy = QueueSettings { weight: Some(7), ..QueueSettings::default() };
    let calls = [(1, VOLATILE, IN_MEMORY), (2, Some(patient), QueueSettings { drop_after: Some(5), ..IN_MEMORY })];
    for (group, change, settings) in calls {
        let queue = "q".parse().expect("a good name");
        let stored = persist(group, Persist::SetQueue { queue, settings });
        assert_eq!(harness.say(Input::Admin { conn: admin, seq: 1, call: set("q", change) }), [stored]);
    }
    harness.say(Input::Persisted { group: 1 });
    harness.say(Input::Persisted { group: 2 });
    let all = QueueSettings { drop_after: Some(5), weight: Some(7), ..IN_MEMORY };
    let shown = view(harness.admin(set("q", Some(heavy))).0);
    assert_eq!((shown.settings, shown.drop_after, shown.weight), (Some(all), 5, 7));
    let shown = view(harness.admin(set("q", Some(QueueSettings { drop_after: Some(0), ..heavy }))).0);
    assert_eq!((shown.drop_after, shown.durable), (0, false));
    // The group of the call that takes all back is the fifth.
    harness.say(Input::Admin { conn: admin, seq: 1, call: set("q", None) });
    let again = harness.say(Input::Admin { conn: admin, seq: 2, call: set("q", Some(heavy)) });
    let queue = "q".parse().expect("a good name");
    assert_eq!(again, [persist(6, Persist::SetQueue { queue, settings: heavy })], "nothing is left of the others");
}

/// Numbers out of range are refused and change nothing.
#[test]
fn settings_out_of_range_are_refused() {
    let mut harness = Harness::new();
    let none = QueueSettings::default();
    for (settings, expected) in [
        (QueueSettings { weight: Some(0), ..none }, Some(Code::BadCall)),
        (QueueSettings { weight: Some(1), ..none }, None),
        (QueueSettings { weight: Some(100), ..none }, None),
        (QueueSettings { weight: Some(101), ..none }, Some(Code::BadCall)),
        (QueueSettings { drop_after: Some(1_000), ..none }, None),
        (QueueSettings { drop_after: Some(1_001), ..none }, Some(Code::BadCall)),
    ] {
        assert_eq!(harness.admin(set("q", Some(settings))).0.err(), expected, "{settings:?}");
    }
    assert_eq!((harness.queue("q").weight, harness.queue("q").drop_after), (100, 1_000));
}
