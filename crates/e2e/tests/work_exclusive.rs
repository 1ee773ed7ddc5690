//! Queues with a single consumer, from end to end: `turno work --exclusive [--standby]`, and the frames behind it.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use turno_e2e::{Background, Broker, Peer, Place, wait};
use turno_proto::model::{Code, Delivery, Slots};
use turno_proto::native::{Deliver, FencedFrame, Frame, Raw};

const LONG: Duration = wait::PATIENCE;

/// Writes down which message it got under which token; with a body of "stay" it does not end.
const CLERK: &str = "body=$(cat); echo \"$1 $body $TURNO_FENCE\" >> book; while [ \"$body\" = stay ] && [ -d \"$PWD\" ]; do sleep 0.02; done";

fn clerk(broker: &Broker, name: &str, flags: &[&str]) -> Background {
    let program = broker.place.script("clerk", CLERK).display().to_string();
    let fixed = ["work", "q", "--exclusive", "--slots", "1", "--name", name];
    broker.start_turno(&[&fixed, flags, &["--", &program, name]].concat())
}

/// Who did what under which token, in order.
fn book(broker: &Broker) -> Vec<(String, String, u64)> {
    let text = fs::read_to_string(broker.place.path().join("book")).unwrap_or_default();
    let entry = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [who, what, token] = words.as_slice() else { panic!("{line:?} is no entry") };
        ((*who).to_owned(), (*what).to_owned(), token.parse().expect("a decimal token"))
    };
    text.lines().map(entry).collect()
}

/// The token that the worker says it is active with.
fn token_of(worker: &Background) -> u64 {
    let line = worker.expect_line("is active on queue q, token ");
    line.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a decimal token")
}

fn send(broker: &Broker, bodies: &[&str]) {
    for body in bodies {
        broker.run(&["send", "q", body]).expect(0);
    }
}

/// Proves S2.19, S2.22, S2.24 and S2.26: of two workers one is active and the other stands by; when the active one is
/// killed the other takes over at once, with a higher token, and begins with what was not done, in order.
#[test]
fn a_standby_takes_over_from_one_that_was_killed() {
    let broker = Broker::start();
    let mut first = clerk(&broker, "first", &["--standby"]);
    let token = token_of(&first);
    let second = clerk(&broker, "second", &["--standby"]);
    second.expect_line("second is on standby for queue q");
    send(&broker, &["a", "stay"]);
    wait::until("it is at work", || book(&broker).len() == 2);
    send(&broker, &["b", "c"]);
    let queue = broker.queue("q");
    assert_eq!(queue["exclusive"]["token"], token.to_string().as_str());
    assert_eq!((&queue["waiters"], &queue["consumers"]), (&1.into(), &1.into()));
    let shown = broker.run(&["queue", "show", "q"]).expect(0).text();
    assert!(shown.contains(&format!("token {token}")) && shown.contains("standby"), "{shown}");
    let consumers = broker.run(&["queue", "consumers", "q", "--json"]).expect(0).json();
    assert_eq!(consumers["consumers"][0]["token"], token.to_string().as_str());
    let holder = broker.run(&["worker", "show", "first", "--json"]).expect(0).json();
    assert_eq!(holder["worker"]["exclusive"][0]["queue"], "q");
    let heir = broker.run(&["worker", "show", "second", "--json"]).expect(0).json();
    assert_eq!(heir["worker"]["waits_for"][0], "q");

    first.signal(Signal::KILL);
    first.end(LONG);
    let next = token_of(&second);
    assert!(next > token, "{next} after {token}");
    wait::until("it goes on with what was not done", || book(&broker).len() == 3);
    let done = book(&broker);
    assert_eq!(done[2], ("second".to_owned(), "stay".to_owned(), next), "in order: {done:?}");
    assert!(done[..2].iter().all(|(who, _, with)| who == "first" && *with == token), "{done:?}");
}

