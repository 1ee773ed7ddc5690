//! What a connection keeps, and what it gives back.

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
