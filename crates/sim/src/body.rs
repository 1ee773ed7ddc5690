//! Bodies in the simulation: a number, and bytes that follow from it, so that any damage shows. Some have several
//! parts, which follow from the number as well.

use bytes::Bytes;
use turno_proto::headers::{self, Headers};
use turno_proto::model::{Payload, parts};
use turno_proto::native::Raw;

/// Where numbers have this bit, most messages have several parts.
pub(crate) const PARTS: u64 = 1 << 41;

/// Bytes of the number itself.
const NUMBER_BYTES: usize = 8;

/// The body of the message with that number.
pub(crate) fn of(number: u64) -> Bytes {
    // Most are small; some do not fit through a narrow wire at once.
    let filler = number % 61 + if number.is_multiple_of(17) { 2_000 } else { 0 };
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((0..filler).map(|at| (number.wrapping_mul(31).wrapping_add(at) % 251) as u8));
    bytes.into()
}

/// The lengths of the parts of the message with that number, of so many bytes.
fn lengths(number: u64, bytes: usize) -> Vec<usize> {
    let rest = bytes - NUMBER_BYTES;
    match number % 4 {
        _ if is_one(number) => vec![bytes],
        1 => vec![NUMBER_BYTES, rest],
        2 => vec![NUMBER_BYTES, 0, rest],
        _ => vec![3, NUMBER_BYTES - 3, 0, 0, rest],
    }
}

/// Those of its answer: what is behind the body of the message is a part of its own.
fn answer_lengths(number: u64, body: usize, behind: usize) -> Vec<usize> {
    if is_one(number) {
        return vec![body + behind];
    }
    let mut all = lengths(number, body);
    all.push(behind);
    all
}

fn split(bytes: &Bytes, lengths: &[usize]) -> Vec<Bytes> {
    let mut at = 0;
    let part = |length: &usize| {
        at += length;
        bytes.slice(at - length..at)
    };
    lengths.iter().map(part).collect()
}

fn join(lengths: &[usize], body: &Bytes) -> Payload {
    let listed = parts::lengths(lengths.iter().copied()).expect("few parts");
    let Some(value) = listed else { return Payload::body(body.clone()) };
    headers::encode(&Headers::from([(parts::HEADER.to_owned(), value)]), body).expect("a short header")
}

/// The parts of the message with that number.
pub(crate) fn parts_of(number: u64) -> Vec<Bytes> {
    let body = of(number);
    split(&body, &lengths(number, body.len()))
}

/// The parts of its right answer.
pub(crate) fn answer_parts(number: u64) -> Vec<Bytes> {
    let (body, answer) = (of(number), answer(number));
    split(&answer, &answer_lengths(number, body.len(), answer.len() - body.len()))
}

/// The message with that number.
pub(crate) fn payload(number: u64) -> Payload {
    let body = of(number);
    join(&lengths(number, body.len()), &body)
}

/// Its answer, as a message.
pub(crate) fn answer_payload(number: u64, token: Option<u64>) -> Payload {
    let (body, answer) = (of(number), answer_under(number, token));
    join(&answer_lengths(number, body.len(), answer.len() - body.len()), &answer)
}

pub(crate) fn raw(payload: &Payload) -> Raw<'_> {
    Raw { headers: payload.headers, bytes: &payload.bytes }
}

/// The bytes after the headers, and the lengths of their parts.
fn open(raw: Raw<'_>) -> Option<(Bytes, Vec<usize>)> {
    let (headers, body) = headers::decode(&raw.to_payload()).ok()?;
    let value = headers.get(parts::HEADER).map(String::as_str).filter(|_| headers.len() == 1);
    let lengths = parts::split(Some(value?), &body).ok()?.iter().map(Bytes::len).collect();
    Some((body, lengths))
}

/// The number of a message, if it is whole.
pub(crate) fn number(raw: Raw<'_>) -> Option<u64> {
    if !raw.headers {
        return number_in(raw.bytes).filter(|number| is_one(*number));
    }
    let (body, found) = open(raw)?;
    number_in(&body).filter(|number| lengths(*number, body.len()) == found)
}

