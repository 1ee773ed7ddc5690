//! `turno ring`, and places in a ring that a broker is given, with real brokers on one machine.

use serde_json::Value;
use turno_e2e::{Background, Broker, Place, Run, schema, wait};

/// A member on free ports; those that join do so at `next`.
fn member(sid: &str, next: Option<&Broker>) -> Broker {
    member_with(sid, next, &[])
}

fn member_with(sid: &str, next: Option<&Broker>, more: &[&str]) -> Broker {
    let next = next.map(|next| format!("{}@{}", sid_of(next), ring_address(next)));
    let mut flags = vec!["--sid", sid, "--ring-port", "0", "--foreman-listen", "127.0.0.1:0"];
    if let Some(next) = &next {
        flags.extend(["--ring-next", next]);
    }
    flags.extend(more);
    Broker::start_with(&flags)
}

fn ring_address(broker: &Broker) -> String {
    broker.ready()["ring"].as_str().expect("an address for other members").to_owned()
}

fn place_of(broker: &Broker) -> String {
    format!("{}@{}", sid_of(broker), ring_address(broker))
}

fn ring(broker: &Broker) -> Value {
    broker.run(&["ring", "show", "--json"]).expect(0).document("turno.ring/1")["ring"].clone()
}

fn sid_of(broker: &Broker) -> u64 {
    ring(broker)["sid"].as_u64().expect("a sid is a number")
}

fn circle(broker: &Broker) -> Vec<u64> {
    let ring = ring(broker);
    let members = ring["members"].as_array().expect("a list");
    members.iter().map(|member| member["sid"].as_u64().expect("a number")).collect()
}

fn wait_whole(brokers: &[&Broker]) {
    wait::until("all see the same whole circle", || {
        brokers.iter().all(|broker| ring(broker)["whole"] == true && circle(broker).len() == brokers.len())
    });
}

/// Three, in the order 1, 2, 3.
fn three() -> [Broker; 3] {
    three_with(&[])
}

fn three_with(more: &[&str]) -> [Broker; 3] {
    let one = member_with("1", None, more);
    let two = member_with("2", Some(&one), more);
    wait_whole(&[&one, &two]);
    let three = member_with("3", Some(&one), more);
    wait_whole(&[&one, &two, &three]);
    [one, two, three]
}

/// One that listens, from when it is heard.
fn listen(broker: &Broker) -> Background {
    let sub = broker.start_turno(&["sub", "news.>"]);
    let count = || broker.run(&["topic", "subscribers", "--json"]).json()["subscribers"].as_array().map(Vec::len);
    wait::until("it listens", || count() == Some(1));
    sub
}

/// What it heard, without the topics.
fn heard(listener: &Background) -> Vec<String> {
    let lines = listener.stdout();
    lines.iter().filter_map(|line| line.strip_prefix("news.x ")).map(ToOwned::to_owned).collect()
}

/// Proves S3.3, S3.9, S3.10, S3.11, S3.12, S3.13, S3.33 and S3.36: a circle of three is seen from each member, and what is
/// published at any of them is heard at each once and in order.
#[test]
fn three_brokers_form_a_ring_that_carries_topics() {
    let [one, two, three] = three();
    let all = [&one, &two, &three];
    assert_eq!(all.map(circle), [[1, 2, 3], [2, 3, 1], [3, 1, 2]]);
    let seen = ring(&one);
    let expected = [("state", "member".into()), ("previous", 3.into()), ("next", 2.into()), ("why", Value::Null)];
    for (key, value) in expected {
        assert_eq!(seen[key], value, "{key}");
    }
    let roles: Vec<&Value> = seen["members"].as_array().expect("a list").iter().map(|member| &member["role"]).collect();
    assert_eq!(roles, ["me", "next", "previous"]);
    assert_eq!(seen["members"][1]["address"], ring_address(&two));
    assert_eq!(seen["members"][1]["native"], two.address().to_string());
    let text = one.run(&["ring", "show"]).expect(0).text();
    assert!(text.starts_with("ring         whole, 3 members\ncircle       1 → 2 → 3 → 1\n"), "{text}");
    assert!(one.run(&["status"]).expect(0).text().contains("\nring            whole, 3 members\n"));
    assert_eq!(one.status()["ring"]["whole"], true);
    let doctor = one.run(&["doctor", "--data", &one.unix().parent().expect("a directory").display().to_string()]);
    assert!(doctor.expect(0).text().contains("ring       whole, 3 members\n"));

    let listeners = all.map(listen);
    for number in 0..10 {
        all[number % 3].run(&["pub", "news.x", &number.to_string(), "--confirm"]).expect(0);
    }
    for listener in &listeners {
        wait::until("all is heard", || heard(listener).len() >= 10);
        let heard: Vec<usize> = heard(listener).iter().filter_map(|line| line.parse().ok()).collect();
        assert_eq!(heard.len(), 10, "each once: {heard:?}");
        for origin in 0..3 {
            let of_one: Vec<usize> = heard.iter().copied().filter(|number| number % 3 == origin).collect();
            assert!(of_one.is_sorted(), "in the order of their origin: {heard:?}");
        }
    }
    wait::until("all came round", || all.iter().all(|broker| ring(broker)["not_round"] == 0));
    assert_eq!(all.map(|broker| ring(broker)["counters"]["published"].as_u64().unwrap_or_default()), [4, 3, 3]);
}

