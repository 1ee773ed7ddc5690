//! The command of a job's tasks, as bytes: the MessagePack map that submitters write and workers read. The broker
//! carries it as it is.

use bytes::Bytes;
use serde::Deserialize as _;

use crate::model::job::Work;
use crate::model::limits::{WORK_BYTES_MAX, WORK_DEPTH_MAX, WORK_VALUES_MAX};
use crate::msgpack_check::check_map;

/// Why work cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// It takes more than [`WORK_BYTES_MAX`].
    #[error("command, directory and environment of a job take at most {WORK_BYTES_MAX} bytes together")]
    TooLong,
    /// There are more than [`WORK_VALUES_MAX`] values in it.
    #[error("command and environment of a job have at most {WORK_VALUES_MAX} words together")]
    TooMany,
    /// Not such a map.
    #[error("not a valid map of a command, a directory and an environment")]
    Malformed,
}

/// Writes it.
pub fn encode(work: &Work) -> Result<Bytes, WorkError> {
    let bytes = rmp_serde::to_vec_named(work).map_err(|_| WorkError::Malformed)?;
    if bytes.len() > WORK_BYTES_MAX {
        return Err(WorkError::TooLong);
    }
    // The words themselves fit into the bytes, so only their number can be wrong now.
    check_map(&bytes, WORK_VALUES_MAX).map_err(|_| WorkError::TooMany)?;
    Ok(bytes.into())
}

/// Reads it. Keys that are not known are passed over: a newer submitter may have written them.
pub fn decode(bytes: &[u8]) -> Result<Work, WorkError> {
    if bytes.len() > WORK_BYTES_MAX {
        return Err(WorkError::TooLong);
    }
    check_map(bytes, WORK_VALUES_MAX).map_err(|_| WorkError::Malformed)?;
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(WORK_DEPTH_MAX);
    Work::deserialize(&mut reader).map_err(|_| WorkError::Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(count: usize) -> Work {
        Work { argv: vec![String::new(); count], ..Work::default() }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            argv in proptest::collection::vec("\\PC{0,20}", 0..20),
            cwd in "\\PC{0,20}",
            env in proptest::collection::vec(("[A-Z]{1,9}", "\\PC{0,20}"), 0..20),
        ) {
            let work = Work { argv, cwd, env, ..Work::default() };
            let bytes = encode(&work).expect("within the limits");
            prop_assert_eq!(decode(&bytes), Ok(work));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn the_bytes_are_a_map_with_names() {
        let work = Work {
            argv: vec!["a".to_owned()],
            cwd: "/".to_owned(),
            env: vec![("K".to_owned(), "v".to_owned())],
            ..Work::default()
        };
        assert_eq!(encode(&work).unwrap(), &b"\x83\xa4argv\x91\xa1a\xa3cwd\xa1/\xa3env\x91\x92\xa1K\xa1v"[..]);
    }

    #[test]
    fn the_limits_hold() {
        let long = Work { argv: vec!["x".repeat(WORK_BYTES_MAX)], ..Work::default() };
        assert_eq!(encode(&long), Err(WorkError::TooLong));
        // Three keys and their three values beside the words.
        assert!(encode(&words(WORK_VALUES_MAX - 6)).is_ok());
        assert_eq!(encode(&words(WORK_VALUES_MAX - 5)), Err(WorkError::TooMany));
        assert_eq!(decode(&vec![0x80; WORK_BYTES_MAX + 1]), Err(WorkError::TooLong));
    }

    #[test]
    fn keys_that_are_missing_or_unknown_are_no_error() {
        assert_eq!(decode(b"\x80"), Ok(Work::default()));
        assert_eq!(
            decode(b"\x82\xa3new\x93\x01\x02\x81\x03\x04\xa3cwd\xa1/"),
            Ok(Work { cwd: "/".to_owned(), ..words(0) })
        );
    }

    #[test]
    fn what_is_no_such_map_is_refused() {
        let nested = |depth: usize| [&b"\x81\xa3new"[..], &vec![0x91; depth], b"\x01"].concat();
        assert!(decode(&nested(8)).is_ok());
        let table: [&[u8]; 9] = [
            b"",
            b"\x90",
            b"\xc0",
            b"\x81\xa4argv",
            b"\x80\x80",
            b"\x81\xa4argv\xdd\xff\xff\xff\xff",
            b"\x81\xa4argv\x91\x01",
            b"\x81\xa3env\x91\x91\xa1K",
            b"\x81\xa3cwd\xc4\x01\xff",
        ];
        for bytes in table.into_iter().chain([&nested(10_000)[..], &nested(1_000), &nested(WORK_DEPTH_MAX)]) {
            assert_eq!(decode(bytes), Err(WorkError::Malformed), "{:02x?}", bytes.get(..20));
        }
    }
}
