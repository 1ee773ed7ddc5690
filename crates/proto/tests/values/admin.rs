//! Admin calls and answers.

use bytes::Bytes;
use turno_proto::model::job::JobId;
use turno_proto::model::view::{
    Because, BrokerView, ConsumerView, Counters, DeadView, DiskView, ExclusiveView, Explanation, HoldingView, JobsView,
    MemoryView, MessageKind, MessageState, MessageView, QueueSettings, QueueView, Reason, Standing, StandingState,
    StandingView, WorkerKind, WorkerState, WorkerTaskView, WorkerView,
};
use turno_proto::model::{Moment, Seconds, Slots, TaskId, Token, WorkerId};
use turno_proto::native::Frame;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

const FIRST_ID: &str = "11223344556600000000000100000000";
/// Term 1,790,000,000,000, counter 3.
const TOKEN: Token = Token(1_790_000_000_000 << 20 | 3);
const NOON: u64 = 1_794_744_000_000;
const SECOND_ID: &str = "ffeeddccbbaa00000000002a00000007";

const VOLATILE: QueueSettings = QueueSettings {
    durable: Some(false),
    drop_after: None,
    weight: None,
    retry_delay_seconds: None,
    retry_delay_max_seconds: None,
};
const PATIENT: QueueSettings = QueueSettings {
    durable: None,
    drop_after: Some(300),
    weight: Some(100),
    retry_delay_seconds: Some(Seconds::from_millis(250)),
    retry_delay_max_seconds: Some(Seconds::from_millis(3_600_000)),
};

pub(super) fn calls() -> Vec<(&'static str, Frame<'static>)> {
    let queue = || "emails".to_owned();
    let worker = || "w1".to_owned();
    let number = || "42".to_owned();
    let id = || FIRST_ID.to_owned();
    let table = vec![
        ("call_status", AdminCall::Status),
        ("call_drain", AdminCall::Drain),
        ("call_resume", AdminCall::Resume),
        ("call_queue_ls", AdminCall::QueueLs { after: None, limit: 100 }),
        ("call_queue_ls_after", AdminCall::QueueLs { after: Some(queue()), limit: 1_000 }),
        ("call_queue_show", AdminCall::QueueShow { queue: queue() }),
        ("call_queue_consumers", AdminCall::QueueConsumers { queue: queue() }),
        ("call_queue_set", AdminCall::QueueSet { queue: queue(), settings: Some(VOLATILE) }),
        ("call_queue_set_drop_after", AdminCall::QueueSet { queue: queue(), settings: Some(PATIENT) }),
        ("call_queue_set_default", AdminCall::QueueSet { queue: queue(), settings: None }),
        ("call_queue_purge", AdminCall::QueuePurge { queue: queue(), limit: 1_000 }),
        ("call_dead_ls", AdminCall::DeadLs { queue: queue(), after: None, limit: 100 }),
        ("call_dead_ls_after", AdminCall::DeadLs { queue: queue(), after: Some(id()), limit: 100 }),
        ("call_dead_show", AdminCall::DeadShow { queue: queue(), id: id(), from: 262_144 }),
        ("call_dead_retry", AdminCall::DeadRetry { queue: queue(), ids: vec![id(), SECOND_ID.to_owned()], oldest: 0 }),
        ("call_dead_retry_all", AdminCall::DeadRetry { queue: queue(), ids: Vec::new(), oldest: 1_000 }),
        ("call_dead_purge", AdminCall::DeadPurge { queue: queue(), ids: vec![id()], oldest: 0 }),
        ("call_worker_ls", AdminCall::WorkerLs { after: None, limit: 100 }),
        ("call_worker_ls_after", AdminCall::WorkerLs { after: Some(42), limit: 100 }),
        ("call_worker_show", AdminCall::WorkerShow { worker: worker() }),
        ("call_worker_resize", AdminCall::WorkerResize { worker: number(), slots: Slots::Limited(4) }),
        ("call_worker_resize_unlimited", AdminCall::WorkerResize { worker: number(), slots: Slots::Unlimited }),
        ("call_worker_drain", AdminCall::WorkerDrain { worker: worker() }),
        ("call_worker_resume", AdminCall::WorkerResume { worker: worker() }),
        ("call_worker_stop", AdminCall::WorkerStop { worker: worker(), now: false }),
        ("call_worker_stop_now", AdminCall::WorkerStop { worker: worker(), now: true }),
        ("call_message_explain", AdminCall::MessageExplain { id: id() }),
        ("call_message_cancel", AdminCall::MessageCancel { id: id() }),
        ("call_message_retry", AdminCall::MessageRetry { id: id() }),
    ];
    table.into_iter().map(|(name, call)| (name, Frame::AdminCall { seq: 11, call })).collect()
}

