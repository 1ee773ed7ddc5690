//! The call about ZeroMQ endpoints, and its answer.

use turno_proto::model::zmq::{EndpointView, ZmqPeerView};
use turno_proto::native::Frame;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

pub(super) fn calls() -> Vec<(&'static str, Frame<'static>)> {
    vec![("call_zmq_ls", Frame::AdminCall { seq: 11, call: AdminCall::ZmqLs {} })]
}

pub(super) fn answers() -> Vec<(&'static str, Frame<'static>)> {
    let peer = ZmqPeerView {
        address: "127.0.0.1:4711".to_owned(),
        socket: "REQ".to_owned(),
        identity: "shop".to_owned(),
        user: Some("ann".to_owned()),
    };
    let endpoint = EndpointView {
        name: "default".to_owned(),
        address: "tcp://127.0.0.1:7461".to_owned(),
        queue: "zmq".to_owned(),
        role: "client".to_owned(),
        topic: "plant.".to_owned(),
        mechanism: "PLAIN".to_owned(),
        peers_all: 1,
        received: 2,
        sent: 3,
        withheld: 4,
        bad_envelope: 5,
        bad_topic: 6,
        refused: 7,
        bad_handshake: 8,
        peers: vec![peer],
    };
    let answer = AdminAnswer::ZmqEndpoints { endpoints: vec![endpoint] };
    vec![("answer_zmq_endpoints", Frame::AdminAnswer { seq: 11, answer })]
}
