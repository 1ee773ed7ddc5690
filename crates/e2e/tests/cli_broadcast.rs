//! `turno broadcast`: every consumer hears it, and the end says who answered.

use std::time::Duration;

use rustix::process::Signal;
use turno_e2e::{Broker, Peer, Run, wait};
use turno_proto::model::{Again, Cost, Slots};
use turno_proto::native::{Deliver, Frame, Raw};

/// The last line on stderr.
fn last(run: &Run) -> &str {
    run.stderr.lines().last().unwrap_or_default()
}

/// The lines of stdout, in the order of their text.
fn sorted(run: &Run) -> Vec<String> {
    let mut lines: Vec<String> = run.text().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Proves S2.9, S2.10 and S2.13: programs of every kind are consumers, each answers for itself.
#[test]
fn every_consumer_answers_for_itself() {
    let broker = Broker::start();
    let _echo = broker.worker(&["q", "--name", "a", "--echo"]);
    let _program = broker.worker(&["q", "other", "--name", "b", "--", "tr", "a-z", "A-Z"]);
    let _elsewhere = broker.worker(&["other", "--name", "c", "--echo"]);
    let run = broker.run(&["broadcast", "q", "hello"]).expect(0);
    assert_eq!(sorted(&run), ["a: hello", "b: HELLO"]);
    assert_eq!(last(&run), "2 of 2 answered");
    let piped = broker.place.run_with_input(["broadcast", "other", "-", "-q"], b"two\n").expect(0);
    assert_eq!((sorted(&piped), piped.stderr.as_str()), (vec!["b: TWO".to_owned(), "c: two".to_owned()], ""));
}

/// Proves S2.15: nobody there is no failure, and nothing waits for later workers.
#[test]
fn without_consumers_it_is_done_at_once() {
    let broker = Broker::start();
    for flags in [&[][..], &["--no-reply"], &["--skip-self"]] {
        broker.run(&[&["broadcast", "q", "x"], flags].concat()).expect(0);
    }
    assert_eq!(last(&broker.run(&["broadcast", "q", "x"])), "0 of 0 answered");
    let mut late = Peer::worker(broker.address(), "q", Slots::Limited(1), "late");
    late.sync();
    late.hears_nothing(Duration::from_millis(200));
    let status = broker.status();
    assert_eq!((&status["ready"], &status["counters"]["deliveries"]), (&0.into(), &0.into()));
}

/// Proves S2.15, S2.13 and I12: busy ones get it too; one that hangs has expired, and is told to stop; one that is killed
/// has left. The numbers add up, and the exit status tells.
#[test]
fn those_that_hang_or_die_are_named() {
    let broker = Broker::start();
    let mut busy = Peer::worker(broker.address(), "q", Slots::Limited(1), "busy");
    let mut client = Peer::client(broker.address(), "q");
    client.request(b"work");
    let (work, ..) = busy.delivery();
    let mut hangs = Peer::worker(broker.address(), "q", Slots::Limited(1), "hangs");
    let dies = broker.worker(&["q", "--name", "dies", "--", "sleep", "60"]);
    let mut asked = broker.start_turno(&["broadcast", "q", "x", "--timeout", "10s"]);
    let (to_busy, body, _) = busy.delivery();
    assert_eq!(body, b"x", "its only slot is taken, and it gets it all the same");
    busy.reply(to_busy, b"here");
    asked.expect_line("busy: here");
    let (to_hangs, ..) = hangs.delivery();
    wait::until("the program runs", || broker.status()["in_flight"] == 3);
    dies.signal(Signal::KILL);
    assert_eq!(asked.end(wait::PATIENCE), 124);
    asked.expect_line("1 of 3 answered, these expired: hangs, these left: dies");
    hangs.hear(|frame| match frame {
        Frame::Cancel { seq, word, reason: Some(reason) } => {
            assert_eq!((seq, word, reason.name()), (to_hangs.stamp, to_hangs.index, "timed_out"));
        }
        other => panic!("expected CANCEL: {other:?}"),
    });
    busy.reply(work, b"done");
    assert_eq!(client.answer().1, b"done", "its own work went on");
}

/// Proves S2.13: those that fail say why, and nobody tries again; the exit status is that of a thing partly done.
#[test]
fn failures_are_told_and_counted() {
    let broker = Broker::start();
    let _good = broker.worker(&["q", "--name", "good", "--echo"]);
    let _bad = broker.worker(&["q", "--name", "bad", "--", "false"]);
    let run = broker.run(&["broadcast", "q", "x"]).expect(3);
    assert_eq!((sorted(&run), last(&run)), (vec!["good: x".to_owned()], "1 of 2 answered, 1 failed"));
    assert!(run.stderr.contains("bad failed: "), "{}", run.stderr);
    assert_eq!(broker.status()["counters"]["retried"], 0);
}

/// Proves S2.11, S2.12: a no-reply broadcast is over when it is written. The worker gets it with nothing to settle, and the
/// broker has nothing of it.
#[test]
fn a_no_reply_broadcast_is_over_when_it_is_written() {
    let broker = Broker::start();
    let mut workers: Vec<Peer> =
        (0..20).map(|n| Peer::worker(broker.address(), "q", Slots::Limited(1), &format!("w{n}"))).collect();
    let run = broker.run(&["broadcast", "q", "x", "--no-reply"]).expect(0);
    assert_eq!((run.text().as_str(), last(&run)), ("", "written to 20 consumers"));
    let status = broker.status();
    assert_eq!((&status["in_flight"], &status["bytes"]), (&0.into(), &0.into()));
    for worker in &mut workers {
        worker.hear(|frame| match frame {
            Frame::Deliver(Deliver { cost, wants_reply, raw, .. }) => {
                assert_eq!((cost, wants_reply, raw.bytes), (Cost::Broadcast, false, &b"x"[..]));
            }
            other => panic!("expected DELIVER: {other:?}"),
        });
    }
    // One that settles it all the same does no harm.
    let run = broker.start_turno(&["broadcast", "q", "y", "--no-reply"]);
    run.expect_line("written to 20");
    for worker in &mut workers {
        let (delivery, ..) = worker.delivery();
        worker.say(&Frame::Ack { delivery });
        worker.sync();
    }
    let counters = &broker.status()["counters"];
    assert_eq!((&counters["forged"], &counters["late"], &counters["doubled"]), (&0.into(), &0.into(), &0.into()));
}

/// The shapes for programs: one document, or a line for each answer and one for the end; pieces say whose they are.
#[test]
fn programs_read_documents() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut asked = broker.start_turno(&["broadcast", "q", "x", "-H", "a=b", "-o", "jsonl", "--timeout", "1m"]);
    let delivery = worker.hear(|frame| match frame {
        Frame::Deliver(deliver) => {
            assert!(deliver.raw.headers);
            deliver.delivery
        }
        other => panic!("expected DELIVER: {other:?}"),
    });
    worker.piece(delivery, b"one");
    worker.reply(delivery, &[0xFF]);
    assert_eq!(asked.end(wait::PATIENCE), 0);
    let lines: Vec<serde_json::Value> = asked.stdout().iter().map(|line| turno_e2e::schema::document(line)).collect();
    let brief = |at: usize| (lines[at]["name"].clone(), lines[at]["more"].clone(), lines[at]["body"].clone());
    assert_eq!(brief(0), ("w".into(), true.into(), "one".into()));
    assert_eq!(brief(1), ("w".into(), false.into(), "/w==".into()));
    assert_eq!((&lines[2]["consumers"], &lines[2]["answered"]), (&1.into(), &1.into()));
    assert_eq!(lines.len(), 3);

    let mut asked = broker.start_turno(&["broadcast", "q", "x", "--json", "--timeout", "1m"]);
    let (delivery, ..) = worker.delivery();
    let raw = Raw { headers: false, bytes: b"no" };
    worker.say(&Frame::Fail { delivery, again: Again::AsSet, raw });
    assert_eq!(asked.end(wait::PATIENCE), 3);
    let document = turno_e2e::schema::document(&asked.stdout()[0]);
    assert_eq!((&document["failed"], &document["answers"][0]["failure"]), (&1.into(), &"no".into()));
}

/// S2.15: what is never retried has no retry limit: the command line does not know the flag, and says so.
#[test]
fn a_retry_limit_is_wrong_usage() {
    let broker = Broker::start();
    for flag in ["--retries", "--cost", "--priority", "--dedup-id"] {
        let run = broker.run(&["broadcast", "q", "x", flag, "1"]).expect(2);
        assert!(run.stderr.contains(flag), "{}", run.stderr);
    }
    broker.run(&["broadcast", "no name", "x"]).expect(2);
}
