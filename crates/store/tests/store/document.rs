//! `docs/reference/storage.md` says what the code writes.

use turno_store::disk::SimDisk;
use turno_store::limits::{KEY_BYTES_MAX, PREWRITE_BYTES, SEGMENT_BYTES};
use turno_store::{Batch, CommitNo, FORMAT, RecordNo, Space, Store};

use crate::backends::{Backend, SMALL, Simulated};

const DOCUMENT: &str = include_str!("../../../../docs/reference/storage.md");

/// 67108864 as 67,108,864.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

#[test]
fn the_numbers_are_those_of_the_code() {
    let document = DOCUMENT.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [
        format!("| 8 | 4 | format: {FORMAT}. Higher: refuse |"),
        format!("the key (at most {} bytes)", grouped(KEY_BYTES_MAX as u64)),
        format!("default size holds {} bytes", grouped(SEGMENT_BYTES.into())),
        format!("({} bytes at a time)", grouped(PREWRITE_BYTES.into())),
        format!("four segments ({} bytes)", grouped(4 * u64::from(SEGMENT_BYTES))),
    ] {
        assert!(document.contains(&text), "docs/reference/storage.md does not say: {text}");
    }
}

/// Where a field begins and how long it is, by the table with this title in its third column.
fn field(table: &str, name: &str) -> std::ops::Range<usize> {
    let title = format!("| offset | bytes | {table} |");
    let rows = DOCUMENT.split_once(&title).unwrap_or_else(|| panic!("no table of a {table}")).1.trim_start().lines();
    let mut rows =
        rows.take_while(|row| row.starts_with('|')).map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let row = rows.find(|cells| cells[3].starts_with(name)).unwrap_or_else(|| panic!("a {table} has no {name}"));
    let (at, len): (usize, usize) = (row[1].parse().unwrap(), row[2].parse().unwrap());
    at..at + len
}

fn number(bytes: &[u8], table: &str, name: &str) -> u64 {
    let mut wide = [0; 8];
    let field = &bytes[field(table, name)];
    wide[..field.len()].copy_from_slice(field);
    u64::from_le_bytes(wide)
}

/// A reader written from the document alone finds a record where it should be.
#[test]
fn the_tables_are_those_of_the_code() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    let mut batch = Batch::new();
    batch.put(Space(9), RecordNo(77), b"hello");
    store.commit(store.epoch(), CommitNo(1), &mut batch).unwrap();
    let files = backend.0.files();
    let bytes = &files["segment-000001"];

    assert_eq!(&bytes[field("header", "`TURNOLOG`")], b"TURNOLOG");
    assert_eq!(number(bytes, "header", "format"), FORMAT.into());
    assert_eq!((number(bytes, "header", "generation"), number(bytes, "header", "tail")), (1, 1));
    assert_eq!(number(bytes, "header", "maximum size"), SMALL.segment_bytes.into());

    // The length of the file, and the opening: batches of a commit record only.
    for (at, batch) in [(512, 1), (512 + 96, 2)] {
        let own = &bytes[at..];
        assert_eq!((number(own, "record", "length, including"), number(own, "record", "kind")), (96, 5));
        assert_eq!((number(own, "commit", "number of the batch"), number(own, "commit", "epoch")), (batch, 1));
        assert_eq!(number(own, "commit", "synced length"), bytes.len() as u64);
    }

    let put = &bytes[512 + 96 + 96..];
    assert_eq!((number(put, "record", "kind"), number(put, "record", "space")), (1, 9));
    let len = number(put, "record", "length, including") as usize;
    let sum = crc32c::crc32c_append(crc32c::crc32c(&put[..4]), &put[8..len]);
    assert_eq!(number(put, "record", "checksum"), sum.into());
    assert_eq!((&put[16..24], &put[24..len]), (77_u64.to_le_bytes().as_slice(), b"hello".as_slice()));

    let commit = &put[len.next_multiple_of(8)..];
    let fields =
        ["number of the batch", "number of the last", "highest", "bytes of the batch", "records before", "flags"];
    assert_eq!(fields.map(|name| number(commit, "commit", name)), [3, 1, 77, 32, 1, 0]);
    assert_eq!(number(commit, "commit", "checksum over"), crc32c::crc32c(&put[4..8]).into());
    assert_eq!(number(commit, "commit", "salt"), number(bytes, "header", "salt"));
}

/// A reader written from the document alone finds output and its index where they should be.
#[test]
fn the_tables_of_the_archive_are_those_of_the_code() {
    let disk = SimDisk::new();
    let mut archive = crate::archive::open(&disk, [7]);
    for task in 0..100 {
        archive.put_output(vec![crate::archive::piece(7, task, 2, 9, b"hello")]).unwrap();
    }
    let files = disk.files();
    let bytes = &files["output-000001"];
    assert_eq!(&bytes[field("start of a segment", "`TURNOARC`")], b"TURNOARC");
    let salt = number(bytes, "start of a segment", "salt");
    let record = &bytes[32..];
    let head = |name: &str| number(record, "record of the archive", name);
    assert_eq!((head("bytes of the value"), head("kind"), head("bytes of the name")), (5, 1, 0));
    assert_eq!((head("number of the task"), head("job"), head("attempt"), head("position")), (0, 7, 2, 9));
    assert_eq!(&record[56..61], b"hello");

    let footer = &bytes[bytes.len() - 48..];
    let end = |name: &str| number(footer, "footer", name);
    assert_eq!((&footer[field("footer", "`TURNOEND`")], end("salt")), (&b"TURNOEND"[..], salt));
    let index = &bytes[usize::try_from(end("where the index")).unwrap()..];
    assert_eq!(end("checksum of the index"), u64::from(crc32c::crc32c(&index[..index.len() - 48])));
    assert_eq!(end("entries") * 56, index.len() as u64 - 48);
    let entry = |name: &str| number(&index[56..], "entry", name);
    assert_eq!((entry("job"), entry("number of the task"), entry("where the record")), (7, 1, 32 + 61));
    assert_eq!((entry("bytes of its value"), entry("kind")), (5, 1));
}
