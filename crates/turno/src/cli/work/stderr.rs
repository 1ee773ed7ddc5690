//! Forwarding of programs' stderr, which never blocks the connection to the broker.

use std::io::{self, Write as _};
use std::sync::mpsc as std_mpsc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

/// Pieces that wait to be written. More: the programs wait.
const PIECES_MAX: usize = 64;
/// How long the last pieces may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Where a program's stderr goes.
pub(crate) type StderrSender = mpsc::Sender<Bytes>;

/// A thread that writes to our stderr.
pub(crate) struct StderrPipe {
    sender: StderrSender,
    done: std_mpsc::Receiver<()>,
}

impl StderrPipe {
    pub(crate) fn start() -> Self {
        let (sender, mut pieces) = mpsc::channel::<Bytes>(PIECES_MAX);
        let (tell, done) = std_mpsc::channel();
        std::thread::spawn(move || {
            while let Some(piece) = pieces.blocking_recv() {
                // Nobody can be told that stderr is gone.
                let _ = io::stderr().lock().write_all(&piece);
            }
            let _ = tell.send(());
        });
        Self { sender, done }
    }

    pub(crate) fn sender(&self) -> StderrSender {
        self.sender.clone()
    }

    /// Waits for the last pieces, if all programs are gone.
    pub(crate) fn finish(self) {
        drop(self.sender);
        let _ = self.done.recv_timeout(LAST_WORDS);
    }
}
