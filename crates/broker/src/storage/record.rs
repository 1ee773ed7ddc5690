//! Records of a message, byte by byte. `docs/reference/storage.md` has the same.
//!
//! Numbers are little-endian. A message is a numbered record in [`MESSAGES`]; what became of its attempts is a keyed
//! one in [`MARKS`] under its serial, so that a failure does not write the body again.

use std::collections::BTreeMap;

use bytes::Bytes;
use turno_engine::{AttemptMark, DedupRecord, NewRecord, Record, Wait};
use turno_proto::model::limits::{DROP_AFTER_MAX, PRIORITY_MAX, WEIGHT_MAX};
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{DedupKey, Payload, QueueName, Seconds};
use turno_store::Space;

/// The broker's own notes.
pub(super) const NOTES: Space = Space(1);
/// Attempts and deaths, by serial.
pub(super) const MARKS: Space = Space(2);
/// Messages.
pub(super) const MESSAGES: Space = Space(3);
/// Dedup ids, by their digests.
pub(super) const DEDUP: Space = Space(4);
/// Settings of queues, by name.
pub(super) const QUEUES: Space = Space(5);

const HEADERS: u8 = 1;
const DEADLINE: u8 = 2;
const DUE: u8 = 4;
const KNOWN: u8 = HEADERS | DEADLINE | DUE;

/// flags u8, priority u8, cost u16, retries u8, name length u8, born u64, deadline u64 and due time u64 if
/// flagged, name, payload.
pub(super) fn write(put: &NewRecord<'_>, out: &mut Vec<u8>) {
    let NewRecord {
        queue, priority, cost, retries, born_unix_ms, deadline_unix_ms, due_unix_ms, headers, bytes, ..
    } = put;
    let name = queue.as_str().as_bytes();
    let mut flags = 0;
    flags |= if *headers { HEADERS } else { 0 };
    flags |= if deadline_unix_ms.is_some() { DEADLINE } else { 0 };
    flags |= if due_unix_ms.is_some() { DUE } else { 0 };
    out.extend([flags, *priority]);
    out.extend(cost.to_le_bytes());
    out.extend([*retries, u8::try_from(name.len()).expect("a queue's name has at most 255 bytes")]);
    out.extend(born_unix_ms.to_le_bytes());
    out.extend(deadline_unix_ms.iter().chain(due_unix_ms).flat_map(|at| at.to_le_bytes()));
    out.extend_from_slice(name);
    out.extend_from_slice(bytes);
}

/// `None` if no version of ours wrote that.
pub(super) fn read(bytes: &[u8]) -> Option<Record> {
    let (&[flags, priority, cost0, cost1, retries, name_len], rest) = bytes.split_first_chunk()?;
    let cost = u16::from_le_bytes([cost0, cost1]);
    if flags & !KNOWN != 0 || priority > PRIORITY_MAX || cost == 0 {
        return None;
    }
    let (born, mut rest) = rest.split_first_chunk()?;
    let mut moment = |flag| {
        let (at, after) = if flags & flag == 0 { return Some(None) } else { rest.split_first_chunk()? };
        rest = after;
        Some(Some(u64::from_le_bytes(*at)))
    };
    let (deadline_unix_ms, due_unix_ms) = (moment(DEADLINE)?, moment(DUE)?);
    let (name, body) = rest.split_at_checked(usize::from(name_len))?;
    Some(Record {
        queue: QueueName::from_bytes(name).ok()?,
        priority,
        cost,
        retries,
        born_unix_ms: u64::from_le_bytes(*born),
        deadline_unix_ms,
        due_unix_ms,
        payload: Payload { headers: flags & HEADERS != 0, bytes: Bytes::copy_from_slice(body) },
    })
}

/// attempts u16, then, of a dead letter, 1 and what the last failure said; or 2, when the wait is over as u64, and its length as u32.
pub(super) fn write_mark(mark: &AttemptMark, out: &mut Vec<u8>) {
    out.extend(mark.attempts.to_le_bytes());
    if let Some(failure) = &mark.failure {
        out.push(1);
        out.extend_from_slice(failure);
    } else if let Some(Wait { until_unix_ms, all_ms }) = mark.wait {
        out.push(2);
        out.extend(until_unix_ms.to_le_bytes());
        out.extend(all_ms.to_le_bytes());
    }
}

pub(super) fn read_mark(bytes: &[u8]) -> Option<AttemptMark> {
    let (attempts, rest) = bytes.split_first_chunk()?;
    let attempts = u16::from_le_bytes(*attempts);
    match rest.split_first() {
        None => Some(AttemptMark { attempts, ..AttemptMark::default() }),
        Some((1, failure)) => {
            Some(AttemptMark { attempts, failure: Some(Bytes::copy_from_slice(failure)), wait: None })
        }
        Some((2, wait)) => {
            let (until, all) = wait.split_first_chunk()?;
            let until_unix_ms = u64::from_le_bytes(*until);
            let wait = Wait { until_unix_ms, all_ms: u32::from_le_bytes(all.try_into().ok()?) };
            Some(AttemptMark { attempts, failure: None, wait: Some(wait) })
        }
        Some(_) => None,
    }
}

