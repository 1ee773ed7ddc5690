//! Any frames as a message of LMQ.

use turno_proto::lmq::{LmqMessage, is_lmq};
use turno_proto::model::limits;
use turno_proto::zmtp::Message;

/// Cuts the bytes into frames and reads them. What can be read is written again as it came, and its answer can be read.
pub fn lmq_message(data: &[u8]) {
    let mut rest = data;
    let mut frames: Vec<&[u8]> = Vec::new();
    while let [len, behind @ ..] = rest {
        let (frame, next) = behind.split_at(usize::from(*len).min(behind.len()));
        frames.push(frame);
        rest = next;
    }
    if frames.is_empty() {
        return;
    }
    let Ok(read) = LmqMessage::decode(&Message::of(&frames)) else { return };
    assert!(is_lmq(&Message::of(&frames)), "what can be read is LMQ");
    assert!(read.id.len() <= limits::LMQ_ID_BYTES_MAX, "an id is short");
    assert!(read.senders.len() < limits::ZMQ_ENVELOPE_FRAMES_MAX, "a stack of addresses is short");
    let (command, arguments) = (read.command, read.arguments.clone());
    let answer = read.answer(command, arguments.clone()).frames();
    let answer: Vec<&[u8]> = answer.iter().map(|frame| &**frame).collect();
    let answer = LmqMessage::decode(&Message::of(&answer)).expect("an answer can be read");
    assert_eq!((answer.arguments, &answer.id), (arguments, &read.id), "it says what it was made to say");
    let written = read.frames();
    assert!(written.iter().map(|frame| &**frame).eq(frames), "what was read is written as it came");
}
