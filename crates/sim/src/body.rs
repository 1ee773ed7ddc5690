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

/// The answer of one that has the queue to itself: it says under which token it was made.
pub(crate) fn answer_under(number: u64, token: Option<u64>) -> Bytes {
    let mut bytes = answer(number).to_vec();
    bytes.extend(token.into_iter().flat_map(u64::to_le_bytes));
    bytes.into()
}

/// The number of the message that this answers, as a whole or with a piece.
pub(crate) fn number_of_answer(body: &[u8]) -> Option<u64> {
    parts(body).map(|(number, _)| number)
}

/// The token under which an answer was made.
pub(crate) fn token_of_answer(body: &[u8]) -> Option<u64> {
    let (_, rest) = parts(body)?;
    rest.strip_prefix(b"!").and_then(|token| token.try_into().ok()).map(u64::from_le_bytes)
}

/// Whether it is a whole answer to the message with that number.
pub(crate) fn is_answer(body: &[u8], number: u64) -> bool {
    let whole = |rest: &[u8]| rest == b"!" || token_of_answer(body).is_some();
    parts(body).is_some_and(|(of, rest)| of == number && whole(rest))
}

/// What a body says about a message, and what follows it.
fn parts(body: &[u8]) -> Option<(u64, &[u8])> {
    let number = u64::from_le_bytes(*body.first_chunk::<8>()?);
    body.strip_prefix(&*of(number)).map(|rest| (number, rest)).filter(|(_, rest)| matches!(rest.len(), 0 | 1 | 9))
}
