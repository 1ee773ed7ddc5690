//! Peers with a real ZMTP session at a broker without sockets.

use turno_engine::Settings;
use turno_proto::model::Limits;
use turno_proto::native::Config;
use turno_proto::zmtp::curve::KeyPair;
use turno_proto::zmtp::{Message, OwnSocketType, Security, ZmtpSettings as WireSettings};

use super::super::{ListenerKind, Turn};
use super::*;
use crate::zmq::{ZmqAccess, ZmqEndpoint, ZmqPlace};

/// A broker, and its peers by their connections.
struct Net {
    connections: Connections,
    now: Mono,
}

/// The other end of a connection.
struct Far {
    id: ConnId,
    session: ZmtpSession,
    /// Messages that it got and that nobody asked for yet.
    heard: Vec<Vec<Vec<u8>>>,
    fault: Option<ZmtpFault>,
}

fn endpoint() -> ZmqEndpoint {
    ZmqEndpoint::new("127.0.0.1:1".parse().unwrap(), "q".parse().unwrap())
}

impl Net {
    fn new(limits: Limits, endpoints: &[ZmqEndpoint]) -> Self {
        let config = Config::of(&limits);
        let bytes_max = limits.frame_bytes_max;
        let mut connections = Connections::new(Mono::ZERO, Settings { limits, ..Settings::default() }, config);
        connections.set_zmq(Endpoints::new(endpoints, bytes_max, 5_000), Nonces::Seeded(1));
        Self { connections, now: Mono::ZERO }
    }

    fn at(endpoint: ZmqEndpoint) -> Self {
        Self::new(Limits::default(), &[endpoint])
    }

    /// A peer that has connected.
    fn peer(&mut self, kind: SocketType) -> Far {
        let mut far = self.far(kind, Security::Null);
        self.pump(&mut far);
        assert!(self.connections.serves(far.id), "{:?}", far.fault);
        far
    }

    fn far(&mut self, kind: SocketType, security: Security) -> Far {
        let id = self.connections.accept(self.now, "there".to_owned(), ListenerKind::Zmq(0)).unwrap();
        let settings = WireSettings { security, ping_ms: 0, ..WireSettings::new(OwnSocketType::Is(kind), 1 << 30) };
        let mut out = Vec::new();
        let entropy = Entropy::new([u8::try_from(id.generation).unwrap(); ENTROPY_LEN]);
        let session = ZmtpSession::begin(self.now, Arc::new(settings), entropy, &mut out);
        let mut far = Far { id, session, heard: Vec::new(), fault: None };
        self.say(&mut far, &out);
        far
    }

    fn say(&mut self, far: &mut Far, bytes: &[u8]) {
        let mut turn = self.connections.take(self.now, far.id, bytes);
        while turn == Turn::Cut {
            turn = self.connections.go_on(self.now, far.id);
        }
        self.connections.sanity_check();
    }

    /// Bytes go both ways until nobody has more to say.
    fn pump(&mut self, far: &mut Far) {
        loop {
            let bytes = self.connections.unwritten(far.id).to_vec();
            if bytes.is_empty() {
                return;
            }
            self.connections.wrote(self.now, far.id, bytes.len());
            let said = far.hear(self.now, &bytes);
            if !said.is_empty() {
                self.say(far, &said);
            }
        }
    }

    fn send(&mut self, far: &mut Far, frames: &[&[u8]]) {
        let mut out = Vec::new();
        assert!(far.session.send(frames.iter().copied(), &mut out));
        self.say(far, &out);
    }

    fn heard(&mut self, far: &mut Far) -> Vec<Vec<Vec<u8>>> {
        self.pump(far);
        std::mem::take(&mut far.heard)
    }

    fn counted(&self, what: Count) -> u64 {
        self.connections.table.zmq.endpoints.get(0).unwrap().counted(what)
    }
}

