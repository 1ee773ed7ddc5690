//! Paged listings of a broker, as one stream.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::Error;

type Fetching<T> = Pin<Box<dyn Future<Output = Result<Page<T>, Error>> + Send>>;
type Fetch<T> = Box<dyn FnOnce() -> Fetching<T> + Send>;

/// One page, and how to get the next.
struct Page<T> {
    items: VecDeque<T>,
    next: Option<Fetch<T>>,
}

/// A list of the broker, fetched page by page: a [`Stream`].
///
/// ```
/// # let broker = turno_broker::Broker::start_loopback()?;
/// # let url = broker.url();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let client = turno_client::Client::connect(&url).await?;
/// # client.send("emails", "to: you").await?;
/// let mut queues = client.queues().list();
/// while let Some(queue) = queues.next().await {
///     let queue = queue?;
///     println!("{}: {} waiting", queue.name, queue.ready);
/// }
/// # Ok::<(), turno_client::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cancel safety
///
/// [`next`](Self::next) is cancel safe: dropping its future loses no item.
#[must_use = "nothing is fetched before it is read"]
pub struct Pages<T> {
    items: VecDeque<T>,
    fetching: Option<Fetching<T>>,
    next: Option<Fetch<T>>,
}

impl<T: Send + 'static> Pages<T> {
    /// `fetch` gives a page and where the next one begins.
    pub(crate) fn new<C, F>(fetch: impl Fn(Option<C>) -> F + Send + Sync + 'static) -> Self
    where
        C: Send + 'static,
        F: Future<Output = Result<(Vec<T>, Option<C>), Error>> + Send + 'static,
    {
        Self::until_end(move |at| {
            let page = fetch(at);
            async move {
                let (items, next) = page.await?;
                // A page without items is the last, whatever the broker says: nobody asks for ever.
                let next = next.filter(|_| !items.is_empty());
                Ok((items, next))
            }
        })
    }

    /// The same, where a page without items is not the end.
    pub(crate) fn until_end<C, F>(fetch: impl Fn(Option<C>) -> F + Send + Sync + 'static) -> Self
    where
        C: Send + 'static,
        F: Future<Output = Result<(Vec<T>, Option<C>), Error>> + Send + 'static,
    {
        Self { items: VecDeque::new(), fetching: None, next: Some(from(Arc::new(fetch), None)) }
    }

    /// The next item; `None` after the last. An error is the end.
    pub async fn next(&mut self) -> Option<Result<T, Error>> {
        std::future::poll_fn(|context| self.poll_item(context)).await
    }

    /// All items that are left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the items that were fetched; it changes nothing at the broker.
    pub async fn collect(mut self) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        while let Some(item) = self.next().await {
            all.push(item?);
        }
        Ok(all)
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, Error>>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            if let Some(fetching) = &mut self.fetching {
                let page = ready!(fetching.as_mut().poll(context));
                self.fetching = None;
                match page {
                    Ok(Page { items, next }) => (self.items, self.next) = (items, next),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            } else if let Some(fetch) = self.next.take() {
                self.fetching = Some(fetch());
            } else {
                return Poll::Ready(None);
            }
        }
    }
}

/// Fetches from there on.
fn from<T, C, F>(fetch: Arc<dyn Fn(Option<C>) -> F + Send + Sync>, at: Option<C>) -> Fetch<T>
where
    T: Send + 'static,
    C: Send + 'static,
    F: Future<Output = Result<(Vec<T>, Option<C>), Error>> + Send + 'static,
{
    Box::new(move || {
        Box::pin(async move {
            let (items, next) = fetch(at).await?;
            let next = next.map(|at| from(fetch, Some(at)));
            Ok(Page { items: items.into(), next })
        })
    })
}

impl<T: Send + Unpin + 'static> Stream for Pages<T> {
    type Item = Result<T, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_item(context)
    }
}

impl<T> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("fetched", &self.items.len()).finish_non_exhaustive()
    }
}

/// The answer to an admin call, taken apart; another answer is an error.
macro_rules! answer {
    ($client:expr, $call:expr, $pattern:pat => $value:expr) => {
        match $client.ask($call).await {
            Ok($pattern) => Ok($value),
            Ok(other) => Err($crate::Error::unexpected(&other)),
            Err(error) => Err(error),
        }
    };
}

pub(crate) use answer;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pages_follow_each_other() {
        for (end, expected) in [(0, vec![]), (2, vec![0, 1]), (3, vec![0, 1, 2]), (7, (0..7).collect())] {
            // Three numbers a page; after a full last page there is an empty one.
            let pages = Pages::new(move |at: Option<u32>| async move {
                let at = at.unwrap_or(0);
                Ok(((at..end.min(at + 3)).collect(), Some(at + 3)))
            });
            assert_eq!(pages.collect().await, Ok(expected), "{end}");
        }
    }

    #[tokio::test]
    async fn an_error_is_the_end() {
        let mut pages = Pages::new(|at: Option<u32>| async move {
            if at.is_none() { Ok((vec![1], Some(1))) } else { Err(Error::closed()) }
        });
        assert_eq!(pages.next().await, Some(Ok(1)));
        assert_eq!(pages.next().await, Some(Err(Error::closed())));
        assert_eq!(pages.next().await, None);
    }
}
