//! `turno doctor`: a data directory as somebody may find it, looked at without a broker, and never changed.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use turno_e2e::{Broker, Peer, Place, Run, wait};
use turno_proto::model::{Again, Code, Slots};
use turno_proto::native::{Frame, Raw, RawOutgoing};

/// A data directory with the store that is kept as an example of its format.
struct Patient {
    place: Place,
    store: PathBuf,
}

impl Patient {
    fn new() -> Self {
        let place = Place::new();
        let store = place.path().join("d/store");
        DirBuilder::new().mode(0o700).recursive(true).create(&store).expect("our own directory");
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/fixtures/format-1");
        for entry in fs::read_dir(fixture).expect("the fixture is there") {
            let path = entry.expect("a readable directory").path();
            fs::copy(&path, store.join(path.file_name().expect("a file"))).expect("our own directory");
        }
        Self { place, store }
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = fs::read_dir(&self.store).expect("our own directory").map(|entry| entry.expect("a file").path());
        files.map(|path| (path.clone(), fs::read(path).expect("our own file"))).collect()
    }

    /// The file of the n-th segment of the log.
    fn segment(&self, generation: u64) -> PathBuf {
        let is_it = |bytes: &[u8]| bytes.get(16..24) == Some(&generation.to_le_bytes()[..]);
        self.files().into_iter().find(|(_, bytes)| is_it(bytes)).expect("such a segment").0
    }

    /// The newest segment of the log. The one before it counts, too; older files may be free.
    fn newest(&self) -> u64 {
        let segments = self.files().into_values().filter(|bytes| bytes.starts_with(b"TURNOLOG"));
        let generation = |bytes: Vec<u8>| u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"));
        segments.map(generation).max().expect("a segment")
    }

    fn change(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(path).expect("our own file");
        change(&mut bytes);
        fs::write(path, bytes).expect("our own file");
    }

    /// Asks, and sees that nothing was changed.
    fn ask(&self, words: &[&str]) -> Run {
        let before = self.files();
        let mut line = vec!["doctor", "--data", "d"];
        line.extend(words);
        let run = self.place.run(line);
        assert!(self.files() == before, "the doctor changed something");
        assert_eq!(fs::read_dir(self.store.parent().expect("it is in one")).expect("ours").count(), 1);
        run
    }

    fn document(&self, exit: i32) -> Value {
        let document = self.ask(&["--json"]).expect(exit).document("turno.doctor/1");
        assert_eq!(document["healthy"], exit == 0, "{document}");
        document
    }
}

fn finding<'a>(document: &'a Value, check: &str) -> &'a Value {
    let findings = document["findings"].as_array().expect("a list");
    findings.iter().find(|finding| finding["check"] == check).unwrap_or_else(|| panic!("no {check}: {document}"))
}

#[test]
fn a_good_directory_is_well() {
    let patient = Patient::new();
    let document = patient.document(0);
    let levels: Vec<&Value> =
        document["findings"].as_array().expect("a list").iter().map(|one| &one["level"]).collect();
    assert!(levels.iter().all(|level| **level == "ok"), "{document}");
    let store = &document["store"];
    assert_eq!((&store["format"], &store["last_commit"], &store["torn"]), (&1.into(), &40.into(), &false.into()));
    assert!(store["messages"].as_u64() > Some(10) && document["damage"].is_null(), "{document}");
    let text = patient.ask(&[]).expect(0).text();
    assert!(text.lines().all(|line| line.starts_with("ok ")), "{text}");
    for check in ["directory", "lock", "disk", "format", "segments", "messages", "end"] {
        assert!(text.lines().any(|line| line.split_whitespace().nth(1) == Some(check)), "{check}: {text}");
    }
}

#[test]
fn a_torn_end_is_a_warning_and_no_failure() {
    let patient = Patient::new();
    let document = patient.document(0);
    let end = finding(&document, "end")["offset"].as_u64().expect("an offset") as usize;
    patient.change(&patient.segment(patient.newest()), |bytes| {
        bytes.resize(bytes.len().max(end + 64), 0);
        // What follows may be of a former life of the file; a batch of this one was begun.
        bytes[end..].fill(0);
        bytes[end..end + 40].fill(7);
    });
    let document = patient.document(0);
    let end = finding(&document, "end");
    assert_eq!((&end["level"], &document["store"]["torn"]), (&"warn".into(), &true.into()), "{document}");
    assert!(end["advice"].as_str().is_some_and(|advice| advice.contains("normal after a crash")), "{end}");
}

