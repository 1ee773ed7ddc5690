//! A stand-in for ssh: the host is this machine. It knows the options that `turno worker deploy` gives, carries ports as
//! ssh does, and runs the command in a shell with pipes of its own, so that its death is the end of them.
//!
//! Some hosts are special: at `nowhere` nobody listens, at `taken` the first ports are taken.

use std::env;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

/// ssh's own failure.
const FAILED: u8 = 255;

fn main() -> ExitCode {
    let mut words = env::args().skip(1);
    let mut forwards = Vec::new();
    let host = loop {
        match words.next().as_deref() {
            Some("-o") => drop(words.next().expect("an option")),
            Some("-R") => forwards.push(words.next().expect("a forward")),
            Some(host) if !host.starts_with('-') => break host.to_owned(),
            other => panic!("ssh was asked for {other:?}"),
        }
    };
    let command: Vec<String> = words.collect();
    if host == "nowhere" {
        return fail("ssh: connect to host nowhere port 22: Connection refused");
    }
    if host == "taken" && !Path::new("taken").exists() {
        std::fs::write("taken", "").expect("a directory of its own");
        return fail("Error: remote port forwarding failed for listen port 20000");
    }
    for forward in &forwards {
        if let Err(error) = carry(forward) {
            return fail(&format!("Error: remote port forwarding failed for {forward}: {error}"));
        }
    }
    run(&command.join(" "))
}

/// Says why, as ssh does.
fn fail(why: &str) -> ExitCode {
    // Nobody listens only if it was killed.
    let _ = writeln!(io::stderr(), "{why}");
    FAILED.into()
}

/// `127.0.0.1:PORT:HOST:PORT`: what connects to the first is connected to the second.
fn carry(forward: &str) -> io::Result<()> {
    let (before, port) = forward.rsplit_once(':').expect("a forward");
    let (here, host) = before.rsplit_once(':').expect("a forward");
    let (listener, target) = (TcpListener::bind(here)?, format!("{host}:{port}"));
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            // A broker that is down is to the worker as one that hangs up.
            let Ok(far) = TcpStream::connect(&target) else { continue };
            for (from, to) in [(&near, &far), (&far, &near)] {
                let (from, to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
                thread::spawn(move || {
                    pump(&from, &to);
                    // The other side may be gone already.
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    Ok(())
}

fn run(command: &str) -> ExitCode {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().expect("a shell");
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::spawn(move || stdin.map(|stdin| pump(io::stdin(), stdin)));
    let out = thread::spawn(move || stdout.map(|stdout| pump(stdout, io::stdout())));
    let err = thread::spawn(move || stderr.map(|stderr| pump(stderr, io::stderr())));
    let status = child.wait().expect("our own child");
    drop((out.join(), err.join()));
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED).into()
}

/// Until one of both ends.
fn pump(mut from: impl Read, mut to: impl Write) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
