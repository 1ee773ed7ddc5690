//! Any row of operations does the same to every backend, whatever is opened again in between.

use proptest::collection::vec;
use proptest::prelude::*;
use turno_store::{Batch, RecordNo, Space, Store};

use crate::backends::{Backend, InMemory, Simulated};
use crate::model::{Contents, commit};

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<(u8, u64, u16)>),
    Reopen,
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    let op = (0..4_u8, 0..40_u64, 0..400_u16);
    prop_oneof![8 => vec(op, 0..8).prop_map(Step::Commit), 1 => Just(Step::Reopen), 1 => Just(Step::Compact)]
}

fn batch(ops: &[(u8, u64, u16)]) -> Batch {
    let mut batch = Batch::new();
    for (kind, number, len) in ops {
        let value = vec![*len as u8; usize::from(*len)];
        match kind {
            0 => batch.put(Space(1), RecordNo(*number * 1_000), &value),
            1 => batch.delete(RecordNo(*number * 1_000)),
            2 => batch.set(Space(2), &number.to_be_bytes(), &value),
            _ => batch.unset(Space(2), &number.to_be_bytes()),
        }
    }
    batch
}

fn play<B: Backend>(steps: &[Step]) -> Vec<Contents> {
    let mut backend = B::new();
    let mut store = backend.open();
    let mut seen = Vec::new();
    for step in steps {
        match step {
            Step::Commit(ops) => {
                let outcome = commit(&mut store, &mut batch(ops));
                assert!(outcome.is_ok() || batch(ops).len() > store.capacity().batch_bytes_max);
            }
            Step::Reopen => {
                drop(store);
                store = backend.open();
            }
            Step::Compact => while store.compact().expect("a good disk") {},
        }
        seen.push(Contents::of(&mut store));
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn memory_and_disk_agree(steps in vec(step(), 1..60)) {
        prop_assert_eq!(play::<InMemory>(&steps), play::<Simulated>(&steps));
    }
}
