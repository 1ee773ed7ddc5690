//! `turno pub` and `turno sub`: who hears what, in which order and form.

use std::fs::File;
use std::io::{Read as _, Write as _, pipe};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use turno_e2e::{Background, Broker, Peer, Run, schema, wait};

const SOON: Duration = wait::PATIENCE;

/// Waits until a listener printed exactly these lines.
#[track_caller]
fn prints(listener: &Background, expected: &[&str]) {
    wait::find(SOON, || (listener.stdout().len() >= expected.len()).then_some(()));
    assert_eq!(listener.stdout(), expected, "stderr: {:?}", listener.stderr());
}

/// Proves S3.32 and S3.33 for a single broker: filters are kept where the subscriber is connected, and an event goes to
/// everyone of whose filters one matches: `*` is one segment, `>` the rest.
#[test]
fn everyone_hears_what_its_filters_match() {
    let broker = Broker::start();
    let segment = broker.listen(&["news.*"]);
    let rest = broker.listen(&["news.>"]);
    let all = broker.listen(&[">"]);
    let exact = broker.listen(&["weather", "news.sport"]);
    for (topic, body) in
        [("news.sport", "1:0"), ("news.sport.tennis", "6:4"), ("news", "none"), ("weather", "rain"), ("else", "x")]
    {
        broker.publish(topic, body);
    }
    prints(&segment, &["news.sport 1:0"]);
    prints(&rest, &["news.sport 1:0", "news.sport.tennis 6:4"]);
    prints(&all, &["news.sport 1:0", "news.sport.tennis 6:4", "news none", "weather rain", "else x"]);
    prints(&exact, &["news.sport 1:0", "weather rain"]);
    let (mut segment, others) = (segment, [rest, all, exact]);
    segment.signal(Signal::TERM);
    assert_eq!(segment.end(SOON), 143);
    broker.await_subscribers(others.len());
}

/// Proves S3.36 for a single broker: each event once, however many filters match, those of one publisher in its order,
/// over all filters of a subscriber.
#[test]
fn events_of_a_publisher_come_in_order_and_once() {
    let broker = Broker::start();
    let listeners = [broker.listen(&["a.*", "b", "a.x", ">"]), broker.listen(&["b", "a.>"])];
    let lines = |who: &str| (0..400).map(|number| format!("{who}{number}\n")).collect::<String>();
    thread::scope(|scope| {
        for (topic, who) in [("a.x", "first "), ("b", "second ")] {
            let (place, lines) = (&broker.place, lines(who));
            scope.spawn(move || place.run_with_input(["pub", topic, "--lines"], lines.as_bytes()).expect(0));
        }
    });
    for listener in listeners {
        wait::until("all are heard", || listener.stdout().len() >= 800);
        let heard = listener.stdout();
        assert_eq!(heard.len(), 800, "once each");
        for (topic, who) in [("a.x", "first "), ("b", "second ")] {
            let of_one: Vec<&str> = heard.iter().filter_map(|line| line.strip_prefix(&format!("{topic} "))).collect();
            assert_eq!(of_one, lines(who).lines().collect::<Vec<_>>());
        }
    }
}

/// One publisher, topics of several filters: their order is that of the publisher.
#[test]
fn the_order_holds_over_several_filters() {
    let broker = Broker::start();
    let listener = broker.listen(&["a", "b", "c"]);
    let mut publisher = Peer::greeted(broker.address(), 0);
    let expected: Vec<String> = (0..600).map(|number| format!("{} {number}", ["a", "b", "c"][number % 3])).collect();
    for line in &expected {
        let (topic, body) = line.split_once(' ').expect("made above");
        publisher.publish(topic, body.as_bytes(), false);
    }
    wait::until("all are heard", || listener.stdout().len() >= expected.len());
    assert_eq!(listener.stdout(), expected);
}