impl Far {
    fn hear(&mut self, now: Mono, bytes: &[u8]) -> Vec<u8> {
        let (mut said, mut at) = (Vec::new(), 0);
        loop {
            match self.session.step(now, &bytes[at..], &mut said) {
                Ok((ZmtpStep::NeedMore, _)) => return said,
                Ok((step, used)) => {
                    at += used;
                    if let ZmtpStep::Message(message) = step {
                        self.heard.push(message.parts().map(<[u8]>::to_vec).collect());
                    }
                }
                Err(fault) => {
                    self.fault = Some(fault);
                    return said;
                }
            }
        }
    }
}

fn texts(frames: &[&[u8]]) -> Vec<Vec<u8>> {
    frames.iter().map(|frame| frame.to_vec()).collect()
}

#[test]
fn a_request_is_answered() {
    let mut net = Net::at(endpoint());
    let (mut worker, mut asker) = (net.peer(SocketType::Rep), net.peer(SocketType::Req));
    for body in [&[&b"hi"[..]][..], &[b"", b"a", b""]] {
        let request = [&[&b""[..]][..], body].concat();
        net.send(&mut asker, &request);
        let given = net.heard(&mut worker).remove(0);
        assert_eq!(given[2..], texts(body));
        let frames: Vec<&[u8]> = given.iter().map(Vec::as_slice).collect();
        net.send(&mut worker, &frames);
        assert_eq!(net.heard(&mut asker), [texts(&request)]);
    }
    assert_eq!((net.counted(Count::Received), net.counted(Count::Sent)), (4, 4));
}

/// Each caller gets its own answer, though all have one identity, whichever worker answers first.
#[test]
fn answers_find_their_callers() {
    let mut net = Net::at(endpoint());
    let mut worker = net.peer(SocketType::Router);
    let mut askers: Vec<Far> = (0..3).map(|_| net.peer(SocketType::Dealer)).collect();
    for (number, asker) in (0_u8..).zip(&mut askers) {
        net.send(asker, &[&[number]]);
        net.send(asker, &[b"", &[number, number]]);
    }
    let mut given = net.heard(&mut worker);
    assert_eq!(given.len(), 6, "a ROUTER worker has ten slots");
    given.reverse();
    for frames in given {
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        net.send(&mut worker, &frames);
    }
    for (number, asker) in (0_u8..).zip(&mut askers) {
        assert_eq!(net.heard(asker), [texts(&[b"", &[number, number]]), texts(&[&[number]])]);
    }
}

/// A worker that is lost had the envelope of nobody: another one's reply finds the caller, and a late one is dropped.
#[test]
fn a_lost_worker_loses_no_envelope() {
    let mut net = Net::at(ZmqEndpoint { retries: 1, ..endpoint() });
    let (mut asker, mut one) = (net.peer(SocketType::Req), net.peer(SocketType::Rep));
    net.send(&mut asker, &[b"\0\0\0\x09", b"", b"x"]);
    let first = net.heard(&mut one).remove(0);
    net.connections.hang_up(net.now, one.id);
    let mut two = net.peer(SocketType::Rep);
    // Nobody knows yet whether the request was what ended the worker.
    net.now = net.connections.next_deadline().unwrap();
    net.connections.handle(net.now, Input::Tick);
    let given = net.heard(&mut two);
    assert_eq!(given.len(), 1, "delivered again");
    assert_ne!(given[0][0], first[0], "under another number");
    net.send(&mut two, &[&first[0], b"", b"of a delivery that is over"]);
    assert_eq!(net.heard(&mut asker), [] as [Vec<Vec<u8>>; 0]);
    net.send(&mut two, &[&given[0][0], b"", b"y"]);
    assert_eq!(net.heard(&mut asker), [texts(&[b"\0\0\0\x09", b"", b"y"])]);
}

