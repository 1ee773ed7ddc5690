//! Messages of several parts: the body is all parts one behind the other, and a header lists their lengths.

use bytes::Bytes;

use super::limits;
use crate::headers::Headers;

/// The header that lists the lengths of the parts, in decimal and separated by one blank. A message of one part has none.
pub const HEADER: &str = "parts";

/// Why a list of lengths does not fit its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum PartsError {
    /// Not decimal numbers with one blank between them.
    #[error("invalid list of parts: must be lengths in decimal, separated by one blank")]
    Malformed,
    /// Over [`limits::MESSAGE_PARTS_MAX`].
    #[error("a message has at most {} parts", limits::MESSAGE_PARTS_MAX)]
    TooMany,
    /// The lengths together are not the length of the body.
    #[error("invalid list of parts: the lengths add up to another length than the body has")]
    WrongSum,
}

/// The value of [`HEADER`] for parts of these lengths; `None` for one part, which needs no header.
pub fn lengths(lengths: impl ExactSizeIterator<Item = usize>) -> Result<Option<String>, PartsError> {
    match lengths.len() {
        0 | 1 => return Ok(None),
        2..=limits::MESSAGE_PARTS_MAX => {}
        _ => return Err(PartsError::TooMany),
    }
    let mut value = String::new();
    for length in lengths {
        if !value.is_empty() {
            value.push(' ');
        }
        value.push_str(&length.to_string());
    }
    Ok(Some(value))
}

/// Puts parts together: the value of [`HEADER`], if there are several, and the body. Without parts the body is empty.
pub fn join<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Result<(Option<String>, Bytes), PartsError> {
    let (mut ends, mut body) = (Vec::new(), Vec::new());
    for part in parts {
        // Checked for each, since the parts may have no end.
        if ends.len() >= limits::MESSAGE_PARTS_MAX {
            return Err(PartsError::TooMany);
        }
        body.extend_from_slice(part.as_ref());
        ends.push(part.as_ref().len());
    }
    Ok((lengths(ends.into_iter())?, body.into()))
}

/// The parts of a body, by the value of [`HEADER`] if there is one. They share the memory of the body.
pub fn split(value: Option<&str>, body: &Bytes) -> Result<Vec<Bytes>, PartsError> {
    let Some(value) = value else { return Ok(vec![body.clone()]) };
    let mut parts = Vec::new();
    let mut at = 0_usize;
    for word in value.split(' ') {
        if parts.len() >= limits::MESSAGE_PARTS_MAX {
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

/// The parts of a message, at least one. A list that does not fit the body counts as none: the body is one part.
pub fn of(headers: &Headers, body: &Bytes) -> Vec<Bytes> {
    split(headers.get(HEADER).map(String::as_str), body).unwrap_or_else(|_| vec![body.clone()])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::headers;

    fn listed(value: Option<String>) -> Headers {
        value.map(|value| (HEADER.to_owned(), value)).into_iter().collect()
    }

    proptest! {
        /// Also as the bytes of a payload.
        #[test]
        fn parts_come_back_as_they_were(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 1..40)) {
            let (value, body) = join(&parts).unwrap();
            prop_assert_eq!(value.is_none(), parts.len() == 1);
            prop_assert_eq!(&body, &parts.concat());
            prop_assert_eq!(&split(value.as_deref(), &body).unwrap(), &parts);
            let payload = headers::encode(&listed(value), &body).unwrap();
            let (headers, body) = headers::decode(&payload).unwrap();
            prop_assert_eq!(of(&headers, &body), parts);
        }

        #[test]
        fn any_text_is_taken_or_refused(value in "[0-9 +a-]{0,12}", body in proptest::collection::vec(any::<u8>(), 0..20)) {
            let body = Bytes::from(body);
            let parts = split(Some(&value), &body);
            if let Ok(parts) = &parts {
                prop_assert_eq!(parts.concat(), &body[..]);
            }
            let one_part = vec![body.clone()];
            prop_assert_eq!(of(&listed(Some(value)), &body), parts.unwrap_or(one_part));
        }
    }

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        let many = vec!["0"; limits::MESSAGE_PARTS_MAX + 1].join(" ");
        let table = [
            ("", PartsError::Malformed),
            (" ", PartsError::Malformed),
            ("1 2 ", PartsError::Malformed),
            (" 1 2", PartsError::Malformed),
            ("1  2", PartsError::Malformed),
            ("1\t2", PartsError::Malformed),
            ("+1 2", PartsError::Malformed),
            ("-1 4", PartsError::Malformed),
            ("1,2", PartsError::Malformed),
            ("[1, 2]", PartsError::Malformed),
            ("0x1 2", PartsError::Malformed),
            ("1.0 2", PartsError::Malformed),
            ("١ ٢", PartsError::Malformed),
            ("two one", PartsError::Malformed),
            ("0", PartsError::WrongSum),
            ("1 1", PartsError::WrongSum),
            ("2 2", PartsError::WrongSum),
            ("18446744073709551615 4", PartsError::WrongSum),
            ("3 18446744073709551615", PartsError::WrongSum),
            ("99999999999999999999 4", PartsError::Malformed),
            (&many, PartsError::TooMany),
        ];
        let body = Bytes::from_static(b"abc");
        for (value, error) in table {
            assert_eq!(split(Some(value), &body), Err(error), "{value}");
            assert_eq!(of(&listed(Some(value.to_owned())), &body), ["abc"], "{value}");
        }
        assert_eq!(split(Some("3"), &body).unwrap(), ["abc"], "one part may have the header");
        assert_eq!(split(Some("01 000 2"), &body).unwrap(), ["a", "", "bc"]);
    }

    #[test]
    fn a_message_has_so_many_parts_and_not_more() {
        let most = vec!["ab"; limits::MESSAGE_PARTS_MAX];
        let (value, body) = join(&most).unwrap();
        assert_eq!(of(&listed(value), &body), most);
        assert_eq!(join(vec![""; limits::MESSAGE_PARTS_MAX + 1]), Err(PartsError::TooMany));
        assert_eq!(join(std::iter::repeat("x")), Err(PartsError::TooMany), "parts without end");
        assert_eq!(lengths(vec![0; limits::MESSAGE_PARTS_MAX + 1].into_iter()), Err(PartsError::TooMany));
    }

    #[test]
    fn one_part_and_no_part_have_no_list() {
        assert_eq!(join(["abc"]), Ok((None, Bytes::from_static(b"abc"))));
        assert_eq!(join([""; 1]), Ok((None, Bytes::new())));
        assert_eq!(join::<&str>([]), Ok((None, Bytes::new())));
        assert_eq!(join(["", ""]), Ok((Some("0 0".to_owned()), Bytes::new())));
        assert_eq!(lengths([2, 0, 1].into_iter()), Ok(Some("2 0 1".to_owned())));
    }
}