/// Whether a message with that number has one part.
fn is_one(number: u64) -> bool {
    number & PARTS == 0 || number.is_multiple_of(4)
}

/// The number of a body, if it is whole.
fn number_in(body: &[u8]) -> Option<u64> {
    let number = u64::from_le_bytes(*body.first_chunk()?);
    (of(number) == body).then_some(number)
}

/// The number of the message that has these parts, if it is whole.
pub(crate) fn number_of_parts(parts: &[Bytes]) -> Option<u64> {
    number_in(&parts.concat()).filter(|number| parts_of(*number) == parts)
}

/// The number that the parts of an answer begin with.
pub(crate) fn claimed(parts: &[Bytes]) -> Option<u64> {
    let first: Vec<u8> = parts.iter().flatten().take(NUMBER_BYTES).copied().collect();
    first.first_chunk().map(|number| u64::from_le_bytes(*number))
}

/// The right answer to the message with that number.
fn answer(number: u64) -> Bytes {
    let mut bytes = of(number).to_vec();
    bytes.push(b'!');
    bytes.into()
}

/// The answer of one that has the queue to itself: it says under which token it was made.
fn answer_under(number: u64, token: Option<u64>) -> Bytes {
    let mut bytes = answer(number).to_vec();
    bytes.extend(token.into_iter().flat_map(u64::to_le_bytes));
    bytes.into()
}

/// The number of the message that this answers, as a whole or with a piece.
pub(crate) fn number_of_answer(raw: Raw<'_>) -> Option<u64> {
    parted(raw).map(|(number, _)| number)
}

/// The token under which an answer was made.
pub(crate) fn token_of_answer(raw: Raw<'_>) -> Option<u64> {
    let (_, rest) = parted(raw)?;
    rest.strip_prefix(b"!").and_then(|token| token.try_into().ok()).map(u64::from_le_bytes)
}

/// Whether it is a whole answer to the message with that number.
pub(crate) fn is_answer(raw: Raw<'_>, number: u64) -> bool {
    let whole = |rest: &[u8]| rest == b"!" || token_of_answer(raw).is_some();
    parted(raw).is_some_and(|(of, rest)| of == number && whole(&rest))
}

/// The number in a body, and the bytes after it.
fn parted(raw: Raw<'_>) -> Option<(u64, Vec<u8>)> {
    let opened = if raw.headers { Some(open(raw)?) } else { None };
    let body = opened.as_ref().map_or(raw.bytes, |(body, _)| body);
    let number = u64::from_le_bytes(*body.first_chunk()?);
    let rest = body.strip_prefix(&*of(number))?;
    let begins = body.len() - rest.len();
    let expected = match rest.len() {
        0 => lengths(number, begins),
        1 | 9 => answer_lengths(number, begins, rest.len()),
        _ => return None,
    };
    let fits = opened.as_ref().map_or(expected.len() == 1, |(_, found)| *found == expected);
    fits.then(|| (number, rest.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_by_its_parts() {
        for number in 1..200 {
            for number in [number, number | PARTS] {
                let message = payload(number);
                assert_eq!(super::number(raw(&message)), Some(number));
                assert_eq!(number_of_parts(&parts_of(number)), Some(number));
                for token in [None, Some(7)] {
                    let answer = answer_payload(number, token);
                    assert!(is_answer(raw(&answer), number) && !is_answer(raw(&message), number));
                    assert_eq!((number_of_answer(raw(&answer)), token_of_answer(raw(&answer))), (Some(number), token));
                }
                assert_eq!(number_of_answer(raw(&message)), Some(number), "a piece");
            }
        }
        let number = 1 | PARTS;
        let merged = Payload::body(of(number));
        assert_eq!((super::number(raw(&merged)), number_of_parts(&[of(number)])), (None, None), "parts are missing");
        let (_, parted) = payload(number).split();
        let other = headers::encode(&Headers::from([("parts".to_owned(), "9 0".to_owned())]), &parted).unwrap();
        assert_eq!(super::number(raw(&other)), None);
    }
}
