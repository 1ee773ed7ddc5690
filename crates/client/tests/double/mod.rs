//! A broker's double: one listener, the real wire, the least that a broker does, and levers to make it misbehave.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its share")]

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use turno_client::Options;
use turno_proto::model::{Code, Cost, Delivery, Durability, Limits, MessageId, Mono, Payload};
use turno_proto::native::{
    Closing, ClosingReason, Config, Deliver, Frame, Kind, Raw, RawOutgoing, Session, SessionStep, encode,
};

/// Longest wait for a condition: far beyond what a loaded machine needs, so that hitting it is a failure.
pub const LONG: Duration = Duration::from_secs(120);

/// Frames that wait for a peer to read them. More: lost, and the test that needs them fails.
const OUTBOX_MAX: usize = 65_536;

struct Waiting {
    from: usize,
    seq: u32,
    queue: String,
    wants_reply: bool,
    payload: Payload,
}

struct Peer {
    out: mpsc::Sender<Vec<u8>>,
    handles: HashMap<u32, String>,
    consumes: Vec<u32>,
}

#[derive(Default)]
struct State {
    peers: HashMap<usize, Peer>,
    next_peer: usize,
    backlog: VecDeque<Waiting>,
    /// By stamp: caller, its number, and the worker.
    running: HashMap<u32, (usize, u32, usize)>,
    stamp: u32,
    log: Vec<Kind>,
    refuse_register: Option<Code>,
    closing: bool,
}

pub struct Double {
    place: String,
    state: Arc<Mutex<State>>,
    listener: JoinHandle<()>,
}

impl Double {
    pub async fn start() -> Self {
        Self::start_telling(Vec::new()).await
    }

    /// Tells of those brokers in CONFIG.
    pub async fn start_telling(brokers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let place = listener.local_addr().expect("bound").to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let listener = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared), brokers.clone()));
            }
        });
        Self { place, state, listener }
    }

    pub fn url(&self) -> String {
        format!("turno://{}", self.place)
    }

    pub fn options(&self) -> Options {
        Options::new(self.url())
    }

    /// How many frames of that kind came so far.
    pub fn count(&self, kind: Kind) -> usize {
        self.state.lock().expect("no panic before").log.iter().filter(|seen| **seen == kind).count()
    }

    pub async fn wait_for(&self, kind: Kind, count: usize) {
        until(&format!("{count} x {}", kind.name()), || self.count(kind) >= count).await;
    }

    pub fn refuse_register(&self, code: Code) {
        self.state.lock().expect("no panic before").refuse_register = Some(code);
    }

    pub fn say_closing(&self, reason: ClosingReason) {
        self.say_all(&Frame::Closing { closing: Closing { reason, within_ms: 0 } });
        self.state.lock().expect("no panic before").closing = reason == ClosingReason::Shutdown;
    }

    /// Writes bytes to every peer.
    pub fn say_bytes(&self, bytes: &[u8]) {
        for peer in self.state.lock().expect("no panic before").peers.values() {
            let _ = peer.out.try_send(bytes.to_vec());
        }
    }

    /// Drops every connection; with `listening` false no new one is taken.
    pub fn drop_all(&self, listening: bool) {
        if !listening {
            self.listener.abort();
        }
        self.state.lock().expect("no panic before").peers.clear();
    }

    fn say_all(&self, frame: &Frame<'_>) {
        let mut bytes = Vec::new();
        encode(frame, &mut bytes);
        self.say_bytes(&bytes);
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.drop_all(false);
    }
}

/// Waits until a condition holds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    let mut look = tokio::time::interval(Duration::from_millis(2));
    while !condition() {
        assert!(start.elapsed() < LONG, "waited too long for: {what}");
        look.tick().await;
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>, brokers: Vec<String>) {
    let (out, mut outbox) = mpsc::channel(OUTBOX_MAX);
    let me = {
        let mut state = state.lock().expect("no panic before");
        state.next_peer += 1;
        let me = state.next_peer;
        state.peers.insert(me, Peer { out, handles: HashMap::new(), consumes: Vec::new() });
        me
    };
    let config = Config {
        broker: "double".to_owned(),
        program: "double".to_owned(),
        heartbeat_ms: 1_000,
        liveness: 100,
        brokers,
        ..Config::of(&Limits::default())
    };
    let mut session = Session::new(Mono::ZERO, Limits::default().frame_bytes_max);
    let mut inbox = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        tokio::select! {
            bytes = outbox.recv() => {
                let Some(bytes) = bytes else { break };
                if stream.write_all(&bytes).await.is_err() { break }
            }
            count = stream.read(&mut chunk) => {
                let Ok(count @ 1..) = count else { break };
                inbox.extend_from_slice(&chunk[..count]);
                let mut answer = Vec::new();
                loop {
                    let Ok((step, used)) = session.step(&inbox, &config, &mut answer) else { return };
                    match step {
                        SessionStep::NeedMore => break,
                        SessionStep::Frame(frame) => {
                            let mut state = state.lock().expect("no panic before");
                            state.log.push(frame.kind());
                            state.handle(me, frame);
                        }
                        _ => {}
                    }
                    inbox.drain(..used);
                }
                if stream.write_all(&answer).await.is_err() { break }
            }
        }
    }
    state.lock().expect("no panic before").gone(me);
}

