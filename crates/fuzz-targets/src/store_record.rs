//! Any bytes as a record of the log.

use turno_store::{Batch, RecordNo, Space, check_record};

/// A record is sound or it is not; what a batch holds comes back as it was put.
pub fn store_record(data: &[u8]) {
    if let Some(len) = check_record(data) {
        assert!((16..=data.len()).contains(&len), "a record is within its bytes");
        assert_eq!(check_record(&data[..len]), Some(len), "what follows a record changes nothing");
        assert_eq!(check_record(&data[..len - 1]), None, "a record that is cut is none");
    }
    let (key, value) = data.split_at(data.len().min(usize::from(data.first().copied().unwrap_or_default())));
    let mut batch = Batch::new();
    batch.put(Space(1), RecordNo(7), value);
    batch.set(Space(2), key, value);
    batch.unset(Space(2), key);
    batch.delete(RecordNo(7));
    let mut again = Batch::new();
    batch.ops().for_each(|op| again.push(op));
    assert!(batch.ops().eq(again.ops()), "operations come back");
}
