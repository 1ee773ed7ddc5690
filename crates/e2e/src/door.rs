//! The network in which a thread opens sockets.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The way into a network namespace; by default this machine's own network, where everyone is already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Door {
    namespace: Option<Arc<File>>,
}

impl Door {
    /// Of a namespace that has a name, by the file that stands for it.
    pub(crate) fn open(file: &Path) -> std::io::Result<Self> {
        Ok(Self { namespace: Some(Arc::new(File::open(file)?)) })
    }

    /// Does something there. Sockets that it opens stay there.
    pub(crate) fn within<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        let Some(namespace) = &self.namespace else { return what() };
        // A thread of its own, because a thread that went in does not find its way out.
        let run = || {
            let entered = move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network));
            entered.expect("we made this namespace");
            what()
        };
        thread::scope(|scope| match scope.spawn(run).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}
