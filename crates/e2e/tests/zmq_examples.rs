//! `examples/zeromq`: plain programs with pyzmq and libzmq work with a real broker.

use std::path::PathBuf;
use std::process::Command;

use turno_e2e::{Background, Broker, Run, wait};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The Python that has pyzmq.
fn python(broker: &Broker, program: &str, words: &[&str]) -> Command {
    let mut command = broker.place.command(root().join("target/pyzmq/bin/python"));
    command.arg(root().join("examples/zeromq").join(program)).arg(broker.zmq_url(0)).args(words);
    command
}

fn run(broker: &Broker, program: &str, words: &[&str]) -> String {
    Run::finish(python(broker, program, words), b"", wait::PATIENCE).expect(0).text()
}

#[test]
fn requests_are_answered() {
    let broker = Broker::start();
    let mut worker = Background::start(python(&broker, "shout.py", &[]));
    assert_eq!(run(&broker, "ask.py", &["hello"]), "HELLO\n");
    assert_eq!(run(&broker, "many.py", &["100"]), "100 replies\n");
    assert_eq!(broker.run(&["request", "zmq", "good morning"]).expect(0).text(), "GOOD MORNING");
    worker.signal(rustix::process::Signal::KILL);
    worker.end(wait::PATIENCE);
    wait::until("the worker has gone", || broker.workers() == 0);
    let _native = broker.worker(&["zmq", "--", "tr", "a-z", "A-Z"]);
    assert_eq!(run(&broker, "ask.py", &["again"]), "AGAIN\n");
}

/// An example in C, compiled into the place of the broker.
fn compiled(broker: &Broker, program: &str) -> Command {
    let source = root().join(format!("examples/zeromq/{program}.c"));
    let binary = broker.place.path().join(program);
    let mut cc = broker.place.command("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&binary).arg(source).arg("-lzmq");
    Run::finish(cc, b"", wait::PATIENCE).expect(0);
    let mut command = broker.place.command(binary);
    command.arg(broker.zmq_url(0));
    command
}

#[test]
fn requests_are_answered_in_c() {
    let broker = Broker::start();
    let ask = |text: &str| {
        let mut command = compiled(&broker, "ask");
        command.arg(text);
        Run::finish(command, b"", wait::PATIENCE).expect(0).text()
    };
    let mut worker = Background::start(compiled(&broker, "shout"));
    assert_eq!(ask("hello"), "HELLO\n");
    assert_eq!(run(&broker, "ask.py", &["hello"]), "HELLO\n");
    assert_eq!(broker.run(&["request", "zmq", "good morning"]).expect(0).text(), "GOOD MORNING");
    worker.signal(rustix::process::Signal::KILL);
    worker.end(wait::PATIENCE);
    wait::until("the worker has gone", || broker.workers() == 0);
    let _native = broker.worker(&["zmq", "--", "tr", "a-z", "A-Z"]);
    assert_eq!(ask("again"), "AGAIN\n");
    let mut no_address = compiled(&broker, "ask");
    no_address.args(["one", "too many"]);
    assert_eq!(Run::finish(no_address, b"", wait::PATIENCE).code, 2);
}

#[test]
fn work_waits_for_who_takes_it() {
    let broker = Broker::start();
    run(&broker, "push.py", &["one", "two", "three"]);
    wait::until("all of it is stored", || broker.queue("zmq")["ready"] == 3);
    assert_eq!(run(&broker, "pull.py", &["3"]), "one\ntwo\nthree\n");
}

#[test]
fn publications_reach_who_listens() {
    let broker = Broker::start();
    let mut listener = Background::start(python(&broker, "listen.py", &["weather.", "1"]));
    broker.await_subscribers(1);
    run(&broker, "weather.py", &["berlin", "21"]);
    assert_eq!(listener.end(wait::PATIENCE), 0);
    assert_eq!(listener.stdout(), ["weather.berlin 21"]);
}

/// Clients and workers of Majordomo with each other and with native ones; a worker says READY to a broker that has come again.
#[test]
fn majordomo_works_with_native_peers() {
    let place = turno_e2e::Place::new();
    let port = turno_e2e::Port::reserve();
    let address = port.address().to_string();
    let mut broker = Broker::start_in(place, &["--zmq-listen", &address]);
    let _worker = Background::start(python(&broker, "mdp_worker.py", &["echo"]));
    assert_eq!(run(&broker, "mdp_client.py", &["echo", "hello"]), "hello\n");
    assert_eq!(broker.run(&["request", "echo", "good morning"]).expect(0).text(), "good morning");
    let _native = broker.worker(&["shout", "--", "tr", "a-z", "A-Z"]);
    assert_eq!(run(&broker, "mdp_client.py", &["shout", "hello"]), "HELLO\n");
    assert_eq!(run(&broker, "mdp_client.py", &["mmi.service", "echo"]), "200\n");
    assert_eq!(run(&broker, "mdp_client.py", &["mmi.service", "nothing"]), "404\n");
    assert_eq!(run(&broker, "mdp_client.py", &["mmi.other", "x"]), "501\n");
    assert_eq!(broker.terminate(wait::PATIENCE), 0);
    let broker = Broker::start_in(broker.into_place(), &["--zmq-listen", &address]);
    assert_eq!(run(&broker, "mdp_client.py", &["echo", "again"]), "again\n");
}
