//! Messages of several parts between programs of the real libzmq and native clients and workers.

use serde_json::{Value, json};
use turno_e2e::{Background, Broker, Peer, Pyzmq, wait};
use turno_proto::model::{Code, limits};
use turno_proto::native::{Frame, Raw};

/// A program that replies with the parts that it got, in the order of requests.
const ECHO: &[&str] = &["--slots", "1", "--reply-parts", "--", "sh", "-c", "echo \"$TURNO_PARTS\"; cat"];

/// A broker with an endpoint that no program of another test looks for.
fn broker() -> Broker {
    Broker::start_with(&["--zmq-listen", "127.0.0.1:0"])
}

/// The socket of a program.
fn connect(kind: &str, broker: &Broker) -> Value {
    json!({"type": kind, "connect": broker.ready()["zmq"][0]})
}

fn echo(broker: &Broker, queue: &str) -> Background {
    broker.worker(&[&[queue], ECHO].concat())
}

/// Options for these parts.
fn flags<'a>(parts: &[&'a str]) -> Vec<&'a str> {
    parts.iter().flat_map(|part| ["--part", *part]).collect()
}

/// The reply to these parts, as JSON.
fn reply(broker: &Broker, queue: &str, parts: &[&str]) -> Value {
    let words = [&["request", queue, "--json"], &flags(parts)[..]].concat();
    broker.run(&words).expect(0).document("turno.reply/1")["reply"].take()
}

/// The texts of parts in JSON.
fn texts(parts: &Value) -> Vec<&str> {
    parts.as_array().expect("a list").iter().map(|part| part["body"].as_str().expect("a text")).collect()
}

/// What a program that shows its frames has printed.
fn shown(program: Pyzmq) -> Vec<String> {
    serde_json::from_str(&program.done()).expect("a list of frames in hex")
}

fn hex(parts: &[&str]) -> Vec<String> {
    let hex = |part: &str| part.bytes().map(|byte| format!("{byte:02x}")).collect();
    parts.iter().map(|part| hex(part)).collect()
}

/// A program of `turno work` gets the frames and returns them byte for byte: empty ones, 100 of them, one of 8 MiB.
#[test]
fn a_program_of_turno_work_answers_sockets() {
    let broker = broker();
    let _worker = echo(&broker, "zmq");
    for kind in ["REQ", "DEALER"] {
        Pyzmq::start("ask", &connect(kind, &broker)).done();
    }
}

/// The program of the documents cuts the body by its list.
#[test]
fn a_program_cuts_the_body_by_the_list() {
    let broker = broker();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/python/reverse_parts.py");
    let _worker = broker.worker(&["q", "--reply-parts", "--", "python3", example]);
    assert_eq!(texts(&reply(&broker, "q", &["a", "", "b c", "\n"])["parts"]), ["\n", "b c", "", "a"]);
    let one = reply(&broker, "q", &["one"]);
    assert_eq!((&one["parts"], &one["body"]), (&Value::Null, &json!("one")));
    let most: Vec<String> = (0..limits::MESSAGE_PARTS_MAX).map(|number| number.to_string()).collect();
    let most: Vec<&str> = most.iter().map(String::as_str).collect();
    let reversed: Vec<&str> = most.iter().rev().copied().collect();
    assert_eq!(texts(&reply(&broker, "q", &most)["parts"]), reversed);
}

/// 1,024 parts beside the envelope, which a REQ socket has and a DEALER has not; one more ends the connection, and only that.
#[test]
fn a_socket_sends_so_many_parts_and_not_more() {
    let broker = broker();
    let _worker = echo(&broker, "zmq");
    Pyzmq::start("ask_most", &connect("DEALER", &broker)).done();
    assert_eq!(broker.status()["counters"]["replied"], 2, "the worker saw nothing of the message that was too long");
}

/// `turno request --part` asks a REP socket, and prints what it answers.
#[test]
fn a_native_client_asks_a_socket_in_parts() {
    let broker = broker();
    let works = Pyzmq::start("answer", &connect("REP", &broker));
    let hundred: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let hundred: Vec<&str> = hundred.iter().map(String::as_str).collect();
    for parts in [&["a", "", "ünï\n"][..], &["", ""], &["", "", "", ""], &hundred, &["x"; limits::MESSAGE_PARTS_MAX]]
    {
        let reply = reply(&broker, "zmq", parts);
        assert_eq!(texts(&reply["parts"]), parts);
        assert_eq!(reply["body"], parts.concat(), "the body is all of them");
    }
    let one = reply(&broker, "zmq", &["one"]);
    assert_eq!((&one["parts"], &one["headers"], &one["body"]), (&Value::Null, &json!({}), &json!("one")));

    let too_many = [&["request", "zmq", "--json"], &flags(&["x"; limits::MESSAGE_PARTS_MAX + 1])[..]].concat();
    let refused = broker.run(&too_many).expect(1).document("turno.error/1");
    assert_eq!(refused["error"]["code"], "too_many_parts");

    let large = vec![0xfe; 8 << 20];
    let words = ["request", "zmq", "--part", "head", "--part", "-", "--part", "", "--part", "tail"];
    let run = broker.place.run_with_input(words, &large).expect(0);
    assert!(run.stdout == [b"head", &large[..], b"tail"].concat(), "{} bytes", run.stdout.len());
    let run = broker.place.run_with_input([&words[..], &["--parts"]].concat(), &large).expect(0);
    assert!(run.stdout == [b"head\n", &large[..], b"\n\ntail\n"].concat(), "{} bytes", run.stdout.len());

    assert_eq!(broker.run(&["request", "zmq", "--part", "a", "--part", "b"]).expect(0).text(), "ab");
    assert_eq!(broker.run(&["request", "zmq", "--part", "x", "--part", "bye", "--parts"]).expect(0).text(), "x\nbye\n");
    works.done();
}

