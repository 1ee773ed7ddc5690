//! `turno queue set` and `turno queue purge`.

use turno_e2e::{Broker, Peer, Run, wait};
use turno_proto::model::{Again, Code, Slots};
use turno_proto::native::Frame;

fn durability(broker: &Broker, queue: &str) -> String {
    let stored = broker.run(&["send", queue, "x", "--json"]).expect(0).document("turno.stored/1");
    stored["durability"].as_str().expect("text").to_owned()
}

/// A send is as safe as its queue makes it, and what is stored stays stored.
#[test]
fn a_queue_is_durable_or_volatile() {
    let broker = Broker::start();
    assert_eq!(durability(&broker, "q"), "disk");
    let run = broker.run(&["queue", "set", "q", "--volatile"]).expect(0);
    assert_eq!(run.text(), "queue q is volatile: sends are kept in memory only\n");
    assert_eq!(durability(&broker, "q"), "memory");
    let shown = broker.queue("q");
    assert_eq!((&shown["durable"], &shown["settings"]["durable"]), (&false.into(), &false.into()), "{shown}");
    assert!(broker.run(&["queue", "show", "q"]).expect(0).text().contains("durable    no, set for this queue\n"));
    let run = broker.run(&["queue", "set", "q", "--durable", "--json"]).expect(0);
    let set = run.document("turno.queue/1")["queue"].take();
    assert_eq!((&set["durable"], &set["ready"]), (&true.into(), &2.into()));
    assert_eq!(durability(&broker, "q"), "disk");
    let run = broker.run(&["queue", "set", "q", "--default"]).expect(0);
    assert_eq!(run.text(), "queue q is durable by default: sends are stored on disk before they are acknowledged\n");
    assert!(broker.queue("q")["settings"].is_null());
    let listed = broker.run(&["queue", "ls", "--columns", "name,durable,bytes,ready,dead"]).expect(0).text();
    assert!(listed.contains("q     yes "), "{listed}");
}

/// A setting is there before the first message, after the last one, and after a crash.
#[test]
fn a_setting_outlives_queue_and_broker() {
    let mut broker = Broker::start();
    broker.run(&["queue", "set", "ticks", "--volatile"]).expect(0);
    broker.run(&["queue", "set", "orders", "--durable"]).expect(0);
    broker.run(&["queue", "set", "gone", "--volatile"]).expect(0);
    broker.run(&["queue", "set", "gone", "--default"]).expect(0);
    assert_eq!(durability(&broker, "ticks"), "memory");
    assert_eq!(durability(&broker, "orders"), "disk");
    broker.run(&["queue", "purge", "ticks", "--yes"]).expect(0);
    assert_eq!(broker.queue("ticks")["durable"], false);
    let data = broker.run(&["config", "show", "--json"]).expect(0).document("turno.config/1");
    let rows = data["settings"].as_array().expect("a list");
    let data =
        rows.iter().find(|row| row["key"] == "data").expect("the key")["value"].as_str().expect("a path").to_owned();
    broker.kill();
    let next = Broker::start_with(&["--data", &data]);
    let names = next.run(&["queue", "ls", "-o", "name"]).expect(0).text();
    assert_eq!(names, "orders\nticks\n");
    assert_eq!((durability(&next, "ticks"), durability(&next, "orders")), ("memory".to_owned(), "disk".to_owned()));
    assert_eq!(next.queue("orders")["ready"], 2, "the one before the crash is there");
}

/// A broker without a disk can promise none, and says so.
#[test]
fn without_a_disk_no_queue_is_durable() {
    let broker = Broker::start_with(&["--memory"]);
    let run = broker.run(&["queue", "set", "q", "--durable", "--json"]).expect(1);
    assert_eq!(run.error_code(), "no_store");
    let run = broker.run(&["queue", "set", "q", "--volatile"]).expect(0);
    assert_eq!(run.text(), "queue q is volatile: sends are kept in memory only\n");
    let run = broker.run(&["queue", "set", "q", "--default"]).expect(0);
    assert_eq!(run.text(), "queue q is volatile by default: sends are kept in memory only\n");
    assert_eq!(durability(&broker, "q"), "memory");
}