pub(super) fn answers() -> Vec<(&'static str, Frame<'static>)> {
    let mut table = listings();
    table.extend(explanations());
    table.into_iter().map(|(name, answer)| (name, Frame::AdminAnswer { seq: 11, answer })).collect()
}

fn three_consumers() -> Vec<ConsumerView> {
    vec![
        consumer(),
        ConsumerView {
            worker: WorkerId(43),
            name: String::new(),
            slots: Slots::Unlimited,
            used: 0,
            free: Slots::Unlimited,
            turn: Some(2),
            ..consumer()
        },
        ConsumerView { worker: WorkerId(44), turn: None, in_flight: 0, standing: dropped(), ..consumer() },
    ]
}

fn listings() -> Vec<(&'static str, AdminAnswer)> {
    let consumers = three_consumers();
    let holder = ConsumerView { token: Some(TOKEN), ..consumer() };
    let waits = Standing { state: StandingState::Standby, ..Standing::default() };
    let standby = ConsumerView { worker: WorkerId(43), turn: None, waits: Some(1), standing: waits, ..consumer() };
    let settings = Some(QueueSettings { durable: Some(true), ..PATIENT });
    let shown_queue = QueueView { head: Some(vec![waiting()]), durable: true, settings, ..queue() };
    let exclusive = Some(ExclusiveView { token: TOKEN, worker: Some(WorkerId(42)) });
    let held_queue = QueueView { exclusive, waiters: 2, ..shown_queue.clone() };
    let dead_queue = QueueView { dead: 3, dead_bytes: 400, ..held_queue.clone() };
    let dead = DeadView { message: dead(), failure: "disk full".to_owned() };
    let shown_dead = AdminAnswer::DeadLetter {
        dead: Box::new(dead.clone()),
        headers: false,
        piece: Bytes::from_static(b"\x00\xffbody"),
    };
    let shown_worker = WorkerView {
        state: WorkerState::Draining,
        dropped: 1,
        standings: Some(vec![StandingView { queue: "emails".to_owned(), standing: dropped() }]),
        holds: Some(vec![running()]),
        ..worker()
    };
    let holding = vec![HoldingView { queue: "emails".to_owned(), token: TOKEN }];
    let lone_worker = WorkerView {
        exclusive: holding,
        waits_for: vec!["idle".to_owned()],
        dropped: 0,
        standings: Some(Vec::new()),
        ..shown_worker.clone()
    };
    let unread_worker = WorkerView { unread_bytes: 70_000, ..lone_worker.clone() };
    let job_worker = WorkerView { kind: WorkerKind::Job, queues: Vec::new(), slots_max: Some(10), ..worker() };
    let labelled_worker = WorkerView {
        labels: [("g".to_owned(), "yes".to_owned()), ("p".to_owned(), "night".to_owned())].into(),
        ..new_worker()
    };
    vec![
        ("answer_status", AdminAnswer::Status { broker: Box::new(broker()) }),
        ("answer_status_links", AdminAnswer::Status { broker: Box::new(linked_broker()) }),
        ("answer_status_ring", AdminAnswer::Status { broker: Box::new(broker_in_a_ring()) }),
        ("answer_status_memory", AdminAnswer::Status { broker: Box::new(broker_with_memory()) }),
        ("answer_queue_dead", AdminAnswer::Queue { queue: Box::new(dead_queue) }),
        ("answer_status_dead", AdminAnswer::Status { broker: Box::new(broker_with_dead_letters()) }),
        ("answer_queues", AdminAnswer::Queues { queues: vec![queue(), idle_queue()], next: Some("idle".to_owned()) }),
        ("answer_queues_none", AdminAnswer::Queues { queues: Vec::new(), next: None }),
        ("answer_queue", AdminAnswer::Queue { queue: Box::new(shown_queue) }),
        ("answer_consumers", AdminAnswer::Consumers { consumers, more: 0 }),
        ("answer_dead", AdminAnswer::DeadLetters { dead: vec![dead], next: Some(SECOND_ID.to_owned()) }),
        ("answer_dead_none", AdminAnswer::DeadLetters { dead: Vec::new(), next: None }),
        ("answer_dead_letter", shown_dead),
        ("answer_portion", AdminAnswer::Portion { done: 1_000, left: 70_000 }),
        ("answer_workers", AdminAnswer::Workers { workers: vec![worker(), new_worker()], next: Some(WorkerId(43)) }),
        ("answer_worker", AdminAnswer::Worker { worker: Box::new(shown_worker) }),
        ("answer_worker_labels", AdminAnswer::Worker { worker: Box::new(labelled_worker) }),
        ("answer_queue_exclusive", AdminAnswer::Queue { queue: Box::new(held_queue) }),
        ("answer_consumers_exclusive", AdminAnswer::Consumers { consumers: vec![holder, standby], more: 0 }),
        ("answer_consumers_more", AdminAnswer::Consumers { consumers: Vec::new(), more: 9_000 }),
        ("answer_worker_exclusive", AdminAnswer::Worker { worker: Box::new(lone_worker) }),
        ("answer_worker_unread", AdminAnswer::Worker { worker: Box::new(unread_worker) }),
        ("answer_worker_tasks", AdminAnswer::Worker { worker: Box::new(worker_with_tasks()) }),
        ("answer_worker_jobs", AdminAnswer::Worker { worker: Box::new(job_worker) }),
        ("answer_status_jobs", AdminAnswer::Status { broker: Box::new(broker_with_jobs()) }),
    ]
}

