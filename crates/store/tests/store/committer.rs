//! Group commit: tickets in order, groups whole, answers once.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use turno_store::limits::{ATTEMPT_MS, WAITING_BYTES_MAX};
use turno_store::{
    Batch, Capacity, CommitError, CommitNo, Committer, Done, Epoch, Item, Mem, MemFault, MemMedium, ReadError,
    RecordNo, Retry, Space, Store, Stored, Ticket, Turn, Usage,
};

use crate::backends::{Backend, Simulated};
use crate::model::{Contents, numbers};

/// A committer, and a bell that rings when it has something to say.
struct Rig {
    committer: Committer,
    bell: Receiver<()>,
    done: Vec<Done>,
}

impl Rig {
    fn new(store: impl Store + 'static) -> Self {
        let (ring, bell) = sync_channel(1);
        // A bell that rings already need not ring twice.
        let committer = Committer::start(store, move || _ = ring.try_send(())).unwrap();
        Self { committer, bell, done: Vec::new() }
    }

    fn put(&mut self, number: u64) -> Ticket {
        self.committer.batch().put(Space(1), RecordNo(number), b"message");
        self.committer.end_group()
    }

    /// Waits until it has said this.
    fn wait_for(&mut self, what: impl Fn(&Done) -> bool) {
        while !self.done.iter().any(&what) {
            self.bell.recv_timeout(Duration::from_secs(120)).expect("the committer answers");
            self.committer.take_done(&mut self.done);
        }
    }

    fn wait(&mut self, ticket: Ticket) {
        self.wait_for(|done| matches!(done, Done::Durable(upto) if *upto >= ticket));
    }
}

#[test]
fn what_is_submitted_becomes_durable_in_order() {
    let mut backend = Simulated::new();
    let mut rig = Rig::new(backend.open());
    let mut last = Ticket(0);
    for number in 1..=500 {
        last = rig.put(number);
        if number % 7 == 0 {
            rig.committer.submit();
        }
    }
    rig.committer.submit();
    rig.wait(last);
    let marks: Vec<Ticket> =
        rig.done.iter().map(|done| if let Done::Durable(mark) = done { *mark } else { panic!() }).collect();
    assert!(marks.is_sorted() && marks.last() == Some(&last));
    assert!(rig.committer.close().is_empty());
    assert!(numbers(&mut backend.open()).into_iter().eq(1..=500));
}

#[test]
fn closing_commits_what_was_gathered() {
    let mut backend = Simulated::new();
    let mut rig = Rig::new(backend.open());
    let ticket = rig.put(1);
    assert_eq!(rig.committer.close(), [Done::Durable(ticket)]);
    assert_eq!(numbers(&mut backend.open()), [1]);
}

#[test]
fn dropping_commits_what_was_gathered() {
    let mut backend = Simulated::new();
    let mut rig = Rig::new(backend.open());
    rig.put(1);
    drop(rig);
    assert_eq!(numbers(&mut backend.open()), [1]);
}

#[test]
fn operations_without_an_end_are_a_group_at_the_end_of_the_tick() {
    let medium = MemMedium::new();
    let mut rig = Rig::new(Mem::open(&medium));
    rig.committer.batch().set(Space(1), b"k", b"v");
    rig.committer.submit();
    rig.wait(Ticket(1));
    assert_eq!(Contents::of(&mut Mem::open(&medium)).keyed.len(), 1);
}

#[test]
fn nothing_gathered_is_nothing_said() {
    let rig = Rig::new(Mem::open(&MemMedium::new()));
    assert!(rig.committer.close().is_empty());
}

#[test]
fn records_are_read_after_what_was_submitted_before() {
    let mut backend = Simulated::new();
    let mut rig = Rig::new(backend.open());
    rig.put(1);
    rig.committer.load(RecordNo(1));
    rig.committer.load(RecordNo(2));
    rig.committer.submit();
    rig.wait_for(|done| matches!(done, Done::Loaded(loaded) if loaded.record == RecordNo(2)));
    let found: Vec<_> = rig
        .done
        .iter()
        .filter_map(|done| if let Done::Loaded(loaded) = done { Some(loaded.found.clone()) } else { None })
        .collect();
    assert_eq!(found, [Ok(Some((Space(1), b"message".to_vec()))), Ok(None)]);
}

#[test]
fn an_unknown_outcome_that_was_applied_is_not_applied_twice() {
    for fault in [MemFault::UnknownApplied, MemFault::UnknownLost] {
        let medium = MemMedium::new();
        let mut rig = Rig::new(Mem::open(&medium));
        medium.fail_next(fault);
        let ticket = rig.put(1);
        rig.committer.submit();
        rig.wait(ticket);
        let ticket = rig.put(2);
        rig.committer.submit();
        rig.wait(ticket);
        drop(rig);
        let mut store = Mem::open(&medium);
        // One commit more proves that the one whose outcome was unknown stays.
        let commits = if fault == MemFault::UnknownApplied { 3 } else { 2 };
        assert_eq!((numbers(&mut store), store.last_commit()), (vec![1, 2], Ok(CommitNo(commits))));
    }
}

