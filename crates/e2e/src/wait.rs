//! Waiting for a condition, never for luck. The one place of the tests that sleeps, and that says for how long.

use std::thread;
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(5);

/// How long anything may take before the test fails. It is no measure of speed: a machine with ten times as much to do
/// as it can do keeps within it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The `--timeout` of a command that is meant to run out of time. It also limits the time for connecting, so that less
/// would end with `cannot_connect` on a busy machine.
pub const SHORT: &str = "2s";

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

/// Waits until a condition holds; fails the test if it does not within [`PATIENCE`].
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let found = find(PATIENCE, || holds().then_some(()));
    assert!(found.is_some(), "waited in vain: {what}");
}
