//! An archive that is not what was written: nothing of it is removed, and log, `doctor`, `job logs` and `job result` say what
//! is lost.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use turno_e2e::{Broker, JobWorker, Peer, Place, Run, directory};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::archive::{OutputPiece, OutputStream};
use turno_proto::model::job::{JobId, Work};

const SOON: Duration = Duration::from_secs(60);
/// Bytes of a segment's header, and of a record's head.
const HEADER: usize = 32;
const HEAD: usize = 56;

/// What a broker left behind: job 1, whose task 1 wrote three pieces and brought back two files, and whose task 2 nothing.
fn left_behind() -> Place {
    let mut broker = Broker::start();
    let mut peer = Peer::greeted(broker.address(), 0);
    let work = Work { argv: vec!["true".to_owned()], ..Work::default() };
    assert_eq!(peer.submit_work(2, &work, &[]), 1);
    let mut job_worker = JobWorker::start(broker.foreman(), "w", 2);
    let mut tasks = 0;
    while tasks < 2 {
        tasks += job_worker.tasks().len();
    }
    let (job, stream, worker) = (JobId(1), OutputStream::Stdout, "w".to_owned());
    let piece = |at, text: &'static str| {
        let bytes = text.as_bytes().into();
        OutputPiece { job, task: 1, attempt: 1, stream, at, live: false, bytes, lost: 0 }
    };
    let pieces = vec![piece(0, "first\n"), piece(6, "second\n"), piece(13, "third\n")];
    let kept = peer.ask(AdminCall::TaskOutput { worker: worker.clone(), pieces });
    assert!(matches!(&kept, AdminAnswer::OutputKept { refused, .. } if refused.is_empty()), "{kept:?}");
    for name in ["a.txt", "b.txt"] {
        let (name, bytes, worker) = (name.to_owned(), name.as_bytes().to_vec().into(), worker.clone());
        peer.ask(AdminCall::TaskFile { worker, job, task: 1, attempt: 1, name, at: 0, last: true, bytes });
    }
    broker.kill();
    broker.into_place()
}

fn archive(place: &Place) -> PathBuf {
    place.data().join("archive")
}

fn change(place: &Place, name: &str, change: impl FnOnce(&mut [u8])) {
    let path = archive(place).join(name);
    let mut bytes = fs::read(&path).expect("a file of the archive");
    change(&mut bytes);
    fs::write(&path, bytes).expect("our own file");
}

fn doctor(place: &Place, code: i32) -> String {
    place.run(["doctor"]).expect(code).text()
}

/// Nothing is wrong: no output is no loss.
#[test]
fn nothing_written_is_not_lost() {
    let place = left_behind();
    assert!(doctor(&place, 0).contains("5 valid records"), "{}", doctor(&place, 0));
    let broker = Broker::start_in(place, &[]);
    let none = broker.run(&["job", "logs", "1.2"]).expect(0);
    assert_eq!(
        (none.text().as_str(), none.stderr.as_str()),
        ("", "hint: no output was written, or it is no longer kept\n")
    );
    assert_eq!(broker.run(&["job", "logs", "1.1"]).expect(0).text(), "first\nsecond\nthird\n");
}

#[test]
fn one_flipped_bit_costs_one_record_and_is_named_everywhere() {
    let place = left_behind();
    change(&place, "output-000001", |bytes| bytes[HEADER + HEAD + 6 + HEAD + 1] ^= 1);
    change(&place, "result-000001", |bytes| bytes[HEADER + HEAD + 5] ^= 1);
    let before = directory::state(&archive(&place));
    let said = doctor(&place, 1);
    assert!(said.contains("error  archive    output-000001 is damaged from byte 94"), "{said}");
    assert!(said.contains("error  archive    result-000001 is damaged from byte 32"), "{said}");
    assert_eq!(directory::state(&archive(&place)), before, "doctor changes nothing");

    let broker = Broker::start_in(place, &[]);
    let logs = broker.run(&["job", "logs", "1.1"]).expect(1);
    assert_eq!(logs.text(), "first\nthird\n");
    assert!(logs.stderr.contains("… 7B lost to damage …\n"), "{}", logs.stderr);
    assert!(logs.stderr.contains("code: archive_damaged"), "{}", logs.stderr);
    let rows = broker.run(&["job", "logs", "1.1", "-o", "jsonl"]).expect(1).documents();
    assert!(rows.iter().any(|row| row["at"] == 6 && row["lost"] == 7), "{rows:?}");
    assert_eq!(broker.run(&["job", "logs", "1.2"]).expect(0).text(), "");

    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("out").display().to_string();
    let fetched = broker.run(&["job", "result", "1", "--dir", &dir]).expect(1);
    assert!(
        fetched.stderr.contains("1 of 2 files of job 1 are lost because the archive is damaged"),
        "{}",
        fetched.stderr
    );
    assert_eq!(fs::read(home.path().join("out/1/b.txt")).unwrap(), b"b.txt");
    assert!(!home.path().join("out/1/a.txt").exists());
    let list = broker.run(&["job", "result", "1", "--list", "-o", "jsonl"]).expect(1).documents();
    assert!(list.iter().any(|row| row["name"] == "a.txt" && row["lost"] == true), "{list:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_set_aside_and_never_removed() {
    let place = left_behind();
    change(&place, "output-000001", |bytes| bytes[..HEADER].fill(0));
    let spoilt = fs::read(archive(&place).join("output-000001")).unwrap();
    let mut place = place;
    for _ in 0..2 {
        let mut broker = Broker::start_in(place, &[]);
        broker.process().expect_line("output-000001.damaged-1");
        let logs = broker.run(&["job", "logs", "1.1"]).expect(0);
        assert_eq!(logs.text(), "");
        assert!(logs.stderr.contains("output may be lost"), "{}", logs.stderr);
        assert!(!logs.stderr.contains("no output was written"), "{}", logs.stderr);
        // A later job has lost nothing.
        let later = broker.run(&["job", "submit", "--json", "--hold", "--", "true"]).expect(0);
        let later = later.document("turno.job/1")["job"]["id"].as_str().unwrap().to_owned();
        assert!(broker.run(&["job", "logs", &later]).expect(0).stderr.contains("no output was written"));
        // While a broker runs, too.
        assert!(broker.run(&["doctor"]).expect(1).text().contains("set aside as output-000001.damaged-1"));
        broker.kill();
        place = broker.into_place();
        assert_eq!(fs::read(archive(&place).join("output-000001.damaged-1")).unwrap(), spoilt);
        assert!(doctor(&place, 1).contains("set aside as output-000001.damaged-1"));
    }
}

#[test]
fn a_newer_format_is_refused_and_nothing_is_changed() {
    let place = left_behind();
    change(&place, "output-000001", |bytes| {
        bytes[8] = 2;
        let sum = crc32c(&bytes[..28]).to_le_bytes();
        bytes[28..32].copy_from_slice(&sum);
    });
    let before = directory::state(&archive(&place));
    for _ in 0..2 {
        let run = Run::finish(place.turno(["serve", "--listen", "127.0.0.1:0"]), b"", SOON).expect(1);
        assert!(run.stderr.contains("output-000001 has format 2"), "{}", run.stderr);
        assert!(run.stderr.contains("code: data_newer"), "{}", run.stderr);
        assert_eq!(directory::state(&archive(&place)), before);
    }
    assert!(doctor(&place, 1).contains("output-000001 has format 2"));
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0x82F6_3B78 & (sum & 1).wrapping_neg()))
    };
    !bytes.iter().fold(!0, step)
}