/// serial u64, born u64.
pub(super) fn write_dedup(remembered: &DedupRecord) -> [u8; 16] {
    (u128::from(remembered.serial) | u128::from(remembered.born_unix_ms) << 64).to_le_bytes()
}

pub(super) fn read_dedup(key: &[u8], value: &[u8]) -> Option<DedupRecord> {
    let (serial, born) = value.split_first_chunk()?;
    Some(DedupRecord {
        key: DedupKey(key.try_into().ok()?),
        serial: u64::from_le_bytes(*serial),
        born_unix_ms: u64::from_le_bytes(born.try_into().ok()?),
    })
}

/// In a queue's settings: the first wait before a retry follows, in milliseconds.
const RETRY_DELAY: u8 = 1;
/// The longest.
const RETRY_DELAY_MAX: u8 = 2;

/// In a queue's settings: no number of its own.
const USUAL_DROP_AFTER: u16 = u16::MAX;

/// The first byte is 1 of a durable queue, 0 of a volatile one, 2 if neither was chosen. If that is all there is to
/// say, it is all there is; else its weight follows, 0 for the usual one, and a u16, how many deliveries may expire. Then, of each
/// other setting that it has, a number and a u64.
pub(super) fn write_settings(settings: QueueSettings) -> Vec<u8> {
    let QueueSettings { durable, drop_after, weight, retry_delay_seconds, retry_delay_max_seconds } = settings;
    let first = durable.map_or(2, u8::from);
    let numbered = [
        (RETRY_DELAY, retry_delay_seconds.map(Seconds::as_millis)),
        (RETRY_DELAY_MAX, retry_delay_max_seconds.map(Seconds::as_millis)),
    ];
    let has_numbered = numbered.iter().any(|(_, value)| value.is_some());
    if durable.is_some() && drop_after.is_none() && weight.is_none() && !has_numbered {
        return vec![first];
    }
    let [low, high] = drop_after.unwrap_or(USUAL_DROP_AFTER).to_le_bytes();
    let mut out = vec![first, weight.unwrap_or(0), low, high];
    for (number, value) in numbered {
        if let Some(value) = value {
            out.push(number);
            out.extend(value.to_le_bytes());
        }
    }
    out
}

pub(super) fn read_settings(bytes: &[u8]) -> Option<QueueSettings> {
    let (first, weight, drop_after, mut rest) = match bytes {
        [first @ (0 | 1)] => (*first, 0, USUAL_DROP_AFTER, &[][..]),
        [first @ 0..=2, weight @ 0..=WEIGHT_MAX, low, high, rest @ ..] => {
            (*first, *weight, u16::from_le_bytes([*low, *high]), rest)
        }
        _ => return None,
    };
    let mut numbered = BTreeMap::new();
    while let Some((number, after)) = rest.split_first() {
        let (value, after) = after.split_first_chunk()?;
        numbered.insert(*number, u64::from_le_bytes(*value));
        rest = after;
    }
    let drop_after = (drop_after != USUAL_DROP_AFTER).then_some(drop_after);
    if drop_after.is_some_and(|count| count > DROP_AFTER_MAX) {
        return None;
    }
    let mut wait = |number| numbered.remove(&number).map(Seconds::from_millis);
    let (retry_delay_seconds, retry_delay_max_seconds) = (wait(RETRY_DELAY), wait(RETRY_DELAY_MAX));
    if !numbered.is_empty() {
        return None;
    }
    Some(QueueSettings {
        durable: (first < 2).then_some(first == 1),
        drop_after,
        weight: (weight > 0).then_some(weight),
        retry_delay_seconds,
        retry_delay_max_seconds,
    })
}

