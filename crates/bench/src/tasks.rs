//! Tasks of a load: all on one thread, and the first that fails makes the figures worthless.

use std::cell::RefCell;

use anyhow::Result;

/// Runs it on this thread, with whatever it spawns.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default())?.block_on(work)
}

/// The first thing that went wrong.
#[derive(Default)]
pub(crate) struct Failure(RefCell<Option<anyhow::Error>>);

impl Failure {
    pub(crate) fn keep(&self, result: Result<()>) {
        if let Err(error) = result {
            self.0.borrow_mut().get_or_insert(error);
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.0.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn the_first_failure_is_kept_until_it_is_looked_at() {
        let failure = Failure::default();
        failure.keep(Ok(()));
        assert!(failure.check().is_ok());
        failure.keep(Err(anyhow!("first")));
        failure.keep(Err(anyhow!("second")));
        assert_eq!(failure.check().unwrap_err().to_string(), "first");
        assert!(failure.check().is_ok());
    }
}