#[test]
fn durable_volatile_and_default_exclude_each_other() {
    let broker = Broker::start();
    for flags in [&[][..], &["--durable", "--volatile"], &["--volatile", "--default"], &["--durable", "--default"]] {
        let run = broker.run(&[&["queue", "set", "q", "--json"], flags].concat()).expect(2);
        assert_eq!(run.error_code(), "bad_usage", "{flags:?}");
    }
    assert_eq!(broker.run(&["queue", "set", "a b", "--durable", "--json"]).expect(2).error_code(), "bad_name");
    let run = broker.run(&["queue", "set", "nowhere", "--default"]).expect(4);
    assert!(run.stderr.starts_with("error: queue nowhere does not exist\n"), "{}", run.stderr);
    assert_eq!(broker.status()["queues"], 0, "nothing came of it");
}

/// What waits goes, what runs stays, and dead letters stay unless they are meant too.
#[test]
fn a_purge_removes_what_waits() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "peer");
    let raw = turno_proto::native::Raw { headers: false, bytes: b"no" };
    for body in ["dead", "runs", "a", "b"] {
        broker.run(&["send", "q", body, "--retries", "0"]).expect(0);
        if body == "dead" {
            let (delivery, ..) = worker.delivery();
            worker.say(&Frame::Fail { delivery, again: Again::Never, raw });
        }
    }
    let (delivery, body, _) = worker.delivery();
    assert_eq!(body, b"runs");
    let mut client = Peer::client(broker.address(), "q");
    client.request(b"asked");
    wait::until("all wait", || broker.queue("q")["ready"] == 3);

    let run = broker.run(&["queue", "purge", "q"]).expect(2);
    let question = "remove 3 waiting messages of queue q, leaving 1 in flight and 1 dead letters?";
    assert!(run.stderr.contains(question) && run.stderr.contains("not_confirmed"), "{}", run.stderr);
    assert_eq!(broker.queue("q")["ready"], 3, "nothing happened");
    let run = broker.run(&["queue", "purge", "q", "--yes", "--json"]).expect(0);
    let told = run.document("turno.purged/1");
    let numbers = ["purged", "purged_dead", "ready", "in_flight", "dead"];
    assert_eq!(numbers.map(|key| told[key].as_u64().expect("a number")), [3, 0, 0, 1, 1]);
    let code = client.hear(|frame| match frame {
        Frame::Undelivered { code, .. } => code,
        other => panic!("{other:?}"),
    });
    assert_eq!(code, Code::Cancelled);
    worker.say(&Frame::Ack { delivery });
    wait::until("it is done", || broker.queue("q")["in_flight"] == 0);
    let run = broker.run(&["queue", "purge", "q", "--dead", "--yes"]).expect(0);
    assert_eq!(run.text(), "queue q: removed 0 waiting and 1 dead; now 0 ready, 0 in flight, 0 dead\n");
    let run = broker.run(&["queue", "purge", "nowhere", "--yes"]).expect(4);
    assert!(run.stderr.starts_with("error: queue nowhere does not exist\n"), "{}", run.stderr);
    assert_eq!(broker.run(&["queue", "purge", "a b", "--yes", "--json"]).expect(2).error_code(), "bad_name");
}

/// At a terminal the user is asked, with what is at stake; only a yes is a yes.
#[test]
fn at_a_terminal_the_user_is_asked() {
    let broker = Broker::start();
    broker.run(&["send", "q", "x"]).expect(0);
    let typed = |answer: &str| {
        let mut terminal = broker.place.command("script");
        terminal.args(["-qec", "turno queue purge q --dead", "/dev/null"]);
        Run::finish(terminal, answer.as_bytes(), wait::PATIENCE)
    };
    let run = typed("n\n").expect(0);
    let question = "remove 1 waiting messages and 0 dead letters of queue q, leaving 0 in flight? [y/N]";
    assert!(run.text().contains(question), "{}", run.text());
    assert_eq!(broker.queue("q")["ready"], 1);
    assert!(typed("y\n").expect(0).text().contains("removed 1 waiting and 0 dead"));
    assert_eq!(broker.status()["ready"], 0);
}