/// A serial as a key: rising serials are rising keys.
pub(super) const fn key(serial: u64) -> [u8; 8] {
    serial.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            queue: "a.b".parse().unwrap(),
            priority: 9,
            cost: 258,
            retries: 7,
            born_unix_ms: 1,
            deadline_unix_ms: Some(2),
            due_unix_ms: None,
            payload: Payload { headers: true, bytes: Bytes::from_static(b"\0\0xyz") },
        }
    }

    fn bytes(record: &Record) -> Vec<u8> {
        let mut out = Vec::new();
        write(&NewRecord::of(1, 1, record), &mut out);
        out
    }

    /// The bytes of a format that outlives the program are fixed.
    #[test]
    fn a_message_has_these_bytes() {
        let expected = b"\x03\x09\x02\x01\x07\x03\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0a.b\0\0xyz";
        assert_eq!(bytes(&record()), expected);
        assert_eq!(read(expected), Some(record()));
        let plain = Record { deadline_unix_ms: None, payload: Payload::default(), ..record() };
        assert_eq!(read(&bytes(&plain)), Some(plain));
        let delayed = Record { due_unix_ms: Some(258), ..record() };
        let expected = b"\x07\x09\x02\x01\x07\x03\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0a.b\0\0xyz";
        assert_eq!(bytes(&delayed), expected);
        assert_eq!(read(expected), Some(delayed));
        let delayed = Record { deadline_unix_ms: None, due_unix_ms: Some(1), ..record() };
        assert_eq!(read(&bytes(&delayed)), Some(delayed));
    }

    /// Whatever stands on the disk, reading it neither panics nor makes a message of what is none.
    #[test]
    fn what_is_no_message_is_refused() {
        let whole = bytes(&record());
        for cut in 0..whole.len() - 5 {
            assert_eq!(read(&whole[..cut]), None, "{cut}");
        }
        for (at, byte) in [(0, 8), (1, 10), (5, 200), (22, b' ')] {
            let mut other = whole.clone();
            other[at] = byte;
            assert_eq!(read(&other), None, "{at}");
        }
        let mut free = whole;
        free[2..4].fill(0);
        assert_eq!(read(&free), None, "a message takes a slot");
    }

    #[test]
    fn a_dedup_id_comes_back_as_it_was() {
        let remembered = DedupRecord { key: DedupKey([7; 16]), serial: 1 << 40, born_unix_ms: 3 };
        let value = write_dedup(&remembered);
        assert_eq!(value, *b"\0\0\0\0\0\x01\0\0\x03\0\0\0\0\0\0\0");
        assert_eq!(read_dedup(&[7; 16], &value), Some(remembered));
        assert_eq!((read_dedup(&[7; 15], &value), read_dedup(&[7; 16], &value[1..])), (None, None));
    }

    #[test]
    fn settings_come_back_as_they_were() {
        let rows: [(_, _, _, &[u8]); 6] = [
            (Some(false), None, None, &[0]),
            (Some(true), None, None, &[1]),
            (None, Some(0), None, &[2, 0, 0, 0]),
            (None, None, Some(100), &[2, 100, 0xff, 0xff]),
            (Some(true), Some(1_000), Some(1), &[1, 1, 0xe8, 0x03]),
            (None, None, None, &[2, 0, 0xff, 0xff]),
        ];
        for (durable, drop_after, weight, bytes) in rows {
            let settings = QueueSettings { durable, drop_after, weight, ..QueueSettings::default() };
            assert_eq!(write_settings(settings), bytes);
            assert_eq!(read_settings(bytes), Some(settings));
        }
        let settings = QueueSettings {
            durable: Some(true),
            retry_delay_seconds: Some(Seconds::from_millis(0)),
            retry_delay_max_seconds: Some(Seconds::from_millis(258)),
            ..QueueSettings::default()
        };
        let bytes = b"\x01\0\xff\xff\x01\0\0\0\0\0\0\0\0\x02\x02\x01\0\0\0\0\0\0";
        assert_eq!(write_settings(settings), bytes);
        assert_eq!(read_settings(bytes), Some(settings));
        assert_eq!(read_settings(&bytes[..bytes.len() - 1]), None);
        assert_eq!(read_settings(b"\x01\0\xff\xff\xff\0\0\0\0\0\0\0\0"), None, "a setting of a later version");
        for wrong in [&[][..], &[2], &[1, 0], &[3, 0, 0, 0], &[0, 101, 0, 0], &[0, 0, 0xe9, 0x03], &[0, 0, 0, 0, 0]] {
            assert_eq!(read_settings(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_mark_comes_back_as_it_was() {
        for mark in [
            AttemptMark { attempts: 3, failure: None, wait: None },
            AttemptMark { attempts: 10, failure: Some(Bytes::new()), wait: None },
            AttemptMark { attempts: 256, failure: Some(Bytes::from_static(b"no")), wait: None },
            AttemptMark { attempts: 0, failure: None, wait: Some(Wait { until_unix_ms: 1 << 40, all_ms: u32::MAX }) },
        ] {
            let mut out = Vec::new();
            write_mark(&mark, &mut out);
            assert_eq!(read_mark(&out), Some(mark));
        }
        let waits = b"\x01\0\x02\x02\0\0\0\0\0\0\0\x03\0\0\0";
        let wait = Some(Wait { until_unix_ms: 2, all_ms: 3 });
        assert_eq!(read_mark(waits), Some(AttemptMark { attempts: 1, failure: None, wait }));
        assert_eq!((read_mark(&[1]), read_mark(&waits[..14]), read_mark(&[1, 0, 3])), (None, None, None));
    }
}
