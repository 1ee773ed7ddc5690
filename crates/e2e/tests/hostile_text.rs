//! Text that peers chose never steers a terminal: every command is run against a broker that lies in every text it sends.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use turno_e2e::{Background, Broker, Peer, Place, Run, tree, wait};
use turno_proto::model::{Again, Slots};
use turno_proto::native::{Frame, HEADER_LEN, Kind, Raw, split};

/// OSC 52, CSI, C1, marks of direction, a character without width, DEL and a line of its own.
const HOSTILE: &str = "\x1b]52;c;aGk=\x07\x1b[31m\u{9b}2J\u{202e}\u{2066}\u{61c}\u{200b}\x7f\r\nFORGED\tline";

/// What of it is visible whatever is escaped.
const SEEN: &str = "52;c;aGk=";

/// Values that programs read: with another text in them an answer would not be one.
const CLOSED: [&str; 13] = [
    "op", "state", "kind", "reason", "code", "when", "stream", "next", "topic", "brokers", "foreman", "array",
    "standing",
];

/// A way to the broker on which every text that it sends is another one; its URL.
fn liar(broker: SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("turno://{}", listener.local_addr().expect("bound"));
    thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(broker)) = (client, TcpStream::connect(broker)) else { return };
            let (mut from, mut to) = (client.try_clone().expect("a socket"), broker.try_clone().expect("a socket"));
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            thread::spawn(move || lie(broker, client));
        }
    });
    url
}

fn lie(mut broker: TcpStream, mut client: TcpStream) {
    let (mut held, mut read) = (Vec::new(), [0; 65_536]);
    while let Ok(count @ 1..) = broker.read(&mut read) {
        held.extend_from_slice(&read[..count]);
        let mut used = 0;
        while let Some(piece) = split(&held[used..], usize::MAX).expect("frames of the broker") {
            let rest = lied(Kind::from_number(piece.header.kind), piece.rest);
            let length = u32::try_from(rest.len()).expect("a short frame");
            let head = &held[used..used + HEADER_LEN - 4];
            if client.write_all(&[head, &length.to_le_bytes(), &rest].concat()).is_err() {
                return;
            }
            used += piece.used;
        }
        held.drain(..used);
    }
    let _ = client.shutdown(std::net::Shutdown::Both);
}

/// The rest of a frame with other texts in it.
fn lied(kind: Option<Kind>, rest: &[u8]) -> Vec<u8> {
    match kind {
        Some(Kind::Config | Kind::AdminAnswer | Kind::BroadcastEnd) => {
            let mut out = Vec::new();
            let left = value(rest, "", false, &mut out);
            assert!(left.is_empty(), "one map");
            out
        }
        Some(Kind::Error) => HOSTILE.as_bytes().to_vec(),
        Some(Kind::Answer) => {
            let behind = 9 + usize::from(rest[8]);
            let length = u8::try_from(HOSTILE.len()).expect("short");
            [&rest[..8], &[length], HOSTILE.as_bytes(), &rest[behind..]].concat()
        }
        _ => rest.to_vec(),
    }
}

/// Copies one MessagePack value, which stands under that key; texts become hostile ones. Returns what is behind it.
fn value<'a>(bytes: &'a [u8], key: &str, is_key: bool, out: &mut Vec<u8>) -> &'a [u8] {
    let number = |width: usize| bytes[1..=width].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let (head, length) = match bytes[0] {
        marker @ 0x80..=0x8f => return inside(bytes, 1, usize::from(marker & 15), true, key, out),
        0xde => return inside(bytes, 3, number(2), true, key, out),
        marker @ 0x90..=0x9f => return inside(bytes, 1, usize::from(marker & 15), false, key, out),
        0xdc => return inside(bytes, 3, number(2), false, key, out),
        marker @ 0xa0..=0xbf => (1, usize::from(marker & 31)),
        0xd9 => (2, number(1)),
        0xda => (3, number(2)),
        marker => {
            let length = match marker {
                0xc4 => 2 + number(1),
                0xc5 => 3 + number(2),
                0xc6 => 5 + number(4),
                0xcc | 0xd0 => 2,
                0xcd | 0xd1 => 3,
                0xca | 0xce | 0xd2 => 5,
                0xcb | 0xcf | 0xd3 => 9,
                0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => 1,
                other => panic!("{other:#x} is in no answer"),
            };
            out.extend_from_slice(&bytes[..length]);
            return &bytes[length..];
        }
    };
    if length == 0 || CLOSED.contains(&key) || is_key && key != "labels" {
        out.extend_from_slice(&bytes[..head + length]);
    } else {
        out.extend_from_slice(&[0xd9, u8::try_from(HOSTILE.len()).expect("short")]);
        out.extend_from_slice(HOSTILE.as_bytes());
    }
    &bytes[head + length..]
}

