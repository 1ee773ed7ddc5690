//! The ring: how two members greet, and which frames may come on a connection of it and when.

mod frames;
#[path = "../golden/mod.rs"]
mod golden;
mod greeting;
mod session;
#[path = "../values/mod.rs"]
mod values;

use turno_proto::model::ring::{Member, Origin, Sid};
use turno_proto::native::{Frame, GreetingCredentials, RingIdentity, Secret, encode};

pub(crate) const SECRET: &[u8] = b"correct horse battery staple";

pub(crate) fn member(sid: u16, incarnation: u64) -> Member {
    let address = |base| format!("10.0.0.{sid}:{}", base + sid);
    let origin = Origin { sid: Sid::new(sid), incarnation };
    Member { origin, address: address(8_000), native: address(8_100) }
}

pub(crate) fn dialler(secret: Option<&[u8]>) -> GreetingCredentials<RingIdentity> {
    credentials(Some(member(1, 1_700_000_000_000)), secret)
}

pub(crate) fn acceptor(secret: Option<&[u8]>) -> GreetingCredentials<RingIdentity> {
    credentials(Some(member(2, 1_700_000_000_500)), secret)
}

/// One that has no number yet.
pub(crate) fn unnumbered(secret: Option<&[u8]>) -> GreetingCredentials<RingIdentity> {
    credentials(None, secret)
}

fn credentials(member: Option<Member>, secret: Option<&[u8]>) -> GreetingCredentials<RingIdentity> {
    let secret = secret.map(|bytes| Secret::new(bytes).expect("long enough"));
    GreetingCredentials { identity: RingIdentity { member, program: "turno 0.1.0".to_owned() }, secret }
}

pub(crate) fn written(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes);
    bytes
}
