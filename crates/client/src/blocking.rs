//! The client for programs without async.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use turno_proto::native::Config;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use crate::{Answer, BroadcastEnd, Error, Heard, Message, Options, Reply, Stored};

/// A [`Client`](crate::Client) whose calls block. It runs on a thread of its own, may be shared by threads, and
/// is closed when it is dropped.
///
/// Calls block the thread they are made on: inside an async program use [`crate::Client`] instead.
#[derive(Debug)]
pub struct Client {
    client: crate::Client,
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Client {
    /// Connects; see [`crate::Client::connect`].
    pub fn connect<O>(options: O) -> Result<Self, Error>
    where
        O: TryInto<Options>,
        Error: From<O::Error>,
    {
        let options = options.try_into()?;
        let failed = |error: std::io::Error| Error::Io(format!("the client's thread cannot be started: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("turno-client".to_owned()).spawn(move || {
            // An error means that the client was dropped: the end as well.
            let _ = runtime.block_on(stopped);
        });
        let thread = thread.map_err(failed)?;
        let connected = wait(&handle, async move { crate::Client::open(options).await });
        match connected {
            Ok(client) => Ok(Self { client, runtime: handle, stop: Some(stop), thread: Some(thread) }),
            Err(error) => {
                drop(stop);
                let _ = thread.join();
                Err(error)
            }
        }
    }

    /// Makes a request and waits for its reply.
    pub fn request(&self, queue: &str, message: impl Into<Message>) -> Result<Reply, Error> {
        let (client, queue, message) = (self.client.clone(), queue.to_owned(), message.into());
        wait(&self.runtime, async move { client.request(&queue, message).await })
    }

    /// Sends a message and waits until the broker has it.
    pub fn send(&self, queue: &str, message: impl Into<Message>) -> Result<Stored, Error> {
        let (client, queue, message) = (self.client.clone(), queue.to_owned(), message.into());
        wait(&self.runtime, async move { client.send(&queue, message).await })
    }

    /// Says something to every consumer of a queue; waits for all answers and the end.
    pub fn broadcast(&self, queue: &str, message: impl Into<Message>) -> Result<(Vec<Answer>, BroadcastEnd), Error> {
        let (client, queue, message) = (self.client.clone(), queue.to_owned(), message.into());
        wait(&self.runtime, async move { client.broadcast(&queue, message).await?.finish().await })
    }

    /// Publishes an event; see [`crate::Client::publish`].
    pub fn publish(&self, topic: &str, message: impl Into<Message>) -> Result<(), Error> {
        let (client, topic, message) = (self.client.clone(), topic.to_owned(), message.into());
        wait(&self.runtime, async move { client.publish(&topic, message).await })
    }

    /// Listens; see [`crate::Client::subscribe`].
    pub fn subscribe(&self, filter: &str) -> Result<Subscription, Error> {
        let (client, filter) = (self.client.clone(), filter.to_owned());
        let inner = wait(&self.runtime, async move { client.subscribe(&filter).await })?;
        Ok(Subscription { inner: Some(inner), runtime: self.runtime.clone() })
    }

    /// Asks about, or changes, something of the broker.
    pub fn admin(&self, call: AdminCall) -> Result<AdminAnswer, Error> {
        let client = self.client.clone();
        wait(&self.runtime, async move { client.admin(call).await })
    }

    /// What the broker connected last said about itself.
    pub fn config(&self) -> Config {
        self.client.config()
    }

    /// Ends the connection and the thread.
    pub fn close(self) {
        // Dropping does it.
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let client = self.client.clone();
        let closed = async move {
            client.close().await;
            Ok(())
        };
        // Whether it could be closed in order or not, the thread ends.
        let _: Result<(), Error> = wait(&self.runtime, closed);
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Events whose topics match a filter, for programs without async: an iterator that blocks. Dropping it ends it.
#[derive(Debug)]
pub struct Subscription {
    inner: Option<crate::Subscription>,
    runtime: Handle,
}

impl Iterator for Subscription {
    type Item = Result<Heard, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut inner = self.inner.take()?;
        let (inner, heard) = wait(&self.runtime, async move {
            let heard = inner.next().await;
            Ok((inner, heard))
        })
        .ok()?;
        self.inner = Some(inner);
        heard
    }
}

/// Runs the future on the client's thread and blocks until it is done.
fn wait<T: Send + 'static>(
    runtime: &Handle,
    future: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let (sender, receiver) = mpsc::sync_channel(1);
    runtime.spawn(async move {
        let _ = sender.send(future.await);
    });
    receiver.recv().unwrap_or(Err(Error::Closed))
}
