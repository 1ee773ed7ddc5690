//! What messages carry in the simulation: a number, and bytes that follow from it, so that any damage shows.

use bytes::Bytes;

/// The body of the message with that number.
pub(crate) fn of(number: u64) -> Bytes {
    // Most are small; some do not fit through a narrow wire at once.
    let filler = number % 61 + if number.is_multiple_of(17) { 2_000 } else { 0 };
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((0..filler).map(|at| (number.wrapping_mul(31).wrapping_add(at) % 251) as u8));
    bytes.into()
}

/// The number of a body, if it is whole.
pub(crate) fn number(body: &[u8]) -> Option<u64> {
    let number = u64::from_le_bytes(*body.first_chunk::<8>()?);
    (of(number) == body).then_some(number)
}

/// The right answer to the message with that number.
pub(crate) fn answer(number: u64) -> Bytes {
    let mut bytes = of(number).to_vec();
    bytes.push(b'!');
    bytes.into()
}

/// The number of the message that this answers, as a whole or with a piece.
pub(crate) fn number_of_answer(body: &[u8]) -> Option<u64> {
    number(body.strip_suffix(b"!").unwrap_or(body)).or_else(|| number(body))
}
