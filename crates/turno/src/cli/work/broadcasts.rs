//! A limit on concurrent broadcasts, which take no slots. Here they have a limit: as many programs run for them as the
//! worker has slots, some more wait, and the rest fail at once.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turno_client::Slots;
use turno_proto::model::Code;
use turno_proto::model::limits::{BROADCASTS_WAITING_BYTES_MAX, BROADCASTS_WAITING_MAX};

/// The running and the waiting broadcasts. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Broadcasts {
    running: Arc<Semaphore>,
    running_max: usize,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    count: usize,
    bytes: usize,
    /// Somebody was refused since nobody waited, and that was told.
    told: bool,
}

/// Why a broadcast does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoTurn {
    /// Too many wait. `first`: nobody was told so since the last quiet moment.
    Busy { text: String, first: bool },
    /// Nobody wants it any more.
    Stopped(&'static str),
    /// Its time was over before its turn came.
    Late,
}

impl Broadcasts {
    pub(super) fn new(slots: Slots) -> Self {
        let running_max = match slots {
            // One at a time also where no other work is taken.
            Slots::Limited(count) => usize::try_from(count).unwrap_or(usize::MAX).max(1),
            Slots::Unlimited => Semaphore::MAX_PERMITS,
        };
        Self { running: Arc::new(Semaphore::new(running_max)), running_max, waiting: Arc::default() }
    }

    /// Waits until one more may run, first come first served; it runs for as long as what is returned is kept.
    pub(super) async fn turn(
        &self,
        bytes: usize,
        deadline: Option<Duration>,
        stop: impl Future<Output = &'static str>,
    ) -> Result<OwnedSemaphorePermit, NoTurn> {
        if let Ok(turn) = Arc::clone(&self.running).try_acquire_owned() {
            return Ok(turn);
        }
        let _place = self.wait(bytes)?;
        let late = async {
            match deadline {
                Some(deadline) => tokio::time::sleep(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            reason = stop => Err(NoTurn::Stopped(reason)),
            () = late => Err(NoTurn::Late),
            // Never closed.
            turn = Arc::clone(&self.running).acquire_owned() => turn.map_err(|_| NoTurn::Late),
        }
    }

    fn wait(&self, bytes: usize) -> Result<WaitingPlace, NoTurn> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let full = waiting.count >= BROADCASTS_WAITING_MAX
            || (waiting.count > 0 && waiting.bytes + bytes > BROADCASTS_WAITING_BYTES_MAX);
        if full {
            let first = !std::mem::replace(&mut waiting.told, true);
            let (running, waiting) = (self.running_max, waiting.count);
            let text = format!("{}: {running} broadcasts running and {waiting} waiting", Code::Busy.name());
            return Err(NoTurn::Busy { text, first });
        }
        waiting.count += 1;
        waiting.bytes += bytes;
        Ok(WaitingPlace { waiting: Arc::clone(&self.waiting), bytes })
    }
}

/// A place among those who wait; given back when it is dropped.
struct WaitingPlace {
    waiting: Arc<Mutex<Waiting>>,
    bytes: usize,
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.count -= 1;
        waiting.bytes -= self.bytes;
        if waiting.count == 0 {
            waiting.told = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    use super::*;

    fn waits(future: Pin<&mut impl Future>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// As many run as there are slots; the next waits for the first to end, and comes before later ones.
    #[tokio::test]
    async fn as_many_run_as_there_are_slots() {
        let broadcasts = Broadcasts::new(Slots::Limited(2));
        let first = broadcasts.turn(1, None, pending()).await.expect("room");
        let _second = broadcasts.turn(1, None, pending()).await.expect("room");
        let mut third = pin!(broadcasts.turn(1, None, pending()));
        let mut fourth = pin!(broadcasts.turn(1, None, pending()));
        assert!(waits(third.as_mut()) && waits(fourth.as_mut()));
        drop(first);
        assert!(waits(fourth.as_mut()), "it came later");
        let third = third.await.expect("its turn");
        assert!(waits(fourth.as_mut()));
        drop(third);
        drop(fourth.await.expect("its turn"));
    }

    #[tokio::test]
    async fn no_slots_are_one_and_unlimited_slots_are_no_limit() {
        let none = Broadcasts::new(Slots::Limited(0));
        let _one = none.turn(1, None, pending()).await.expect("room for one");
        assert!(waits(pin!(none.turn(1, None, pending()))));
        let unlimited = Broadcasts::new(Slots::Unlimited);
        let mut turns = Vec::new();
        for _ in 0..2 * BROADCASTS_WAITING_MAX {
            turns.push(unlimited.turn(1, None, pending()).await.expect("room"));
        }
    }

    /// Beyond the limits of number and of bytes they fail at once; that is told once until nobody waits.
    #[tokio::test]
    async fn more_than_may_wait_fail_at_once() {
        let broadcasts = Broadcasts::new(Slots::Limited(1));
        let running = broadcasts.turn(1, None, pending()).await.expect("room");
        let busy = |waiting: usize, first| NoTurn::Busy {
            text: format!("busy: 1 broadcasts running and {waiting} waiting"),
            first,
        };
        {
            let mut large = pin!(broadcasts.turn(2 * BROADCASTS_WAITING_BYTES_MAX, None, pending()));
            assert!(waits(large.as_mut()), "one may always wait");
            assert_eq!(broadcasts.turn(1, None, pending()).await.err(), Some(busy(1, true)));
        }
        let mut places: Vec<_> =
            (0..BROADCASTS_WAITING_MAX).map(|_| Box::pin(broadcasts.turn(1, None, pending()))).collect();
        for place in &mut places {
            assert!(waits(place.as_mut()));
        }
        for first in [true, false] {
            let refused = broadcasts.turn(1, None, pending()).await.err();
            assert_eq!(refused, Some(busy(BROADCASTS_WAITING_MAX, first)));
        }
        places.clear();
        drop(running);
        drop(broadcasts.turn(1, None, pending()).await.expect("all is quiet again"));
    }

    #[tokio::test]
    async fn who_waits_may_be_stopped_and_late() {
        let broadcasts = Broadcasts::new(Slots::Limited(1));
        let _running = broadcasts.turn(1, None, pending()).await.expect("room");
        let stopped = broadcasts.turn(1, None, async { "cancelled" }).await.err();
        assert_eq!(stopped, Some(NoTurn::Stopped("cancelled")));
        let late = broadcasts.turn(1, Some(Duration::from_millis(1)), pending()).await.err();
        assert_eq!(late, Some(NoTurn::Late));
    }
}
