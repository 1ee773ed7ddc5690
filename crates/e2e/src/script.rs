//! A broker by script: greets, and answers admin calls as the test says. For what a real one does only by chance.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use turno_proto::model::{Code, Limits};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{Config, Frame, decode, encode, split};

/// The reaction to a call.
#[derive(Debug)]
pub enum Act {
    /// It is answered.
    Answer(Box<AdminAnswer>),
    /// It is refused.
    Refuse(Code),
    /// Nothing comes.
    Nothing,
    /// The connection ends.
    HangUp,
}

type Acts = Arc<Mutex<dyn FnMut(&AdminCall) -> Act + Send>>;

/// Listens until the test's process ends.
#[derive(Debug)]
pub struct Script {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<AdminCall>>>,
}

impl Script {
    /// Does with each call what the script says.
    pub fn start(act: impl FnMut(&AdminCall) -> Act + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (acts, log): (Acts, _) = (Arc::new(Mutex::new(act)), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (acts, log) = (Arc::clone(&acts), Arc::clone(&log));
                thread::spawn(move || serve(stream, &acts, &log));
            }
        });
        Self { address, asked }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("turno://{}", self.address)
    }

    /// The calls so far, in order.
    pub fn asked(&self) -> Vec<AdminCall> {
        self.asked.lock().expect("no script panics").clone()
    }
}

/// Until the peer or the script ends the connection.
fn serve(mut stream: TcpStream, acts: &Acts, log: &Mutex<Vec<AdminCall>>) {
    let (mut buffer, mut chunk) = (Vec::new(), [0; 4_096]);
    loop {
        let Ok(count @ 1..) = stream.read(&mut chunk) else { return };
        buffer.extend_from_slice(&chunk[..count]);
        let mut out = Vec::new();
        while let Some(piece) = split(&buffer, usize::MAX).expect("the client speaks the protocol") {
            match decode(&piece.header, piece.rest).expect("the client speaks the protocol") {
                Frame::Connect { seq, .. } => encode(&Frame::Config { seq, config: Box::new(config()) }, &mut out),
                Frame::Ping { seq } => encode(&Frame::Pong { seq }, &mut out),
                Frame::AdminCall { seq, call } => {
                    log.lock().expect("no script panics").push(call.clone());
                    match acts.lock().expect("no script panics")(&call) {
                        Act::Answer(answer) => encode(&Frame::AdminAnswer { seq, answer: *answer }, &mut out),
                        Act::Refuse(code) => {
                            encode(&Frame::Error { seq, code, fatal: false, detail: "" }, &mut out);
                        }
                        Act::Nothing => {}
                        Act::HangUp => return,
                    }
                }
                _ => {}
            }
            let used = piece.used;
            buffer.drain(..used);
        }
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

fn config() -> Config {
    Config { broker: "script".to_owned(), program: "e2e".to_owned(), ..Config::of(&Limits::default()) }
}