fn explanations() -> Vec<(&'static str, AdminAnswer)> {
    let stopping = MessageView { state: MessageState::Stopping, ..running() };
    let answered = MessageView { state: MessageState::Answered, ..running() };
    let at_worker =
        Reason::AtWorker { worker: WorkerId(42), name: "w1".to_owned(), since_seconds: Seconds::from_millis(1_500) };
    let name = || "w1".to_owned();
    let busy = |probing, dropped, not_reading, brokers| Reason::AllBusy {
        workers: 2,
        used: 20,
        ahead: 3,
        probing,
        dropped,
        not_reading,
        brokers,
    };
    let crossed = MessageView { worker: None, ..running() };
    let stopping_far = MessageView { worker: None, ..stopping.clone() };
    let came = MessageView { came_by: vec!["rb-1".to_owned(), "00000000002a".to_owned()], ..running() };
    let spread = MessageView { kind: MessageKind::Broadcast, cost: 0, ..crossed.clone() };
    let broker = || "5f3a9c0d21e4".to_owned();
    let far = || "rb-2".to_owned();
    let table = vec![
        ("answer_message_no_worker", waiting(), Reason::NoWorker),
        ("answer_message_workers_dropped", waiting(), Reason::WorkersDropped { workers: 2 }),
        (
            "answer_message_exclusive_busy",
            waiting(),
            Reason::ExclusiveBusy { worker: WorkerId(42), name: name(), used: 10, ahead: 3 },
        ),
        ("answer_message_not_free", waiting(), Reason::NotFree { in_flight: 1, waiters: 2 }),
        (
            "answer_message_kept_for",
            waiting(),
            Reason::KeptFor { worker: WorkerId(42), name: name(), left_seconds: Seconds::from_millis(4_500) },
        ),
        ("answer_message_workers_greeting", waiting(), Reason::WorkersGreeting { workers: 2 }),
        ("answer_message_workers_draining", waiting(), Reason::WorkersDraining { workers: 2 }),
        ("answer_message_all_busy", waiting(), busy(0, 0, 0, 0)),
        ("answer_message_all_busy_dropped", waiting(), busy(1, 4, 0, 0)),
        ("answer_message_all_busy_far", waiting(), busy(0, 0, 0, 2)),
        ("answer_message_all_busy_unread", waiting(), busy(0, 0, 1, 0)),
        ("answer_message_links_down", waiting(), Reason::LinksDown { down: 1, wanted: 2 }),
        ("answer_message_far_busy", waiting(), Reason::FarBusy { brokers: 2, used: 20, ahead: 3 }),
        ("answer_message_too_long", waiting(), Reason::TooLong { bytes: 70_000, largest: 65_536 }),
        ("answer_message_behind", waiting(), Reason::Behind { ahead: 3 }),
        ("answer_message_waits_for_memory", waiting(), Reason::WaitsForMemory { ahead: 3 }),
        ("answer_message_too_costly", waiting(), Reason::TooCostly { cost: 300, largest: 10 }),
        ("answer_message_reserved", waiting(), Reason::Reserved { worker: WorkerId(42), cost: 3, free: 1 }),
        ("answer_message_at_worker", running(), at_worker.clone()),
        ("answer_message_came", came, at_worker),
        (
            "answer_message_at_link",
            crossed,
            Reason::AtLink { broker: broker(), name: far(), since_seconds: Seconds::from_millis(1_500) },
        ),
        ("answer_message_at_consumers", spread.clone(), Reason::AtConsumers { consumers: 3, open: 2, brokers: 0 }),
        ("answer_message_at_brokers", spread, Reason::AtConsumers { consumers: 3, open: 2, brokers: 1 }),
        ("answer_message_stopping_at_link", stopping_far, Reason::StoppingAtLink { broker: broker(), name: far() }),
        ("answer_message_stopping", stopping, Reason::Stopping { worker: WorkerId(42) }),
        ("answer_message_answered", answered, Reason::Answered { worker: WorkerId(42) }),
        ("answer_message_dead", dead(), Reason::Dead { failure: "disk full".to_owned() }),
        ("answer_message_draining", waiting(), Reason::Draining),
        ("answer_message_maintenance", waiting(), Reason::Maintenance),
    ];
    let answer = |message, reason| {
        let explanation = Explanation { message, because: Because(reason) };
        AdminAnswer::Message { explanation: Box::new(explanation) }
    };
    table.into_iter().map(|(name, message, reason)| (name, answer(message, reason))).collect()
}

