//! Greeting, heartbeat, farewell, errors, and what a worker says about itself.

use turno_proto::model::{Code, Slots};
use turno_proto::native::{Closing, ClosingReason, Config, Connect, Frame, Register};

pub(super) fn frames() -> Vec<(&'static str, Frame<'static>)> {
    let mut table = greeting();
    table.extend(farewell());
    table.extend(worker());
    table
}

fn connect(seq: u32, version: u16, name: &str, program: &str, heartbeat_ms: u32) -> Frame<'static> {
    let connect = Connect { version, name: name.to_owned(), program: program.to_owned(), heartbeat_ms };
    Frame::Connect { seq, connect }
}

fn config(config: Config) -> Frame<'static> {
    Frame::Config { seq: 1, config: Box::new(config) }
}

fn greeting() -> Vec<(&'static str, Frame<'static>)> {
    let example = Config {
        version: 1,
        broker: "b1".to_owned(),
        program: "turno 0.1.0".to_owned(),
        heartbeat_ms: 5_000,
        liveness: 3,
        frame_bytes_max: 16 * 1024 * 1024,
        request_deadline_ms: 30_000,
        brokers: vec!["127.0.0.1:7460".to_owned()],
    };
    let two_brokers = Config {
        heartbeat_ms: 250,
        frame_bytes_max: 1 << 32,
        request_deadline_ms: 1_000,
        brokers: vec!["10.0.0.1:7460".to_owned(), "10.0.0.2:7460".to_owned()],
        ..example.clone()
    };
    let no_brokers = Config {
        broker: String::new(),
        program: String::new(),
        heartbeat_ms: 60_000,
        frame_bytes_max: 65_536,
        brokers: Vec::new(),
        ..example.clone()
    };
    vec![
        ("example_connect", connect(1, 1, "w1", "demo 1.0", 0)),
        ("example_config", config(example)),
        ("example_ping", Frame::Ping { seq: 2 }),
        ("example_pong", Frame::Pong { seq: 2 }),
        ("connect_full", connect(1, 1, "größe-1", "demo 1.0", 1_000)),
        ("connect_empty_texts", connect(0, 1, "", "", 0)),
        ("connect_other_version", connect(1, 65_535, "", "", 0)),
        ("config_two_brokers", config(two_brokers)),
        ("config_no_brokers", config(no_brokers)),
        ("ping", Frame::Ping { seq: 2 }),
        ("ping_seq_max", Frame::Ping { seq: u32::MAX }),
        ("pong", Frame::Pong { seq: 2 }),
    ]
}

fn farewell() -> Vec<(&'static str, Frame<'static>)> {
    let closing = |reason, within_ms| Frame::Closing { closing: Closing { reason, within_ms } };
    let error = |seq, code, fatal, detail| Frame::Error { seq, code, fatal, detail };
    vec![
        ("closing_shutdown", closing(ClosingReason::Shutdown, 30_000)),
        ("closing_stop", closing(ClosingReason::Stop, 0)),
        ("closing_now", closing(ClosingReason::Now, 0)),
        ("closing_maintenance", closing(ClosingReason::Maintenance, 0)),
        ("closing_resumed", closing(ClosingReason::Resumed, 0)),
        ("error_refusal", error(9, Code::BadBody, false, "slots is not a number")),
        ("error_fatal", error(0, Code::BadMagic, true, "the peer does not speak the Turno protocol")),
        ("error_without_detail", error(9, Code::UnknownHandle, false, "")),
    ]
}

fn worker() -> Vec<(&'static str, Frame<'static>)> {
    let register = |seq, slots, name: &str| Frame::Register { seq, register: Register::new(slots, name) };
    let resize = |slots| Frame::Resize { seq: 5, register: Register::new(slots, "") };
    vec![
        ("example_register", register(3, Slots::Limited(10), "")),
        ("example_register_ok", Frame::Ok { seq: 3 }),
        ("example_open", Frame::Open { seq: 4, handle: 1, name: b"echo" }),
        ("example_open_ok", Frame::Ok { seq: 4 }),
        ("example_consume", Frame::Consume { seq: 5, handle: 1, exclusive: false }),
        ("example_consume_ok", Frame::Ok { seq: 5 }),
        ("register_limited", register(3, Slots::Limited(1_000_000), "resize-1")),
        ("register_unlimited", register(3, Slots::Unlimited, "resize-1")),
        ("register_zero", register(3, Slots::Limited(0), "")),
        ("register_negative", {
            let register = Register { slots: Some(-5), name: String::new(), key: String::new() };
            Frame::Register { seq: 3, register }
        }),
        ("register_with_a_key", {
            Frame::Register { seq: 3, register: Register::new(Slots::Limited(2), "").known_as("w1") }
        }),
        ("deregister", Frame::Deregister { seq: 4 }),
        ("resize_limited", resize(Slots::Limited(4))),
        ("resize_unlimited", resize(Slots::Unlimited)),
        ("consume", Frame::Consume { seq: 6, handle: 65_535, exclusive: false }),
        ("cancel_queue", Frame::CancelQueue { seq: 7, handle: 65_535, reason: None }),
        ("cancel_queue_to_worker", Frame::CancelQueue { seq: 0, handle: 1, reason: Some(Code::Dropped) }),
        ("open", Frame::Open { seq: 8, handle: 0, name: b"billing.invoices" }),
        ("open_utf8", Frame::Open { seq: 8, handle: 65_535, name: "größe".as_bytes() }),
    ]
}
