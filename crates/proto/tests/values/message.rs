//! Messages, deliveries and their answers.

use std::sync::LazyLock;

use turno_proto::headers::{self, Headers};
use turno_proto::model::{
    Again, BroadcastConsumer, BroadcastEnd, Code, Cost, Delivery, Durability, MessageId, Payload, WorkerId,
};
use turno_proto::native::{Answer, Deliver, Frame, Raw, RawBroadcast, RawOutgoing};

/// Term 1,790,000,000,000, counter 3.
const TOKEN: u64 = 1_790_000_000_000 << 20 | 3;
const BINARY: &[u8] = &[0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF, 0x47, 0xC0];
const TRACE: &[(&str, &str)] =
    &[("content-type", "application/json"), ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const KEY: &[(&str, &str)] = &[("k", "v")];

static TRACE_JSON: LazyLock<Payload> = LazyLock::new(|| payload(TRACE, br#"{"a":1}"#));
static TRACE_BINARY: LazyLock<Payload> = LazyLock::new(|| payload(TRACE, BINARY));
static KEY_EMPTY: LazyLock<Payload> = LazyLock::new(|| payload(KEY, b""));
static JSON_OBJECT: LazyLock<Payload> = LazyLock::new(|| payload(JSON, b"{}"));
static PARTS: LazyLock<Payload> = LazyLock::new(|| payload(&[("parts", "2 0 5")], b"hiworld"));
static UNIT_PERCENT: LazyLock<Payload> = LazyLock::new(|| payload(&[("unit", "percent")], b"40"));

pub(super) fn frames() -> Vec<(&'static str, Frame<'static>)> {
    let mut table = requests();
    table.extend(sends());
    table.extend(broadcasts());
    table.extend(deliveries());
    table.extend(settles());
    table.extend(exclusive());
    table.extend(answers());
    table
}

fn payload(pairs: &[(&str, &str)], body: &[u8]) -> Payload {
    let headers: Headers = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    headers::encode(&headers, body).expect("within the limits")
}

fn first_id() -> MessageId {
    MessageId::new(0x1122_3344_5566, 1, 0)
}

fn second_id() -> MessageId {
    MessageId::new(0xFFEE_DDCC_BBAA, 42, 7)
}

const fn body(bytes: &'static [u8]) -> Raw<'static> {
    Raw { headers: false, bytes }
}

fn with_headers(payload: &'static Payload) -> Raw<'static> {
    Raw::from(payload)
}

const fn delivery(stamp: u32, index: u32) -> Delivery {
    Delivery { index, stamp }
}

fn requests() -> Vec<(&'static str, Frame<'static>)> {
    let plain = RawOutgoing::new(7, 3, body(b"hello"));
    let of = |raw| RawOutgoing { payload: raw, ..plain };
    let all_options = RawOutgoing {
        deadline_ms: Some(1_500),
        retries: Some(2),
        priority: Some(9),
        cost: Some(300),
        no_reply: true,
        fail_fast: true,
        ..of(with_headers(&TRACE_BINARY))
    };
    let table = [
        ("example_request", plain),
        ("request_plain", plain),
        ("request_empty_body", of(body(b""))),
        ("request_binary_body", of(body(BINARY))),
        ("request_headers", of(with_headers(&TRACE_JSON))),
        ("request_headers_empty_body", of(with_headers(&KEY_EMPTY))),
        ("request_parts", of(with_headers(&PARTS))),
        ("request_zero_header_block", of(Raw { headers: true, bytes: b"\0\0hello" })),
        ("request_deadline", RawOutgoing { deadline_ms: Some(1_500), ..plain }),
        ("request_retries", RawOutgoing { retries: Some(255), ..plain }),
        ("request_priority", RawOutgoing { priority: Some(9), ..plain }),
        ("request_cost", RawOutgoing { cost: Some(300), ..plain }),
        ("request_no_reply", RawOutgoing { no_reply: true, ..plain }),
        ("request_fail_fast", RawOutgoing { fail_fast: true, ..plain }),
        ("request_cancel_on_disconnect", RawOutgoing { cancel_on_disconnect: true, ..plain }),
        ("request_all_options", all_options),
    ];
    table.into_iter().map(|(name, message)| (name, Frame::Request(message))).collect()
}

fn sends() -> Vec<(&'static str, Frame<'static>)> {
    let plain = RawOutgoing::new(8, 3, body(b"hello"));
    let options =
        RawOutgoing { deadline_ms: Some(86_400_000), retries: Some(0), priority: Some(0), cost: Some(1), ..plain };
    vec![
        ("send_plain", Frame::Send(plain)),
        ("send_empty_body", Frame::Send(RawOutgoing { payload: body(b""), ..plain })),
        ("send_options", Frame::Send(options)),
        ("send_headers", Frame::Send(RawOutgoing { payload: with_headers(&TRACE_BINARY), ..plain })),
        ("send_delay", Frame::Send(RawOutgoing { delay_ms: 31_622_400_000, ..plain })),
        ("send_dedup", Frame::Send(RawOutgoing { dedup_id: Some(b"order-4711"), ..plain })),
        ("send_dedup_shortest", Frame::Send(RawOutgoing { dedup_id: Some(b"\xFF"), payload: body(b""), ..plain })),
        ("send_dedup_longest", Frame::Send(RawOutgoing { dedup_id: Some(&[b'x'; 64]), ..plain })),
        (
            "send_dedup_options",
            Frame::Send(RawOutgoing {
                dedup_id: Some(b"7"),
                delay_ms: 1,
                payload: with_headers(&KEY_EMPTY),
                ..options
            }),
        ),
    ]
}

fn broadcasts() -> Vec<(&'static str, Frame<'static>)> {
    let raw = body(b"hello");
    let plain = RawBroadcast { seq: 7, handle: 3, deadline_ms: None, no_reply: false, skip_self: false, payload: raw };
    let options = RawBroadcast {
        deadline_ms: Some(1_500),
        no_reply: true,
        skip_self: true,
        payload: with_headers(&TRACE_BINARY),
        ..plain
    };
    let answer = Answer { seq: 7, worker: 42, name: "w1", more: false, failed: false, raw: body(b"HELLO") };
    let party = |worker, name: &str| BroadcastConsumer { worker: WorkerId(worker), name: name.to_owned() };
    let end = BroadcastEnd {
        consumers: 5,
        answered: 2,
        failed: 1,
        expired: 1,
        left: 1,
        who_expired: vec![party(43, "w2")],
        who_left: vec![party(44, "")],
    };
    let broadcast_end = |end| Frame::BroadcastEnd { seq: 7, end: Box::new(end) };
    vec![
        ("broadcast", Frame::Broadcast(plain)),
        ("broadcast_options", Frame::Broadcast(options)),
        ("broadcast_empty_body", Frame::Broadcast(RawBroadcast { payload: body(b""), ..plain })),
        ("answer", Frame::Answer(answer)),
        ("answer_more", Frame::Answer(Answer { more: true, raw: body(b"first piece"), ..answer })),
        ("answer_failed", Frame::Answer(Answer { failed: true, raw: body(b"disk full"), ..answer })),
        (
            "answer_headers",
            Frame::Answer(Answer { worker: u64::MAX, name: "", raw: with_headers(&KEY_EMPTY), ..answer }),
        ),
        ("broadcast_end", broadcast_end(end)),
        ("broadcast_end_nobody", broadcast_end(BroadcastEnd::default())),
    ]
}

fn deliveries() -> Vec<(&'static str, Frame<'static>)> {
    let plain = Deliver {
        delivery: delivery(1, 0),
        handle: 3,
        id: first_id(),
        attempt: 1,
        cost: Cost::ONE,
        deadline_ms: None,
        wants_reply: false,
        token: None,
        raw: body(b"hello"),
    };
    let example = Deliver { handle: 1, deadline_ms: Some(30_000), wants_reply: true, ..plain };
    let all_fields = Deliver {
        delivery: delivery(u32::MAX, 7),
        handle: 65_535,
        id: second_id(),
        attempt: 256,
        cost: Cost::from_word(300),
        deadline_ms: Some(1_500),
        wants_reply: true,
        token: Some(u64::MAX),
        raw: with_headers(&TRACE_BINARY),
    };
    let table = [
        ("example_deliver", example),
        ("deliver_send", Deliver { delivery: delivery(0x0102_0304, 0x0A0B_0C0D), id: second_id(), ..plain }),
        ("deliver_wants_reply", Deliver { wants_reply: true, ..plain }),
        ("deliver_deadline", Deliver { deadline_ms: Some(1_500), ..plain }),
        ("deliver_token", Deliver { token: Some(TOKEN), ..plain }),
        ("deliver_empty_body", Deliver { raw: body(b""), ..plain }),
        ("deliver_all_fields", all_fields),
    ];
    table.into_iter().map(|(name, deliver)| (name, Frame::Deliver(deliver))).collect()
}

fn fenced(frame: Frame<'static>) -> Frame<'static> {
    Frame::fenced(TOKEN, frame)
}

fn exclusive() -> Vec<(&'static str, Frame<'static>)> {
    let ms = Frame::Extend { delivery: delivery(1, 0), lease_ms: 60_000 };
    vec![
        ("consume_exclusive", Frame::Consume { seq: 6, handle: 3, exclusive: true }),
        ("ok_token", fenced(Frame::Ok { seq: 6 })),
        ("queue_full", Frame::QueueFull { seq: 6, handle: 3 }),
        ("queue_available_notify", Frame::QueueAvailableNotify { seq: 7, handle: 3 }),
        ("queue_available", Frame::QueueAvailable { seq: 7, handle: 3 }),
        ("reply_token", fenced(Frame::Reply { seq: 1, word: 0, more: false, raw: body(b"HELLO") })),
        (
            "reply_more_headers_token",
            fenced(Frame::Reply { seq: 1, word: 0, more: true, raw: with_headers(&KEY_EMPTY) }),
        ),
        ("ack_token", fenced(Frame::Ack { delivery: delivery(1, 0) })),
        (
            "fail_token",
            fenced(Frame::Fail { delivery: delivery(1, 0), again: Again::Never, raw: body(b"no such account") }),
        ),
        ("progress_token", fenced(Frame::Progress { seq: 1, word: 0, raw: body(b"40 %") })),
        ("extend_token", fenced(ms)),
    ]
}

fn settles() -> Vec<(&'static str, Frame<'static>)> {
    let reply = |seq, word, more, raw| Frame::Reply { seq, word, more, raw };
    let fail = |again, raw| Frame::Fail { delivery: delivery(1, 0), again, raw };
    let progress = |raw| Frame::Progress { seq: 1, word: 0, raw };
    vec![
        ("example_reply_from_worker", reply(1, 0, false, body(b"HELLO"))),
        ("example_reply_to_client", reply(7, 0, false, body(b"HELLO"))),
        ("reply", reply(0x0102_0304, 0x0A0B_0C0D, false, body(b"HELLO"))),
        ("reply_more", reply(1, 0, true, body(b"first piece"))),
        ("reply_headers", reply(1, 0, false, with_headers(&TRACE_BINARY))),
        ("reply_more_headers_empty_body", reply(1, 0, true, with_headers(&KEY_EMPTY))),
        ("reply_empty_body", reply(1, 0, false, body(b""))),
        ("ack", Frame::Ack { delivery: delivery(0x0102_0304, 0x0A0B_0C0D) }),
        ("fail", fail(Again::AsSet, body(b"disk full"))),
        ("fail_permanent", fail(Again::Never, body(b"no such account"))),
        ("fail_after", fail(Again::After(30_000), body(b"rate limit"))),
        ("fail_uncounted", fail(Again::Uncounted(None), body(b"not ready"))),
        ("fail_uncounted_after_headers", fail(Again::Uncounted(Some(5_000)), with_headers(&JSON_OBJECT))),
        ("fail_headers", fail(Again::AsSet, with_headers(&JSON_OBJECT))),
        ("fail_empty_body", fail(Again::AsSet, body(b""))),
        ("progress", progress(body(b"40 %"))),
        ("progress_headers", progress(with_headers(&UNIT_PERCENT))),
        ("extend", Frame::Extend { delivery: delivery(1, 0), lease_ms: 60_000 }),
    ]
}

fn answers() -> Vec<(&'static str, Frame<'static>)> {
    let undelivered = |code, raw| Frame::Undelivered { seq: 7, code, raw };
    let stored = |durability, duplicate| Frame::Stored { seq: 8, durability, id: second_id(), duplicate };
    vec![
        ("example_client_open", Frame::Open { seq: 6, handle: 3, name: b"echo" }),
        ("example_client_open_ok", Frame::Ok { seq: 6 }),
        ("cancel_from_caller", Frame::Cancel { seq: 7, word: 0, reason: None }),
        ("cancel_to_worker", Frame::Cancel { seq: 1, word: 0, reason: Some(Code::TimedOut) }),
        ("delivered", Frame::Delivered { seq: 7 }),
        ("undelivered", undelivered(Code::TimedOut, body(b""))),
        ("undelivered_failed", undelivered(Code::Failed, body(b"no such account"))),
        ("undelivered_headers", undelivered(Code::Failed, with_headers(&JSON_OBJECT))),
        ("ok", Frame::Ok { seq: 3 }),
        ("stored", stored(Durability::Memory, false)),
        ("stored_disk", stored(Durability::Disk, false)),
        ("stored_duplicate", stored(Durability::Disk, true)),
    ]
}
