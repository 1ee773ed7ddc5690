//! Turno's gateway for ZeroMQ, as DEALER clients and workers speak with it. Messages have as many frames as at the broker
//! over libzmq, and as many bytes but for the length of an address:
//!
//! | who | frames |
//! |---|---|
//! | client: a request, and the reply to it | an empty one; a letter and a tag with the body behind it |
//! | worker: a delivery, and the reply to it | the broker's number; an empty one; what the client said |

use anyhow::{Result, bail};

use crate::protocol::{ConnectionEnd, Seen};
use crate::zmtp::{Dialect, ZmtpWire, head, read_head};

#[derive(Default)]
pub(crate) struct Gateway {
    /// A message is put together here.
    scratch: Vec<u8>,
}

impl Dialect for Gateway {
    /// Its endpoint knows what it is.
    fn begin(&mut self, _seat: ConnectionEnd, _wire: &mut ZmtpWire, _out: &mut Vec<u8>) {}

    fn put(&mut self, _seat: ConnectionEnd, tag: u32, body: &[u8], wire: &mut ZmtpWire, out: &mut Vec<u8>) {
        self.scratch.clear();
        self.scratch.extend_from_slice(&head(b'Q', tag));
        self.scratch.extend_from_slice(body);
        wire.say(&[b"", &self.scratch], out);
    }

    fn hear(&mut self, frames: &[&[u8]], wire: &mut ZmtpWire, out: &mut Vec<u8>) -> Result<Seen> {
        match frames {
            [b"", message] => Ok(Seen::Done(read_head(message)?.1)),
            [_, b"", _] => {
                wire.say(frames, out);
                Ok(Seen::Taken)
            }
            _ => bail!("a message of {} frames", frames.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::seat;
    use crate::protocol::{Role, SystemProtocol as _};
    use crate::zmtp::tests::{plain, sealed};
    use crate::zmtp::{Mechanism, ZmtpProtocol};

    fn talk(role: Role, mechanism: Mechanism) -> ZmtpProtocol<Gateway> {
        ZmtpProtocol::new(seat(role), Gateway::default(), mechanism)
    }

    #[test]
    fn a_worker_gives_the_envelope_back() {
        let delivery: &[&[u8]] = &[b"12345678", b"", &[7; 300]];
        let wanted = (vec![delivery.iter().map(|frame| frame.to_vec()).collect()], vec![Seen::Ready, Seen::Taken]);
        assert_eq!(plain(|| talk(Role::Worker, Mechanism::Null), &[delivery]), wanted);
        assert_eq!(sealed(talk(Role::Worker, Mechanism::Curve), &[delivery]), wanted);
    }

    #[test]
    fn a_reply_is_known_by_its_tag() {
        let mut client = talk(Role::Client, Mechanism::Null);
        let mut out = Vec::new();
        client.put(9, b"body", &mut out);
        assert_eq!(out, b"\x01\0\0\x09Q\0\0\0\x09body");
        let replies: [&[&[u8]]; 2] = [&[b"", b"Q\0\0\0\x09body"], &[b"", b"Q\0\0\x01\0"]];
        let wanted = (Vec::new(), vec![Seen::Ready, Seen::Done(9), Seen::Done(256)]);
        assert_eq!(plain(|| talk(Role::Client, Mechanism::Null), &replies), wanted);
        assert_eq!(sealed(talk(Role::Client, Mechanism::Curve), &replies), wanted);
    }

    #[test]
    fn messages_that_make_no_sense_are_errors() {
        let mut wire = ZmtpWire::Null { greeted: true };
        for frames in [&[&b""[..]][..], &[b"", b"Q"], &[b"x", b"y", b"z"], &[b"x", b"y"]] {
            assert!(Gateway::default().hear(frames, &mut wire, &mut Vec::new()).is_err());
        }
    }
}