fn consumer() -> ConsumerView {
    ConsumerView {
        worker: WorkerId(42),
        name: "w1".to_owned(),
        slots: Slots::Limited(10),
        used: 3,
        free: Slots::Limited(7),
        turn: Some(1),
        in_flight: 1,
        ..ConsumerView::default()
    }
}

fn dropped() -> Standing {
    Standing {
        state: StandingState::Dropped,
        expired: 2,
        dropped_at: Some(Moment::from_unix_ms(NOON)),
        reason: Some("timed_out".to_owned()),
    }
}

fn counters() -> Counters {
    Counters {
        requests: 1,
        sends: 2,
        broadcasts: 20,
        refused: 3,
        deliveries: 4,
        replied: 5,
        acked: 6,
        failed: 7,
        lost: 8,
        retried: 9,
        returned: 10,
        expired: 11,
        cancelled: 12,
        dead: 13,
        dedup_forgotten: 14,
        late: 15,
        doubled: 16,
        forged: 17,
        unclaimed: 18,
        dropped: 19,
    }
}

fn broker() -> BrokerView {
    BrokerView {
        name: "b1".to_owned(),
        version: "0.1.0".to_owned(),
        started_at: Moment::from_unix_ms(NOON),
        up_seconds: Seconds::from_millis(90_000),
        draining: true,
        maintenance: true,
        connections: 3,
        workers: 2,
        slots: 10,
        slots_used: 3,
        queues: 2,
        ready: 2,
        in_flight: 1,
        bytes: 70_261,
        bytes_max: 1 << 32,
        counters: counters(),
        ..BrokerView::default()
    }
}

fn broker_with_jobs() -> BrokerView {
    BrokerView {
        jobs: JobsView { known: 300, unfinished: 2, tasks_running: 16, tasks_lost: 4 },
        data: Some("/var/lib/turno".to_owned()),
        disk: Some(DiskView { free: 1 << 33, total: 1 << 36 }),
        ..broker()
    }
}

