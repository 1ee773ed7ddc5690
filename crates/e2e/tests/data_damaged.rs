//! A store that is not what was written: refused with file and place, and not a byte of it is changed.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use turno_e2e::{Broker, Peer, Place, Run, directory, wait};

const SOON: Duration = wait::PATIENCE;
/// Bytes of a segment's header.
const HEADER: u64 = 512;

/// A store that a broker left behind, with some messages.
fn stored() -> Place {
    let mut broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    for number in 0..20 {
        client.store(format!("message {number} {}", "m".repeat(100)).as_bytes(), |_| {});
    }
    broker.kill();
    broker.into_place()
}

fn store(place: &Place) -> PathBuf {
    place.data().join("store")
}

/// A store of three segments, which a broker has only after 128 MiB: that of the store's own tests.
fn of_three_segments() -> Place {
    let place = Place::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/fixtures/format-1");
    fs::create_dir_all(store(&place)).expect("a directory in the test's own place");
    for file in fs::read_dir(fixture).expect("the fixture is there") {
        let file = file.expect("the fixture is there");
        fs::copy(file.path(), store(&place).join(file.file_name())).expect("a copy in the test's own place");
    }
    place
}

fn overwrite(segment: &Path, at: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(segment).expect("a segment");
    file.write_all_at(bytes, at).expect("our own file");
}

/// A broker does not start on it, says so under this code, and leaves every byte as it is. Twice, because a refusal
/// must not fix anything either.
#[track_caller]
fn assert_refused(place: &Place, what: &str, code: &str, fix: &str) {
    let before = directory::state(&store(place));
    for _ in 0..2 {
        let serve = place.turno(["serve", "--listen", "127.0.0.1:0"]);
        let run = Run::finish(serve, b"", SOON).expect(1);
        let said = run.stderr.replace(&store(place).display().to_string(), "STORE");
        assert!(said.starts_with(&format!("error: cannot open the store in STORE: {what}\n")), "{said}");
        assert!(said.contains(&format!("\nfix: {fix}")), "{said}");
        assert!(said.ends_with(&format!("code: {code} (turno explain {code})\n")), "{said}");
        assert_eq!(run.text(), "", "stdout is for data");
        assert_eq!(directory::state(&store(place)), before, "a refused store is not touched");
    }
}

#[track_caller]
fn assert_damaged(place: &Place, what: &str) {
    let fix = "change nothing, run `turno doctor`, and restore the directory from a backup";
    assert_refused(place, what, "data_damaged", fix);
}

/// Bytes in the middle are not what they were.
#[test]
fn an_overwritten_segment_is_refused() {
    let place = stored();
    let segment = store(&place).join("segment-000001");
    let bytes = fs::read(&segment).expect("a segment");
    let text = bytes.windows(9).position(|bytes| bytes == b"message 7").expect("the message is there");
    overwrite(&segment, text as u64, b"MESSAGE");
    // Its record begins before it: 16 bytes of head and 8 of its number, then what the broker notes before the body.
    let before = 16 + 8 + 6 + 8 + 1;
    let at = text - before;
    assert_damaged(
        &place,
        &format!("segment-000001 is damaged at byte {at}: a batch is incomplete, but later batches follow"),
    );
}

/// Something else wrote over the beginning of a segment, or all of it.
#[test]
fn a_segment_without_a_header_is_refused() {
    let place = stored();
    overwrite(&store(&place).join("segment-000001"), 0, &[b'x'; 100]);
    assert_damaged(&place, "segment-000001 is damaged at byte 0: no valid header");
    let place = stored();
    overwrite(&store(&place).join("segment-000001"), 0, &[0; HEADER as usize]);
    assert_damaged(&place, "turno-store is damaged at byte 0: segment 1 of the log is missing");
}

