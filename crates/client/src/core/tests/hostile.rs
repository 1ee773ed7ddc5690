//! Bytes that no sane broker sends.

use proptest::prelude::*;
use turno_proto::model::{Cost, Delivery, MessageId};
use turno_proto::native::{Deliver, Header, Kind};

use super::*;

#[test]
fn bytes_may_come_one_at_a_time() {
    let mut rig = TestCore::open(&["a"]);
    rig.request(1, ask("q", "x"));
    rig.request(2, ask("q", "x"));
    rig.sent();
    for byte in bytes(&[Frame::Ok { seq: 3 }, reply(4, "one"), reply(5, "two")]) {
        rig.core.handle_bytes(rig.now, &[byte]);
    }
    assert_eq!(rig.events(), [replied(1, "one"), replied(2, "two")]);
    assert!(rig.core.link.inbox.is_empty());
}

/// Proves S2.2: a broker that talks nonsense is as good as lost.
#[test]
fn nonsense_ends_the_connection_and_the_next_broker_is_dialled() {
    let huge = Header { kind: Kind::Reply.number(), flags: 0, seq: 4, word: 0, length: u32::MAX }.to_bytes();
    let strange = Header { kind: 200, flags: 0, seq: 4, word: 0, length: 0 }.to_bytes();
    let deliver = Deliver {
        delivery: Delivery { index: 0, stamp: 0 },
        handle: 0,
        id: MessageId::new(0, 0, 0),
        attempt: 1,
        cost: Cost::ONE,
        deadline_ms: None,
        wants_reply: false,
        token: None,
        raw: raw(""),
    };
    let table: &[(&str, Vec<u8>)] = &[
        ("not a frame", b"HTTP/1.1 400 Bad Request\r\n".to_vec()),
        ("claims 4 GiB", huge.to_vec()),
        ("unknown type", strange.to_vec()),
        ("too short", Header { kind: Kind::Stored.number(), flags: 0, seq: 4, word: 0, length: 0 }.to_bytes().to_vec()),
        ("wrong direction", bytes(&[Frame::Ping { seq: 1 }])),
        ("never consumed", bytes(&[Frame::Deliver(deliver)])),
        ("wrong answer", bytes(&[Frame::Delivered { seq: 5 }])),
        ("says so itself", bytes(&[Frame::Error { seq: 0, code: Code::SlowReader, fatal: true, detail: "" }])),
    ];
    for (name, nonsense) in table {
        let mut rig = TestCore::open(&["a", "b"]);
        rig.request(1, ask("q", "x"));
        rig.core.send(rig.now, Ticket(2), ask("q", "x"));
        rig.sent();
        let mut nonsense = nonsense.clone();
        nonsense.extend_from_slice(&bytes(&[reply(4, "never read")]));
        rig.core.handle_bytes(rig.now, &nonsense);
        let events = rig.events();
        assert!(matches!(events.first(), Some(CoreEvent::Lost { .. })), "{name}: {events:?}");
        assert_eq!(events.last(), Some(&CoreEvent::Connect { address: tcp("b") }), "{name}");
        assert!(rig.core.link.inbox.is_empty(), "{name}");
    }
}

/// A newer broker may answer with values this side does not know: only that call suffers.
#[test]
fn an_unreadable_answer_ends_one_call_only() {
    let mut rig = TestCore::open(&["a"]);
    rig.core.send(rig.now, Ticket(1), ask("q", "x"));
    rig.request(2, ask("q", "x"));
    rig.sent();
    let header = Header { kind: Kind::Stored.number(), flags: 0, seq: 4, word: 9_999, length: 16 };
    rig.core.handle_bytes(rig.now, &header.to_bytes());
    rig.core.handle_bytes(rig.now, &[0; 16]);
    rig.say(&[reply(5, "fine")]);
    assert_eq!(rig.events(), [failed(1, Code::BadBody), replied(2, "fine")]);
}

proptest! {
    /// Whatever comes, in whatever portions: no panic, no more kept than came, every call ends once.
    #[test]
    fn any_bytes_are_borne(
        portions in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..8),
        kinds in proptest::collection::vec((0u8..130, any::<u8>(), 0u32..9, 0u32..60, 0u32..40), 0..12),
    ) {
        let mut rig = TestCore::worker(&["a", "b"], &["q"]);
        rig.request(1, ask("q", "x"));
        rig.core.send(rig.now, Ticket(2), ask("q", "x"));
        rig.sent();
        let mut came = 0;
        for (kind, flags, seq, word, length) in kinds {
            let mut frame = Header { kind, flags, seq, word, length }.to_bytes().to_vec();
            frame.resize(frame.len() + length as usize, flags);
            came += frame.len();
            rig.core.handle_bytes(rig.now, &frame);
        }
        for portion in portions {
            came += portion.len();
            rig.core.handle_bytes(rig.now, &portion);
        }
        prop_assert!(rig.core.link.inbox.len() <= came);
        rig.core.close(rig.now);
        let ends = |ticket: u64| move |event: &&CoreEvent| match event {
            CoreEvent::Failed { ticket: t, .. } | CoreEvent::Stored { ticket: t, .. } | CoreEvent::Delivered { ticket: t } => *t == Ticket(ticket),
            CoreEvent::Reply { ticket: t, more, .. } => *t == Ticket(ticket) && !more,
            _ => false,
        };
        let events = rig.events();
        prop_assert_eq!(events.iter().filter(ends(1)).count(), 1);
        prop_assert_eq!(events.iter().filter(ends(2)).count(), 1);
    }
}