/// Proves S2.26: everything that waited goes to the new holder in its order.
#[test]
fn what_waited_goes_to_the_new_holder_in_order() {
    let broker = Broker::start();
    let mut first = clerk(&broker, "first", &[]);
    token_of(&first);
    send(&broker, &["stay"]);
    wait::until("it is at work", || book(&broker).len() == 1);
    let second = clerk(&broker, "second", &["--standby"]);
    second.expect_line("standby");
    let bodies = ["b", "c", "d", "e"];
    send(&broker, &bodies);
    let held = broker.run(&["worker", "show", "first", "--json"]).expect(0).json();
    let message = held["worker"]["holds"][0]["id"].as_str().expect("it holds one").to_owned();
    first.signal(Signal::KILL);
    first.end(LONG);
    wait::until("it began again", || book(&broker).len() == 2);
    broker.run(&["message", "cancel", &message, "--yes"]).expect(0);
    wait::until("all is done", || book(&broker).len() == 2 + bodies.len());
    let whats: Vec<String> = book(&broker).into_iter().skip(1).map(|(_, what, _)| what).collect();
    assert_eq!(whats, ["stay", "b", "c", "d", "e"]);
}

/// Proves S2.21: without --standby a queue that is taken, exclusively or not, is an error with a name of its own, and a
/// worker that would share an exclusive queue gets the same.
#[test]
fn a_taken_queue_is_an_error() {
    let broker = Broker::start();
    let first = clerk(&broker, "first", &[]);
    token_of(&first);
    for flags in [&["--exclusive"][..], &[]] {
        let refused = broker.run(&[&["work", "q", "--echo", "--json"], flags].concat()).expect(1);
        assert_eq!(refused.json()["error"]["code"], "queue_full");
    }
    let _shared = broker.worker(&["r", "--echo"]);
    let refused = broker.run(&["work", "r", "--echo", "--exclusive", "--json"]).expect(1);
    assert_eq!(refused.json()["error"]["code"], "queue_full");
    broker.run(&["work", "r", "--echo", "--standby"]).expect(2);
}

/// Proves S2.19 and S0.40: a holder that is asked to end finishes first, and then the other is active.
#[test]
fn a_holder_that_ends_in_order_hands_over() {
    let broker = Broker::start();
    let mut first = clerk(&broker, "first", &[]);
    let token = token_of(&first);
    let second = clerk(&broker, "second", &["--standby"]);
    second.expect_line("standby");
    first.signal(Signal::TERM);
    assert_eq!(first.end(LONG), 0);
    assert!(token_of(&second) > token);
}

/// Proves I8: tokens rise over restarts of the broker, with a store and without one; a worker that was active is active
/// again, with a higher token.
#[test]
fn tokens_rise_over_restarts() {
    for flags in [&[][..], &["--memory"]] {
        let mut broker = Broker::start_with(flags);
        let worker = clerk(&broker, "first", &["--standby"]);
        let mut last = token_of(&worker);
        for _ in 0..2 {
            broker.kill();
            let address = broker.address().to_string();
            let seen = worker.stderr().len();
            broker = Broker::start_in_at(broker.into_place(), &address, flags);
            let active =
                |line: &String| line.rsplit_once("is active on queue q, token ").map(|(_, token)| token.to_owned());
            let token = wait::find(LONG, || worker.stderr().get(seen..)?.iter().find_map(active));
            let token: u64 = token.and_then(|token| token.parse().ok()).expect("it is active again");
            assert!(token > last, "{token} after {last}");
            last = token;
        }
    }
}

/// CONSUME and its answer: refused, accepted, accepted with a token.
fn consume(peer: &mut Peer, seq: u32, exclusive: bool) -> Result<Option<u64>, ()> {
    peer.say(&Frame::Consume { seq, handle: 0, exclusive });
    peer.hear(|frame| match frame {
        Frame::Ok { seq: of } if of == seq => Ok(None),
        Frame::Fenced { token, frame: FencedFrame::Ok { seq: of } } if of == seq => Ok(Some(token)),
        Frame::QueueFull { seq: of, handle: 0 } if of == seq => Err(()),
        other => panic!("{other:?} is no answer to CONSUME"),
    })
}

