//! A ZMTP connection whose peer says anything.
//!
//! Layout: which end (1), then steps of one byte each with what they need. A real peer shakes hands first if the first byte wants
//! it, and speaks between the bytes that are made up: with CURVE no others could be read.

use std::sync::Arc;

use turno_proto::model::Mono;
use turno_proto::zmtp::curve::{ENTROPY_LEN, Entropy, KeyPair};
use turno_proto::zmtp::{OwnSocketType, Security, SocketType, Version, ZmtpSession, ZmtpSettings, ZmtpStep};

use turno_oracle::{Bytes, Chance as _};

const MESSAGE_BYTES_MAX: usize = 2_000;

/// After every step: bytes are used as promised, memory follows what came, and after a fault nothing is told.
pub fn zmtp_session(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let which = bytes.byte();
    let (client, server) = match which % 3 {
        0 => (Security::Null, Security::Null),
        1 => (Security::PlainClient { user: b"u"[..].into(), password: b"p"[..].into() }, Security::PlainServer),
        _ => {
            let server = KeyPair::from_secret([1; 32]);
            let keys = KeyPair::from_secret([2; 32]);
            (Security::CurveClient { keys, server: server.public() }, Security::CurveServer(server))
        }
    };
    let types = [SocketType::Dealer, SocketType::Sub, SocketType::Push, SocketType::Req];
    let theirs = types[usize::from(which >> 3) % types.len()];
    let version = if which & 0x40 == 0 { Version::V3_1 } else { Version::V3_0 };
    let mut peer = End::new(ZmtpSettings { version, ..settings(OwnSocketType::Is(theirs), client) }, 1);
    let mut end = End::new(settings(OwnSocketType::Counterpart, server), 2);
    if which & 0x80 != 0 {
        for _ in 0..6 {
            let (said, answer) = (std::mem::take(&mut peer.out), std::mem::take(&mut end.out));
            peer.hear(&answer);
            end.hear(&said);
        }
        assert!(!peer.session.greeting() && !end.session.greeting(), "both shake hands");
    }
    while !bytes.is_empty() {
        step(&mut bytes, &mut peer, &mut end);
    }
}

fn step(bytes: &mut Bytes<'_>, peer: &mut End, end: &mut End) {
    match bytes.byte() % 8 {
        0..=3 => {
            let said: Vec<u8> = (0..bytes.byte()).map(|_| bytes.byte()).collect();
            end.hear(&said);
        }
        4 => {
            let parts: Vec<Vec<u8>> =
                (0..=bytes.index(4)).map(|_| vec![bytes.byte(); usize::from(bytes.byte())]).collect();
            peer.session.send(parts.iter().map(Vec::as_slice), &mut peer.out);
        }
        5 => {
            peer.session.subscribe(&[bytes.byte()], &mut peer.out);
        }
        6 => {
            let mut said = std::mem::take(&mut peer.out);
            let at = usize::from(bytes.u16());
            if let Some(byte) = said.get_mut(at) {
                *byte ^= bytes.byte();
            }
            said.chunks(1 + bytes.index(64)).for_each(|piece| end.hear(piece));
        }
        _ => {
            end.now = end.now.plus_millis(u64::from(bytes.u16()));
            end.is_over |= end.session.handle_timeout(end.now, &mut end.out).is_err();
        }
    }
}

struct End {
    session: ZmtpSession,
    out: Vec<u8>,
    now: Mono,
    /// Bytes that came since the last message.
    came: usize,
    is_over: bool,
}

fn settings(ours: OwnSocketType, security: Security) -> ZmtpSettings {
    ZmtpSettings { security, ..ZmtpSettings::new(ours, MESSAGE_BYTES_MAX) }
}

impl End {
    fn new(settings: ZmtpSettings, entropy: u8) -> Self {
        let mut out = Vec::new();
        let entropy = Entropy::new([entropy; ENTROPY_LEN]);
        let session = ZmtpSession::begin(Mono::ZERO, Arc::new(settings), entropy, &mut out);
        Self { session, out, now: Mono::ZERO, came: 0, is_over: false }
    }

    fn hear(&mut self, mut bytes: &[u8]) {
        self.came += bytes.len();
        loop {
            let stepped = self.session.step(self.now, bytes, &mut self.out);
            assert!(self.session.held_bytes() <= 2 * self.came + 64, "memory follows what came");
            let Ok((step, used)) = stepped else {
                assert!(!self.is_over, "a connection ends once");
                self.is_over = true;
                return;
            };
            bytes = &bytes[used..];
            if step == ZmtpStep::NeedMore {
                assert!(bytes.is_empty(), "all is used");
                return;
            }
            assert!(!self.is_over, "nothing is told after the end");
            match step {
                ZmtpStep::Asks(_) => _ = self.session.accept(self.now, &mut self.out),
                ZmtpStep::Message(message) => {
                    assert!(message.body_behind(0).len() <= MESSAGE_BYTES_MAX, "the limit holds");
                    let parts: usize = message.parts().map(<[u8]>::len).sum();
                    assert_eq!(parts, message.body_behind(0).len(), "the parts are the body");
                }
                _ => {}
            }
        }
    }
}