#[test]
fn a_store_that_is_away_is_asked_again() {
    let medium = MemMedium::new();
    let mut rig = Rig::new(Mem::open(&medium));
    medium.fail_next(MemFault::Unavailable);
    let ticket = rig.put(1);
    rig.committer.submit();
    rig.wait(ticket);
    assert_eq!(numbers(&mut Mem::open(&medium)), [1]);
}

/// Without a thread nothing is done before it is asked for, and waiting for a store that is away costs no time.
#[test]
fn by_hand_a_batch_is_committed_when_it_is_asked_for() {
    let medium = MemMedium::new();
    let (mut committer, mut stepper) = Committer::by_hand(Mem::open(&medium));
    let mut done = Vec::new();
    assert_eq!(stepper.turn(), Turn::Idle);
    medium.fail_next(MemFault::Unavailable);
    committer.batch().put(Space(1), RecordNo(7), b"message");
    committer.submit();
    committer.take_done(&mut done);
    assert_eq!(done, []);
    assert_eq!(stepper.turn(), Turn::Said { waited_ms: ATTEMPT_MS });
    committer.take_done(&mut done);
    assert_eq!(done, [Done::Durable(Ticket(1))]);
    medium.fail_next(MemFault::Fenced);
    committer.batch().delete(RecordNo(7));
    committer.submit();
    assert_eq!(stepper.turn(), Turn::Said { waited_ms: 0 });
    done.clear();
    committer.take_done(&mut done);
    assert!(matches!(done[..], [Done::Fatal(CommitError::Fenced { .. })]), "{done:?}");
}

#[test]
fn a_new_owner_is_fatal_and_told_once() {
    let medium = MemMedium::new();
    let mut rig = Rig::new(Mem::open(&medium));
    medium.fail_next(MemFault::Fenced);
    rig.put(1);
    rig.committer.submit();
    rig.wait_for(|done| matches!(done, Done::Fatal(_)));
    assert_eq!(rig.done, [Done::Fatal(CommitError::Fenced { by: Epoch(2) })]);
    rig.put(2);
    rig.committer.submit();
    assert!(rig.committer.close().is_empty(), "nothing more is said, and closing does not hang");
    assert!(numbers(&mut Mem::open(&medium)).is_empty());
}

#[test]
fn a_failed_sync_is_fatal() {
    let mut backend = Simulated::new();
    let mut rig = Rig::new(backend.open());
    let ticket = rig.put(1);
    rig.committer.submit();
    rig.wait(ticket);
    backend.0.fail_syncs(true);
    rig.put(2);
    rig.committer.submit();
    rig.wait_for(|done| matches!(done, Done::Fatal(CommitError::Unavailable { retry: Retry::Never, .. })));
    assert!(!rig.done.contains(&Done::Durable(Ticket(2))));
}

#[test]
fn on_a_full_store_only_the_groups_that_put_are_refused() {
    let medium = MemMedium::new();
    let mut rig = Rig::new(Mem::open(&medium));
    let ticket = rig.put(1);
    rig.committer.submit();
    rig.wait(ticket);
    rig.done.clear();
    medium.set_bytes_max(0);
    let put = rig.put(2);
    rig.committer.batch().delete(RecordNo(1));
    let delete = rig.committer.end_group();
    rig.committer.batch().delete(RecordNo(1));
    rig.committer.batch().set(Space(1), b"k", b"v");
    let mixed = rig.committer.end_group();
    rig.committer.submit();
    rig.wait(mixed);
    let refused = |ticket| Done::Refused { ticket, why: CommitError::Full };
    assert!(put < delete);
    assert_eq!(rig.done, [refused(put), refused(mixed), Done::Durable(mixed)]);
    assert_eq!(Contents::of(&mut Mem::open(&medium)), Contents::default());
}

#[test]
fn a_group_that_is_too_large_is_refused_alone() {
    let medium = MemMedium::new();
    medium.set_batch_bytes_max(1_000);
    let mut rig = Rig::new(Mem::open(&medium));
    rig.put(1);
    rig.committer.batch().put(Space(1), RecordNo(2), &[0; 1_000]);
    let large = rig.committer.end_group();
    // Together with what was gathered before it would be too long: it goes into the next batch.
    rig.committer.batch().put(Space(1), RecordNo(3), &[0; 960]);
    let last = rig.committer.end_group();
    let done = rig.committer.close();
    assert!(done.contains(&Done::Refused { ticket: large, why: CommitError::TooLarge }), "{done:?}");
    assert_eq!(done.last(), Some(&Done::Durable(last)));
    assert_eq!(numbers(&mut Mem::open(&medium)), [1, 3]);
}