/// A client of Majordomo, a worker of another version, and what the broker says of the service.
#[test]
fn majordomo_crosses_its_versions() {
    let mut net = Net::at(endpoint());
    let (mut client, mut worker) = (net.peer(SocketType::Req), net.peer(SocketType::Dealer));
    let ask = [&b""[..], b"MDPC01", b"mmi.service", b"echo"];
    let told = |net: &mut Net, client: &mut Far| {
        net.send(client, &ask);
        net.heard(client).remove(0).pop().unwrap()
    };
    assert_eq!(told(&mut net, &mut client), b"404");
    net.send(&mut worker, &[b"MDPW02", b"\x01", b"echo"]);
    assert_eq!(told(&mut net, &mut client), b"200");
    net.send(&mut client, &[b"", b"MDPC01", b"echo", b"hi"]);
    let given = net.heard(&mut worker).remove(0);
    assert_eq!((&given[0][..], &given[1][..], &given[4][..]), (&b"MDPW02"[..], &b"\x02"[..], &b"hi"[..]));
    for (command, body) in [(b"\x03", b"one"), (b"\x04", b"two")] {
        net.send(&mut worker, &[b"MDPW02", command, &given[2], b"", body]);
    }
    assert_eq!(net.heard(&mut client), [texts(&[b"", b"MDPC01", b"echo", b"one", b"two"])]);
    // A worker that says nothing is told to go, and its request goes to another one.
    net.now = net.now.plus_millis(u64::from(limits::MDP_HEARTBEAT_MS * limits::LIVENESS));
    net.connections.sweep(net.now);
    assert_eq!(net.heard(&mut worker), [texts(&[b"MDPW02", b"\x06"])]);
    assert!(!net.connections.serves(worker.id));
    assert_eq!(told(&mut net, &mut client), b"404");
}

#[test]
fn what_is_pushed_is_pulled_in_order() {
    let mut net = Net::at(endpoint());
    let mut push = net.peer(SocketType::Push);
    for number in 0..50_u8 {
        net.send(&mut push, &[b"n", &[number]]);
    }
    let mut pull = net.peer(SocketType::Pull);
    let expected: Vec<Vec<Vec<u8>>> = (0..50).map(|number| texts(&[b"n", &[number]])).collect();
    assert_eq!(net.heard(&mut pull), expected, "more than its slots: each is done when it is written");
}

/// The bytes of a PULL socket that reads nothing hold its slots.
#[test]
fn a_pull_socket_that_reads_nothing_gets_no_more_than_its_slots() {
    let mut net = Net::at(ZmqEndpoint { slots: Some(2), ..endpoint() });
    let (pull, mut push) = (net.peer(SocketType::Pull), net.peer(SocketType::Push));
    for _ in 0..5 {
        net.send(&mut push, &[b"12345678"]);
    }
    assert_eq!(net.connections.unwritten(pull.id).len(), 2 * 10);
    net.connections.wrote(net.now, pull.id, 10);
    assert_eq!(net.connections.unwritten(pull.id).len(), 2 * 10, "one is done, one more comes");
}

/// A PULL socket whose connection is given up gets no message that goes to another worker.
#[test]
fn a_pull_socket_that_is_given_up_gets_nothing_twice() {
    let mut net = Net::at(ZmqEndpoint { slots: Some(3), ..endpoint() });
    let (mut slow, mut push) = (net.peer(SocketType::Pull), net.peer(SocketType::Push));
    for number in 0..3_u8 {
        net.send(&mut push, &[b"number", &[number]]);
    }
    let first = net.connections.unwritten(slow.id)[..15].to_vec();
    net.connections.wrote(net.now, slow.id, first.len());
    slow.hear(net.now, &first);
    assert_eq!(slow.heard, [texts(&[b"number", &[0]])], "the next one is partly written");
    net.now = net.now.plus_millis(Limits::default().write_stall_ms_max);
    net.connections.sweep(net.now);
    assert!(!net.connections.serves(slow.id));
    assert!(net.connections.said_all(slow.id), "{:?}", net.connections.unwritten(slow.id));
    let mut other = net.peer(SocketType::Pull);
    assert_eq!(net.heard(&mut other), [texts(&[b"number", &[1]]), texts(&[b"number", &[2]])]);
}

