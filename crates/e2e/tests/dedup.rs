//! `turno send` with dedup ids: sent twice is stored once, also when the answer is lost on its way.

use turno_e2e::{Broker, Peer, Proxy, Run, Way, wait};
use turno_proto::model::{Code, Slots};
use turno_proto::native::{Frame, Kind, Raw, RawOutgoing};

fn ready(broker: &Broker, queue: &str) -> u64 {
    broker.queue(queue)["ready"].as_u64().expect("a number")
}

/// Every body that waits in the queue, in order.
fn bodies(broker: &Broker, queue: &str) -> Vec<String> {
    let count = ready(broker, queue);
    let mut worker = Peer::worker(broker.address(), queue, Slots::Unlimited, "reader");
    (0..count).map(|_| String::from_utf8(worker.delivery().1).expect("tests send text")).collect()
}

/// The id and the words after it.
fn answer(run: &Run) -> (String, String) {
    let text = run.text();
    let (id, rest) = text.trim_end().split_once(' ').expect("id and durability");
    (id.to_owned(), rest.to_owned())
}

/// Proves I6: the same id is one message, and the answer says so; another queue and another id are others.
#[test]
fn a_message_sent_twice_is_one() {
    let broker = Broker::start();
    let send = |queue: &str, id: &str| answer(&broker.run(&["send", queue, "hello", "--dedup-id", id]).expect(0));
    let (first, durability) = send("q", "order-4711");
    assert_eq!(durability, "disk");
    assert_eq!(send("q", "order-4711"), (first.clone(), "disk duplicate".to_owned()));
    let document = broker.run(&["send", "q", "other", "--dedup-id", "order-4711", "--json"]).expect(0);
    let document = document.document("turno.stored/1");
    assert_eq!((&document["id"], &document["duplicate"]), (&first.clone().into(), &true.into()));
    assert_eq!(broker.run(&["send", "q", "x", "--json"]).expect(0).json()["duplicate"], false);
    for (queue, id) in [("r", "order-4711"), ("q", "order-4712")] {
        let (id, durability) = send(queue, id);
        assert_eq!((id != first, durability.as_str()), (true, "disk"));
    }
    assert_eq!((ready(&broker, "q"), ready(&broker, "r")), (3, 1));
    assert_eq!(bodies(&broker, "q"), ["hello", "x", "hello"]);
}

/// Proves I6: a message that is done is not done again.
#[test]
fn a_message_that_is_done_stays_done() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    broker.run(&["send", "q", "once", "--dedup-id", "x"]).expect(0);
    let (delivery, ..) = worker.delivery();
    worker.say(&Frame::Ack { delivery });
    wait::until("it is done", || broker.queue("q")["counters"]["acked"] == 1);
    assert_eq!(answer(&broker.run(&["send", "q", "once", "--dedup-id", "x"]).expect(0)).1, "disk duplicate");
    broker.run(&["send", "q", "next"]).expect(0);
    assert_eq!(worker.delivery().1, b"next");
}

/// Proves I6: the broker is killed, and still knows what was sent before; a message that is done stays done.
#[test]
fn a_message_sent_before_a_crash_is_one() {
    let mut broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let send = |broker: &Broker, id: &str| answer(&broker.run(&["send", "q", id, "--dedup-id", id]).expect(0));
    let done = send(&broker, "done").0;
    let (delivery, ..) = worker.delivery();
    worker.say(&Frame::Ack { delivery });
    worker.sync();
    drop(worker);
    let waiting = send(&broker, "waiting").0;
    broker.kill();
    let broker = Broker::start_in(broker.into_place(), &[]);
    for (id, first) in [("done", done), ("waiting", waiting)] {
        assert_eq!(send(&broker, id), (first, "disk duplicate".to_owned()));
    }
    assert_eq!(bodies(&broker, "q"), ["waiting"]);
}

/// Proves I6: the connection is cut when the broker has the message and the sender does not know. With a dedup id it is
/// sent again and stored once; without one the sender is told that the outcome is unknown.
#[test]
fn an_answer_lost_on_its_way() {
    let broker = Broker::start();
    let proxy = Proxy::cutting(broker.address(), Way::Back, Kind::Stored, 1);
    let run = broker.run(&["send", "q", "hello", "--dedup-id", "x", "--url", &proxy.url()]).expect(0);
    assert!(proxy.has_cut());
    assert_eq!(answer(&run).1, "disk duplicate");
    assert_eq!(bodies(&broker, "q"), ["hello"]);

    let proxy = Proxy::cutting(broker.address(), Way::Back, Kind::Stored, 1);
    let run = broker.run(&["send", "r", "hello", "--json", "--url", &proxy.url()]).expect(5);
    assert!(proxy.has_cut());
    assert_eq!(run.json()["error"]["code"], "connection_lost");
    assert!(run.json()["error"]["why"].as_str().expect("a reason").contains("may have been stored"), "{}", run.json());
    assert_eq!(ready(&broker, "r"), 1, "it is there, and nobody said that it is not");
}

