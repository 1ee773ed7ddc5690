//! Tables whose keys peers choose.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hasher as _};

/// Makes places in a table unknown to peers, who choose its keys. Such tables are looked up, and never walked in an order
/// that shows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seeded(pub(super) u64);

/// Such a table.
pub(super) type Table<K, V> = HashMap<K, V, Seeded>;

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}