/// Copies the values inside of a map or a list.
fn inside<'a>(bytes: &'a [u8], head: usize, count: usize, map: bool, under: &str, out: &mut Vec<u8>) -> &'a [u8] {
    out.extend_from_slice(&bytes[..head]);
    let mut rest = &bytes[head..];
    for _ in 0..count {
        let mut key = under.to_owned();
        if map {
            let behind = value(rest, under, true, out);
            // Keys are short: their length is in the first byte, or in the one behind it.
            let text = &rest[..rest.len() - behind.len()];
            let from = if text[0] == 0xd9 { 2 } else { 1 };
            if under != "labels" {
                key = String::from_utf8_lossy(&text[from..]).into_owned();
            }
            rest = behind;
        }
        rest = value(rest, &key, false, out);
    }
    rest
}

/// A broker with something in every room, and a way to it that lies.
struct World {
    broker: Broker,
    url: String,
    waiting: String,
    dead: String,
    job: String,
    job_worker: Background,
    _peers: Vec<Peer>,
}

impl World {
    fn new() -> Self {
        let broker = Broker::start_with(&[
            "-vv",
            "--sid",
            "3",
            "--ring-port",
            "0",
            "--foreman-listen",
            "127.0.0.1:0",
            "--name",
            "b\u{202e}",
        ]);
        let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), HOSTILE);
        let send = |body: &str| broker.run(&["send", "q", body, "-H", "k=v", "-o", "name"]).expect(0).text();
        let dead = send("bad").trim().to_owned();
        let (delivery, ..) = worker.delivery();
        let raw = Raw { headers: false, bytes: HOSTILE.as_bytes() };
        worker.say(&Frame::Fail { delivery, again: Again::Never, raw });
        wait::until("it is dead", || broker.queue("q")["dead"] == 1);
        send("held");
        worker.delivery();
        let waiting = send("waits").trim().to_owned();
        let listener = {
            let mut peer = Peer::client(broker.address(), "q");
            let filter = "t.>".parse().expect("a filter");
            peer.say(&Frame::Subscribe { seq: 90, filter, or_close: false });
            peer
        };
        broker.run(&["link", "add", "127.0.0.1:1", "--no-wait"]).expect(0);
        broker.run(&["topic", "create", "shop", "t.>"]).expect(0);
        broker.run(&["pub", "t.\u{202e}x", "x"]).expect(0);
        let url = liar(broker.address());
        let job_worker =
            broker.job_worker(&["--name", "hand", "--slots", "2", "--label", "gpu=yes", "--url", &url, "-v"]);
        let program = format!("printf '%s\\n' '{HOSTILE}' >&2; test {{}} = 1 && exit 1; exec sleep 1000");
        let flags = ["--array", "1-2", "--env", &format!("A={HOSTILE}"), "--name", "n\u{202e}", "--shell"];
        let job = broker.submit(&flags, &[&program]);
        wait::until("one has failed and one runs", || broker.task_counts(job)[1..4] == [1, 0, 1]);
        let job = job.to_string();
        Self { broker, url, waiting, dead, job, job_worker, _peers: vec![worker, listener] }
    }

    fn run(&self, line: &str, format: &str) -> Run {
        let mut line = line.replace("HOSTILE", HOSTILE);
        let mut command = self.broker.turno(&["--url", &self.url, "-v", "-o", format, "--color", "never"]);
        for (name, value) in [("WAITING", &self.waiting), ("DEAD", &self.dead), ("JOB", &self.job)] {
            line = line.replace(name, value);
        }
        command.args(line.split(' '));
        Run::finish(command, b"", wait::PATIENCE)
    }
}

