//! A buffer of two streams, in the order in which their bytes were read.

use std::collections::VecDeque;

use bytes::Bytes;
use turno_proto::model::archive::OutputStream;

/// Bytes that stand side by side, first in, first out. Each belongs to a run of one stream.
#[derive(Debug)]
pub(super) struct StreamBuffer {
    bytes: VecDeque<u8>,
    runs: VecDeque<StreamRun>,
    /// Where the first byte stands in all that the attempt wrote.
    at: u64,
}

#[derive(Debug)]
struct StreamRun {
    stream: OutputStream,
    len: usize,
}

/// Some bytes of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamPiece {
    pub(super) stream: OutputStream,
    pub(super) at: u64,
    pub(super) bytes: Bytes,
}

impl StreamBuffer {
    /// An empty one that begins at a position.
    pub(super) const fn new(at: u64) -> Self {
        Self { bytes: VecDeque::new(), runs: VecDeque::new(), at }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Where it ends.
    pub(super) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    pub(super) fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.extend(bytes);
        match self.runs.back_mut() {
            Some(run) if run.stream == stream => run.len += bytes.len(),
            _ => self.runs.push_back(StreamRun { stream, len: bytes.len() }),
        }
    }

    /// Adds to a ring: what is older than `bytes_max` bytes or `runs_max` runs makes room, and memory never grows beyond
    /// that, however much goes through.
    pub(super) fn push_ring(&mut self, stream: OutputStream, bytes: &[u8], bytes_max: usize, runs_max: usize) {
        let last = &bytes[bytes.len().saturating_sub(bytes_max)..];
        let passed = bytes.len() - last.len();
        let kept = self.len().min(bytes_max - last.len());
        self.skip(self.len() - kept);
        if passed > 0 {
            // Nothing of before is left then, for the bytes fill the ring by themselves.
            self.at += passed as u64;
        }
        let short = (self.len() + last.len()).saturating_sub(self.bytes.capacity());
        if short > 0 {
            let more = self.bytes.capacity().max(short).min(bytes_max - self.len());
            self.bytes.reserve_exact(more);
        }
        self.push(stream, last);
        while self.runs.len() > runs_max {
            let oldest = self.runs.front().map_or(0, |run| run.len);
            self.skip(oldest);
        }
    }

    /// Drops so many bytes at the beginning.
    pub(super) fn skip(&mut self, count: usize) {
        let mut left = count.min(self.bytes.len());
        self.bytes.drain(..left);
        self.at += left as u64;
        while let Some(run) = self.runs.front_mut() {
            if left < run.len {
                run.len -= left;
                break;
            }
            left -= run.len;
            self.runs.pop_front();
        }
    }

    /// Takes bytes of one stream from the beginning, as many as there are and `max` at most.
    pub(super) fn take(&mut self, max: usize) -> Option<StreamPiece> {
        let piece = self.pieces(self.at, max).next()?;
        self.skip(piece.bytes.len());
        if self.bytes.is_empty() {
            // The memory of a burst is not kept for an attempt that may be silent from now on.
            (self.bytes, self.runs) = (VecDeque::new(), VecDeque::new());
        }
        Some(piece)
    }

    /// Copies of what stands from `from` on, each `max` bytes at most.
    pub(super) fn pieces(&self, from: u64, max: usize) -> impl Iterator<Item = StreamPiece> {
        let mut run_at = 0;
        let mut skipped = usize::try_from(from.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let spans = self.runs.iter().flat_map(move |run| {
            let begin = run_at + skipped.min(run.len);
            skipped -= skipped.min(run.len);
            run_at += run.len;
            let end = run_at;
            (begin..end).step_by(max.max(1)).map(move |at| (run.stream, at, end.min(at.saturating_add(max))))
        });
        spans.filter(|(_, begin, end)| begin < end).map(|(stream, begin, end)| {
            let (front, back) = self.bytes.as_slices();
            let part =
                |slice: &[u8], from: usize, to: usize| slice[from.min(slice.len())..to.min(slice.len())].to_vec();
            let mut bytes = part(front, begin, end);
            bytes.extend(part(back, begin.saturating_sub(front.len()), end.saturating_sub(front.len())));
            StreamPiece { stream, at: self.at + begin as u64, bytes: bytes.into() }
        })
    }

    /// Where it begins.
    #[cfg(test)]
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        assert_eq!(self.runs.iter().map(|run| run.len).sum::<usize>(), self.bytes.len(), "every byte is of one run");
        assert!(self.runs.iter().all(|run| run.len > 0), "no run is empty");
        let same = self.runs.iter().zip(self.runs.iter().skip(1)).any(|(one, next)| one.stream == next.stream);
        assert!(!same, "runs side by side are of different streams");
    }
}