/// Proves S3.26, S3.27, S3.28 and S3.46: one that leaves goes on alone, and joins again when it is told to.
#[test]
fn a_member_leaves_and_joins_again() {
    let [one, two, three] = three();
    assert_eq!(two.run(&["ring", "leave"]).expect(0).text(), "left the ring; the broker continues alone\n");
    wait_whole(&[&one, &three]);
    assert_eq!((ring(&two)["state"].as_str(), &ring(&two)["code"]), (Some("off"), &Value::Null));
    let listener = listen(&two);
    one.run(&["pub", "news.x", "elsewhere", "--confirm"]).expect(0);
    two.run(&["pub", "news.x", "here", "--confirm"]).expect(0);
    wait::until("its own clients are served", || heard(&listener).contains(&"here".to_owned()));
    assert!(!heard(&listener).contains(&"elsewhere".to_owned()), "{:?}", listener.stdout());

    let joined = two.run(&["ring", "join", &place_of(&one), "--json"]).expect(0).document("turno.ring/1");
    assert_eq!((&joined["ring"]["state"], &joined["ring"]["whole"]), (&"member".into(), &true.into()));
    wait_whole(&[&one, &two, &three]);
    assert_eq!(circle(&one), [1, 3, 2]);
    one.run(&["pub", "news.x", "again", "--confirm"]).expect(0);
    wait::until("it hears the others", || heard(&listener).contains(&"again".to_owned()));
    let same = two.run(&["ring", "join", &place_of(&one)]).expect(0).text();
    assert_eq!(same, "1 is already in the same ring: 2 → 1 → 3 → 2\n");
    let other = two.run(&["ring", "join", "9@127.0.0.1", "--json"]).expect(2);
    assert_eq!(other.error_code(), "bad_usage");
}

/// SID@HOST means one member: a broker with another number at that address is not joined, be it at the start, by `ring join`,
/// or by one that asks for a number. What is a ring stays as it is.
#[test]
fn the_member_that_is_named_is_joined() {
    let [one, two, three] = three();
    let wrong = format!("7@{}", ring_address(&one));
    let place = Place::new();
    for sid in ["4", "auto"] {
        let run = refused(&place, &["--sid", sid, "--ring-port", "0", "--ring-next", &wrong]);
        // One that has been ready tells it as text.
        let told = format!("{}{}", run.text(), run.stderr);
        assert!(run.code == 1 && told.contains("wrong_sid"), "{sid}: {told}");
    }
    let alone = member("5", None);
    let run = alone.run(&["ring", "join", &wrong, "--json"]).expect(1);
    assert_eq!((run.error_code().as_str(), ring(&alone)["state"].as_str()), ("wrong_sid", Some("alone")));
    three.run(&["ring", "leave"]).expect(0);
    let run = three.run(&["ring", "join", &wrong]).expect(1);
    assert!(run.stderr.contains("has a different sid"), "{}", run.stderr);
    assert_eq!(ring(&three)["state"], "off", "it has not come back to those it knows either");
    wait_whole(&[&one, &two]);
    three.run(&["ring", "join", &place_of(&two)]).expect(0);
    wait_whole(&[&one, &two, &three]);

    let next = format!("7@{}", ring_address(&alone));
    let flags =
        ["--sid", "9", "--ring-port", "0", "--foreman-listen", "127.0.0.1:0", "--ring-next", &next, "--ring-wait"];
    let waiting = Broker::start_with(&flags);
    wait::until("it says why it is not there", || ring(&waiting)["code"] == "wrong_sid");
    assert_eq!((&ring(&waiting)["state"], &ring(&alone)["state"]), (&"joining".into(), &"alone".into()));
}

