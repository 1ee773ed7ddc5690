//! The thread that connections live on, and waiting for it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::Error;

/// A runtime on a thread of its own. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Runtime {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    /// With at most so many threads for blocking functions.
    pub(super) fn start(blocking_threads: usize) -> Result<Self, Error> {
        let mut builder = Builder::new_current_thread();
        builder.enable_all().max_blocking_threads(blocking_threads).thread_name("turno-client");
        let runtime = builder.build().map_err(Error::no_thread)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("turno-client".to_owned()).spawn(move || {
            // An error means that the sender was dropped, which is the end as well.
            let _ = runtime.block_on(stopped);
            // A handler that does not stop must not hold up its program.
            runtime.shutdown_background();
        });
        let thread = thread.map_err(Error::no_thread)?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Waits for a future that starts tasks on the runtime.
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        let _guard = self.handle.enter();
        wait(future)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed already.
            let _ = thread.join();
        }
    }
}

/// Blocks this thread until the future is done. The runtime's thread does the work; this one only takes the result.
pub(super) fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
