//! Standard input, line by line.

use std::io::{self, BufRead as _, Read as _};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::compose;
use super::error::Failure;

/// Lines that are read ahead.
const AHEAD: usize = 256;

/// Reads lines on a thread of its own, without their ends; a line too long for a frame ends the reading.
pub(crate) fn read_lines(bytes_max: u64) -> mpsc::Receiver<Result<Bytes, Failure>> {
    let (tell, told) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            // One byte for the end of the line, one to see that it is too long.
            let read = input.by_ref().take(bytes_max.saturating_add(2)).read_until(b'\n', &mut line);
            let end = match read {
                Ok(0) => return,
                Ok(_) => {
                    if line.ends_with(b"\n") {
                        line.pop();
                    }
                    if line.len() as u64 > bytes_max { Err(compose::too_long(bytes_max)) } else { Ok(line.into()) }
                }
                Err(error) => Err(Failure::system("cannot read standard input", &error)),
            };
            let last = end.is_err();
            if tell.blocking_send(end).is_err() || last {
                return;
            }
        }
    });
    told
}
