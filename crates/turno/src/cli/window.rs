//! A window of concurrent calls, whose results come in the order of their starts.

use std::collections::BTreeMap;
use std::future::Future;

use tokio::task::JoinSet;

/// Ends that may wait for an earlier one, for each call that may run. More: no new call is begun.
const AHEAD: u64 = 16;

/// A bounded number of running calls.
pub(crate) struct Window<T> {
    running: JoinSet<(u64, T)>,
    ended: BTreeMap<u64, T>,
    begun: u64,
    given: u64,
    running_max: usize,
}

impl<T: Send + 'static> Window<T> {
    pub(crate) fn new(running_max: usize) -> Self {
        Self { running: JoinSet::new(), ended: BTreeMap::new(), begun: 0, given: 0, running_max: running_max.max(1) }
    }

    /// Whether another call may begin now.
    pub(crate) fn has_room(&self) -> bool {
        let ahead_max = AHEAD.saturating_mul(self.running_max as u64);
        self.running.len() < self.running_max && self.begun - self.given < ahead_max
    }

    /// Whether nothing runs and nothing waits to be given out.
    pub(crate) fn is_empty(&self) -> bool {
        self.begun == self.given
    }

    /// Begins a call. Ask [`Self::has_room`] first.
    pub(crate) fn begin(&mut self, call: impl Future<Output = T> + Send + 'static) {
        let number = self.begun;
        self.begun += 1;
        self.running.spawn(async move { (number, call.await) });
    }

    /// Waits until another call may begin, or an end can be given out: then it is. Safe to be dropped.
    pub(crate) async fn next(&mut self) -> Option<T> {
        loop {
            if let Some(end) = self.ended.remove(&self.given) {
                self.given += 1;
                return Some(end);
            }
            if !self.advance().await || (self.has_room() && !self.ended.contains_key(&self.given)) {
                return None;
            }
        }
    }

    /// The next end in order; `None` once all are given out.
    pub(crate) async fn finish(&mut self) -> Option<T> {
        while !self.ended.contains_key(&self.given) {
            if !self.advance().await {
                return None;
            }
        }
        self.given += 1;
        self.ended.remove(&(self.given - 1))
    }

    async fn advance(&mut self) -> bool {
        match self.running.join_next().await {
            Some(Ok((number, end))) => {
                self.ended.insert(number, end);
                true
            }
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => false,
            },
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn ends_come_in_order_and_few_run_at_a_time() {
        let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let mut window = Window::new(4);
        let mut given = Vec::new();
        for number in 0_u64..100 {
            while !window.has_room() {
                given.extend(window.next().await);
            }
            let count = Arc::clone(&running);
            window.begin(async move {
                let (now, most) = &*count;
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                for _ in 0..=number * 7 % 5 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::Relaxed);
                number
            });
        }
        while let Some(end) = window.finish().await {
            given.push(end);
        }
        assert_eq!(given, (0..100).collect::<Vec<u64>>());
        assert_eq!(running.1.load(Ordering::Relaxed), 4);
        assert!(window.is_empty());
    }

    #[tokio::test]
    async fn a_slow_first_holds_back_only_so_many() {
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let mut window = Window::new(2);
        window.begin(async {
            let _ = released.await;
            0
        });
        // Room is made by ends that come.
        while window.begun < 2 * AHEAD {
            while !window.has_room() {
                assert_eq!(window.next().await, None);
            }
            window.begin(std::future::ready(window.begun));
        }
        // absence: no more of it is made.
        let room = async {
            while !window.has_room() {
                assert_eq!(window.next().await, None);
            }
        };
        assert!(tokio::time::timeout(Duration::from_millis(200), room).await.is_err());
        let _ = release.send(());
        let mut given = Vec::new();
        while let Some(end) = window.finish().await {
            given.push(end);
        }
        assert_eq!(given, (0..2 * AHEAD).collect::<Vec<u64>>());
    }
}
