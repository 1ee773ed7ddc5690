//! Headers of a message: a small MessagePack map of text to text, for sender and receiver only.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::model::Payload;

/// Headers a message may have. More: refused when written, and when read.
pub const HEADERS_MAX: usize = 64;

/// Header names and values. `content-type`, `traceparent`, `tracestate` and `baggage` have their usual meaning, `parts` lists
/// the lengths of the parts of the body ([`crate::model::parts`]); all other names are the user's own.
pub type Headers = BTreeMap<String, String>;

/// Why headers cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum HeadersError {
    /// More than [`HEADERS_MAX`].
    #[error("a message has at most {HEADERS_MAX} headers")]
    TooMany,
    /// The encoded block passes 65,535 bytes.
    #[error("the headers of a message take at most 65,535 bytes")]
    TooLong,
    /// Not a MessagePack map of text to text.
    #[error("the header block is not a map of text to text")]
    Malformed,
}

/// Puts headers and body together; no headers, no block.
pub fn encode(headers: &Headers, body: &[u8]) -> Result<Payload, HeadersError> {
    if headers.is_empty() {
        return Ok(Payload::body(Bytes::copy_from_slice(body)));
    }
    if headers.len() > HEADERS_MAX {
        return Err(HeadersError::TooMany);
    }
    let map = rmp_serde::to_vec(headers).map_err(|_| HeadersError::Malformed)?;
    let length = u16::try_from(map.len()).map_err(|_| HeadersError::TooLong)?;
    let mut bytes = Vec::with_capacity(2 + map.len() + body.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&map);
    bytes.extend_from_slice(body);
    Ok(Payload { headers: true, bytes: bytes.into() })
}

/// Parts a payload into headers and body.
pub fn decode(payload: &Payload) -> Result<(Headers, Bytes), HeadersError> {
    let (map, body) = payload.split();
    if map.is_empty() {
        return Ok((Headers::new(), body));
    }
    let headers: Headers = rmp_serde::from_slice(&map).map_err(|_| HeadersError::Malformed)?;
    if headers.len() > HEADERS_MAX { Err(HeadersError::TooMany) } else { Ok((headers, body)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Bodies may be empty or binary, with and without headers. Proves S1.34.
        #[test]
        fn what_is_put_together_comes_apart(
            headers in proptest::collection::btree_map("[a-z-]{1,12}", "\\PC{0,20}", 0..8),
            body in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let payload = encode(&headers, &body).expect("within the limits");
            prop_assert_eq!(payload.headers, !headers.is_empty());
            prop_assert_eq!(decode(&payload), Ok((headers, Bytes::from(body))));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&Payload { headers: true, bytes: bytes.into() });
        }
    }

    #[test]
    fn the_limits_hold() {
        let many: Headers = (0..=HEADERS_MAX).map(|i| (i.to_string(), String::new())).collect();
        assert_eq!(encode(&many, b""), Err(HeadersError::TooMany));
        let long = Headers::from([("k".to_owned(), "v".repeat(70_000))]);
        assert_eq!(encode(&long, b""), Err(HeadersError::TooLong));
    }
}
