//! Buffers of a connection: kept, and given back.

use super::*;

fn written(table: &mut ConnectionTable, id: ConnId, bytes: usize) -> &mut Connection {
    table.write(id, |out| out.resize(bytes, 0));
    let connection = table.get_mut(id).unwrap();
    connection.wrote(bytes);
    connection
}

#[test]
fn a_busy_connection_keeps_its_out_buffer_and_a_quiet_one_owns_nothing() {
    let mut table = ConnectionTable::new(&Limits::default(), NumberAllocation::default());
    let id = table.insert(Mono::from_millis(0), "peer".to_owned(), ListenerKind::Native);
    let connection = written(&mut table, id, 64 * 1024);
    assert!(connection.out.capacity() >= 64 * 1024);
    connection.rest(false);
    assert!(connection.out.capacity() >= 64 * 1024, "it was used since the last sweep");
    connection.rest(false);
    assert_eq!(connection.out.capacity(), 0);
    let connection = written(&mut table, id, OUTBOX_KEPT_BYTES + 1);
    assert_eq!(connection.out.capacity(), 0, "nobody keeps very large ones");
}

#[test]
fn what_waits_is_never_given_back() {
    let mut table = ConnectionTable::new(&Limits::default(), NumberAllocation::default());
    let id = table.insert(Mono::from_millis(0), "peer".to_owned(), ListenerKind::Native);
    table.write(id, |out| out.extend_from_slice(b"waits"));
    let connection = table.get_mut(id).unwrap();
    connection.rest(false);
    connection.rest(false);
    assert_eq!(connection.unwritten(), b"waits");
}

/// A long frame, and deliveries, may wait beyond the limit. Once they are written, the limit is what it was: a peer that reads
/// nothing from then on costs no more than any other.
#[test]
fn what_may_wait_beyond_the_limit_does_so_once() {
    const SMALL: usize = 100;
    let limits = Limits { out_bytes_max: 1_000, ..Limits::default() };
    let most = 1_000 * limits::OUT_PATIENCE;
    let large = 50 * most;
    for is_delivery in [false, true] {
        for left in [0, 1] {
            let mut table = ConnectionTable::new(&limits, NumberAllocation::default());
            let id = table.insert(Mono::from_millis(0), "peer".to_owned(), ListenerKind::Native);
            let add = |out: &mut Vec<u8>| out.resize(out.len() + large, 0);
            if is_delivery {
                table.write_delivery(id, add)
            } else {
                table.write(id, add)
            }
            table.write(id, |out| out.resize(out.len() + SMALL, 0));
            assert_eq!(table.take_overrun(), None, "others may wait beside it");
            let connection = table.get_mut(id).unwrap();
            connection.wrote(large + SMALL - left);
            assert_eq!(connection.waiting(), left);
            while table.overrun.is_empty() {
                table.write(id, |out| out.resize(out.len() + SMALL, 0));
                let connection = table.get(id).unwrap();
                connection.check();
                assert!(
                    connection.waiting() <= most + 2 * SMALL + left,
                    "{} bytes wait, and {most} may",
                    connection.waiting()
                );
            }
        }
    }
}

/// The engine hears once that a worker has read, when little is left, however much waited when it asked.
#[test]
fn the_engine_hears_when_a_worker_has_read() {
    let mut table = ConnectionTable::new(&Limits::default(), NumberAllocation::default());
    let id = table.insert(Mono::from_millis(0), "peer".to_owned(), ListenerKind::Native);
    table.write(id, |out| out.resize(limits::OUT_TIGHT_BYTES, 0));
    table.pace(id);
    let connection = table.get_mut(id).unwrap();
    assert!(!connection.take_pace(), "much waits");
    connection.wrote(limits::OUT_TIGHT_BYTES / 2);
    assert!(connection.take_pace());
    assert!(!connection.take_pace(), "it was told");
}
