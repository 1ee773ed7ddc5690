//! `turno queue dead`: what used up its attempts is shown, tried again or removed.

use turno_e2e::{Broker, Peer, Place, Run, wait};
use turno_proto::model::{Again, Slots};
use turno_proto::native::{Frame, Raw};

const NOBODY: &str = "5f3a9c0d21e4000000000001c0000007";

/// Sends each body and lets it fail for good; the ids of the dead letters.
fn bury(broker: &Broker, bodies: &[&str]) -> Vec<String> {
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "undertaker");
    let mut ids = Vec::new();
    for body in bodies {
        let id = broker.run(&["send", "q", body, "-H", "to=ann", "-o", "name"]).expect(0).text();
        ids.push(id.trim().to_owned());
        let (delivery, ..) = worker.delivery();
        let why = format!("cannot do {body}\nreally not");
        worker.say(&Frame::Fail { delivery, again: Again::Never, raw: Raw { headers: false, bytes: why.as_bytes() } });
    }
    wait::until("all are dead", || broker.queue("q")["dead"] == bodies.len());
    ids
}

fn lines(run: &Run) -> Vec<String> {
    run.text().lines().map(str::to_owned).collect()
}

#[test]
fn dead_letters_are_listed_page_by_page() {
    let broker = Broker::start();
    let ids = bury(&broker, &["a", "b", "c"]);
    let run = broker.run(&["queue", "dead", "ls", "q"]).expect(0);
    let text = run.text();
    assert!(text.starts_with("ID ") && text.lines().next().is_some_and(|head| head.ends_with("FAILURE")), "{text}");
    assert!(text.contains(&format!("{}         1 ", ids[0])) && text.contains("cannot do c\n"), "{text}");
    assert!(!text.contains("really"), "a row is a line: {text}");
    assert_eq!(lines(&broker.run(&["queue", "dead", "ls", "q", "-o", "name"]).expect(0)), ids);
    let words = ["queue", "dead", "ls", "q", "--limit", "2", "--json"];
    let page = broker.run(&words).expect(0).document("turno.dead_list/1");
    assert_eq!((&page["queue"], &page["next"]), (&"q".into(), &ids[1].as_str().into()));
    let row = &page["dead"][0];
    assert_eq!((&row["attempts"], &row["state"]), (&1.into(), &"dead".into()), "{row}");
    assert!(row["failure"].as_str().is_some_and(|said| said.starts_with("cannot do a\n")), "{row}");
    let words = ["queue", "dead", "ls", "q", "--after", &ids[1], "-o", "name"];
    assert_eq!(lines(&broker.run(&words).expect(0)), ids[2..]);
    broker.run(&["send", "fine", "x"]).expect(0);
    let run = broker.run(&["queue", "dead", "ls", "fine"]).expect(0);
    assert!(run.stderr.starts_with("hint: no dead letters"), "{}", run.stderr);
}