/// The broker reads no more from a PUSH socket while too much of it is not stored, and reads on when it is.
#[test]
fn a_push_socket_is_read_from_again() {
    let mut net = Net::at(endpoint());
    let mut push = net.peer(SocketType::Push);
    let conn = push.id;
    // Inputs that an engine on another thread has not answered yet.
    let unanswered = |net: &mut Net| {
        for _ in 0..limits::ZMQ_UNSTORED_MAX {
            let message = Message::of(&[b"x"]);
            net.connections.table.with_dialect(conn, |dialect, out| dialect.hear(&message, out)).unwrap().unwrap();
        }
        std::mem::take(&mut net.connections.table.zmq.inputs)
    };
    let inputs = unanswered(&mut net);
    assert!(!net.connections.wants_reading(conn));
    net.connections.table.zmq.inputs.extend(inputs);
    net.connections.sweep(net.now);
    net.connections.settle(net.now);
    assert_eq!(net.connections.take_granted(), [conn]);
    assert!(net.connections.wants_reading(conn));
    net.send(&mut push, &[b"y"]);
}

/// A PUSH socket that is not read from because memory is short is not silent, and all of it is stored in order once there is memory.
#[test]
fn a_push_socket_waits_for_memory() {
    let limits = Limits { memory_bytes_max: 1 << 20, frame_bytes_max: 128 << 10, ..Limits::default() };
    let mut net = Net::new(limits, &[endpoint()]);
    let (mut push, mut bytes) = (net.peer(SocketType::Push), Vec::new());
    for number in 0..30_u8 {
        push.session.send([&[number; 40_000][..]], &mut bytes);
    }
    let mut said = 0;
    while net.connections.wants_reading(push.id) {
        net.say(&mut push, &bytes[said..said + 60_000]);
        said += 60_000;
    }
    assert!(said < bytes.len());
    for _ in 0..100 {
        net.now = net.now.plus_millis(1_000);
        net.connections.sweep(net.now);
    }
    assert!(net.connections.serves(push.id), "it is not silent");
    let mut pull = net.peer(SocketType::Pull);
    let mut heard = net.heard(&mut pull);
    while heard.len() < 30 {
        net.now = net.now.plus_millis(100);
        net.connections.sweep(net.now);
        if net.connections.wants_reading(push.id) && said < bytes.len() {
            let end = bytes.len().min(said + 60_000);
            net.say(&mut push, &bytes[said..end]);
            said = end;
        }
        heard.extend(net.heard(&mut pull));
    }
    assert!(heard.iter().zip(0..).all(|(frames, number)| frames[0] == [number; 40_000]));
    assert_eq!(net.counted(Count::Refused), 0);
}

/// The messages of a PUSH socket that wait for memory are lost with its connection, and counted: its sender cannot be told.
#[test]
fn messages_that_wait_for_memory_are_counted_when_their_connection_ends() {
    let limits = Limits { memory_bytes_max: 1 << 20, frame_bytes_max: 128 << 10, ..Limits::default() };
    let mut net = Net::new(limits, &[endpoint()]);
    let (mut push, mut bytes) = (net.peer(SocketType::Push), Vec::new());
    for number in 0..30_u8 {
        push.session.send([&[number; 40_000][..]], &mut bytes);
    }
    net.say(&mut push, &bytes);
    assert_eq!(net.counted(Count::Refused), 0);
    net.connections.hang_up(net.now, push.id);
    let refused = net.counted(Count::Refused);
    let mut pull = net.peer(SocketType::Pull);
    let stored = net.heard(&mut pull).len() as u64;
    assert!(refused > 0 && stored > 0, "{refused} were refused, {stored} stored");
    assert_eq!(refused + stored, 30);
}

