//! Messages of several parts: the body is the parts one behind the other, and a header lists their lengths.

use bytes::Bytes;

use super::limits;

/// The header that lists the lengths of the parts, in decimal and separated by one blank. A message of one part has none.
pub const HEADER: &str = "parts";

/// Why a list of lengths does not fit its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// Not decimal numbers with one blank between them.
    #[error("invalid header `parts`: must be lengths in decimal, separated by one blank")]
    Malformed,
    /// Over [`limits::ZMTP_PARTS_MAX`].
    #[error("a message has at most {} parts", limits::ZMTP_PARTS_MAX)]
    TooMany,
    /// The lengths together are not the length of the body.
    #[error("invalid header `parts`: the lengths add up to another length than the body has")]
    WrongSum,
}

/// The value of [`HEADER`] for parts of these lengths; `None` for one part, which needs no header.
pub fn lengths(lengths: impl ExactSizeIterator<Item = usize>) -> Option<String> {
    if lengths.len() < 2 {
        return None;
    }
    let mut value = String::new();
    for length in lengths {
        if !value.is_empty() {
            value.push(' ');
        }
        value.push_str(&length.to_string());
    }
    Some(value)
}

/// The parts of a body, by the value of [`HEADER`] if there is one. They share the memory of the body.
pub fn split(value: Option<&str>, body: &Bytes) -> Result<Vec<Bytes>, PartsError> {
    let Some(value) = value else { return Ok(vec![body.clone()]) };
    let mut parts = Vec::new();
    let mut at = 0_usize;
    for word in value.split(' ') {
        if parts.len() >= limits::ZMTP_PARTS_MAX {
            return Err(PartsError::TooMany);
        }
        // Of a sign or an empty word `parse` would take the first.
        if !word.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(PartsError::Malformed);
        }
        let length: usize = word.parse().map_err(|_| PartsError::Malformed)?;
        let end = at.checked_add(length).filter(|end| *end <= body.len()).ok_or(PartsError::WrongSum)?;
        parts.push(body.slice(at..end));
        at = end;
    }
    if at == body.len() { Ok(parts) } else { Err(PartsError::WrongSum) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_come_back_as_they_were(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 1..9)) {
            let value = lengths(parts.iter().map(Vec::len));
            prop_assert_eq!(value.is_none(), parts.len() == 1);
            let body = Bytes::from(parts.concat());
            prop_assert_eq!(split(value.as_deref(), &body).unwrap(), parts);
        }

        #[test]
        fn any_text_is_taken_or_refused(value in "[0-9 +a-]{0,12}", body in proptest::collection::vec(any::<u8>(), 0..20)) {
            let body = Bytes::from(body);
            if let Ok(parts) = split(Some(&value), &body) {
                prop_assert_eq!(parts.concat(), &body[..]);
            }
        }
    }

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        let many = vec!["0"; limits::ZMTP_PARTS_MAX + 1].join(" ");
        let table = [
            ("", PartsError::Malformed),
            ("1 2 ", PartsError::Malformed),
            ("1  2", PartsError::Malformed),
            ("+1 2", PartsError::Malformed),
            ("1,2", PartsError::Malformed),
            ("1 1", PartsError::WrongSum),
            ("2 2", PartsError::WrongSum),
            ("18446744073709551615 4", PartsError::WrongSum),
            ("99999999999999999999 4", PartsError::Malformed),
            (&many, PartsError::TooMany),
        ];
        for (value, error) in table {
            assert_eq!(split(Some(value), &Bytes::from_static(b"abc")), Err(error), "{value}");
        }
        assert_eq!(split(Some("3"), &Bytes::from_static(b"abc")).unwrap(), ["abc"], "one part may have the header");
        assert_eq!(lengths([2, 0, 1].into_iter()).as_deref(), Some("2 0 1"));
    }
}
