//! The request for a free sid to a member of a ring, before the broker starts (`--sid auto`).

use std::io;
use std::time::{Duration, Instant};

use tracing::debug;
use turno_proto::model::ring::{RingMessage, Sid};
use turno_proto::model::{Code, Mono, limits};
use turno_proto::native::{
    Frame, GreetingCredentials, RingIdentity, RingSession, RingStep, Secret, encode_ring_message,
};

use crate::connections::{Nonces, is_local};
use crate::router::{Stream, connect_within};

/// Which sid is free in the ring of the member at that address, HOST:PORT, which must be the one that is named, if one is. It
/// takes at most [`limits::RING_ASK_MS`]. A member tells each number once; another one may tell the same, and the ring takes in
/// only one of those who have it.
pub fn ask_for_sid(named: Option<Sid>, address: &str, secret: Option<Secret>) -> Result<Sid, Code> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|_| Code::Io)?;
    let asked = runtime.block_on(ask_within(named, address, secret));
    // A name that takes long to be found keeps a thread busy: nobody waits for it.
    runtime.shutdown_background();
    asked
}

/// The same for those who have a runtime.
pub(super) async fn ask_within(named: Option<Sid>, address: &str, secret: Option<Secret>) -> Result<Sid, Code> {
    let limit = Duration::from_millis(limits::RING_ASK_MS);
    tokio::time::timeout(limit, ask(named, address, secret)).await.unwrap_or(Err(Code::RingDown))
}

async fn ask(named: Option<Sid>, address: &str, secret: Option<Secret>) -> Result<Sid, Code> {
    let lost = |error: io::Error| {
        debug!(address, %error, "cannot ask a ring member for a sid");
        Code::RingDown
    };
    let (stream, peer) = connect_within(address, limits::RING_ASK_MS).await.map_err(lost)?;
    let Stream::Tcp(stream) = stream else { return Err(Code::RingDown) };
    let nonce = Nonces::System.next().ok_or(Code::Io)?;
    let program = concat!("turno ", env!("CARGO_PKG_VERSION")).to_owned();
    let me = GreetingCredentials { identity: RingIdentity { member: None, program }, secret };
    let began = Instant::now();
    let now = || Mono::from_millis(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    let until = now().plus_millis(limits::RING_ASK_MS);
    let (mut said, mut heard) = (Vec::new(), Vec::new());
    let mut session = RingSession::dial(now(), until, me, nonce, is_local(&peer), limits::RING_BEAT_MS, &mut said);
    loop {
        write(&stream, &mut said).await.map_err(lost)?;
        match session.step(now(), &heard, &mut said) {
            Ok((RingStep::NeedMore, _)) => read(&stream, &mut heard).await.map_err(lost)?,
            Ok((step, used)) => {
                match step {
                    RingStep::Reached(peer) if named.is_some_and(|named| named != peer.origin.sid) => {
                        return Err(Code::WrongSid);
                    }
                    RingStep::Reached(_) => encode_ring_message(&RingMessage::AskSid, &mut said),
                    RingStep::Frame(Frame::Ring(message)) => match *message {
                        RingMessage::FreeSid { sid } => return Ok(sid),
                        RingMessage::Refused { code, .. } => return Err(code),
                        _ => return Err(Code::WrongDirection),
                    },
                    RingStep::Frame(_) => return Err(Code::WrongDirection),
                    RingStep::Ended(code) => return Err(code),
                    RingStep::NeedMore | RingStep::Done | RingStep::Accepted(_) => {}
                }
                heard.drain(..used);
            }
            Err(fault) => return Err(fault.code),
        }
    }
}

async fn write(stream: &tokio::net::TcpStream, said: &mut Vec<u8>) -> io::Result<()> {
    while !said.is_empty() {
        stream.writable().await?;
        match stream.try_write(said) {
            Ok(count) => drop(said.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// More of what the other end says; its end is an error.
async fn read(stream: &tokio::net::TcpStream, heard: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = [0; 4_096];
    loop {
        stream.readable().await?;
        match stream.try_read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                heard.extend_from_slice(&piece[..count]);
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}
