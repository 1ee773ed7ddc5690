//! Waiting for a condition, never for luck. The one place of the tests that sleeps.

use std::thread;
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(5);

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Looks until there is something to find, or the time is over.
pub fn find<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + within;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(STEP);
    }
}

/// Waits until a condition holds; fails the test if it does not in 20 s.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let found = find(PATIENCE, || holds().then_some(()));
    assert!(found.is_some(), "waited in vain: {what}");
}
