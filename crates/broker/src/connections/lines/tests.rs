//! Buffers of a connection: kept, and given back.

use super::*;

fn written(lines: &mut Lines, id: ConnId, bytes: usize) -> &mut Line {
    lines.write(id, |out| out.resize(bytes, 0));
    let line = lines.get_mut(id).unwrap();
    line.wrote(bytes);
    line
}

#[test]
fn a_busy_connection_keeps_its_out_buffer_and_a_quiet_one_owns_nothing() {
    let mut lines = Lines::new(&Limits::default(), Seat::default());
    let id = lines.insert(Mono::from_millis(0), "peer".to_owned(), Door::Native);
    let line = written(&mut lines, id, 64 * 1024);
    assert!(line.out.capacity() >= 64 * 1024);
    line.rest(false);
    assert!(line.out.capacity() >= 64 * 1024, "it was used since the last sweep");
    line.rest(false);
    assert_eq!(line.out.capacity(), 0);
    let line = written(&mut lines, id, OUTBOX_KEPT_BYTES + 1);
    assert_eq!(line.out.capacity(), 0, "nobody keeps very large ones");
}

#[test]
fn what_waits_is_never_given_back() {
    let mut lines = Lines::new(&Limits::default(), Seat::default());
    let id = lines.insert(Mono::from_millis(0), "peer".to_owned(), Door::Native);
    lines.write(id, |out| out.extend_from_slice(b"waits"));
    let line = lines.get_mut(id).unwrap();
    line.rest(false);
    line.rest(false);
    assert_eq!(line.unwritten(), b"waits");
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
            let mut lines = Lines::new(&limits, Seat::default());
            let id = lines.insert(Mono::from_millis(0), "peer".to_owned(), Door::Native);
            let add = |out: &mut Vec<u8>| out.resize(out.len() + large, 0);
            if is_delivery {
                lines.write_delivery(id, add)
            } else {
                lines.write(id, add)
            }
            lines.write(id, |out| out.resize(out.len() + SMALL, 0));
            assert_eq!(lines.take_overrun(), None, "others may wait beside it");
            let line = lines.get_mut(id).unwrap();
            line.wrote(large + SMALL - left);
            assert_eq!(line.waiting(), left);
            while lines.overrun.is_empty() {
                lines.write(id, |out| out.resize(out.len() + SMALL, 0));
                let line = lines.get(id).unwrap();
                line.check();
                assert!(line.waiting() <= most + 2 * SMALL + left, "{} bytes wait, and {most} may", line.waiting());
            }
        }
    }
}

/// The engine hears once that a worker has read, when little is left, however much waited when it asked.
#[test]
fn the_engine_hears_when_a_worker_has_read() {
    let mut lines = Lines::new(&Limits::default(), Seat::default());
    let id = lines.insert(Mono::from_millis(0), "peer".to_owned(), Door::Native);
    lines.write(id, |out| out.resize(limits::OUT_TIGHT_BYTES, 0));
    lines.pace(id);
    let line = lines.get_mut(id).unwrap();
    assert!(!line.take_pace(), "much waits");
    line.wrote(limits::OUT_TIGHT_BYTES / 2);
    assert!(line.take_pace());
    assert!(!line.take_pace(), "it was told");
}
