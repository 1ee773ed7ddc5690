//! A broker inside another program: for tests, and for programs that bring their own.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::error::ServeError;
use crate::run::{Bound, Ended, Until, serve};
use crate::settings::Settings;

/// A broker on a thread of its own. Dropping it drains and ends it.
#[derive(Debug)]
pub struct Broker {
    bound: Bound,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<Ended, ServeError>>>,
}

impl Broker {
    /// Starts a broker and returns once it listens.
    pub fn start(settings: Settings) -> Result<Self, ServeError> {
        let (stop, told) = oneshot::channel();
        let (tell, bound) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("turno-dispatcher".to_owned())
            .spawn(move || {
                serve(settings, Until::Told(told), |_, bound| {
                    // Nobody waits only if the starter is gone, and then the broker is about to end too.
                    let _ = tell.send(bound.clone());
                })
            })
            .map_err(|source| ServeError::System { doing: "start a thread", source })?;
        match bound.recv() {
            Ok(bound) => Ok(Self { bound, stop: Some(stop), thread: Some(thread) }),
            Err(_) => Err(match thread.join() {
                Ok(Err(error)) => error,
                Ok(Ok(_)) | Err(_) => ServeError::System {
                    doing: "start the broker",
                    source: std::io::Error::other("it ended before it listened"),
                },
            }),
        }
    }

    /// Starts a broker on loopback, at any free port, with nothing on disk.
    pub fn start_loopback() -> Result<Self, ServeError> {
        Self::start(Settings::default())
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.bound.native
    }

    /// HOST:PORT where other members of its ring reach it.
    pub fn ring(&self) -> Option<SocketAddr> {
        self.bound.ring
    }

    /// What a client connects to.
    pub fn url(&self) -> String {
        match (self.bound.native.first(), &self.bound.unix) {
            (Some(address), _) => format!("turno://{address}"),
            (None, Some(path)) => format!("unix:{}", path.display()),
            (None, None) => String::new(),
        }
    }

    /// Drains the broker and waits for its end.
    pub fn stop(mut self) -> Result<Ended, ServeError> {
        self.end().unwrap_or_else(|| Ok(Ended::default()))
    }

    /// Waits for its end, which something else brings about: its ring ends, or refuses it.
    pub fn wait(mut self) -> Result<Ended, ServeError> {
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        ended.unwrap_or_else(|| Ok(Ended::default()))
    }

    fn end(&mut self) -> Option<Result<Ended, ServeError>> {
        drop(self.stop.take());
        let thread = self.thread.take()?;
        thread.join().ok()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.end();
    }
}
