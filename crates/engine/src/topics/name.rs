//! A segment or a prefix as a table keeps it.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

/// Longer ones are elsewhere. So many bytes make it as large as what says where.
const SHORT_MAX: usize = 22;

/// Bytes by which something is found. Most are few, and lie where they are looked at: each look elsewhere is a wait for
/// memory, and among very many filters that is most of what a look costs.
#[derive(Debug)]
pub(super) enum Name {
    Short { length: u8, bytes: [u8; SHORT_MAX] },
    Long(Box<[u8]>),
}

impl Name {
    pub(super) fn new(name: &[u8]) -> Self {
        let mut bytes = [0; SHORT_MAX];
        match (bytes.get_mut(..name.len()), u8::try_from(name.len())) {
            (Some(own), Ok(length)) => {
                own.copy_from_slice(name);
                Self::Short { length, bytes }
            }
            _ => Self::Long(name.into()),
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length)],
            Self::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Name {}

/// As its bytes, by which it is looked up.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::seeded::{Seeded, Table};
    use super::*;

    #[test]
    fn names_of_every_length_are_found_by_their_bytes() {
        let mut table = Table::with_hasher(Seeded(7));
        let all: Vec<Vec<u8>> = (0..=300).map(|length| vec![b'a'; length]).collect();
        for (number, bytes) in all.iter().enumerate() {
            let name = Name::new(bytes);
            assert_eq!(name.as_bytes(), bytes);
            assert_eq!(matches!(name, Name::Short { .. }), number <= SHORT_MAX);
            assert_eq!(table.insert(name, number), None);
        }
        for (number, bytes) in all.iter().enumerate() {
            assert_eq!(table.get(bytes.as_slice()), Some(&number));
        }
    }

    #[test]
    fn a_name_is_no_larger_than_what_says_where_a_long_one_is() {
        assert_eq!(size_of::<Name>(), 24);
    }
}