/// Nothing that a terminal would act on, and no line that a peer wrote.
#[track_caller]
fn assert_visible(what: &str, text: &str) {
    let acts = |letter: char| {
        letter.is_control() && letter != '\n'
            || matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    assert!(!text.contains(acts), "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("FORGED")), "{what}: {text}");
}

/// Commands that may be run again and again, with the exit statuses they may have, and whether they show a peer's text.
const AGAIN: [(&str, &[i32], bool); 41] = [
    ("status", &[0], true),
    ("queue ls", &[0], true),
    ("queue show q", &[0], true),
    ("queue consumers q", &[0], true),
    ("queue set q --weight 2", &[0], false),
    ("queue set q --volatile", &[0], false),
    ("queue dead ls q", &[0], true),
    ("queue dead show q DEAD", &[0], true),
    ("worker ls", &[0], true),
    ("worker ls --columns labels,queues", &[0], true),
    ("worker show hand", &[0], true),
    ("worker resize hand 2", &[0, 1, 2], true),
    ("worker resume hand", &[0, 1], true),
    ("message explain WAITING", &[0], true),
    ("message trace WAITING", &[0], true),
    ("message retry WAITING", &[0], true),
    ("job submit --hold -- true", &[0], true),
    ("submit --hold -- true", &[0], true),
    ("submit --dry-run -- true", &[0], false),
    ("job ls", &[0], true),
    ("job show JOB", &[0], true),
    ("job tasks JOB", &[0], true),
    ("job explain JOB.2", &[0], true),
    ("job result JOB", &[0], false),
    ("job hold JOB", &[0], true),
    ("job release JOB", &[0], true),
    ("job retry JOB --dry-run", &[0, 1], true),
    ("topic ls", &[0], false),
    ("topic subscribers", &[0], true),
    ("topic create shop t", &[0], true),
    ("topic recv shop", &[0, 4], false),
    ("pub t.x hi", &[0], false),
    ("link ls", &[0], true),
    ("link add 127.0.0.1:1 --no-wait", &[0], true),
    ("link graph", &[0], true),
    ("zmq ls", &[0], true),
    ("zmq show HOSTILE", &[0], true),
    ("ring show", &[0], true),
    ("send q x", &[0], false),
    ("broadcast e hi --timeout 20s", &[0], true),
    ("queue show nothing", &[4], false),
];

/// Commands that end something, in an order in which each has something to end.
const ONCE: [(&str, &[i32], bool); 24] = [
    ("job wait JOB --timeout 3s", &[124], false),
    ("job progress JOB --timeout 3s --progress plain", &[124], false),
    ("ring join 4@127.0.0.1:1 --timeout 3s", &[1, 124], false),
    ("request nobody x --timeout 3s", &[124], false),
    ("job report JOB --file -", &[0], true),
    ("link graph --dot", &[0], true),
    ("request f x --timeout 20s", &[1], true),
    ("broadcast f x --timeout 20s", &[3], true),
    ("queue dead retry q DEAD", &[0], false),
    ("message cancel WAITING --yes", &[0], true),
    ("queue purge q --yes --dead", &[0], false),
    ("queue dead purge q --all --yes", &[0], false),
    ("topic destroy shop", &[0], true),
    ("link rm 127.0.0.1:1", &[0], true),
    ("job cancel JOB --yes", &[0], true),
    ("job rm JOB --yes", &[0, 1], true),
    ("worker drain e --timeout 20s", &[0], true),
    ("worker stop e --yes --timeout 20s", &[0], true),
    ("bench send --count 1", &[0], false),
    ("bench request --count 1", &[0], false),
    ("drain --timeout 3s", &[0, 124], true),
    ("resume", &[0], true),
    ("ring leave", &[0], false),
    ("ring shutdown --yes", &[0, 1], false),
];

/// Leaves that show nothing of a peer's, or that are looked at below.
const OTHERS: [&str; 13] = [
    // Its log is looked at here; its banner shows settings.
    "serve",
    // For people, the output of tasks as it is; otherwise looked at below.
    "job logs",
    // They run until they are ended.
    "sub",
    "work",
    "worker start",
    // Starts `ssh`; what hosts say goes through the same door as every note.
    "worker deploy",
    // Of their own text and the user's alone.
    "doctor",
    "config show",
    "config check",
    "explain",
    "completions",
    "man",
    "version",
];

/// Every command, in every format for people and for programs.
#[test]
fn no_command_prints_what_a_terminal_would_obey() {
    let mut world = World::new();
    let url = world.url.clone();
    let echo = world.broker.worker(&["e", "--echo", "--name", "e", "--url", &url, "-v"]);
    let fail = "printf '%s\\n' \"$0\" >&2; exit 1";
    let failing = world.broker.worker(&["f", "--url", &url, "-v", "--", "sh", "-c", fail, HOSTILE]);
    for (line, exits, shows) in AGAIN {
        for format in ["text", "wide", "name", "json"] {
            look(&world, line, format, exits, shows && format != "name");
        }
    }
    for format in ["name", "json"] {
        look(&world, "job logs JOB", format, &[0], false);
    }
    for (line, exits, shows) in ONCE {
        look(&world, line, "text", exits, shows);
    }
    for (worker, shows) in [(&echo, true), (&failing, true), (&world.job_worker, false)] {
        // What a program writes to its stderr is passed on as it is; what is said around it is not.
        let is_said = |line: &String| !HOSTILE.lines().any(|part| part == line);
        let said: Vec<String> = worker.stderr().into_iter().filter(is_said).collect();
        assert_eq!(said.iter().any(|line| line.contains(SEEN)), shows, "{said:?}");
        said.iter().for_each(|line| assert_visible("work", line));
    }
    drop((echo, failing));
    // `ring shutdown` has begun its end, so that this is the second signal: it ends at once.
    assert_eq!(world.broker.terminate(wait::PATIENCE), 143);
    let log = world.broker.process().stderr();
    assert!(log.len() > 10, "{log:?}");
    log.iter().for_each(|line| assert_visible("serve", line));
}

#[track_caller]
fn look(world: &World, line: &str, format: &str, exits: &[i32], shows: bool) {
    let what = format!("{line} -o {format}");
    let run = world.run(line, format);
    assert!(exits.contains(&run.code), "{what}: {}\n{}\n{}", run.code, run.text(), run.stderr);
    assert_visible(&what, &run.text());
    assert_visible(&what, &run.stderr);
    if shows {
        let outside_the_log = run.stderr.lines().filter(|line| !line.contains("INFO")).collect::<String>();
        assert!(run.text().contains(SEEN) || outside_the_log.contains(SEEN), "{what}: {} {}", run.text(), run.stderr);
    }
}

/// A command that is added is looked at too.
#[test]
fn every_command_is_looked_at() {
    let listed: Vec<String> = AGAIN.iter().chain(&ONCE).map(|(line, ..)| (*line).to_owned()).collect();
    for leaf in tree::leaves(&Place::new()) {
        let leaf = leaf.join(" ");
        let is_listed = OTHERS.contains(&leaf.as_str())
            || listed.iter().any(|line| *line == leaf || line.starts_with(&format!("{leaf} ")));
        assert!(is_listed, "{leaf} is in no table of this file");
    }
}

/// What the user asked to have is passed on byte for byte; what stands around it is not.
#[test]
fn bodies_are_passed_on_as_they_are() {
    let broker = Broker::start();
    let _echo = broker.worker(&["e", "--echo", "--name", "a\u{202e}b"]);
    let reply = broker.run(&["request", "e", HOSTILE]).expect(0);
    assert_eq!(reply.text(), HOSTILE);
    let answers = broker.run(&["broadcast", "e", HOSTILE]).expect(0);
    assert_eq!(answers.text(), format!("a\\u{{202e}}b: {HOSTILE}\n"));
    assert_visible("the last line", &answers.stderr);
    let mut sub = broker.start_turno(&["sub", "t.>", "-n", "1"]);
    wait::until("it listens", || broker.run(&["topic", "subscribers", "-o", "name"]).expect(0).text() != "");
    broker.run(&["pub", "t.\u{202e}x", "\x1b[31mred"]).expect(0);
    assert_eq!(sub.end(wait::PATIENCE), 0);
    assert_eq!(sub.stdout(), ["t.\\u{202e}x \x1b[31mred"]);
}

/// A directory may have any name.
#[test]
fn doctor_shows_paths_escaped() {
    let place = Place::new();
    let directory = place.path().join(HOSTILE);
    std::fs::create_dir(&directory).expect("any name but / and NUL");
    let mut command = place.turno(["doctor", "--data"]);
    command.arg(&directory);
    let run = Run::finish(command, b"", wait::PATIENCE);
    assert!(run.text().contains(SEEN), "{}", run.text());
    assert_visible("doctor", &run.text());
    assert_visible("doctor", &run.stderr);
}