/// Proves S2.21, S2.22, S2.23, S2.25 and I8 on the wire: refusal, wish, word and token, a wish that follows no refusal,
/// and a word with a token that nobody has.
#[test]
fn the_frames_of_an_exclusive_queue() {
    let broker = Broker::start_with(&["--memory"]);
    let workers = || {
        let mut peer = Peer::client(broker.address(), "q");
        peer.register(Slots::Limited(3), "w");
        peer
    };
    let (mut holder, mut next) = (workers(), workers());
    let token = consume(&mut holder, 10, true).expect("free").expect("a token");
    assert_eq!(consume(&mut next, 11, true), Err(()));
    assert_eq!(consume(&mut next, 12, false), Err(()));
    next.say(&Frame::QueueAvailableNotify { seq: 13, handle: 0 });
    next.say(&Frame::QueueAvailableNotify { seq: 14, handle: 0 });
    assert_eq!(next.refused(), (14, Code::NotRefused));
    drop(holder);
    next.hear(|frame| assert_eq!(frame, Frame::QueueAvailable { seq: 13, handle: 0 }));
    let higher = consume(&mut next, 15, true).expect("kept for it").expect("a token");
    assert!(higher > token);

    let mut client = Peer::client(broker.address(), "q");
    client.request(b"x");
    let delivery = next.hear(|frame| match frame {
        Frame::Deliver(Deliver { delivery, token: Some(with), .. }) if with == higher => delivery,
        other => panic!("{other:?} is no delivery with the token"),
    });
    let raw = Raw { headers: false, bytes: b"y" };
    let reply = Frame::Reply { seq: delivery.stamp, word: delivery.index, more: false, raw };
    for wrong in [token, higher + 1] {
        next.say(&Frame::fenced(wrong, reply.clone()));
    }
    next.say(&Frame::fenced(higher, reply));
    assert_eq!(client.answer().1, b"y");
    let counters = client.status().counters;
    assert_eq!((counters.late, counters.forged, counters.replied), (1, 1, 1));
}

/// A broker that takes a peer for gone after six seconds of silence.
fn attentive() -> Broker {
    let place = Place::new();
    place.file("config/turno/turno.toml", "heartbeat = \"2s\"\n");
    Broker::start_in(place, &[])
}

/// Writes down that it has begun, and replies with its name when the test lets it go.
const WAITER: &str = "cat > /dev/null; echo \"$1 begun $TURNO_FENCE\" >> book; \
    while [ ! -e \"go-$1\" ] && [ -d \"$PWD\" ]; do sleep 0.02; done; touch \"gone-$1\"; echo \"$1\"";

/// Proves S2.19, S2.24 and I8: a holder whose machine stands still is taken for gone by its silence, and the standby has
/// its work under a higher token. When the machine goes on, the reply that was ready there reaches nobody: the caller has
/// that of the new holder, once, and the old one stands by.
#[test]
fn a_standby_takes_over_from_one_that_fell_silent() {
    let broker = attentive();
    let program = broker.place.script("waiter", WAITER).display().to_string();
    let waiter = |name: &str| {
        let words = ["work", "q", "--exclusive", "--standby", "--slots", "1", "--name", name, "--", &program, name];
        broker.start_turno(&words)
    };
    let first = waiter("first");
    let token = token_of(&first);
    let second = waiter("second");
    second.expect_line("second is on standby for queue q");
    let mut caller = broker.start_turno(&["request", "q", "x", "--retries", "1", "--timeout", "60s"]);
    wait::until("the first one is at work", || book(&broker).len() == 1);

    first.signal(Signal::STOP);
    let next = token_of(&second);
    assert!(next > token, "{next} after {token}");
    wait::until("the second one is at work", || book(&broker).len() == 2);
    let begun = |name: &str, token| (name.to_owned(), "begun".to_owned(), token);
    assert_eq!(book(&broker), [begun("first", token), begun("second", next)]);
    broker.place.file("go-first", "");
    wait::until("the first one's reply is ready", || broker.place.path().join("gone-first").exists());

    first.signal(Signal::CONT);
    first.expect_line("first is on standby for queue q");
    assert!(caller.runs(), "the old holder's reply is nobody's: {:?}", caller.stdout());
    broker.place.file("go-second", "");
    assert_eq!((caller.end(LONG), caller.stdout()), (0, vec!["second".to_owned()]));
    let counters = broker.status()["counters"].take();
    assert_eq!((&counters["replied"], &counters["forged"]), (&1.into(), &0.into()));
}

