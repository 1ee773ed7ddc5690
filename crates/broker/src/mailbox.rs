//! A mailbox: batches of values from one thread to another.
//!
//! One lock and at most one wake-up a batch: waking a thread that sleeps costs more than all else together.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Values for another thread, in the order in which they were posted.
#[derive(Debug)]
pub(super) struct Mailbox<T> {
    waiting: Mutex<MailboxContents<T>>,
    /// Something waits where nothing did.
    arrived: Notify,
    /// Nothing waits any more.
    emptied: Notify,
}

#[derive(Debug)]
struct MailboxContents<T> {
    values: Vec<T>,
    bytes: usize,
}

impl<T> Mailbox<T> {
    pub(super) fn new() -> Self {
        let waiting = Mutex::new(MailboxContents { values: Vec::new(), bytes: 0 });
        Self { waiting, arrived: Notify::new(), emptied: Notify::new() }
    }

    /// Adds all of `values`, which weigh about so many bytes, and leaves an empty vector behind.
    pub(super) fn post(&self, values: &mut Vec<T>, bytes: usize) {
        if values.is_empty() {
            return;
        }
        let mut waiting = self.lock();
        waiting.bytes += bytes;
        let first = waiting.values.is_empty();
        if first {
            // The two vectors change places, so that in the long run nothing is allocated.
            mem::swap(&mut waiting.values, values);
        } else {
            waiting.values.append(values);
        }
        drop(waiting);
        if first {
            self.arrived.notify_one();
        }
    }

    /// Takes everything there is into an empty vector.
    pub(super) fn take(&self, into: &mut Vec<T>) {
        debug_assert!(into.is_empty(), "what was taken before is dealt with first");
        let mut waiting = self.lock();
        mem::swap(&mut waiting.values, into);
        waiting.bytes = 0;
        drop(waiting);
        self.emptied.notify_waiters();
    }

    /// Waits until there is something to take.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Whether no more than that waits.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.lock().bytes <= bytes
    }

    /// Waits while more than that waits.
    pub(super) async fn room(&self, bytes: usize) {
        loop {
            let emptied = self.emptied.notified();
            if self.has_room(bytes) {
                return;
            }
            emptied.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, MailboxContents<T>> {
        // Nothing in here can panic half-way, so what a thread that panicked left behind is whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    /// Two threads and ten thousand values: each arrives once, in order.
    #[test]
    fn letters_arrive_in_order() {
        let mailbox = Arc::new(Mailbox::new());
        let sender = Arc::clone(&mailbox);
        let thread = std::thread::spawn(move || {
            let mut batch = Vec::new();
            for number in 0..10_000 {
                batch.push(number);
                if number % 7 == 0 {
                    sender.post(&mut batch, 1);
                }
            }
            sender.post(&mut batch, 1);
        });
        let mut all = Vec::new();
        runtime().block_on(async {
            let mut taken = Vec::new();
            while all.len() < 10_000 {
                mailbox.arrived().await;
                mailbox.take(&mut taken);
                all.append(&mut taken);
            }
        });
        thread.join().unwrap();
        assert_eq!(all, (0..10_000).collect::<Vec<_>>());
    }

    /// A sender that posts too much waits until it is taken.
    #[test]
    fn a_full_mailbox_has_no_room_until_it_is_emptied() {
        let mailbox = Arc::new(Mailbox::new());
        mailbox.post(&mut vec!['a'], 100);
        runtime().block_on(async {
            mailbox.room(100).await;
            mailbox.post(&mut vec!['b'], 1);
            let waits = mailbox.room(100);
            tokio::pin!(waits);
            assert!(look_at(waits.as_mut()).await.is_pending());
            let mut taken = Vec::new();
            mailbox.take(&mut taken);
            assert_eq!(taken, ['a', 'b']);
            waits.await;
        });
    }

    /// One look at a future.
    async fn look_at<F: Future>(mut future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context))).await
    }
}