/// Proves I6: a file sent twice is there once, with what was added to it.
#[test]
fn a_file_can_be_sent_again() {
    let broker = Broker::start();
    let send = |input: &str, more: &[&str]| {
        let words = [&["send", "q", "--lines", "--dedup-prefix", "may"], more].concat();
        broker.place.run_with_input(words, input.as_bytes()).expect(0)
    };
    assert_eq!(send("a\nb\n", &[]).stderr, "2 stored\n");
    assert_eq!(send("a\nb\nc\n", &[]).stderr, "3 stored, 2 of them duplicates\n");
    let document = send("a\nb\nc\nd\n", &["--json"]).document("turno.stored_list/1");
    assert_eq!((&document["stored"], &document["duplicates"]), (&4.into(), &3.into()));
    let duplicates: Vec<_> = (0..4).map(|line| document["messages"][line]["duplicate"].as_bool()).collect();
    assert_eq!(duplicates, [Some(true), Some(true), Some(true), Some(false)]);
    assert_eq!(
        broker.run(&["send", "q", "x", "--dedup-id", "may-2"]).expect(0).text().trim().rsplit(' ').next(),
        Some("duplicate")
    );
    assert_eq!(bodies(&broker, "q"), ["a", "b", "c", "d"]);
}

/// Proves I6: a thousand lines whose connection is lost in the middle, with hundreds on their way, arrive once each and
/// in order.
#[test]
fn lines_outlive_their_connection() {
    let broker = Broker::start();
    let proxy = Proxy::cutting(broker.address(), Way::Back, Kind::Stored, 300);
    let lines: Vec<String> = (1..=1_000).map(|n| format!("line {n}")).collect();
    let words = ["send", "q", "--lines", "--dedup-prefix", "p", "--json", "--url", &proxy.url()];
    let run = broker.place.run_with_input(words, lines.join("\n").as_bytes()).expect(0);
    assert!(proxy.has_cut());
    let document = run.document("turno.stored_list/1");
    assert_eq!((&document["stored"], &document["failed"], &document["unknown"]), (&1_000.into(), &0.into(), &0.into()));
    assert!(document["duplicates"].as_u64() >= Some(1), "at least the one whose answer was cut off");
    assert_eq!(bodies(&broker, "q"), lines);
}

/// Without dedup ids a connection lost in the middle ends the command, and its counts are exact: each line that was begun
/// is stored, or unknown, and the broker has as many as that allows.
#[test]
fn a_connection_lost_in_the_middle_is_counted_exactly() {
    let broker = Broker::start();
    let proxy = Proxy::cutting(broker.address(), Way::Back, Kind::Stored, 300);
    let input = "x\n".repeat(1_000);
    let words = ["send", "q", "--lines", "--json", "--url", &proxy.url()];
    let run = broker.place.run_with_input(words, input.as_bytes()).expect(3);
    assert!(proxy.has_cut());
    let document = run.document("turno.stored_list/1");
    let count = |key: &str| document[key].as_u64().expect("a number");
    let (stored, may) = (count("stored"), count("unknown"));
    assert_eq!((count("failed"), count("duplicates")), (may, 0), "of each line that failed the outcome is unknown");
    let (sent, there) = (stored + may, ready(&broker, "q"));
    let messages = document["messages"].as_array().expect("a list");
    assert_eq!(messages.len() as u64, sent);
    assert_eq!(messages.iter().position(|line| line["error"].is_object()), Some(299));
    // What was never written went to the broker over the next connection: it is stored. Of the rest at least one is.
    assert!((stored + 1..=sent).contains(&there), "{there} of {stored} and {may}");
    assert!(run.stderr.contains("line 300: the connection to the broker was lost"), "{}", run.stderr);
    let counts = format!("{stored} stored; {may} failed, {may} of them possibly stored\n");
    assert!(run.stderr.contains(&counts), "{}", run.stderr);
    assert!(run.stderr.contains(&format!("lines after {sent} were not sent\n")), "{}", run.stderr);
}

/// A bad id is told before anything is sent.
#[test]
fn a_bad_id_is_bad_usage() {
    let broker = Broker::start();
    let long = "x".repeat(65);
    let bad: [&[&str]; 6] = [
        &["--dedup-id", ""],
        &["--dedup-id", &long],
        &["--dedup-id", "x", "--lines"],
        &["--dedup-prefix", "x"],
        &["--dedup-prefix", "", "--lines"],
        &["--dedup-prefix", &long[..44], "--lines"],
    ];
    for words in bad {
        let run = broker.run(&[&["send", "q", "--json"], words].concat()).expect(2);
        assert_eq!(run.json()["error"]["code"], "bad_usage", "{words:?}");
    }
    broker.run(&["send", "q", "x", "--dedup-id", &long[..64]]).expect(0);
    assert_eq!(ready(&broker, "q"), 1);
}

/// On the wire a bad id is refused with its reason; the connection goes on.
#[test]
fn a_bad_id_on_the_wire_is_refused() {
    let broker = Broker::start();
    let mut peer = Peer::client(broker.address(), "q");
    let message =
        |seq, dedup_id| RawOutgoing { dedup_id, ..RawOutgoing::new(seq, 0, Raw { headers: false, bytes: b"x" }) };
    let long = [b'x'; 65];
    for (seq, frame) in [(10, Frame::Send(message(10, Some(b"")))), (11, Frame::Send(message(11, Some(&long))))] {
        peer.say(&frame);
        peer.hear(|heard| match heard {
            Frame::Error { seq: of, code: Code::BadOption, fatal: false, .. } if of == seq => {}
            other => panic!("{other:?} answers {frame:?}"),
        });
    }
    for duplicate in [false, true] {
        peer.say(&Frame::Send(message(13, Some(&long[..64]))));
        peer.hear(|heard| assert!(matches!(heard, Frame::Stored { seq: 13, duplicate: of, .. } if of == duplicate)));
    }
}