impl State {
    fn handle(&mut self, me: usize, frame: Frame<'_>) {
        match frame {
            Frame::Open { seq, handle, name } => {
                let name = String::from_utf8(name.to_vec()).expect("text");
                if let Some(peer) = self.peers.get_mut(&me) {
                    peer.handles.insert(handle, name);
                }
                self.say(me, &Frame::Ok { seq });
            }
            Frame::Register { seq, .. } => match self.refuse_register {
                Some(code) => self.say(me, &Frame::Error { seq, code, fatal: false, detail: "the double refuses" }),
                None => self.say(me, &Frame::Ok { seq }),
            },
            Frame::Resize { seq, .. } => self.say(me, &Frame::Ok { seq }),
            Frame::Consume { seq, handle, exclusive: false } => {
                if let Some(peer) = self.peers.get_mut(&me) {
                    peer.consumes.push(handle);
                }
                self.say(me, &Frame::Ok { seq });
                self.dispatch();
            }
            Frame::Deregister { seq } => {
                if let Some(peer) = self.peers.get_mut(&me) {
                    peer.consumes.clear();
                }
                self.say(me, &Frame::Ok { seq });
            }
            Frame::Request(message) => self.enqueue(me, &message, true),
            Frame::Send(message) => {
                let id = MessageId::new(1, u64::from(message.seq), 0);
                self.say(me, &Frame::Stored { seq: message.seq, durability: Durability::Memory, id, duplicate: false });
                self.enqueue(me, &message, false);
            }
            Frame::Reply { seq, more, raw, .. } => {
                if let Some((caller, request, _)) = self.running.get(&seq).copied() {
                    self.say(caller, &Frame::Reply { seq: request, word: 0, more, raw });
                }
                if !more {
                    self.running.remove(&seq);
                }
            }
            Frame::Progress { seq, raw, .. } => {
                if let Some((caller, request, _)) = self.running.get(&seq).copied() {
                    self.say(caller, &Frame::Progress { seq: request, word: 0, raw });
                }
            }
            Frame::Ack { delivery } => drop(self.running.remove(&delivery.stamp)),
            Frame::Fail { delivery, raw, .. } => {
                if let Some((caller, seq, _)) = self.running.remove(&delivery.stamp) {
                    self.say(caller, &Frame::Undelivered { seq, code: Code::Failed, raw });
                }
            }
            Frame::Cancel { seq, .. } => self.cancel(me, seq),
            Frame::AdminCall { seq, .. } => {
                self.say(me, &Frame::Error { seq, code: Code::BadCall, fatal: false, detail: "a double has no admin" });
            }
            _ => {}
        }
    }

    fn enqueue(&mut self, from: usize, message: &RawOutgoing<'_>, wants_reply: bool) {
        if self.closing {
            let raw = Raw { headers: false, bytes: b"" };
            return self.say(from, &Frame::Undelivered { seq: message.seq, code: Code::Closing, raw });
        }
        let queue = self.peers.get(&from).and_then(|peer| peer.handles.get(&message.handle)).cloned();
        let queue = queue.expect("OPEN comes first");
        self.backlog.push_back(Waiting {
            from,
            seq: message.seq,
            queue,
            wants_reply,
            payload: message.payload.to_payload(),
        });
        self.dispatch();
    }

    fn dispatch(&mut self) {
        for waiting in std::mem::take(&mut self.backlog) {
            let taker = self.peers.iter().find_map(|(id, peer)| {
                let handle = peer.consumes.iter().find(|handle| peer.handles.get(handle) == Some(&waiting.queue))?;
                Some((*id, *handle))
            });
            let Some((worker, handle)) = taker else {
                self.backlog.push_back(waiting);
                continue;
            };
            self.stamp += 1;
            self.running.insert(self.stamp, (waiting.from, waiting.seq, worker));
            let deliver = Deliver {
                delivery: Delivery { index: 5, stamp: self.stamp },
                handle,
                id: MessageId::new(1, u64::from(self.stamp), 5),
                attempt: 1,
                cost: Cost::ONE,
                deadline_ms: None,
                wants_reply: waiting.wants_reply,
                token: None,
                raw: (&waiting.payload).into(),
            };
            self.say(worker, &Frame::Deliver(deliver));
        }
    }

    fn cancel(&mut self, me: usize, seq: u32) {
        self.backlog.retain(|waiting| (waiting.from, waiting.seq) != (me, seq));
        let at_worker = self.running.iter().find(|(_, (caller, request, _))| (*caller, *request) == (me, seq));
        if let Some((stamp, (_, _, worker))) = at_worker.map(|(stamp, place)| (*stamp, *place)) {
            self.say(worker, &Frame::Cancel { seq: stamp, word: 5, reason: Some(Code::Cancelled) });
        }
        self.say(me, &Frame::Undelivered { seq, code: Code::Cancelled, raw: Raw { headers: false, bytes: b"" } });
    }

    fn gone(&mut self, me: usize) {
        self.peers.remove(&me);
        self.backlog.retain(|waiting| waiting.from != me);
        for (stamp, (caller, _, worker)) in &self.running {
            if *caller == me {
                self.say(*worker, &Frame::Cancel { seq: *stamp, word: 5, reason: Some(Code::CallerGone) });
            }
        }
        let lost: Vec<u32> = self.running.iter().filter(|(_, at)| at.2 == me).map(|(stamp, _)| *stamp).collect();
        for stamp in lost {
            if let Some((caller, seq, _)) = self.running.remove(&stamp) {
                let raw = Raw { headers: false, bytes: b"" };
                self.say(caller, &Frame::Undelivered { seq, code: Code::WorkerLost, raw });
            }
        }
    }

    fn say(&self, peer: usize, frame: &Frame<'_>) {
        let mut bytes = Vec::new();
        encode(frame, &mut bytes);
        if let Some(peer) = self.peers.get(&peer) {
            let _ = peer.out.try_send(bytes);
        }
    }
}