/// A segment is gone: the only one, one before the newest, and the newest, which the one before it names.
#[test]
fn a_deleted_segment_is_missed() {
    let place = stored();
    fs::remove_file(store(&place).join("segment-000001")).expect("a segment");
    assert_damaged(&place, "turno-store is damaged at byte 0: segment 1 of the log is missing");
    for (name, number) in newest(&of_three_segments()) {
        let place = of_three_segments();
        fs::remove_file(store(&place).join(&name)).expect("a segment");
        let before = directory::state(&store(&place));
        let run = Run::finish(place.turno(["serve", "--listen", "127.0.0.1:0"]), b"", SOON).expect(1);
        assert!(run.stderr.contains(&format!("segment {number} of the log is missing")), "{name}: {}", run.stderr);
        assert!(run.stderr.contains("code: data_damaged "), "{name}: {}", run.stderr);
        assert_eq!(directory::state(&store(&place)), before, "a refused store is not touched");
    }
}

/// A segment that was complete has lost its end.
#[test]
fn a_truncated_segment_is_refused() {
    let [(complete, _), _] = newest(&of_three_segments());
    for len in [HEADER, 2_000, 3_000] {
        let place = of_three_segments();
        let file = OpenOptions::new().write(true).open(store(&place).join(&complete)).expect("a segment");
        file.set_len(len).expect("our own file");
        let before = directory::state(&store(&place));
        let run = Run::finish(place.turno(["serve", "--listen", "127.0.0.1:0"]), b"", SOON).expect(1);
        let what = format!("{complete} is damaged at byte ");
        assert!(run.stderr.contains(&what), "{len}: {}", run.stderr);
        assert!(run.stderr.contains("the segment ends before it was completed"), "{len}: {}", run.stderr);
        assert!(run.stderr.contains("code: data_damaged "), "{len}: {}", run.stderr);
        assert_eq!(directory::state(&store(&place)), before, "a refused store is not touched");
    }
}

/// So is one that is still written to: the log may end anywhere in it, but not the file.
#[test]
fn a_truncated_newest_segment_is_refused() {
    let place = stored();
    let segment = store(&place).join("segment-000001");
    let whole = fs::metadata(&segment).expect("a segment").len();
    for len in [whole - 1, 100_000, 2_000] {
        OpenOptions::new().write(true).open(&segment).expect("a segment").set_len(len).expect("our own file");
        let what =
            format!("segment-000001 is damaged at byte {len}: the file was truncated here; it had {whole} bytes");
        assert_damaged(&place, &what);
    }
    fs::write(&segment, b"").expect("our own file");
    assert_damaged(&place, "turno-store is damaged at byte 0: segment 1 of the log is missing");
}

/// The two newest segments of a store and their numbers in the log. Older files may not count any more.
fn newest(place: &Place) -> [(String, u64); 2] {
    let names = directory::state(&store(place)).into_keys().filter(|name| name.starts_with("segment-"));
    let number = |name: String| {
        let bytes = fs::read(store(place).join(&name)).expect("a segment");
        (name, u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes")))
    };
    let mut found: Vec<_> = names.map(number).collect();
    found.sort_by_key(|(_, number)| *number);
    let newest = found.split_off(found.len() - 2);
    newest.try_into().expect("two")
}

/// A store of a version to come is left to that version.
#[test]
fn a_newer_format_is_refused() {
    let place = stored();
    let segment = store(&place).join("segment-000001");
    let mut header = fs::read(&segment).expect("a segment")[..512].to_vec();
    header[8..12].copy_from_slice(&2_u32.to_le_bytes());
    let sum = crc32c(&[&header[..12], &header[16..]].concat());
    header[12..16].copy_from_slice(&sum.to_le_bytes());
    overwrite(&segment, 0, &header);
    let what = "segment-000001 has format 2; this version supports formats up to 1";
    assert_refused(&place, what, "data_newer", "use the newer version, or another directory with --data");
}

/// The checksum of the format, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { (sum >> 1) ^ 0x82F6_3B78 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}