/// Proves S3.6: a broker that is to find its number gets the one after the highest.
#[test]
fn a_number_is_found() {
    let one = member("41", None);
    let auto = member("auto", Some(&one));
    wait_whole(&[&one, &auto]);
    assert_eq!((sid_of(&auto), circle(&one)), (42, vec![41, 42]));
}

/// Starts a broker that must not get far.
fn refused(place: &Place, flags: &[&str]) -> Run {
    let flags = [&["serve", "--json", "--memory", "--listen", "127.0.0.1:0", "--foreman-listen", "127.0.0.1:0"], flags];
    Run::finish(place.turno(flags.concat()), b"", wait::PATIENCE)
}

/// Proves S3.7: two brokers with one number do not run, be it on one port or by two.
#[test]
fn a_number_is_had_by_one() {
    let one = member("1", None);
    let two = member("2", Some(&one));
    wait_whole(&[&one, &two]);
    let place = Place::new();
    let port = ring_address(&two).rsplit_once(':').expect("a port").1.to_owned();
    let next = place_of(&one);
    let run = refused(&place, &["--sid", "2", "--ring-port", &port, "--ring-next", &next]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "address_in_use"));
    let run = refused(&place, &["--sid", "2", "--ring-port", "0", "--ring-next", &next]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "duplicate_sid"), "and it was never ready");
    let run = refused(&place, &["--sid", "2", "--ring-port", "0", "--ring-next", &next, "--ring-wait"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "duplicate_sid"), "nor was one that would wait");
    wait_whole(&[&one, &two]);
    // Of all that goes with a number, and is taken, the number itself is told.
    let data = two.unix().parent().expect("a directory").display().to_string();
    let flags = ["serve", "--sid", "2", "--ring-port", &port, "--ring-next", &next, "--data", &data];
    let run = place.run([&flags[..], &["--listen", &two.address().to_string()]].concat()).expect(1);
    assert!(run.stderr.starts_with("error: cannot be broker 2 of a ring: cannot listen on "), "{}", run.stderr);
}

/// What cannot be joined is told in words of the ring, no matter who it is that answers.
#[test]
fn whom_one_cannot_join() {
    let one = member("1", None);
    let alone = member("5", None);
    let run = alone.run(&["ring", "join", &place_of(&alone)]).expect(2);
    assert!(run.stderr.contains("is this broker's own sid"), "{}", run.stderr);
    let place = Place::new();
    for listener in [one.address(), one.foreman()] {
        let next = format!("1@{listener}");
        let run = alone.run(&["ring", "join", &next]).expect(1);
        let runs = [run, refused(&place, &["--sid", "2", "--ring-port", "0", "--ring-next", &next])];
        for run in runs {
            // One that was never ready says so as a document.
            let told = run.text() + &run.stderr;
            assert!(told.contains(&format!("no ring member listens at {listener}")), "{told}");
        }
    }
    assert_eq!(ring(&alone)["state"], "alone");
    let run = Broker::start().run(&["ring", "join", &place_of(&one)]).expect(1);
    let expected = format!("fix: restart it: turno serve --sid auto --ring-next {}\n", place_of(&one));
    assert!(run.stderr.contains("the broker has no sid") && run.stderr.contains(&expected), "{}", run.stderr);
}