fn linked_broker() -> BrokerView {
    BrokerView { links_up: 3, links_wanted: 2, links_down: 1, ..broker() }
}

fn broker_with_memory() -> BrokerView {
    let [jobs, events, archive, incoming, outgoing, waiting, refused, closed] = [1, 2, 3, 4, 5, 6, 7, 8];
    let messages = broker().bytes;
    let memory = MemoryView {
        messages,
        jobs,
        events,
        archive,
        incoming,
        outgoing,
        waiting,
        refused,
        closed,
        ..MemoryView::default()
    };
    BrokerView { memory: memory.summed(), ..broker() }
}

fn broker_with_dead_letters() -> BrokerView {
    let view = broker_with_memory();
    BrokerView { memory: MemoryView { dead: 400, kept_free: 9, ..view.memory }, ..view }
}

fn broker_in_a_ring() -> BrokerView {
    BrokerView { ring: Some(Box::new(super::ring_admin::ring())), ..broker() }
}

fn queue() -> QueueView {
    QueueView {
        name: "emails".to_owned(),
        ready: 2,
        in_flight: 1,
        bytes: 70_261,
        oldest_seconds: Some(Seconds::from_millis(1_200)),
        consumers: 1,
        drop_after: 2,
        weight: 1,
        counters: counters(),
        ..QueueView::default()
    }
}

fn idle_queue() -> QueueView {
    QueueView { name: "idle".to_owned(), drop_after: 2, weight: 1, ..QueueView::default() }
}

fn worker() -> WorkerView {
    WorkerView {
        id: WorkerId(42),
        name: "w1".to_owned(),
        address: "127.0.0.1:50000".to_owned(),
        state: WorkerState::Ready,
        slots: Slots::Limited(10),
        used: 3,
        free: Slots::Limited(7),
        queues: vec!["emails".to_owned(), "echo".to_owned()],
        registered_at: Moment::from_unix_ms(NOON),
        last_used_at: Some(Moment::from_unix_ms(NOON + 15)),
        deliveries: 7,
        settled: 5,
        failed: 1,
        ..WorkerView::default()
    }
}

fn worker_with_tasks() -> WorkerView {
    let task = |task, started_at| WorkerTaskView {
        id: TaskId { job: JobId(7), task },
        name: "sim".to_owned(),
        attempt: 2,
        slots: 3,
        started_at,
    };
    WorkerView {
        kind: WorkerKind::Both,
        slots: Slots::Limited(6),
        slots_max: Some(10),
        tasks_running: 300,
        tasks: Some(vec![task(1, Some(Moment::from_unix_ms(NOON))), task(70_000, None)]),
        ..worker()
    }
}

fn new_worker() -> WorkerView {
    WorkerView {
        id: WorkerId(43),
        address: "127.0.0.1:50000".to_owned(),
        slots: Slots::Unlimited,
        free: Slots::Unlimited,
        registered_at: Moment::from_unix_ms(NOON),
        ..WorkerView::default()
    }
}

fn waiting() -> MessageView {
    MessageView {
        id: FIRST_ID.to_owned(),
        queue: "emails".to_owned(),
        kind: MessageKind::Request,
        state: MessageState::Ready,
        attempts: 0,
        attempts_max: 1,
        priority: 4,
        cost: 1,
        bytes: 5,
        received_at: Moment::from_unix_ms(NOON),
        age_seconds: Seconds::from_millis(1_200),
        deadline_at: Some(Moment::from_unix_ms(NOON + 30_000)),
        ..MessageView::default()
    }
}

fn running() -> MessageView {
    MessageView {
        id: SECOND_ID.to_owned(),
        queue: "emails".to_owned(),
        kind: MessageKind::Send,
        state: MessageState::InFlight,
        attempts: 2,
        attempts_max: 10,
        priority: 9,
        cost: 3,
        bytes: 70_000,
        received_at: Moment::from_unix_ms(NOON),
        age_seconds: Seconds::from_millis(5_000_000_000),
        worker: Some(WorkerId(42)),
        ..MessageView::default()
    }
}

fn dead() -> MessageView {
    MessageView { state: MessageState::Dead, worker: None, ..running() }
}