/// Damage names the file, the byte, what is lost and what to do; the exit code says so, too.
#[test]
fn damage_in_the_middle_names_file_and_offset() {
    let patient = Patient::new();
    let path = patient.segment(patient.newest() - 1);
    patient.change(&path, |bytes| bytes[700] ^= 1);
    let document = patient.document(1);
    let segments = finding(&document, "segments");
    let name = path.file_name().and_then(|name| name.to_str()).expect("text");
    assert_eq!((&segments["level"], &segments["code"]), (&"error".into(), &"data_damaged".into()));
    assert_eq!(segments["file"], name);
    assert!(segments["offset"].as_u64().is_some_and(|at| (512..=700).contains(&at)), "{segments}");
    let damage = &document["damage"];
    assert!(damage["lost_batches"].as_u64() >= Some(1) && damage["whole_batches"].as_u64() > Some(5), "{damage}");
    assert_eq!((&damage["places"][0]["file"], &document["store"]), (&name.into(), &Value::Null));
    let text = patient.ask(&[]).expect(1).text();
    for expected in ["delete and change nothing", "turno serve --data ANOTHER_DIRECTORY", "at least 1 batch is lost"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_truncated_an_overwritten_and_a_deleted_segment_are_damage() {
    let harms: [fn(&Patient, &Path); 3] = [
        |patient, path| patient.change(path, |bytes| bytes.truncate(900)),
        |patient, path| patient.change(path, |bytes| bytes.fill(b'x')),
        |_, path| fs::remove_file(path).expect("our own file"),
    ];
    for harm in harms {
        let patient = Patient::new();
        harm(&patient, &patient.segment(patient.newest() - 1));
        let document = patient.document(1);
        assert_eq!(finding(&document, "segments")["code"], "data_damaged", "{document}");
        assert!(document["damage"]["whole_batches"].as_u64() > Some(0), "{document}");
    }
}

#[test]
fn a_newer_format_asks_for_the_newer_version() {
    let patient = Patient::new();
    patient.change(&patient.segment(patient.newest()), |bytes| {
        bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..512]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    });
    let document = patient.document(1);
    let format = finding(&document, "format");
    assert_eq!((&format["level"], &format["code"]), (&"error".into(), &"data_newer".into()), "{document}");
    assert!(document["damage"].is_null());
}

#[test]
fn a_directory_that_is_not_there_is_not_made() {
    let place = Place::new();
    let run = place.run(["doctor", "--data", "nowhere"]).expect(1);
    assert!(run.text().starts_with("error  directory  cannot read "), "{}", run.text());
    let document = place.run(["doctor", "--json"]).expect(1).document("turno.doctor/1");
    assert!(document["data"].as_str().is_some_and(|data| data.ends_with("/data/turno")), "the default: {document}");
    assert!(!place.path().join("nowhere").exists() && !place.path().join("data").exists());
}

/// While a broker runs nothing is read that it may be changing; afterwards its messages are counted.
#[test]
fn a_running_broker_is_seen_and_left_alone() {
    let mut broker = Broker::start();
    broker.run(&["send", "q", "one"]).expect(0);
    broker.run(&["send", "q", "two"]).expect(0);
    let ready = broker.ready()["unix"].as_str().expect("a socket").to_owned();
    let data = Path::new(&ready).parent().expect("it is in the data directory").display().to_string();
    let document = broker.run(&["doctor", "--data", &data, "--json"]).expect(0).document("turno.doctor/1");
    assert!(
        finding(&document, "lock")["what"].as_str().is_some_and(|what| what.starts_with("a broker is running here"))
    );
    assert_eq!((&finding(&document, "format")["level"], &document["store"]), (&"ok".into(), &Value::Null));
    broker.run(&["send", "q", "three"]).expect(0);
    broker.kill();
    let document = broker.place.run(["doctor", "--data", &data, "--json"]).expect(0).document("turno.doctor/1");
    assert_eq!(document["store"]["messages"], 3, "{document}");
    assert_eq!(finding(&document, "lock")["what"], "no broker is running here");
}

#[test]
fn a_file_in_place_of_the_directory_is_told() {
    let place = Place::new();
    place.file("d", "not a directory");
    let run = place.run(["doctor", "--data", "d"]).expect(1);
    assert!(run.text().contains("is not a directory"), "{}", run.text());
}

/// A broker with few dead letters allowed, and little memory.
fn start(limits: &str) -> Broker {
    let place = Place::new();
    place.file("turno.toml", &format!("[limits]\n{limits}\n"));
    let config = place.path().join("turno.toml").display().to_string();
    Broker::start_in(place, &["--config", &config])
}

/// Sends bodies of that length until so many are dead letters, or one is refused: how many, and why.
fn bury(broker: &Broker, queue: &str, bytes: usize, most: usize) -> (usize, Option<Code>) {
    let mut client = Peer::client(broker.address(), queue);
    let mut worker = Peer::worker(broker.address(), queue, Slots::Limited(1), "undertaker");
    let body = vec![b'x'; bytes];
    for count in 0..most {
        client.say(&Frame::Send(RawOutgoing::new(9, 0, Raw { headers: false, bytes: &body })));
        let refused = client.hear(|frame| match frame {
            Frame::Stored { .. } => None,
            Frame::Undelivered { code, .. } => Some(code),
            other => panic!("{other:?}"),
        });
        if refused.is_some() {
            return (count, refused);
        }
        let (delivery, ..) = worker.delivery();
        worker.say(&Frame::Fail { delivery, again: Again::Never, raw: Raw { headers: false, bytes: b"no" } });
        wait::until("it is dead", || broker.queue(queue)["dead"] == count + 1);
    }
    (most, None)
}

/// Queues with more dead letters than `limits.dead` are warned of, with their number, what they hold and what to do: by a
/// broker that runs, and the same in the directory of one that does not.
#[test]
fn many_dead_letters_are_warned_of() {
    let mut broker = start("dead = 2");
    bury(&broker, "full", 1_000, 3);
    bury(&broker, "fine", 1_000, 2);
    let data = broker.data().display().to_string();
    let config = broker.place.path().join("turno.toml").display().to_string();
    let words = ["doctor", "--data", &data, "--config", &config];
    let mut seen = Vec::new();
    for running in [true, false] {
        if !running {
            broker.kill();
        }
        let run = |more: &[&str]| broker.place.run(words.iter().chain(more)).expect(0);
        let document = run(&["--json"]).document("turno.doctor/1");
        let dead = finding(&document, "dead");
        assert_eq!((&dead["level"], &document["healthy"]), (&"warn".into(), &true.into()), "{document}");
        let (what, advice) = (dead["what"].as_str().expect("text"), dead["advice"].as_str().expect("text"));
        assert!(what.starts_with("queue full has 3 dead letters (3.31KiB), more than 2 (limits.dead)"), "{what}");
        for command in ["turno queue dead ls full", "dead retry full --all", "dead purge full --all"] {
            assert!(advice.contains(command), "{advice}");
        }
        let text = run(&[]).text();
        assert!(text.contains(&format!("warn   dead       {what}\n                  {advice}\n")), "{text}");
        assert!(!text.contains("queue fine"), "{text}");
        seen.push(what.to_owned());
    }
    assert_eq!(seen[0], seen[1], "a stopped broker's directory tells the same");
}

/// Dead letters that fill the memory: sends are refused with a stated code, all that was stored is there, `status` and
/// `doctor` name them as the cause, and what they advise helps.
#[test]
fn dead_letters_that_fill_the_memory_are_named() {
    let broker = start("memory = \"64MiB\"");
    let (dead, refused) = bury(&broker, "q", 4 << 20, 16);
    assert_eq!(refused, Some(Code::OverMemory), "after {dead}");
    assert!(dead > 8, "{dead}");
    let status = broker.status();
    let memory = &status["memory"];
    assert_eq!(
        (&status["dead"], memory["dead"].as_u64() > Some((dead << 22) as u64)),
        (&dead.into(), true),
        "{status}"
    );
    let run = broker.run(&["status"]).expect(0);
    assert!(run.text().contains("dead letters 4"), "{}", run.text());
    assert!(run.stderr.starts_with("hint: dead letters fill the memory"), "{}", run.stderr);
    let data = broker.data().display().to_string();
    let asked = || broker.run(&["doctor", "--data", &data, "--json"]).expect(0).document("turno.doctor/1");
    let document = asked();
    let found = finding(&document, "memory");
    assert_eq!(found["level"], "warn", "{document}");
    assert!(
        found["what"].as_str().is_some_and(|what| what.contains("the broker refuses new messages (over_memory)")),
        "{found}"
    );
    assert!(found["advice"].as_str().is_some_and(|what| what.starts_with("dead letters are the cause")), "{found}");
    assert_eq!(finding(&document, "dead")["level"], "ok", "there are few of them");
    let listed = broker.run(&["queue", "dead", "ls", "q", "-o", "name"]).expect(0).text();
    assert_eq!(listed.lines().count(), dead, "nothing is lost");
    broker.run(&["queue", "dead", "purge", "q", "--all", "--yes"]).expect(0);
    assert_eq!(finding(&asked(), "memory")["level"], "ok");
    broker.run(&["send", "q", "fits"]).expect(0);
}
