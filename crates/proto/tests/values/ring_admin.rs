//! Calls about the ring, and what they are answered.

use turno_proto::model::ring::view::{MemberView, RingCounters, RingView};
use turno_proto::model::ring::{RingState, Sid};
use turno_proto::model::{Moment, Seconds};
use turno_proto::native::Frame;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

pub(super) fn calls() -> Vec<(&'static str, Frame<'static>)> {
    let calls = vec![
        ("call_ring_show", AdminCall::Ring {}),
        ("call_ring_join", AdminCall::RingJoin { next: "10.0.0.7:8005".to_owned(), sid: None }),
        ("call_ring_join_named", AdminCall::RingJoin { next: "10.0.0.7:8005".to_owned(), sid: Some(Sid::new(5)) }),
        ("call_ring_leave", AdminCall::RingLeave {}),
        ("call_ring_shutdown", AdminCall::RingShutdown {}),
    ];
    calls.into_iter().map(|(name, call)| (name, Frame::AdminCall { seq: 11, call })).collect()
}

pub(super) fn answers() -> Vec<(&'static str, Frame<'static>)> {
    let whole = ring();
    let off = RingView {
        state: RingState::Off,
        whole: false,
        previous: None,
        next: None,
        members: Vec::new(),
        lost: vec![member(9)],
        round_trip_seconds: None,
        not_round: 0,
        oldest_seconds: None,
        buffered: 0,
        buffer_bytes: 0,
        slowed: false,
        counters: RingCounters::default(),
        code: Some("duplicate_sid".to_owned()),
        ..whole.clone()
    }
    .told(Seconds::from_millis(12_000));
    let answers = vec![("answer_ring", whole), ("answer_ring_off", off)];
    let frame = |ring| Frame::AdminAnswer { seq: 11, answer: AdminAnswer::Ring { ring: Box::new(ring) } };
    answers.into_iter().map(|(name, ring)| (name, frame(ring))).collect()
}

/// A whole ring of three.
pub(super) fn ring() -> RingView {
    RingView {
        sid: Sid::new(3),
        incarnation: 1_800_000_000_003,
        address: "127.0.0.1:8003".to_owned(),
        state: RingState::Member,
        since_at: Moment::from_unix_ms(1_794_744_000_000),
        whole: true,
        previous: Some(Sid::new(300)),
        next: Some(Sid::new(5)),
        members: vec![member(3), member(5), member(300)],
        round_trip_seconds: Some(Seconds::from_micros(180)),
        not_round: 2,
        oldest_seconds: Some(Seconds::from_millis(40)),
        buffered: 7,
        buffer_bytes: 70_000,
        slowed: true,
        counters: RingCounters {
            published: 1,
            came_round: 2,
            received: 3,
            duplicates: 4,
            missed: 5,
            forged: 6,
            hop_limit: 7,
            flooded: 0,
            refused: 8,
            healed: 9,
        },
        ..RingView::default()
    }
    .told(Seconds::from_millis(12_000))
}

fn member(sid: u16) -> MemberView {
    let incarnation = 1_800_000_000_000 + u64::from(sid);
    let address = |base| format!("127.0.0.1:{}", base + sid);
    MemberView {
        sid: Sid::new(sid),
        incarnation,
        address: address(8_000),
        native: Some(address(8_100)),
        ..MemberView::default()
    }
}