/// Sends, events and broadcasts of native clients have parts, and so has what sockets push and publish.
#[test]
fn sends_events_and_broadcasts_have_parts() {
    let broker = broker();
    let parts = ["a", "", "bc"];
    broker.run(&[&["send", "zmq"], &flags(&parts)[..]].concat()).expect(0);
    assert_eq!(shown(Pyzmq::start("show", &connect("PULL", &broker))), hex(&parts));

    let mut given = connect("SUB", &broker);
    given["subscribe"] = json!(["news"]);
    let subscriber = Pyzmq::start("show", &given);
    broker.await_subscribers(1);
    broker.run(&[&["pub", "news"], &flags(&parts)[..]].concat()).expect(0);
    assert_eq!(shown(subscriber), hex(&["news", "a", "", "bc"]));

    let mut listens = broker.listen(&["news.>", "-n", "1", "-o", "jsonl"]);
    Pyzmq::start("tell_news", &connect("XPUB", &broker)).done();
    assert_eq!(listens.end(wait::PATIENCE), 0);
    let event: Value = serde_json::from_str(&listens.stdout()[0]).expect("JSON");
    assert_eq!((texts(&event["parts"]), &event["body"]), (vec!["", "wanted"], &json!("wanted")));

    let _worker = echo(&broker, "all");
    let words = [&["broadcast", "all", "--json"], &flags(&parts)[..]].concat();
    let ended = broker.run(&words).expect(0).document("turno.broadcast/1");
    assert_eq!(texts(&ended["answers"][0]["parts"]), parts);
}

/// A list that does not fit its body is none, for programs, for sockets and in what is printed; a worker that lists other
/// parts than it has fails.
#[test]
fn a_bad_list_is_no_list() {
    let broker = broker();
    let _native = broker.worker(&["native", "--", "sh", "-c", "printf '%s:' \"${TURNO_PARTS-none}\"; cat"]);
    let _echo = broker.worker(&["echo", "--echo"]);
    let socket = Pyzmq::start("answer", &connect("ROUTER", &broker));
    let too_many = format!("parts={}", ["0"; limits::MESSAGE_PARTS_MAX + 1].join(" "));
    for list in ["parts=1 1", "parts=", "parts=4", "parts=-1 4", "parts=one", "parts=18446744073709551615 4", &too_many]
    {
        assert_eq!(broker.run(&["request", "native", "abc", "-H", list]).expect(0).text(), "none:abc", "{list}");
        for queue in ["echo", "zmq"] {
            let reply = broker.run(&["request", queue, "abc", "-H", list, "--json"]).expect(0).json()["reply"].take();
            assert_eq!((&reply["body"], &reply["parts"]), (&json!("abc"), &Value::Null), "{queue} {list}");
        }
    }
    assert_eq!(broker.run(&["request", "zmq", "bye"]).expect(0).text(), "bye");
    socket.done();
    // A list that fits is as good as --part.
    assert_eq!(broker.run(&["request", "native", "abc", "-H", "parts=1 0 2"]).expect(0).text(), "1 0 2:abc");

    let _liar = broker.worker(&["liar", "--reply-parts", "--", "sh", "-c", "echo 1 1; cat"]);
    let error = broker.run(&["request", "liar", "abc", "--json"]).expect(1).json()["error"].take();
    assert_eq!(error["code"], "failed");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("the lengths add up")), "{error}");
}

/// A list that is no text makes the headers unreadable: a native worker fails the message, a socket gets the body.
#[test]
fn a_list_that_is_no_text_reaches_no_program() {
    let broker = broker();
    let _native = broker.worker(&["native", "--", "cat"]);
    let socket = Pyzmq::start("answer", &connect("ROUTER", &broker));
    let bad = Raw { headers: true, bytes: b"\x08\x00\x81\xa5parts\x03abc" };
    let mut client = Peer::client(broker.address(), "native");
    client.request_with(b"", |message| message.payload = bad);
    let code = client.next(|frame| match frame {
        Frame::Undelivered { code, .. } => code,
        other => panic!("{other:?}"),
    });
    assert_eq!(code, Code::Failed);
    let mut client = Peer::client(broker.address(), "zmq");
    client.request_with(b"", |message| message.payload = bad);
    assert_eq!(client.answer().1, b"abc");
    client.request(b"bye");
    assert_eq!(client.answer().1, b"bye");
    socket.done();
}

/// What is given is checked before a broker is asked.
#[test]
fn parts_that_make_no_sense_are_refused() {
    let place = turno_e2e::Place::new();
    let table: [&[&str]; 7] = [
        &["request", "q", "body", "--part", "a"],
        &["request", "q", "--part", "-", "--part", "-"],
        &["request", "q", "--part", "a", "-H", "parts=1"],
        &["request", "q", "--part", "a", "--parts", "--count", "2"],
        &["send", "q", "--part", "a", "--lines"],
        &["pub", "t", "--part", "a", "--lines"],
        &["broadcast", "q", "--part", "-", "--part", "-"],
    ];
    for words in table {
        let refused = place.run([words, &["--json"]].concat()).expect(2).json();
        assert_eq!(refused["error"]["code"], "bad_usage", "{words:?}");
    }
}
