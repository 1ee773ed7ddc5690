//! Sends with a dedup id outlive their connection: written again until a broker answers or their time is over.

use turno_proto::model::{DedupId, Durability, MessageId};
use turno_proto::native::RawOutgoing;

use super::*;

fn named(body: &'static str, id: &str) -> Ask {
    Ask { dedup_id: DedupId::new(id.as_bytes()).ok(), ..ask("q", body) }
}

fn stored_frame(seq: u32, duplicate: bool) -> Frame<'static> {
    Frame::Stored { seq, durability: Durability::Disk, id: MessageId::new(1, 2, 3), duplicate }
}

fn stored(ticket: u64, duplicate: bool) -> CoreEvent {
    let (id, durability) = (MessageId::new(1, 2, 3), Durability::Disk);
    CoreEvent::Stored { ticket: Ticket(ticket), id, durability, duplicate }
}

/// The bodies and dedup ids of the sends among these bytes.
fn sends(bytes: &[u8]) -> Vec<(String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("tests send text");
    let sends = frames(bytes).into_iter().filter_map(|frame| match frame {
        Frame::Send(send) => Some((text(send.payload.bytes), send.dedup_id.map(text))),
        _ => None,
    });
    sends.collect()
}

/// Proves I6 on the client's side: of many sends on a lost connection each one ends once. What was answered is not
/// written again; what has a dedup id is, under the same id and in the old order; of the rest the outcome is unknown.
#[test]
fn sends_in_flight_on_a_lost_connection() {
    let mut rig = TestCore::open(&["a", "b"]);
    for (ticket, ask) in [(1, named("1", "x")), (2, named("2", "y")), (3, ask("q", "3")), (4, named("4", "z"))] {
        rig.core.send(rig.now, Ticket(ticket), ask);
    }
    rig.sent();
    rig.core.send(rig.now, Ticket(5), ask("q", "5"));
    rig.say(&[stored_frame(4, false)]);
    assert_eq!(rig.events(), [stored(1, false)]);
    rig.core.handle_disconnected(rig.now, "reset");
    assert_eq!(
        rig.events(),
        [
            CoreEvent::Lost { address: tcp("a"), reason: "reset".to_owned() },
            CoreEvent::Disconnect { flush: false },
            failed(3, Code::ConnectionLost),
            CoreEvent::Connect { address: tcp("b") },
        ]
    );
    rig.greet();
    rig.events();
    let again = |body: &str, id: Option<&str>| (body.to_owned(), id.map(str::to_owned));
    assert_eq!(sends(&rig.sent()), [again("2", Some("y")), again("4", Some("z")), again("5", None)]);
    rig.say(&[stored_frame(4, true), stored_frame(5, false), stored_frame(6, false)]);
    assert_eq!(rig.events(), [stored(2, true), stored(4, false), stored(5, false)]);
    assert_eq!(rig.core.calls.len(), 0);
}

/// A broker that comes back gets it again and again, with the time that is left, until that is over.
#[test]
fn a_send_is_written_again_until_its_time_is_over() {
    let mut rig = TestCore::open(&["a"]);
    rig.core.send(rig.now, Ticket(1), Ask { timeout_ms: Some(5_000), ..named("1", "x") });
    for left_ms in [5_000, 4_000, 3_000, 2_000, 1_000] {
        let sent = rig.sent();
        let [Frame::Open { .. }, Frame::Send(send)] = frames(&sent)[..] else { panic!("OPEN and SEND") };
        assert_eq!(
            send,
            RawOutgoing { deadline_ms: Some(left_ms), dedup_id: Some(b"x"), ..RawOutgoing::new(4, 0, raw("1")) }
        );
        rig.pass_ms(1_000);
        rig.core.handle_disconnected(rig.now, "reset");
        if left_ms > 1_000 {
            rig.greet();
        }
    }
    assert!(rig.events().iter().all(|event| *event != failed(1, Code::ConnectionLost)));
    rig.pass_ms(0);
    assert_eq!(rig.events(), [failed(1, Code::TimedOut)]);
    rig.greet();
    assert_eq!(sends(&rig.sent()), []);
}

/// The caller gave it up: it is not written again.
#[test]
fn a_cancelled_send_is_not_written_again() {
    let mut rig = TestCore::open(&["a"]);
    rig.core.send(rig.now, Ticket(1), named("1", "x"));
    rig.sent();
    rig.core.cancel(Ticket(1));
    rig.core.handle_disconnected(rig.now, "reset");
    assert!(rig.events().contains(&failed(1, Code::ConnectionLost)));
    rig.greet();
    assert_eq!(sends(&rig.sent()), []);
}

/// A hundred thousand sends on a lost connection are put back in order in one go.
#[test]
fn very_many_sends_are_written_again_in_order() {
    const COUNT: u64 = 100_000;
    let mut rig = TestCore::open(&["a"]);
    for ticket in 0..COUNT {
        rig.core.send(rig.now, Ticket(ticket), named("", &ticket.to_string()));
    }
    // Some are written, the others wait: those given back go before them.
    for _ in 0..3 {
        rig.sent();
    }
    rig.pass_ms(1_000);
    rig.core.handle_disconnected(rig.now, "reset");
    rig.greet();
    let mut all = Vec::new();
    loop {
        let sent = rig.sent();
        if sent.is_empty() {
            break;
        }
        all.extend(sends(&sent).into_iter().filter_map(|(_, id)| id));
    }
    let expected: Vec<String> = (0..COUNT).map(|ticket| ticket.to_string()).collect();
    assert!(all == expected, "each once, in the order of sending");
}

/// The id counts for the length of the frame.
#[test]
fn an_id_takes_room_in_the_frame() {
    let mut rig = TestCore::open(&["a"]);
    let body = |length| Ask { dedup_id: DedupId::new(&[b'i'; 64]).ok(), ..Ask::new(queue("q"), body(length)) };
    rig.core.send(rig.now, Ticket(1), body(1_024 - 16 - 8 - 65));
    rig.core.send(rig.now, Ticket(2), body(1_024 - 16 - 8 - 64));
    assert_eq!(sends(&rig.sent()).len(), 1);
    assert_eq!(rig.events(), [failed(2, Code::FrameTooLarge)]);
}

fn body(length: usize) -> Payload {
    Payload::body(vec![b'x'; length])
}
