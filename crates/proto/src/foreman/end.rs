//! The handling of incoming frames that both ends share. An end takes them from its [`RequestNumbering`], follows its
//! verdict, and goes on for as long as something can be done. Each end handles requests and answers itself.

use super::numbering::{RequestNumbering, Verdict};
use super::{CloseReason, ConnectionNote, ForemanFrame, decode, encode, split};
use crate::model::Mono;

/// An end of a connection.
pub(super) trait End {
    /// A request of its own.
    type Own;

    fn line(&mut self) -> &mut RequestNumbering<Self::Own>;

    /// Bytes to be written.
    fn out(&mut self) -> &mut Vec<u8>;

    fn body_bytes_max(&self) -> usize;

    fn is_connected(&self) -> bool;

    /// A request of the other end whose turn it is.
    fn serve(&mut self, frame: ForemanFrame);

    /// An OK or ERROR.
    fn take_response(&mut self, now: Mono, frame: &ForemanFrame);

    /// All begins anew.
    fn restart(&mut self, now: Mono);

    /// Sends the next request; false if there is none to send now.
    fn send(&mut self, now: Mono) -> bool;

    /// Does all that can be done now, [`Self::work_off`] first.
    fn pump(&mut self, now: Mono);

    fn note(&mut self, note: ConnectionNote);

    fn close(&mut self, reason: CloseReason);

    /// Returns how many of the bytes were used: the others are the start of a frame.
    fn take_bytes(&mut self, now: Mono, bytes: &[u8]) -> usize {
        let mut used = 0;
        while self.is_connected() {
            match split(bytes.get(used..).unwrap_or_default(), self.body_bytes_max()) {
                Ok(Some(piece)) => {
                    used += piece.used;
                    let verdict = self.line().receive(piece.kind, piece.header.seq, decode(&piece), piece.body.len());
                    self.follow(now, verdict);
                }
                Ok(None) => return used,
                Err(reason) => self.close(reason),
            }
        }
        bytes.len()
    }

    fn take_frame(&mut self, now: Mono, frame: ForemanFrame) {
        if self.is_connected() {
            let verdict = self.line().receive(frame.kind(), frame.seq(), Ok(frame), 0);
            self.follow(now, verdict);
        }
    }

    fn follow(&mut self, now: Mono, verdict: Verdict) {
        match verdict {
            Verdict::Response(frame) => self.take_response(now, &frame),
            Verdict::Serve(frame) => self.serve(frame),
            Verdict::Wait => {}
            Verdict::Restart => self.restart(now),
            Verdict::Refuse { seq, code, arg0, note } => {
                self.note(note);
                self.reply(&ForemanFrame::Error { seq, code, arg0 });
            }
            Verdict::Drop(note) => self.note(note),
        }
        self.pump(now);
    }

    /// Serves what was held, answers RESET, sends what can be sent.
    fn work_off(&mut self, now: Mono) {
        while self.is_connected() {
            if let Some(frame) = self.line().next_held() {
                self.serve(frame);
            } else if let Some(seq) = self.line().reset_due() {
                let last = self.line().last_answered();
                encode(&ForemanFrame::Reset { seq, last }, self.out());
                self.restart(now);
            } else if !self.send(now) {
                break;
            }
        }
    }

    fn reply(&mut self, frame: &ForemanFrame) {
        encode(frame, self.out());
        self.line().answered(frame.seq());
    }
}