/// Proves S3.36: a publisher that listens to its own topic hears itself, once, in its order.
#[test]
fn a_publisher_that_listens_hears_itself() {
    let broker = Broker::start();
    let mut peer = Peer::greeted(broker.address(), 0);
    peer.subscribe("t.*", false);
    peer.subscribe("t.>", false);
    for body in ["1", "2", "3"] {
        peer.publish("t.x", body.as_bytes(), false);
    }
    for body in ["1", "2", "3"] {
        assert_eq!(peer.event(), Ok(("t.x".to_owned(), body.as_bytes().to_vec())));
    }
    peer.sync();
}

/// `-n` ends after so many; headers come along, in every format.
#[test]
fn so_many_events_in_every_format() {
    let broker = Broker::start();
    let mut listeners: Vec<Background> =
        ["text", "name", "jsonl", "json"].iter().map(|format| broker.listen(&["t", "-n", "2", "-o", format])).collect();
    let run = broker.run(&["pub", "t", "one", "-H", "lang=en", "-H", "k=v", "--json"]).expect(0);
    let published = run.document("turno.published/1");
    assert_eq!(
        (&published["topic"], &published["events"], &published["confirmed"]),
        (&"t".into(), &1.into(), &false.into())
    );
    broker.place.run_with_input(["pub", "t", "-", "--confirm"], b"\xff\x00").expect(0);
    broker.publish("t", "three");
    for listener in &mut listeners {
        assert_eq!(listener.end(SOON), 0);
    }
    let [text, name, jsonl, json] = &listeners[..] else { panic!("four of them") };
    assert_eq!(text.stdout()[0], "t one");
    assert_eq!(name.stdout(), ["t", "t"]);
    let events: Vec<_> = jsonl.stdout().iter().map(|line| schema::document(line)).collect();
    assert_eq!((events.len(), &events[0]["schema"]), (2, &"turno.event/1".into()));
    assert_eq!((&events[0]["topic"], &events[0]["body"]), (&"t".into(), &"one".into()));
    assert_eq!((&events[0]["headers"]["lang"], &events[0]["headers"]["k"]), (&"en".into(), &"v".into()));
    assert_eq!((&events[1]["encoding"], &events[1]["body"]), (&"base64".into(), &"/wA=".into()));
    assert_eq!(json.stdout().len(), 1);
    let list = schema::document(&json.stdout()[0]);
    assert_eq!(
        (&list["schema"], &list["dropped"], &list["left"]),
        (&"turno.event_list/1".into(), &0.into(), &().into())
    );
    assert_eq!(list["events"].as_array().map(Vec::len), Some(2));
    assert_eq!(list["events"][0]["headers"]["lang"], "en");
}

/// `--raw` prints bodies byte for byte and nothing else.
#[test]
fn raw_bodies_are_printed_as_they_are() {
    let broker = Broker::start();
    let command = broker.turno(&["sub", "t", "--raw", "-n", "3", "-q"]);
    let listener = thread::spawn(move || Run::finish(command, b"", wait::PATIENCE));
    broker.await_subscribers(1);
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for body in [&b"no end of line"[..], &binary, b"line\n"] {
        broker.place.run_with_input(["pub", "t"], body).expect(0);
    }
    let run = listener.join().expect("the command ends").expect(0);
    assert!(run.stdout == [&b"no end of line"[..], &binary, b"line\n"].concat());
    assert_eq!(run.stderr, "");
}