/// Proves I8 on the wire: the late reply of a holder that was taken for gone by its silence is refused and counted when it
/// comes over a new connection, and the caller has the one reply of the new holder.
#[test]
fn the_late_reply_of_a_silent_holder_is_counted() {
    let broker = Broker::start_with(&["--memory"]);
    let address = broker.address();
    let mut holder = Peer::greeted(address, 2_000);
    let mut next = Peer::greeted(address, 0);
    for peer in [&mut holder, &mut next] {
        peer.open("q");
        peer.register(Slots::Limited(1), "w");
    }
    let token = consume(&mut holder, 10, true).expect("free").expect("a token");
    assert_eq!(consume(&mut next, 10, true), Err(()));
    next.say(&Frame::QueueAvailableNotify { seq: 11, handle: 0 });
    let mut client = Peer::client(address, "q");
    client.request_with(b"x", |message| message.retries = Some(1));
    let (old, _, attempt) = holder.delivery();
    assert_eq!(attempt, 1);

    assert_eq!(holder.closed_with(), Code::PeerSilent);
    next.hear(|frame| assert_eq!(frame, Frame::QueueAvailable { seq: 11, handle: 0 }));
    let higher = consume(&mut next, 12, true).expect("kept for it").expect("a token");
    assert!(higher > token);
    let (delivery, body, attempt) = next.delivery();
    assert_eq!((body.as_slice(), attempt), (b"x".as_slice(), 2));

    let reply = |delivery: Delivery, bytes| {
        let raw = Raw { headers: false, bytes };
        Frame::Reply { seq: delivery.stamp, word: delivery.index, more: false, raw }
    };
    holder.say(&Frame::fenced(token, reply(old, b"late")));
    let mut back = Peer::greeted(address, 0);
    back.say(&Frame::fenced(token, reply(old, b"late")));
    let counters = back.status().counters;
    assert_eq!((counters.late, counters.forged, counters.replied), (1, 0, 0));
    next.say(&Frame::fenced(higher, reply(delivery, b"right")));
    assert_eq!(client.answer().1, b"right");
    let counters = client.status().counters;
    assert_eq!((counters.late, counters.forged, counters.replied), (1, 0, 1));
}

/// Proves S2.21 and S2.23: a holder that does not stand by, and finds its queue another's when it comes back to its broker
/// or to the next run of it, ends as it would have if it had started then.
#[test]
fn a_holder_that_was_replaced_ends() {
    for restart in [false, true] {
        let mut broker = attentive();
        let mut first =
            broker.start_turno(&["work", "q", "--exclusive", "--echo", "--name", "first", "--output", "jsonl"]);
        let token = token_of(&first);
        let second = if restart {
            first.signal(Signal::STOP);
            broker.kill();
            let address = broker.address().to_string();
            broker = Broker::start_in_at(broker.into_place(), &address, &[]);
            clerk(&broker, "second", &[])
        } else {
            let second = clerk(&broker, "second", &["--standby"]);
            second.expect_line("standby");
            first.signal(Signal::STOP);
            second
        };
        assert!(token_of(&second) > token);
        first.signal(Signal::CONT);
        assert_eq!(first.end(LONG), 1, "{:?}", first.stderr());
        let last = first.stdout().pop().expect("it says why");
        let error: serde_json::Value = serde_json::from_str(&last).expect("a document");
        assert_eq!(error["error"]["code"], "queue_full", "{last}");
        assert_eq!(error["error"]["message"], "queue q is exclusive to another worker", "{last}");
        assert_eq!(broker.queue("q")["consumers"], 1, "the second one has it still");
    }
}