/// All of it, however long and whatever bytes they are.
#[test]
fn a_dead_letter_is_shown_with_its_body() {
    let broker = Broker::start();
    let ids = bury(&broker, &["the body", ""]);
    let text = broker.run(&["queue", "dead", "show", "q", &ids[0]]).expect(0).text();
    for expected in
        ["state     dead", "attempts  1 of 10", "failure   cannot do the body", "headers   to=ann", "body:\nthe body\n"]
    {
        assert!(text.contains(expected), "{expected:?}: {text}");
    }
    let words = ["queue", "dead", "show", "q", &ids[0], "--json"];
    let letter = broker.run(&words).expect(0).document("turno.dead/1")["dead"].take();
    assert_eq!((&letter["body"], &letter["encoding"]), (&"the body".into(), &"utf8".into()));
    assert_eq!(
        (&letter["failure"], &letter["headers"]["to"]),
        (&"cannot do the body\nreally not".into(), &"ann".into())
    );
    assert!(letter["age_seconds"].is_f64(), "{letter}");
    assert!(broker.run(&["queue", "dead", "show", "q", &ids[1]]).expect(0).text().ends_with("no body\n"));

    let mut worker = Peer::worker(broker.address(), "long", Slots::Limited(1), "undertaker");
    let long: Vec<u8> = (0..700_000_u32).map(|number| number.to_le_bytes()[1]).collect();
    let run = broker.place.run_with_input(["send", "long", "-", "-o", "name"], &long).expect(0);
    let (delivery, ..) = worker.delivery();
    worker.say(&Frame::Fail { delivery, again: Again::Never, raw: Raw { headers: false, bytes: b"too long" } });
    wait::until("it is dead", || broker.queue("long")["dead"] == 1);
    let run = broker.run(&["queue", "dead", "show", "long", run.text().trim(), "--json"]).expect(0);
    let letter = run.document("turno.dead/1")["dead"].take();
    let body = letter["body"].as_str().expect("text");
    assert_eq!((&letter["encoding"], body.len()), (&"base64".into(), long.len().div_ceil(3) * 4));
    assert!(body.starts_with("AAAA") && body.ends_with('='), "the bytes themselves are another test's");
}

#[test]
fn dead_letters_are_tried_again() {
    let broker = Broker::start();
    let ids = bury(&broker, &["a", "b", "c"]);
    let run = broker.run(&["queue", "dead", "retry", "q", &ids[1]]).expect(0);
    assert_eq!(run.text(), "queue q: requeued 1 of 3 dead letters; 2 left\n");
    let run = broker.run(&["queue", "dead", "retry", "q", "--all", "--json"]).expect(0);
    let told = run.document("turno.retried/1");
    assert_eq!((&told["queue"], &told["retried"], &told["dead"]), (&"q".into(), &2.into(), &0.into()));
    let queue = broker.queue("q");
    assert_eq!((&queue["ready"], &queue["dead"], &queue["counters"]["retried"]), (&3.into(), &0.into(), &3.into()));
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(3), "peer");
    for expected in ["b", "a", "c"] {
        let (_, body, attempt) = worker.delivery();
        assert_eq!(
            (body.ends_with(expected.as_bytes()), attempt),
            (true, 1),
            "{expected} behind its headers: {body:?}"
        );
    }
    let run = broker.run(&["queue", "dead", "retry", "q", "--all"]).expect(0);
    assert_eq!(run.text(), "queue q: requeued 0 of 0 dead letters; 0 left\n");
}

/// More than a call does is done in several.
#[test]
fn many_dead_letters_go_in_portions() {
    let broker = Broker::start();
    let input: String = (0..2_300).map(|number| format!("{number}\n")).collect();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(2_300), "undertaker");
    let sent = broker.place.run_with_input(["send", "q", "--lines", "--retries", "0", "-o", "name"], input.as_bytes());
    let ids = lines(&sent.expect(0));
    for _ in &ids {
        let (delivery, ..) = worker.delivery();
        worker.say(&Frame::Fail { delivery, again: Again::AsSet, raw: Raw { headers: false, bytes: b"no" } });
    }
    wait::until("all are dead", || broker.queue("q")["dead"] == 2_300);
    drop(worker);
    let named: Vec<&str> = ids[..250].iter().map(String::as_str).collect();
    let words = [&["queue", "dead", "purge", "q", "--yes"], &named[..]].concat();
    let run = broker.run(&words).expect(0);
    assert_eq!(run.text(), "queue q: removed 250 dead; now 0 ready, 0 in flight, 2050 dead\n");
    let run = broker.run(&["queue", "dead", "retry", "q", "--all"]).expect(0);
    assert_eq!(run.text(), "queue q: requeued 2050 of 2050 dead letters; 0 left\n");
    let run = broker.run(&["queue", "purge", "q", "--yes"]).expect(0);
    assert_eq!(run.text(), "queue q: removed 2050 waiting and 0 dead; now 0 ready, 0 in flight, 0 dead\n");
}

