//! Links: how two brokers greet, and which frames may come over a link and when.

mod frames;
#[path = "../golden/mod.rs"]
mod golden;
mod greeting;
mod session;
#[path = "../values/mod.rs"]
mod values;

use turno_proto::model::link::BrokerId;
use turno_proto::native::{GreetingCredentials, Identity, Secret};

pub(crate) const SECRET: &[u8] = b"correct horse battery staple";

pub(crate) fn dialler(secret: Option<&[u8]>) -> GreetingCredentials {
    credentials(0x0a0b_0c0d_0e0f, "a", secret)
}

pub(crate) fn acceptor(secret: Option<&[u8]>) -> GreetingCredentials {
    credentials(0x1122_3344_5566, "b", secret)
}

fn credentials(id: u64, name: &str, secret: Option<&[u8]>) -> GreetingCredentials {
    let identity = Identity {
        broker: BrokerId::new(id),
        name: name.to_owned(),
        program: "turno 0.1.0".to_owned(),
        frame_bytes_max: 16_777_216,
    };
    GreetingCredentials::new(identity, secret.map(|bytes| Secret::new(bytes).expect("long enough")))
}