/// A group that was refused for its size is not refused again when the rest of its batch finds no room.
#[test]
fn a_group_is_refused_once() {
    let medium = MemMedium::new();
    medium.set_batch_bytes_max(1_000);
    medium.fail_next(MemFault::Full);
    let mut rig = Rig::new(Mem::open(&medium));
    rig.committer.batch().put(Space(1), RecordNo(1), &[0; 1_000]);
    let large = rig.committer.end_group();
    rig.committer.batch().put(Space(1), RecordNo(2), &[0; 10]);
    let small = rig.committer.end_group();
    let done = rig.committer.close();
    let refused = |ticket, why| Done::Refused { ticket, why };
    let expected = [refused(large, CommitError::TooLarge), refused(small, CommitError::Full), Done::Durable(small)];
    assert_eq!(done, expected);
}

/// A store that stands still until it is told to go on.
struct Gate {
    store: Mem,
    go: Receiver<()>,
}

impl Store for Gate {
    fn epoch(&self) -> Epoch {
        self.store.epoch()
    }
    fn last_commit(&mut self) -> Result<CommitNo, CommitError> {
        self.store.last_commit()
    }
    fn last_record(&self) -> RecordNo {
        self.store.last_record()
    }
    fn capacity(&self) -> Capacity {
        self.store.capacity()
    }
    fn commit(&mut self, epoch: Epoch, no: CommitNo, batch: &mut Batch) -> Result<(), CommitError> {
        self.go.recv().expect("the test says when");
        self.store.commit(epoch, no, batch)
    }
    fn scan(&mut self, visit: &mut dyn FnMut(Item<'_>)) -> Result<(), ReadError> {
        self.store.scan(visit)
    }
    fn read(
        &mut self,
        records: &[RecordNo],
        visit: &mut dyn FnMut(RecordNo, Option<Stored<'_>>),
    ) -> Result<(), ReadError> {
        self.store.read(records, visit)
    }
    fn read_key(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        self.store.read_key(space, key)
    }
    fn compact(&mut self) -> Result<bool, CommitError> {
        self.store.compact()
    }
    fn usage(&self) -> Usage {
        self.store.usage()
    }
}

#[test]
fn what_comes_during_a_commit_goes_into_the_next() {
    let medium = MemMedium::new();
    let (go, wait) = sync_channel(8);
    let mut rig = Rig::new(Gate { store: Mem::open(&medium), go: wait });
    for number in 1..=100 {
        rig.put(number);
        rig.committer.submit();
    }
    // The thread took the first tick or some ticks; all that came since is one batch.
    go.send(()).unwrap();
    go.send(()).unwrap();
    rig.wait(Ticket(100));
    let commits = Mem::open(&medium).last_commit().unwrap();
    assert!(commits <= CommitNo(2), "{commits}");
}

#[test]
fn a_committer_that_falls_behind_says_so() {
    let (go, wait) = sync_channel(1_000);
    let mut rig = Rig::new(Gate { store: Mem::open(&MemMedium::new()), go: wait });
    let mut number = 0;
    while !rig.committer.is_behind() {
        number += 1;
        rig.committer.batch().put(Space(1), RecordNo(number), &[0; 1 << 20]);
        rig.committer.end_group();
        rig.committer.submit();
        assert!(number < (2 * WAITING_BYTES_MAX as u64) >> 20);
    }
    (0..number).for_each(|_| _ = go.send(()));
    rig.wait(Ticket(number));
    rig.committer.take_done(&mut Vec::new());
    assert!(!rig.committer.is_behind());
}

#[test]
fn a_store_that_panics_is_fatal() {
    let (go, wait) = sync_channel(1);
    let mut rig = Rig::new(Gate { store: Mem::open(&MemMedium::new()), go: wait });
    drop(go);
    rig.put(1);
    rig.committer.submit();
    rig.wait_for(|done| matches!(done, Done::Fatal(CommitError::Unavailable { retry: Retry::Never, .. })));
}

#[test]
fn the_store_is_tidied_while_nothing_is_to_do() {
    let mut backend = Simulated::new();
    let mut rig = Rig::new(backend.open());
    for number in 1..=300 {
        rig.put(number);
        rig.committer.submit();
    }
    for number in 1..=300 {
        rig.committer.batch().delete(RecordNo(number));
        rig.committer.end_group();
    }
    rig.committer.submit();
    rig.wait(Ticket(600));
    assert!(rig.committer.close().is_empty());
    assert!(numbers(&mut backend.open()).is_empty());
}