#[cfg(test)]
mod tests {
    use super::OutputStream::{Stderr, Stdout};
    use super::*;

    fn piece(stream: OutputStream, at: u64, text: &'static str) -> StreamPiece {
        StreamPiece { stream, at, bytes: Bytes::from_static(text.as_bytes()) }
    }

    #[test]
    fn it_gives_back_what_came_in_order() {
        let mut roll = StreamBuffer::new(10);
        roll.push(Stdout, b"ab");
        roll.push(Stdout, b"cd");
        roll.push(Stderr, b"");
        roll.push(Stderr, b"xy");
        roll.push(Stdout, b"e");
        roll.check();
        assert_eq!((roll.at(), roll.end(), roll.runs()), (10, 15 + 2, 3));
        assert_eq!(roll.take(3), Some(piece(Stdout, 10, "abc")));
        let rest: Vec<StreamPiece> = roll.pieces(0, 100).collect();
        assert_eq!(rest, [piece(Stdout, 13, "d"), piece(Stderr, 14, "xy"), piece(Stdout, 16, "e")]);
        let some: Vec<StreamPiece> = roll.pieces(15, 1).collect();
        assert_eq!(some, [piece(Stderr, 15, "y"), piece(Stdout, 16, "e")]);
        assert_eq!(roll.pieces(17, 100).next(), None);
        roll.skip(2);
        roll.check();
        assert_eq!(roll.take(100), Some(piece(Stderr, 15, "y")));
        assert_eq!(roll.take(100), Some(piece(Stdout, 16, "e")));
        assert_eq!((roll.take(100), roll.at(), roll.len()), (None, 17, 0));
        roll.check();
    }

    #[test]
    fn a_ring_keeps_the_last_bytes_and_grows_no_further() {
        let mut roll = StreamBuffer::new(0);
        roll.push_ring(Stdout, b"abc", 4, 8);
        roll.push_ring(Stderr, b"de", 4, 8);
        roll.check();
        let all: Vec<StreamPiece> = roll.pieces(0, 100).collect();
        assert_eq!(all, [piece(Stdout, 1, "bc"), piece(Stderr, 3, "de")]);
        roll.push_ring(Stdout, b"0123456789", 4, 8);
        roll.check();
        assert_eq!(roll.pieces(0, 100).collect::<Vec<_>>(), [piece(Stdout, 11, "6789")]);
        let mut roll = StreamBuffer::new(0);
        let block = [7; 65_536];
        for _ in 0..100 {
            roll.push_ring(Stdout, &block[..65_521], 100_000, 8);
        }
        roll.check();
        assert_eq!((roll.end(), roll.len(), roll.bytes.capacity()), (6_552_100, 100_000, 100_000));
        roll.push_ring(Stdout, b"abc", 0, 8);
        assert_eq!((roll.at(), roll.end()), (6_552_103, 6_552_103));
    }

    /// Streams that take turns byte by byte would make a list of runs much longer than what is in them.
    #[test]
    fn a_ring_keeps_so_many_runs_and_no_more() {
        let mut roll = StreamBuffer::new(0);
        for at in 0..100 {
            roll.push_ring(if at % 2 == 0 { Stdout } else { Stderr }, b"x", 50, 3);
        }
        roll.check();
        assert_eq!((roll.runs(), roll.at(), roll.end()), (3, 97, 100));
    }
}