#[test]
fn dead_letters_are_removed_with_a_yes_only() {
    let broker = Broker::start();
    let ids = bury(&broker, &["a", "b", "c"]);
    for words in [&["--all"][..], &[&ids[0]]] {
        let run = broker.run(&[&["queue", "dead", "purge", "q", "--json"], words].concat()).expect(2);
        assert_eq!(run.error_code(), "not_confirmed");
        let count = if words == ["--all"] { 3 } else { 1 };
        let question = format!("remove {count} of 3 dead letters of queue q?");
        assert!(run.text().contains(&question), "{}", run.text());
    }
    assert_eq!(broker.queue("q")["dead"], 3);
    let run = broker.run(&["queue", "dead", "purge", "q", &ids[0], &ids[0], "--yes"]).expect(0);
    assert_eq!(run.text(), "queue q: removed 1 dead; now 0 ready, 0 in flight, 2 dead\n");
    let run = broker.run(&["queue", "dead", "purge", "q", "--all", "--yes", "--json"]).expect(0);
    let told = run.document("turno.purged/1");
    assert_eq!((&told["purged_dead"], &told["purged"], &told["dead"]), (&2.into(), &0.into(), &0.into()));
    assert_eq!(broker.queue("q"), serde_json::Value::Null, "nobody uses it any more");
}

/// Wrong input changes nothing, and the error says what is wrong.
#[test]
fn what_is_no_dead_letter_is_refused() {
    let broker = Broker::start();
    let ids = bury(&broker, &["a"]);
    let living = broker.run(&["send", "q", "alive", "-o", "name"]).expect(0).text().trim().to_owned();
    let elsewhere = broker.run(&["send", "other", "x", "-o", "name"]).expect(0).text().trim().to_owned();
    let table = [
        (&living, "why: the message is ready in queue q"),
        (&elsewhere, "why: the message is ready in queue other"),
        (&NOBODY.to_owned(), "why: it has been removed or requeued"),
    ];
    for (id, why) in table {
        for words in [&["show", "q"][..], &["retry", "q", &ids[0]], &["purge", "q", "--yes", &ids[0]]] {
            let run = broker.run(&[&["queue", "dead"], words, &[id]].concat()).expect(4);
            let expected = format!("error: {id} is not a dead letter of queue q\n");
            assert!(run.stderr.starts_with(&expected) && run.stderr.contains(why), "{words:?}: {}", run.stderr);
        }
    }
    let run = broker.run(&["queue", "dead", "ls", "q", "--after", &living, "--json"]).expect(4);
    assert_eq!(run.error_code(), "not_found");
    for verb in [&["ls"][..], &["show"], &["retry"], &["purge", "--yes"]] {
        let id: &[&str] = if verb == ["ls"] { &[] } else { &[&ids[0]] };
        let run = broker.run(&[&["queue", "dead"], verb, &["nowhere"], id].concat()).expect(4);
        assert!(run.stderr.starts_with("error: queue nowhere does not exist\n"), "{verb:?}: {}", run.stderr);
        let run = broker.run(&[&["queue", "dead"], verb, &["a b", "--json"], id].concat()).expect(2);
        assert_eq!(run.error_code(), "bad_name", "{verb:?}");
    }
    assert_eq!((&broker.queue("q")["dead"], &broker.queue("q")["ready"]), (&1.into(), &1.into()));
}

/// Told before any broker is asked.
#[test]
fn wrong_usage_is_told_at_once() {
    let place = Place::new();
    let table: [&[&str]; 7] = [
        &["retry", "q"],
        &["retry", "q", NOBODY, "--all"],
        &["purge", "q", "--yes"],
        &["purge", "q", "--all", NOBODY, "--yes"],
        &["show", "q", "12"],
        &["retry", "q", NOBODY, "zz"],
        &["ls", "q", "--limit", "0"],
    ];
    for words in table {
        let run = place.run([&["queue", "dead", "--json"], words].concat()).expect(2);
        assert_eq!(run.error_code(), "bad_usage", "{words:?}");
    }
}
