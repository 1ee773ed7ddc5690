//! The builders and streams of the async client, with `wait` in place of `await` and iterators in place of streams.

use std::time::Duration;

use bytes::Bytes;
use turno_proto::model::{BroadcastEnd, Filter};

use super::runtime::wait;
use crate::{Answer, Error, Event, Message, Received, ReplyPart, Stored};

macro_rules! builder {
    ($(#[$doc:meta])* $name:ident -> $output:ty { $( $method:ident($($arg:ident: $type:ty),*) )* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[must_use = "nothing is sent before `wait`"]
        pub struct $name(pub(super) crate::$name);

        impl $name {
            $(
                #[doc = concat!("See [`crate::", stringify!($name), "::", stringify!($method), "`].")]
                pub fn $method(self, $($arg: $type),*) -> Self {
                    Self(self.0.$method($($arg),*))
                }
            )*

            /// Makes the call and waits for its result.
            pub fn wait(self) -> Result<$output, Error> {
                wait(self.0.into_future()).map(Into::into)
            }
        }
    };
}

builder! {
    /// A request; see [`crate::RequestBuilder`].
    RequestBuilder -> Message {
        header(name: impl Into<String>, value: impl Into<String>)
        timeout(timeout: Duration)
        deadline(deadline: Duration)
        cancel_on_timeout()
        continue_on_disconnect()
        retries(retries: impl Into<Option<u8>>)
        priority(priority: impl Into<Option<u8>>)
        cost(cost: impl Into<Option<u16>>)
        fail_fast()
        idempotent()
    }
}

impl RequestBuilder {
    /// Wants no reply; see [`crate::RequestBuilder::no_reply`].
    pub fn no_reply(self) -> NoReplyBuilder {
        NoReplyBuilder(self.0.no_reply())
    }

    /// Makes the request and gives the reply piece by piece.
    pub fn stream(self) -> Result<ReplyStream, Error> {
        wait(self.0.stream()).map(ReplyStream)
    }
}

builder! {
    /// A request that wants no reply; see [`crate::NoReplyBuilder`].
    NoReplyBuilder -> () {}
}

builder! {
    /// A send; see [`crate::SendBuilder`].
    SendBuilder -> Stored {
        header(name: impl Into<String>, value: impl Into<String>)
        ttl(ttl: impl Into<Option<Duration>>)
        retries(retries: impl Into<Option<u8>>)
        priority(priority: impl Into<Option<u8>>)
        cost(cost: impl Into<Option<u16>>)
        dedup_id(dedup_id: impl Into<Bytes>)
        idempotent()
    }
}

builder! {
    /// A broadcast; see [`crate::BroadcastBuilder`].
    BroadcastBuilder -> Broadcast {
        header(name: impl Into<String>, value: impl Into<String>)
        timeout(timeout: Duration)
        no_reply()
        skip_self()
        idempotent()
    }
}

builder! {
    /// An event to publish; see [`crate::PublishBuilder`].
    PublishBuilder -> () {
        header(name: impl Into<String>, value: impl Into<String>)
        confirmed()
    }
}

builder! {
    /// A subscription that has not begun; see [`crate::SubscribeBuilder`].
    SubscribeBuilder -> Subscription {
        end_on_loss()
    }
}

impl SubscribeBuilder {
    /// See [`crate::SubscribeBuilder::filter`].
    pub fn filter<F>(self, filter: F) -> Self
    where
        F: TryInto<Filter>,
        Error: From<F::Error>,
    {
        Self(self.0.filter(filter))
    }
}

macro_rules! iterator {
    ($(#[$doc:meta])* $name:ident: $item:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(crate::$name);

        impl From<crate::$name> for $name {
            fn from(stream: crate::$name) -> Self {
                Self(stream)
            }
        }

        impl Iterator for $name {
            type Item = Result<$item, Error>;

            fn next(&mut self) -> Option<Self::Item> {
                wait(self.0.next())
            }
        }
    };
}

iterator! {
    /// The pieces of a reply, as an iterator that blocks; see [`crate::ReplyStream`].
    ReplyStream: Message
}

impl ReplyStream {
    /// The next piece or progress report; `None` after the last piece.
    pub fn next_part(&mut self) -> Option<Result<ReplyPart, Error>> {
        wait(self.0.next_part())
    }
}

iterator! {
    /// The answers to a broadcast, as an iterator that blocks; see [`crate::Broadcast`].
    Broadcast: Answer
}

impl Broadcast {
    /// How it ended, once the iterator gave `None`.
    pub const fn end(&self) -> Option<&BroadcastEnd> {
        self.0.end()
    }

    /// Waits for the end and gives all answers in order of arrival, and the end.
    pub fn finish(self) -> Result<(Vec<Answer>, BroadcastEnd), Error> {
        wait(self.0.finish())
    }
}

iterator! {
    /// The events of a subscription, as an iterator that blocks; see [`crate::Subscription`].
    Subscription: Received
}

impl Subscription {
    /// The next event; gaps are skipped.
    pub fn next_event(&mut self) -> Option<Result<Event, Error>> {
        wait(self.0.next_event())
    }
}