/// Proves S3.17: nobody to join is an error; and with --ring-wait the broker waits.
#[test]
fn nobody_to_join() {
    let place = Place::new();
    let port = turno_e2e::Port::reserve();
    let next = format!("1@{}", port.address());
    let run = refused(&place, &["--sid", "2", "--ring-port", "0", "--ring-next", &next]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ring_down"));
    let run = refused(&place, &["--sid", "auto", "--ring-port", "0", "--ring-next", &next]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ring_down"));
    let flags =
        ["--sid", "2", "--ring-port", "0", "--foreman-listen", "127.0.0.1:0", "--ring-next", &next, "--ring-wait"];
    let waiting = Broker::start_with(&flags);
    wait::until("it says why it is not there", || ring(&waiting)["code"] == "ring_down");
    assert_eq!(ring(&waiting)["state"], "joining");
    let late = waiting.run(&["ring", "show", "--wait", "--timeout", wait::SHORT, "--json"]).expect(124);
    assert_eq!(late.error_code(), "timed_out");
    let number = port.address().port().to_string();
    let flags = ["--sid", "1", "--ring-port", &number, "--foreman-listen", "127.0.0.1:0"];
    let one = Broker::start_with(&flags);
    wait_whole(&[&one, &waiting]);
    waiting.run(&["ring", "show", "--wait"]).expect(0);
}

/// Proves S3.42: a shutdown ends every broker of the ring, if somebody means it. With a secret it goes round; without one the command
/// asks each broker.
#[test]
fn a_shutdown_ends_all() {
    let secrets = Place::new();
    let file = secrets.path().join("secret");
    std::fs::write(&file, "correct horse battery staple").expect("our own place");
    let file = file.to_str().expect("plain names");
    for secret in [&[][..], &["--ring-secret-file", file]] {
        shuts_down(three_with(secret), !secret.is_empty());
    }
}

fn shuts_down(mut all: [Broker; 3], has_secret: bool) {
    assert_eq!(ring(&all[0])["secret"], has_secret);
    let run = all[0].run(&["ring", "shutdown", "--json"]).expect(2);
    assert_eq!(run.error_code(), "not_confirmed");
    assert_eq!(all[1].run(&["ring", "shutdown", "--yes"]).expect(0).text(), "stopping the ring: 3 brokers\n");
    for broker in &mut all {
        assert_eq!(broker.process().end(wait::PATIENCE), 0);
    }
}

/// A broker that ends leaves its ring: the others need not miss it first.
#[test]
fn anyone_who_ends_leaves() {
    let [one, mut two, three] = three();
    assert_eq!(two.terminate(wait::PATIENCE), 0);
    wait_whole(&[&one, &three]);
    assert_eq!(ring(&one)["lost"], Value::Array(Vec::new()));
    assert_eq!(ring(&one)["counters"]["healed"], 0);
}

/// Proves S3.8 and S3.48: what cannot be is told before anything is bound.
#[test]
fn wrong_flags() {
    let place = Place::new();
    let table: [(&[&str], i32, &str); 9] = [
        (&["--ring-next", "1@localhost"], 2, "--ring-next requires --sid"),
        (&["--sid", "auto"], 2, "--sid auto requires --ring-next"),
        (&["--sid", "100"], 2, "--sid 100 needs --ring-port and --listen"),
        (&["--sid", "65536"], 2, "expected a number from 0 to 65535, or \"auto\""),
        (&["--sid", "3", "--ring-next", "3@localhost"], 2, "is this broker's own sid"),
        (&["--sid", "3", "--ring-next", "localhost"], 2, "expected a member like 3@10.0.0.7"),
        (&["--sid", "3", "--ring-next", "100@localhost"], 2, "a sid above 99 requires a port"),
        (&["--sid", "3", "--ring-listen", "0.0.0.0:8003"], 78, "for a ring without a secret"),
        (&["--sid", "3", "--ring-next", "4@10.0.0.7"], 2, "is on another machine, and there is no secret"),
    ];
    for (flags, exit, expected) in table {
        let run = place.run([&["serve"], flags].concat()).expect(exit);
        assert!(run.stderr.contains(expected) && run.stderr.contains("\nfix: "), "{flags:?}: {}", run.stderr);
        assert_eq!(run.text(), "", "{flags:?}");
    }
    schema::check(Broker::start().ready());
}
