//! Two ends, all mechanisms and versions, any messages, cut anywhere.

use proptest::prelude::*;
use turno_proto::zmtp::{OwnSocketType, SocketType, Version, ZmtpSettings, ZmtpStep};

use crate::end::{End, client_entropy, dealer, mechanisms, settings};

/// A pipe that gives out what was put in, in pieces.
#[derive(Default)]
struct Pipe(Vec<u8>);

impl Pipe {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let count = count.min(self.0.len());
        self.0.drain(..count).collect()
    }
}

fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let part = prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (200..320_usize).prop_map(|len| vec![5; len]),
    ];
    prop::collection::vec(part, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Each end gets every message of the other, whole, once and in order, while PINGs come between them.
    #[test]
    fn messages_arrive_whole_and_in_order(
        mechanism in 0..3_usize,
        versions in any::<(bool, bool)>(),
        one_says in prop::collection::vec(parts(), 0..8),
        other_says in prop::collection::vec(parts(), 0..8),
        cuts in prop::collection::vec((1..200_usize, 1..200_usize), 1..40),
    ) {
        let version = |new| if new { Version::V3_1 } else { Version::V3_0 };
        let (client, server, _) = mechanisms()[mechanism].clone();
        let mut one = End::with_entropy(ZmtpSettings { version: version(versions.0), ..dealer(client) }, client_entropy());
        let mut other = End::new(ZmtpSettings { version: version(versions.1), ..settings(OwnSocketType::Counterpart, server) });
        let (mut there, mut back) = (Pipe::default(), Pipe::default());
        let (mut to_say, mut to_answer) = (one_says.iter(), other_says.iter());
        for (round, (count, back_count)) in cuts.iter().cycle().enumerate() {
            prop_assert!(round < 100_000, "both come to an end");
            for (end, says) in [(&mut one, &mut to_say), (&mut other, &mut to_answer)] {
                if !end.session.greeting() {
                    // Time passes for a while only: with small cuts PINGs would be said faster than they can be heard.
                    end.now = end.now.plus_millis(if round < 2 * cuts.len() { 1_000 } else { 0 });
                    // Waiting may take very long here; that silence ends a connection is another test's.
                    end.session.heard(end.now);
                    end.session.handle_timeout(end.now, &mut end.out).expect("it is heard");
                    if let Some(parts) = says.next() {
                        end.send(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
                    }
                }
            }
            there.0.extend(one.said());
            back.0.extend(other.said());
            back.0.extend(other.hear(&there.take(*count)));
            there.0.extend(one.hear(&back.take(*back_count)));
            prop_assert_eq!((one.fault, other.fault), (None, None));
            let quiet = there.0.is_empty() && back.0.is_empty();
            if quiet && to_say.len() == 0 && to_answer.len() == 0 && !one.session.greeting() {
                break;
            }
        }
        prop_assert_eq!(other.messages(), one_says);
        prop_assert_eq!(one.messages(), other_says);
        let both = version(versions.0).min(version(versions.1));
        prop_assert_eq!(other.peer().map(|peer| peer.version), Some(both));
    }

    /// The same subscriptions, in both forms and over each mechanism.
    #[test]
    fn subscriptions_arrive_in_order(
        mechanism in 0..3_usize,
        new in any::<bool>(),
        wishes in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..30)), 0..20),
        cut in 1..100_usize,
    ) {
        let version = if new { Version::V3_1 } else { Version::V3_0 };
        let (client, server, _) = mechanisms()[mechanism].clone();
        let sub = ZmtpSettings { version, ..settings(OwnSocketType::Is(SocketType::Xsub), client) };
        let (mut sub, mut hub) = crate::end::pair_of(sub, settings(OwnSocketType::Counterpart, server));
        for (wants, prefix) in &wishes {
            let said = if *wants { sub.session.subscribe(prefix, &mut sub.out) } else { sub.session.cancel(prefix, &mut sub.out) };
            prop_assert!(said);
        }
        let bytes = sub.said();
        bytes.chunks(cut).for_each(|piece| _ = hub.hear(piece));
        let told: Vec<(bool, Vec<u8>)> = hub.steps.iter().skip(1).map(|step| match step {
            ZmtpStep::Subscribe(prefix) => (true, prefix.to_vec()),
            ZmtpStep::Cancel(prefix) => (false, prefix.to_vec()),
            other => panic!("{other:?}"),
        }).collect();
        prop_assert_eq!(told, wishes);
    }

    /// Whatever comes, in whatever pieces: no panic, no memory beyond what came, and the same end however it is cut.
    #[test]
    fn any_bytes_end_the_same_way_however_they_are_cut(
        mechanism in 0..3_usize,
        greeted in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        cut in 1..50_usize,
    ) {
        let (_, server, _) = mechanisms()[mechanism].clone();
        let run = |cut: usize| {
            let mut end = End::new(settings(OwnSocketType::Counterpart, server.clone()));
            if greeted {
                let mut greeting = end.out.clone();
                greeting[32] = 0;
                end.hear(&greeting);
            }
            for piece in bytes.chunks(cut) {
                end.hear(piece);
                assert!(end.session.held_bytes() <= 2 * bytes.len() + 64);
            }
            (end.fault, format!("{:?}", end.steps))
        };
        prop_assert_eq!(run(cut), run(bytes.len().max(1)));
    }
}
