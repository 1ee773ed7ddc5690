//! What can happen to jobs, in any order.

use proptest::prelude::*;
use turno_proto::model::job::AfterWhen;

use super::property::SLOTS;

#[derive(Clone, Debug)]
pub(super) enum Op {
    Submit {
        count: u32,
        slots: u16,
        retries: u8,
        max: Option<u32>,
        failures: Option<u32>,
        priority: u8,
        after: Option<AfterWhen>,
    },
    /// HELLO, over a new connection if there is none; honest, without what it runs, or with nonsense.
    Hello {
        hand: usize,
        lie: u8,
        attempts: bool,
    },
    /// An answer to a JOB: honest, or a refusal out of a whim.
    Answer {
        hand: usize,
        refuse: bool,
    },
    /// A task of the hand ends.
    End {
        hand: usize,
        pick: usize,
        success: bool,
    },
    /// An answer to a CANCEL.
    Stop {
        hand: usize,
    },
    /// The connection is lost; what was offered may have begun.
    Lose {
        hand: usize,
        begun: bool,
    },
    Cancel {
        job: usize,
        first: u32,
        last: u32,
    },
    Retry {
        job: usize,
        tasks: Option<(u32, u32)>,
    },
    Hold {
        job: usize,
        hold: bool,
    },
    Wait {
        job: usize,
    },
    Rm {
        job: usize,
    },
    /// The native connection of the first hand comes or goes, is asked something, or replies.
    Twin {
        what: u8,
    },
    Store {
        groups: usize,
    },
    Refuse,
    Pass {
        ms: u64,
    },
    /// The broker ends; that many groups were stored unheard.
    Restart {
        unheard: usize,
        begun: bool,
    },
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let hand = || 0..SLOTS.len();
    let when = prop_oneof![Just(AfterWhen::Ok), Just(AfterWhen::Any), Just(AfterWhen::Failed)];
    let limits = (prop::option::of(1u32..4), prop::option::weighted(0.3, 0u32..3));
    let tasks = prop::option::of((0u32..8, 0u32..8).prop_map(|(first, more)| (first, first + more)));
    prop_oneof![
        2 => (1u32..8, 1u16..4, 0u8..3, limits, 3u8..6, prop::option::weighted(0.3, when)).prop_map(
            |(count, slots, retries, (max, failures), priority, after)| {
                Op::Submit { count, slots, retries, max, failures, priority, after }
            }
        ),
        6 => (hand(), 0u8..12, any::<bool>()).prop_map(|(hand, lie, attempts)| Op::Hello { hand, lie, attempts }),
        12 => (hand(), prop::bool::weighted(0.15)).prop_map(|(hand, refuse)| Op::Answer { hand, refuse }),
        12 => (hand(), 0usize..4, prop::bool::weighted(0.7))
            .prop_map(|(hand, pick, success)| Op::End { hand, pick, success }),
        4 => hand().prop_map(|hand| Op::Stop { hand }),
        2 => (hand(), any::<bool>()).prop_map(|(hand, begun)| Op::Lose { hand, begun }),
        2 => (0usize..6, 0u32..8, 0u32..8)
            .prop_map(|(job, first, more)| Op::Cancel { job, first, last: first + more }),
        3 => (0usize..6, tasks).prop_map(|(job, tasks)| Op::Retry { job, tasks }),
        1 => (0usize..6, any::<bool>()).prop_map(|(job, hold)| Op::Hold { job, hold }),
        1 => (0usize..6).prop_map(|job| Op::Wait { job }),
        2 => (0usize..6).prop_map(|job| Op::Rm { job }),
        6 => (0u8..8).prop_map(|what| Op::Twin { what }),
        14 => (1usize..5).prop_map(|groups| Op::Store { groups }),
        1 => Just(Op::Refuse),
        4 => prop_oneof![0u64..900, 900u64..7_000, Just(61_000u64)].prop_map(|ms| Op::Pass { ms }),
        1 => (0usize..4, any::<bool>()).prop_map(|(unheard, begun)| Op::Restart { unheard, begun }),
    ]
}