#[test]
fn publications_reach_subscribers() {
    let mut net = Net::at(endpoint());
    let (mut publisher, mut sub) = (net.peer(SocketType::Pub), net.peer(SocketType::Sub));
    let mut out = Vec::new();
    sub.session.subscribe(b"news.", &mut out);
    net.say(&mut sub, &out);
    net.send(&mut publisher, &[b"news.a", b"x", b"y"]);
    net.send(&mut publisher, &[b"other", b"x"]);
    net.send(&mut publisher, &[b"not a topic", b"x"]);
    assert_eq!(net.heard(&mut sub), [texts(&[b"news.a", b"x", b"y"])]);
    assert_eq!((net.counted(Count::Sent), net.counted(Count::BadTopic)), (1, 1));
    out.clear();
    sub.session.cancel(b"news.", &mut out);
    net.say(&mut sub, &out);
    net.send(&mut publisher, &[b"news.a", b"z"]);
    assert_eq!(net.heard(&mut sub), [] as [Vec<Vec<u8>>; 0]);
}

/// Events that wait for a slow subscriber are encrypted when they are written: heartbeats come between them.
#[test]
fn events_that_wait_are_encrypted_in_the_order_of_their_bytes() {
    let keys = KeyPair::from_secret([9; 32]);
    let access = ZmqAccess::Curve { keys: keys.clone(), clients: None };
    let mut net = Net::at(ZmqEndpoint { access, ..endpoint() });
    let client = |secret| Security::CurveClient { keys: KeyPair::from_secret([secret; 32]), server: keys.public() };
    let (mut sub, mut publisher) = (net.far(SocketType::Sub, client(1)), net.far(SocketType::Pub, client(2)));
    net.pump(&mut sub);
    net.pump(&mut publisher);
    let mut out = Vec::new();
    sub.session.subscribe(b"", &mut out);
    net.say(&mut sub, &out);
    for number in 0..8_u8 {
        net.send(&mut publisher, &[b"t", &[number; 100_000]]);
    }
    net.now = net.now.plus_millis(6_000);
    net.connections.sweep(net.now);
    let heard = net.heard(&mut sub);
    assert_eq!((heard.len(), sub.fault), (8, None));
    assert!(heard.iter().zip(0..).all(|(frames, number)| frames[1] == [number; 100_000]));
}

#[test]
fn who_may_not_connect_is_refused_and_counted() {
    let users = [("ann".to_owned(), "secret".to_owned())].into();
    let mut net = Net::at(ZmqEndpoint { access: ZmqAccess::Plain(users), ..endpoint() });
    let client =
        |password: &str| Security::PlainClient { user: b"ann"[..].into(), password: password.as_bytes().into() };
    let mut good = net.far(SocketType::Req, client("secret"));
    net.pump(&mut good);
    assert!(net.connections.serves(good.id));
    let mut bad = net.far(SocketType::Req, client("guess"));
    net.pump(&mut bad);
    assert_eq!((net.connections.serves(bad.id), bad.fault), (false, Some(ZmtpFault::RefusedByPeer)));
    assert_eq!(net.counted(Count::BadHandshake), 1);
}

/// The program at an endpoint that connects has one connection, however often it was dialled before a router took that in.
#[test]
fn an_endpoint_that_connects_has_one_connection() {
    let place = ZmqPlace::Connect { address: "tcp://there:1".to_owned(), socket: SocketType::Dealer };
    let mut net = Net::at(ZmqEndpoint { place, ..endpoint() });
    let accept = |net: &mut Net| net.connections.accept(net.now, "there".to_owned(), ListenerKind::Zmq(0)).unwrap();
    let (one, two) = (accept(&mut net), accept(&mut net));
    assert!(net.connections.is_heard(one) && !net.connections.is_heard(two));
    assert!(net.connections.unwritten(two).is_empty());
    for id in [one, two] {
        net.connections.hang_up(net.now, id);
    }
    assert_eq!(net.counted(Count::BadHandshake), 1, "of the first, which the program ended");
    let again = accept(&mut net);
    assert!(net.connections.is_heard(again));
}