/// Bodies come from an argument, a pipe, or nowhere; each line is an event with `--lines`, empty ones too, as it comes.
#[test]
fn bodies_are_typed_or_piped() {
    let broker = Broker::start();
    let listener = broker.listen(&["t"]);
    broker.run(&["pub", "t", "typed"]).expect(0);
    broker.run(&["pub", "t"]).expect(0);
    broker.place.run_with_input(["pub", "t", "-"], b"piped").expect(0);
    let run = broker.place.run_with_input(["pub", "t", "--lines"], b"a\n\nb").expect(0);
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", "3 events published\n"));
    prints(&listener, &["t typed", "t ", "t piped", "t a", "t ", "t b"]);
    let (reader, mut writer) = pipe().expect("a pipe");
    let mut command = broker.turno(&["pub", "t", "--lines", "--json", "-q"]);
    command.stdin(reader);
    let mut publisher = Background::start(command);
    for number in 1..=3 {
        writeln!(writer, "line {number}").expect("the command reads");
        wait::until("it is heard before the next comes", || listener.stdout().len() == 6 + number);
    }
    drop(writer);
    assert_eq!(publisher.end(SOON), 0);
    assert_eq!(schema::document(&publisher.stdout()[0])["events"], 3);
}

/// A line that no frame can hold ends `--lines`; what was published before is told.
#[test]
fn a_line_that_is_too_long_ends_the_lines() {
    let broker = Broker::start();
    let listener = broker.listen(&["t"]);
    let long = [b"first\n", &vec![b'x'; 17 << 20][..], b"\nlast\n"].concat();
    let run = broker.place.run_with_input(["pub", "t", "--lines"], &long).expect(3);
    assert!(run.stderr.starts_with("1 event published; line 2 failed\n"), "{}", run.stderr);
    assert!(run.stderr.contains("code: frame_too_large"), "{}", run.stderr);
    prints(&listener, &["t first"]);
    let run = broker.place.run_with_input(["pub", "t"], &long).expect(1);
    assert!(run.stderr.contains("code: frame_too_large"), "{}", run.stderr);
}

/// `--prefix` goes by the beginning of a topic, byte by byte; an empty one is everything.
#[test]
fn prefixes_are_the_beginnings_of_topics() {
    let broker = Broker::start();
    let some = broker.listen(&["--prefix", "news.s", "w"]);
    some.expect_line("subscribed to news.s…, w…");
    let all = broker.listen(&["--prefix", ""]);
    for topic in ["news.sport", "news.art", "weather", "new"] {
        broker.publish(topic, "x");
    }
    prints(&all, &["news.sport x", "news.art x", "weather x", "new x"]);
    prints(&some, &["news.sport x", "weather x"]);
}

/// A signal ends the listening; with `--json` what was heard is one document then.
#[test]
fn a_signal_ends_the_listening() {
    let broker = Broker::start();
    for (signal, exit) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut text = broker.listen(&["t"]);
        let mut json = broker.listen(&["t", "--json"]);
        broker.publish("t", "x");
        prints(&text, &["t x"]);
        let events = || broker.subscribers().iter().map(|one| one["events"].clone()).collect::<Vec<_>>();
        assert_eq!(events(), [1, 1]);
        for listener in [&mut text, &mut json] {
            listener.signal(signal);
            assert_eq!(listener.end(SOON), exit);
        }
        let list = schema::document(&json.stdout()[0]);
        assert_eq!((list["events"].as_array().map(Vec::len), json.stdout().len()), (Some(1), 1));
        broker.await_subscribers(0);
    }
}

/// When the broker is started again the subscriber listens again and is told that something may be missing; who would
/// rather end does.
#[test]
fn a_subscriber_outlives_its_broker() {
    let mut broker = Broker::start();
    let listener = broker.listen(&["t.*"]);
    let mut strict = broker.listen(&["t.*", "--or-close"]);
    broker.publish("t.1", "before");
    prints(&listener, &["t.1 before"]);
    prints(&strict, &["t.1 before"]);
    let address = broker.address().to_string();
    broker.kill();
    assert_eq!(strict.end(SOON), 5);
    strict.expect_line("error: lost the connection to the broker; events may be missing");
    strict.expect_line("code: connection_lost");
    let broker = Broker::start_in_at(broker.into_place(), &address, &[]);
    listener.expect_line("warning: reconnected; events published in the meantime are missing");
    broker.await_subscribers(1);
    broker.publish("t.2", "after");
    prints(&listener, &["t.1 before", "t.2 after"]);
}

