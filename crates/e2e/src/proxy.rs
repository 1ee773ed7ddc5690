//! A way to the broker that breaks where a test wants it to.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use turno_proto::native::{Kind, split};

/// Passes bytes on between peers and a broker. Once, it cuts a connection where the broker said STORED: the broker has
/// the message, and its sender does not hear of it. After that it passes everything on.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    has_cut: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// In front of that broker; cuts in place of the STORED with that number, from 1, of a connection.
    pub fn cutting(broker: SocketAddr, nth_stored: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let (has_cut, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (cut, ended) = (Arc::clone(&has_cut), Arc::clone(&over));
        let acceptor = thread::spawn(move || {
            while let Ok((peer, _)) = listener.accept() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                // A broker that is down is to the peer as one that hangs up.
                if let Ok(broker) = TcpStream::connect(broker) {
                    pass_on(peer, broker, nth_stored, Arc::clone(&cut));
                }
            }
        });
        Self { address, has_cut, over, acceptor: Some(acceptor) }
    }

    /// Where peers reach the broker through it.
    pub fn url(&self) -> String {
        format!("turno://{}", self.address)
    }

    /// Whether it did what it is for.
    pub fn has_cut(&self) -> bool {
        self.has_cut.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the acceptor; if it has ended already, there is nobody to wake.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// The threads end with their connection.
fn pass_on(peer: TcpStream, broker: TcpStream, nth_stored: usize, has_cut: Arc<AtomicBool>) {
    let pair = |stream: &TcpStream| stream.try_clone().expect("another handle of the socket");
    let (mut peer_in, mut broker_out) = (pair(&peer), pair(&broker));
    thread::spawn(move || {
        let _ = io::copy(&mut peer_in, &mut broker_out);
        let _ = broker_out.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = pass_answers(&broker, &peer, nth_stored, &has_cut);
        for stream in [peer, broker] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
}

fn pass_answers(mut from: &TcpStream, mut to: &TcpStream, nth_stored: usize, has_cut: &AtomicBool) -> io::Result<()> {
    let (mut buffer, mut stored) = (Vec::new(), 0);
    let mut more = [0; 65_536];
    loop {
        let count = from.read(&mut more)?;
        if count == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&more[..count]);
        while let Some(piece) = split(&buffer, usize::MAX).expect("the broker speaks our protocol") {
            stored += usize::from(piece.header.kind == Kind::Stored.number());
            if stored == nth_stored && !has_cut.swap(true, Ordering::Relaxed) {
                return Ok(());
            }
            let used = piece.used;
            to.write_all(&buffer[..used])?;
            buffer.drain(..used);
        }
    }
}
