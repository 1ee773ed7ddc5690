//! Headers and a body, in either direction.

use std::str::Utf8Error;
use std::time::Duration;

use bytes::Bytes;
use turno_proto::headers::{self, Headers, HeadersError};
use turno_proto::model::Payload;

/// Headers and a body: what a request carries, and what its reply is.
///
/// Text and bytes convert into a message without headers, so most calls need no `Message`:
///
/// ```
/// use turno_client::Message;
///
/// let plain = Message::from("hello");
/// let with_header = Message::new("hello").header("content-type", "text/plain");
/// assert_eq!(plain.body, with_header.body);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Header names and values.
    pub headers: Headers,
    /// The body. Brokers never look into it.
    pub body: Bytes,
}

impl Message {
    /// A message without headers.
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { headers: Headers::new(), body: body.into() }
    }

    /// Adds a header; the same name again replaces it.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Replaces all headers.
    #[must_use]
    pub fn headers(mut self, headers: Headers) -> Self {
        self.headers = headers;
        self
    }

    /// The body as text.
    pub fn text(&self) -> Result<&str, Utf8Error> {
        str::from_utf8(&self.body)
    }

    pub(crate) fn from_payload(payload: &Payload) -> Result<Self, HeadersError> {
        let (headers, body) = headers::decode(payload)?;
        Ok(Self { headers, body })
    }

    pub(crate) fn into_payload(self) -> Result<Payload, HeadersError> {
        // Without headers the body goes out as it is, uncopied.
        if self.headers.is_empty() { Ok(Payload::body(self.body)) } else { headers::encode(&self.headers, &self.body) }
    }
}

impl From<&str> for Message {
    fn from(body: &str) -> Self {
        Self::new(Bytes::copy_from_slice(body.as_bytes()))
    }
}

impl From<&[u8]> for Message {
    fn from(body: &[u8]) -> Self {
        Self::new(Bytes::copy_from_slice(body))
    }
}

impl From<String> for Message {
    fn from(body: String) -> Self {
        Self::new(body)
    }
}

impl From<Vec<u8>> for Message {
    fn from(body: Vec<u8>) -> Self {
        Self::new(body)
    }
}

impl From<Bytes> for Message {
    fn from(body: Bytes) -> Self {
        Self::new(body)
    }
}

/// Milliseconds for the wire: at least one, so that a short time-out is not read as none.
pub(crate) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_headers_and_body() {
        let message = Message::from(vec![0, 1, 2]).header("content-type", "x/y");
        let payload = message.clone().into_payload().expect("within the limits");
        assert_eq!(Message::from_payload(&payload), Ok(message));
        assert_eq!(Message::from("hi").text(), Ok("hi"));
        assert!(Message::from(&[0xff][..]).text().is_err());
    }
}
