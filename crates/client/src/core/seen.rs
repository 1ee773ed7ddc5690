//! How much of each task's output was given out: repeated bytes are dropped, missing ones are counted.

use std::collections::BTreeMap;

use bytes::Buf as _;
use turno_proto::model::archive::OutputPiece;

/// The latest attempt of each task, and how much of its output was given out.
#[derive(Debug, Default)]
pub struct Seen(BTreeMap<u32, (u32, u64)>);

impl Seen {
    /// The part of a piece that was not given out, and how many bytes before it are missing. Nothing of an attempt before the
    /// latest is new.
    pub fn new_part(&mut self, mut piece: OutputPiece) -> Option<(OutputPiece, u64)> {
        let (attempt, told) = self.0.entry(piece.task).or_insert((piece.attempt, 0));
        if piece.attempt > *attempt {
            (*attempt, *told) = (piece.attempt, 0);
        }
        let end = piece.at.saturating_add(piece.bytes.len() as u64).saturating_add(piece.lost);
        if piece.attempt < *attempt || end <= *told {
            return None;
        }
        let known = told.saturating_sub(piece.at);
        piece.bytes.advance(usize::try_from(known).unwrap_or(usize::MAX).min(piece.bytes.len()));
        piece.lost = piece.lost.saturating_sub(known);
        piece.at += known;
        let left_out = piece.at - *told;
        *told = end;
        Some((piece, left_out))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use turno_proto::model::archive::OutputStream;
    use turno_proto::model::job::JobId;

    use super::*;

    #[test]
    fn what_is_new_is_told_once_and_gaps_are_noticed() {
        let mut seen = Seen::default();
        let mut told = |task, attempt, at, text: &'static str| {
            let bytes = Bytes::from_static(text.as_bytes());
            let (job, stream) = (JobId(7), OutputStream::Stdout);
            let piece = OutputPiece { job, task, attempt, stream, at, live: false, bytes, lost: 0 };
            let (piece, left_out) = seen.new_part(piece)?;
            Some((piece.at, String::from_utf8(piece.bytes.into()).unwrap(), left_out))
        };
        let some = |at, text: &str, left_out| Some((at, text.to_owned(), left_out));
        assert_eq!(told(1, 1, 0, "abc"), some(0, "abc", 0));
        assert_eq!(told(1, 1, 0, "abc"), None);
        assert_eq!(told(1, 1, 2, "cde"), some(3, "de", 0));
        assert_eq!(told(1, 1, 100, "tail"), some(100, "tail", 95));
        assert_eq!(told(2, 1, 10, "late"), some(10, "late", 10));
        assert_eq!(told(1, 2, 0, "again"), some(0, "again", 0));
        assert_eq!(told(1, 1, 200, "old"), None);
    }

    /// Lost bytes count as given out, and are no gap before the next piece.
    #[test]
    fn what_is_lost_is_told_once() {
        let mut seen = Seen::default();
        let mut told = |at, text: &'static str, lost| {
            let (job, stream, bytes) = (JobId(7), OutputStream::Stdout, Bytes::from_static(text.as_bytes()));
            let piece = OutputPiece { job, task: 1, attempt: 1, stream, at, live: false, bytes, lost };
            seen.new_part(piece).map(|(piece, left_out)| (piece.at, piece.lost, left_out))
        };
        assert_eq!(told(0, "abc", 0), Some((0, 0, 0)));
        assert_eq!(told(2, "", 5), Some((3, 4, 0)));
        assert_eq!(told(2, "", 5), None);
        assert_eq!(told(7, "h", 0), Some((7, 0, 0)));
        assert_eq!(told(20, "", 5), Some((20, 5, 12)));
    }
}
