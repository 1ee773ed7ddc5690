//! One end of a connection in a test, with what it was told and what it said.

use std::sync::Arc;

use turno_proto::model::Mono;
use turno_proto::zmtp::curve::{Entropy, KeyPair};
use turno_proto::zmtp::{
    Message, OwnSocketType, Peer, Security, SocketType, User, Version, ZmtpFault, ZmtpSession, ZmtpSettings, ZmtpStep,
};

/// The owner accepts this user, or any key.
pub(crate) const USER: &[u8] = b"admin";

pub(crate) struct End {
    pub(crate) session: ZmtpSession,
    pub(crate) now: Mono,
    pub(crate) out: Vec<u8>,
    /// All that was told, without [`ZmtpStep::NeedMore`] and [`ZmtpStep::Done`].
    pub(crate) steps: Vec<ZmtpStep<'static>>,
    pub(crate) fault: Option<ZmtpFault>,
    pub(crate) accepts: bool,
}

impl End {
    pub(crate) fn new(settings: ZmtpSettings) -> Self {
        Self::with_entropy(settings, std::array::from_fn(|at| u8::try_from(at).expect("the peers follow the script")))
    }

    pub(crate) fn with_entropy(settings: ZmtpSettings, entropy: [u8; 96]) -> Self {
        let mut out = Vec::new();
        let session = ZmtpSession::begin(Mono::ZERO, Arc::new(settings), Entropy::new(entropy), &mut out);
        Self { session, now: Mono::ZERO, out, steps: Vec::new(), fault: None, accepts: true }
    }

    /// Hears bytes until all of them are used or something is wrong. Returns what it says.
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut rest = bytes;
        while self.fault.is_none() {
            match self.session.step(self.now, rest, &mut self.out) {
                Ok((ZmtpStep::NeedMore, used)) => {
                    assert_eq!(used, rest.len(), "all is taken unless the owner has to judge");
                    break;
                }
                Ok((step, used)) => {
                    rest = &rest[used..];
                    self.told(step.into_owned());
                }
                Err(fault) => self.fault = Some(fault),
            }
        }
        self.said()
    }

    fn told(&mut self, step: ZmtpStep<'static>) {
        match step {
            ZmtpStep::Done => {}
            ZmtpStep::Asks(_) if self.accepts => {
                let (step, used) =
                    self.session.step(self.now, b"early", &mut self.out).expect("the peers follow the script");
                assert_eq!((step, used), (ZmtpStep::NeedMore, 0), "nothing is taken before the owner has judged");
                let step = self.session.accept(self.now, &mut self.out);
                self.told(step);
            }
            ZmtpStep::Asks(_) => self.fault = Some(self.session.refuse(&mut self.out)),
            step => self.steps.push(step),
        }
    }

    pub(crate) fn said(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    pub(crate) fn send(&mut self, parts: &[&[u8]]) {
        assert!(self.session.send(parts.iter().copied(), &mut self.out));
    }

    /// The peer, if the handshake is done.
    pub(crate) fn peer(&self) -> Option<&Peer> {
        self.steps.iter().find_map(|step| match step {
            ZmtpStep::Handshaked(peer) => Some(peer),
            _ => None,
        })
    }

    /// The parts of all messages that came.
    pub(crate) fn messages(&self) -> Vec<Vec<Vec<u8>>> {
        let parts = |message: &Message<'_>| message.parts().map(<[u8]>::to_vec).collect();
        self.steps
            .iter()
            .filter_map(|step| match step {
                ZmtpStep::Message(message) => Some(parts(message)),
                _ => None,
            })
            .collect()
    }
}

/// Both hear each other until neither has anything to say.
pub(crate) fn converse(one: &mut End, other: &mut End) {
    loop {
        let said = one.said();
        let answer = other.said();
        if said.is_empty() && answer.is_empty() {
            break;
        }
        // Both were said before either was heard.
        let more = other.hear(&said);
        one.out = one.hear(&answer);
        other.out = more;
    }
}

pub(crate) fn settings(ours: OwnSocketType, security: Security) -> ZmtpSettings {
    ZmtpSettings { security, ..ZmtpSettings::new(ours, 1024 * 1024) }
}

pub(crate) fn dealer(security: Security) -> ZmtpSettings {
    ZmtpSettings { identity: b"d1"[..].into(), ..settings(OwnSocketType::Is(SocketType::Dealer), security) }
}

pub(crate) fn server_keys() -> KeyPair {
    KeyPair::from_secret([1; 32])
}

pub(crate) fn client_keys() -> KeyPair {
    KeyPair::from_secret([2; 32])
}

pub(crate) fn plain_client() -> Security {
    Security::PlainClient { user: USER.into(), password: b"secret"[..].into() }
}

pub(crate) fn curve_client() -> Security {
    Security::CurveClient { keys: client_keys(), server: server_keys().public() }
}

pub(crate) fn client_entropy() -> [u8; 96] {
    std::array::from_fn(|at| u8::try_from(100 + at).expect("the peers follow the script"))
}

/// The security of a client and a server for each mechanism, and who the client is to the server.
pub(crate) fn mechanisms() -> [(Security, Security, User); 3] {
    [
        (Security::Null, Security::Null, User::Unknown),
        (plain_client(), Security::PlainServer, User::Name(USER.into())),
        (curve_client(), Security::CurveServer(server_keys()), User::Key(client_keys().public())),
    ]
}

/// A dealer and a broker that know each other, over a mechanism.
pub(crate) fn pair(client: Security, server: Security, version: Version) -> (End, End) {
    pair_of(dealer(client), ZmtpSettings { version, ..settings(OwnSocketType::Counterpart, server) })
}

/// Two ends that know each other.
pub(crate) fn pair_of(client: ZmtpSettings, server: ZmtpSettings) -> (End, End) {
    let mut client = End::with_entropy(client, client_entropy());
    let mut server = End::new(server);
    converse(&mut client, &mut server);
    assert!(client.peer().is_some() && server.peer().is_some(), "{:?} {:?}", client.fault, server.fault);
    (client, server)
}

/// An end that has heard the greeting and READY of a peer of that type, without security.
pub(crate) fn met(ours: OwnSocketType, theirs: SocketType) -> End {
    let mut peer = End::new(settings(OwnSocketType::Is(theirs), Security::Null));
    let mut end = End::new(settings(ours, Security::Null));
    converse(&mut peer, &mut end);
    assert!(end.peer().is_some(), "{:?}", end.fault);
    end
}
