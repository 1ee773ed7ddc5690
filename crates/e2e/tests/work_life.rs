//! The life of `turno work`: it registers, it loses its broker, it finds it again, it ends.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use turno_e2e::process::alive;
use turno_e2e::{Background, Broker, Place, schema, wait};

const LONG: Duration = wait::PATIENCE;

/// A program that says that it runs, and ends when the file `go` is there.
const PATIENT: &str = "echo $$ > pid; while [ -d \"$PWD\" ] && [ ! -e go ]; do sleep 0.02; done; echo finished";

fn patient(broker: &Broker, flags: &[&str]) -> (Background, Background, u32) {
    let program = broker.place.script("patient", PATIENT).display().to_string();
    let worker = broker.worker(&[&["q", "--name", "w"], flags, &["--", &program]].concat());
    let asked = broker.start_turno(&["request", "q", "x", "--timeout", "1m"]);
    let read = || fs::read_to_string(broker.place.path().join("pid")).ok()?.trim().parse().ok();
    let id = wait::find(LONG, read).expect("the program runs");
    (worker, asked, id)
}

/// Whether the queue has a consumer.
fn consumed(broker: &Broker) -> bool {
    broker.queue("q")["consumers"].as_u64().unwrap_or_default() > 0
}

/// Proves S0.39: a worker says when it is registered, with what it was told, and only then is it in the rota.
#[test]
fn a_worker_says_what_it_registered() {
    let broker = Broker::start_with(&["--name", "rb-1"]);
    let worker = broker.start_turno(&["work", "a", "b", "--echo", "--slots", "4", "--name", "pixel-1"]);
    let line = worker.expect_line("registered");
    assert_eq!(line, format!("pixel-1 registered: queues a, b, slots 4, broker rb-1 at {}", broker.url()));
    assert_eq!(broker.workers(), 1);
    let unnamed = broker.start_turno(&["work", "a", "--echo", "-s", "unlimited", "--json"]);
    wait::until("its document", || unnamed.stdout().len() == 1);
    let document = schema::document(&unnamed.stdout()[0]);
    assert!(document["name"].as_str().is_some_and(|name| name.ends_with(&format!("-{}", unnamed.id()))), "{document}");
    assert_eq!((&document["slots"], &document["broker"]), (&serde_json::Value::Null, &broker.url().into()));
    let quiet = broker.worker(&["a", "--echo", "-q"]);
    assert_eq!((quiet.stdout().len(), quiet.stderr().len()), (0, 0), "quiet is quiet");
}

/// Proves S0.15, S0.40: a worker that is told to end takes no more, lets what runs finish and its answer pass,
/// deregisters, and exits with 0.
#[test]
fn sigterm_lets_what_runs_finish() {
    for signal in [Signal::TERM, Signal::INT] {
        let broker = Broker::start();
        let (mut worker, mut asked, _) = patient(&broker, &[]);
        worker.signal(signal);
        worker.expect_line("1 still running, waiting 30s; press Ctrl-C again to stop immediately");
        wait::until("it consumes no more", || !consumed(&broker));
        broker.run(&["request", "q", "x", "--fail-fast"]).expect(6);
        assert!(worker.runs() && asked.runs());
        broker.place.file("go", "");
        assert_eq!((asked.end(LONG), worker.end(LONG)), (0, 0));
        assert_eq!(asked.stdout(), ["finished"]);
        assert_eq!(broker.run(&["worker", "ls", "-o", "name"]).expect(0).text(), "");
    }
}

/// Proves S0.40: an idle worker ends at once, and the broker knows before its connection is gone.
#[test]
fn an_idle_worker_ends_at_once() {
    let broker = Broker::start();
    let mut worker = broker.worker(&["q", "--echo"]);
    worker.signal(Signal::TERM);
    assert_eq!(worker.end(LONG), 0);
    assert_eq!(broker.run(&["worker", "ls", "-o", "name"]).expect(0).text(), "");
    assert_eq!(broker.status()["counters"]["lost"], 0);
}

/// A second signal ends at once: the program is killed, its message is for others, the exit code is the signal's.
#[test]
fn a_second_signal_ends_at_once() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let broker = Broker::start();
        let (mut worker, mut asked, program) = patient(&broker, &[]);
        worker.signal(signal);
        worker.expect_line("1 still running");
        worker.signal(signal);
        assert_eq!(worker.end(LONG), code);
        worker.expect_line("stopped immediately; 1 unfinished");
        wait::until("the program is gone", || !alive(program));
        given_to_others(&broker, &mut asked);
    }
}

/// What a worker gave back waits, counts as no attempt, and goes to the next worker.
fn given_to_others(broker: &Broker, asked: &mut Background) {
    wait::until("it waits again", || broker.queue("q")["ready"] == 1);
    assert_eq!(broker.queue("q")["head"][0]["attempts"], 0);
    let program = broker.place.script("other", "echo attempt $TURNO_ATTEMPT").display().to_string();
    let _other = broker.worker(&["q", "--", &program]);
    assert_eq!(asked.end(LONG), 0, "{:?}", asked.stderr());
    assert_eq!(asked.stdout(), ["attempt 1"]);
}

