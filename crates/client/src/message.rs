//! Headers and a body, in either direction.

use std::str::Utf8Error;
use std::time::Duration;

use bytes::Bytes;
use turno_proto::headers::{self, Headers, HeadersError};
use turno_proto::model::{Payload, parts};

use crate::Error;

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

    /// A message of several parts, such as the frames of a ZeroMQ message. One part is the same as [`new`](Self::new), and
    /// no part an empty body.
    ///
    /// ```
    /// use turno_client::Message;
    ///
    /// let message = Message::from_parts(["SET", "", "42"])?;
    /// assert_eq!(message.body, "SET42");
    /// assert_eq!(message.parts(), ["SET", "", "42"]);
    /// # Ok::<(), turno_client::Error>(())
    /// ```
    ///
    /// More than 1,024 parts are an error with the code `too_many_parts`.
    pub fn from_parts<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        let (list, body) = parts::join(parts)?;
        let headers = list.map(|list| (parts::HEADER.to_owned(), list)).into_iter().collect();
        Ok(Self { headers, body })
    }

    /// Adds a header; the same name again replaces it. The name `parts` is for [`from_parts`](Self::from_parts).
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

    /// The parts of the message, at least one; they share the memory of the body. A message without a list of parts, or
    /// with a list that does not fit the body, has one part: the body.
    pub fn parts(&self) -> Vec<Bytes> {
        parts::of(&self.headers, &self.body)
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
    use crate::{Code, ErrorKind};

    #[test]
    fn a_message_keeps_headers_and_body() {
        let message = Message::from(vec![0, 1, 2]).header("content-type", "x/y");
        let payload = message.clone().into_payload().expect("within the limits");
        assert_eq!(Message::from_payload(&payload), Ok(message));
        assert_eq!(Message::from("hi").text(), Ok("hi"));
        assert!(Message::from(&[0xff][..]).text().is_err());
    }

    #[test]
    fn parts_are_a_body_and_a_list() {
        let several = Message::from_parts([&b"a"[..], b"", b"\xff\n"]).expect("few parts").header("k", "v");
        assert_eq!((several.headers["parts"].as_str(), &several.body[..]), ("1 0 2", &b"a\xff\n"[..]));
        let payload = several.into_payload().expect("within the limits");
        let read = Message::from_payload(&payload).expect("our own");
        assert_eq!(read.parts(), [&b"a"[..], b"", b"\xff\n"]);
        assert_eq!(Message::from_parts(["x"]).as_ref(), Ok(&Message::new("x")), "one part is as before");
        assert_eq!(Message::from_parts(Vec::<Bytes>::new()), Ok(Message::default()));
        assert_eq!((Message::new("x").parts(), Message::default().parts()), (vec!["x".into()], vec![Bytes::new()]));
    }

    #[test]
    fn a_list_that_does_not_fit_is_none() {
        for list in ["1 1", "", "-1 4", "one two", "3 0 0 1", &["0"; 1_025].join(" ")] {
            assert_eq!(Message::new("abc").header("parts", list).parts(), ["abc"], "{list}");
        }
        let error = Message::from_parts(vec!["x"; 1_025]).expect_err("too many");
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, Code::TooManyParts));
    }

    /// As any header that is no text: the block cannot be read.
    #[test]
    fn a_list_that_is_no_text_makes_the_headers_invalid() {
        for value in [&b"\x02"[..], b"\x92\x01\x02", b"\xc0", b"\xa1\xff"] {
            let map = [b"\x81\xa5parts", value].concat();
            let bytes = [&[u8::try_from(map.len()).unwrap(), 0], &map[..], b"abc"].concat();
            let read = Message::from_payload(&Payload { headers: true, bytes: bytes.into() });
            assert_eq!(read, Err(HeadersError::Malformed), "{value:?}");
        }
    }
}