/// A peer that says nothing is closed, and so is the oldest of too many that are half connected.
#[test]
fn handshakes_have_limits() {
    let mut net = Net::at(endpoint());
    let silent = net.connections.accept(net.now, "there".to_owned(), ListenerKind::Zmq(0)).unwrap();
    net.now = net.now.plus_millis(limits::GREETING_MS_MAX);
    net.connections.sweep(net.now);
    assert!(!net.connections.is_heard(silent));
    let all: Vec<ConnId> = (0..10_000)
        .map(|_| net.connections.accept(net.now, "there".to_owned(), ListenerKind::Zmq(0)))
        .map_while(|id| id)
        .collect();
    let open = all.iter().filter(|id| net.connections.is_heard(**id)).count();
    assert_eq!(open, limits::GREETINGS_MAX);
    assert!(net.connections.is_heard(*all.last().unwrap()));
}

/// A long message has its memory set aside before it is read further; without memory its peer is not read from.
#[test]
fn a_long_message_waits_for_memory() {
    let limits = Limits { memory_bytes_max: 8 << 20, frame_bytes_max: 4 << 20, ..Limits::default() };
    let mut net = Net::new(limits, &[endpoint()]);
    let mut one = net.peer(SocketType::Dealer);
    let (mut two, mut three) = (net.peer(SocketType::Dealer), net.peer(SocketType::Dealer));
    let mut bytes = Vec::new();
    one.session.send([&vec![7; 3 << 20][..]], &mut bytes);
    let before = net.connections.meter().incoming();
    for far in [&mut one, &mut two, &mut three] {
        net.say(far, &bytes[..100_000]);
    }
    assert_eq!(net.connections.meter().incoming() - before, 2 * (3 << 20) + 100_000 - 9, "of the third only what came");
    assert!(net.connections.wants_reading(two.id) && !net.connections.wants_reading(three.id));
    net.connections.hang_up(net.now, one.id);
    assert_eq!(net.connections.take_granted(), [three.id]);
    assert!(net.connections.wants_reading(three.id));
    net.say(&mut three, &bytes[100_000..]);
    assert_eq!((net.counted(Count::Received), net.connections.meter().incoming() < 4 << 20), (1, true));
}

/// Faults of peers: each ends its own connection, and nothing else.
#[test]
fn bad_input_ends_the_connection() {
    let mut four_gib = vec![2];
    four_gib.extend(u64::from(u32::MAX).to_be_bytes());
    let mut command = vec![6];
    command.extend((8_u64 << 20).to_be_bytes());
    let endless = [&[1, 0][..]; limits::ZMTP_FRAMES_MAX + 1].concat();
    let table: [(SocketType, &[u8]); 5] = [
        (SocketType::Req, &four_gib),
        (SocketType::Req, &command),
        (SocketType::Req, b"\x04\x0d\x09SUBSCRIBEabc"),
        (SocketType::Pull, b"\x00\x01x"),
        (SocketType::Dealer, &endless),
    ];
    for (kind, bytes) in table {
        let mut net = Net::at(endpoint());
        let (mut bad, other) = (net.peer(kind), net.peer(SocketType::Req));
        net.say(&mut bad, bytes);
        assert!(!net.connections.is_heard(bad.id), "{kind} {}", bytes[..9.min(bytes.len())].escape_ascii());
        assert!(net.connections.serves(other.id));
        assert!(net.connections.meter().incoming() < 100_000, "nothing was kept");
    }
    let mut net = Net::at(endpoint());
    for greeting in
        [&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1][..], &[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 0], b"GET / HTTP/1.1\r\n"]
    {
        let id = net.connections.accept(net.now, "there".to_owned(), ListenerKind::Zmq(0)).unwrap();
        let _ = net.connections.take(net.now, id, greeting);
        assert!(!net.connections.is_heard(id), "{}", greeting.escape_ascii());
    }
    assert_eq!(net.counted(Count::BadHandshake), 3);
}