/// A fifo that nobody reads yet, and `turno sub` with its output there.
fn into_fifo(broker: &Broker, arguments: &str) -> (File, Background) {
    let fifo = broker.place.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts");
    assert!(made.success());
    let mut shell = broker.place.command("bash");
    shell.args(["-c", &format!("exec turno sub {arguments} > fifo")]);
    let listener = Background::start(shell);
    // Waits until the other end is open too.
    let taken = File::open(&fifo).expect("our own fifo");
    listener.expect_line("subscribed to");
    (taken, listener)
}

const LARGE: usize = 1 << 20;
const MANY: u8 = 64;

/// More than all buffers on the way can hold.
fn publish_too_much(broker: &Broker) {
    let mut publisher = Peer::greeted(broker.address(), 0);
    for number in 0..MANY {
        publisher.publish("t", &vec![number; LARGE], false);
    }
    publisher.sync();
}

/// Numbers of the events in what was printed, each of them whole.
fn numbers(printed: &[u8]) -> Vec<u8> {
    assert_eq!(printed.len() % LARGE, 0, "whole events");
    printed
        .chunks(LARGE)
        .inspect(|event| assert!(event.iter().all(|byte| *byte == event[0])))
        .map(|event| event[0])
        .collect()
}

/// How many events a listener said to be missing.
fn missing(listener: &Background) -> usize {
    let told = listener.stderr().into_iter().filter_map(|line| {
        let (told, _) = line.strip_prefix("warning: ")?.split_once(" missing: this subscriber was too slow")?;
        told.split(' ').next()?.parse::<usize>().ok()
    });
    told.sum()
}

/// Who takes what is printed too slowly misses events, is told how many, and goes on.
#[test]
fn a_slow_reader_misses_events_and_is_told() {
    let broker = Broker::start();
    let (mut taken, listener) = into_fifo(&broker, "t --raw");
    publish_too_much(&broker);
    let (all, mut printed) = (usize::from(MANY), Vec::new());
    let mut read = |until: &dyn Fn(&[u8]) -> bool| {
        let mut more = vec![0; LARGE];
        while !until(&printed) {
            let count = taken.read(&mut more).expect("our own fifo");
            assert!(count > 0, "it ended: {:?}", listener.stderr());
            printed.extend_from_slice(&more[..count]);
        }
        printed.clone()
    };
    // The latest are never left out.
    let numbers = numbers(&read(&|printed| printed.len() % LARGE == 0 && printed.last() == Some(&(MANY - 1))));
    assert!(numbers.is_sorted() && numbers.len() < all, "{numbers:?}");
    wait::until("all that is missing is told", || numbers.len() + missing(&listener) == all);
    broker.publish("t", "the end");
    let printed = read(&|printed| printed.ends_with(b"the end"));
    assert_eq!(printed.len(), numbers.len() * LARGE + 7, "nothing comes twice");
}

/// With `--or-close` nothing is left out: what was heard before is printed, and then the reason of the end.
#[test]
fn a_slow_reader_may_rather_end() {
    let broker = Broker::start();
    let (mut taken, mut listener) = into_fifo(&broker, "t --raw --or-close");
    let bystander = broker.listen(&["end"]);
    publish_too_much(&broker);
    let mut printed = Vec::new();
    taken.read_to_end(&mut printed).expect("our own fifo");
    assert_eq!(listener.end(SOON), 1, "{:?}", listener.stderr());
    listener.expect_line("code: slow_reader");
    let numbers = numbers(&printed);
    assert!(numbers.len() < usize::from(MANY));
    assert_eq!(numbers, (0..MANY).take(numbers.len()).collect::<Vec<_>>(), "without a gap");
    broker.publish("end", "x");
    prints(&bystander, &["end x"]);
}