/// What still runs at the end of `--drain-timeout` is ended, and its message is for others.
#[test]
fn a_drain_timeout_ends_what_still_runs() {
    let broker = Broker::start();
    let (mut worker, mut asked, program) = patient(&broker, &["--drain-timeout", "200ms"]);
    worker.signal(Signal::TERM);
    worker.expect_line("1 still running, waiting 200ms");
    worker.end(LONG);
    wait::until("the program is gone", || !alive(program));
    given_to_others(&broker, &mut asked);
}

/// Starts the broker again where it was.
fn again(broker: &Broker) -> Background {
    let address = broker.address().to_string();
    let serving = broker.place.start(["serve", "--json", "--listen", &address]);
    wait::until("the broker is back", || serving.stdout().len() == 1);
    serving
}

/// Proves S0.41: a worker that lost its broker says so, finds it when it is back, and registers again.
#[test]
fn a_worker_finds_its_broker_again() {
    let mut broker = Broker::start();
    let mut worker = broker.worker(&["q", "--echo", "--name", "w"]);
    broker.kill();
    worker.expect_line(&format!("connection to {} lost", broker.url()));
    worker.expect_line("does not answer");
    assert!(worker.runs(), "it does not give up");
    let _serving = again(&broker);
    worker.expect_line("w registered again");
    assert_eq!(broker.run(&["request", "q", "back", "--timeout", "1m"]).expect(0).text(), "back");
    assert_eq!(broker.workers(), 1);
    worker.signal(Signal::TERM);
    assert_eq!(worker.end(LONG), 0);
}

/// A broker that shuts down says so, and its worker waits for the next one.
#[test]
fn a_worker_outlives_a_broker_that_shuts_down() {
    let mut broker = Broker::start();
    let worker = broker.worker(&["q", "--echo", "--name", "w"]);
    assert_eq!(broker.terminate(LONG), 0);
    worker.expect_line("the broker is shutting down");
    let _serving = again(&broker);
    worker.expect_line("w registered again");
    assert_eq!(broker.run(&["request", "q", "back", "--timeout", "1m"]).expect(0).text(), "back");
}

/// Without a broker a worker that is told to end does.
#[test]
fn a_worker_without_its_broker_ends_when_told() {
    let mut broker = Broker::start();
    let mut worker = broker.worker(&["q", "--echo"]);
    broker.kill();
    worker.expect_line("lost");
    worker.signal(Signal::TERM);
    assert_eq!(worker.end(LONG), 0);
}

/// A program whose broker is lost is stopped: its message is another's by then.
#[test]
fn a_program_ends_when_its_broker_is_lost() {
    let mut broker = Broker::start();
    let (worker, _asked, program) = patient(&broker, &[]);
    broker.kill();
    worker.expect_line("lost");
    wait::until("the program is gone", || !alive(program));
}

/// Proves S1.3, S1.5: a worker needs the address of a broker; with none that answers it fails to start, and names
/// each that it tried once.
#[test]
fn a_worker_without_a_broker_fails_to_start() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = format!("turno://{}", listener.local_addr().expect("bound"));
    let urls = format!("turno://127.0.0.1:1,{silent},unix:/nowhere/turno.sock");
    let run = place.run(["work", "q", "--echo", "--timeout", wait::SHORT, "--url", &urls]).expect(5);
    for url in urls.split(',') {
        assert_eq!(
            run.stderr.matches(&format!("{url}: ")).count(),
            1,
            "{url} is named once with its reason: {}",
            run.stderr
        );
    }
    assert!(run.stderr.contains("code: cannot_connect"), "{}", run.stderr);
    listener.set_nonblocking(true).expect("our own listener");
    let tries = std::iter::from_fn(|| listener.accept().ok()).count();
    assert_eq!(tries, 1, "each broker is tried once");
    place.run(["work", "q", "--echo", "--url", ""]).expect(2);
}

/// Proves S2.1: the first broker of the list that answers is taken.
#[test]
fn the_first_broker_that_answers_is_taken() {
    let broker = Broker::start();
    let other = Broker::start();
    let urls = format!("turno://127.0.0.1:1,{},{}", broker.url(), other.url());
    let worker = broker.worker(&["q", "--echo", "--url", &urls]);
    worker.expect_line(&broker.url());
    assert_eq!((broker.workers(), other.workers()), (1, 0));
    assert_eq!(other.run(&["request", "q", "x", "--url", &urls]).expect(0).text(), "x");
}

/// Proves S2.2: a worker whose broker is lost moves to the next of its list.
#[test]
fn a_worker_moves_to_the_next_broker() {
    let mut first = Broker::start();
    let second = Broker::start();
    let urls = format!("{},{}", first.url(), second.url());
    let worker = first.worker(&["q", "--echo", "--name", "w", "--url", &urls]);
    first.kill();
    let line = worker.expect_line("w registered again");
    assert!(line.ends_with(&second.url()), "{line}");
    assert_eq!(second.run(&["request", "q", "x"]).expect(0).text(), "x");
}
