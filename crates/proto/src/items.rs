//! The items of a job, one per task, as one block of bytes. The item of one task is found without reading those before
//! it.
//!
//! An item has one text or several, its fields: as many for all items of a block. All numbers are little endian.
//!
//! ```text
//! 1         the form of the block
//! u16       fields of an item, at least 1
//! u32       items
//! u32 each  where that item ends, from the end of this table on
//! …         items, one after the other: their fields in UTF-8 with a zero byte between two of them
//! ```
//!
//! No field has a zero byte: no word of a command can.

use bytes::Bytes;

use crate::model::limits::{ITEM_FIELDS_MAX, ITEMS_BYTES_MAX};

/// The first byte of a block.
const FORM: u8 = 1;
/// Bytes before the table.
const HEAD: usize = 7;
/// Bytes of an entry of the table.
const ENTRY: usize = 4;

/// Why items cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemsError {
    /// They take more than [`ITEMS_BYTES_MAX`].
    #[error("the items of a job take at most {ITEMS_BYTES_MAX} bytes")]
    TooLong,
    /// An item has no field, too many, or not as many as the first one.
    #[error("every item has the same number of fields, and at most {ITEM_FIELDS_MAX}")]
    Fields,
    /// A field has a zero byte.
    #[error("an item has no zero byte")]
    Zero,
    /// Not such a block.
    #[error("not a valid block of items")]
    Malformed,
}

/// The size of a block's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Items.
    pub count: u32,
    /// Fields of each.
    pub fields: usize,
    /// Bytes of the longest.
    pub longest: usize,
}

/// Writes a block, item by item.
#[derive(Clone, Debug)]
pub struct Builder {
    fields: usize,
    ends: Vec<u32>,
    texts: Vec<u8>,
}

impl Builder {
    /// A block of items with so many fields.
    pub const fn new(fields: usize) -> Result<Self, ItemsError> {
        if fields == 0 || fields > ITEM_FIELDS_MAX {
            return Err(ItemsError::Fields);
        }
        Ok(Self { fields, ends: Vec::new(), texts: Vec::new() })
    }

    /// Adds an item. After an error the block is as it was.
    pub fn push<T: AsRef<str>>(&mut self, fields: &[T]) -> Result<(), ItemsError> {
        if fields.len() != self.fields {
            return Err(ItemsError::Fields);
        }
        let texts = || fields.iter().map(AsRef::as_ref);
        if texts().any(|text| text.contains('\0')) {
            return Err(ItemsError::Zero);
        }
        let more: usize = texts().map(|text| text.len() + 1).sum::<usize>() - 1;
        if self.bytes() + ENTRY + more > ITEMS_BYTES_MAX {
            return Err(ItemsError::TooLong);
        }
        for (at, text) in texts().enumerate() {
            if at > 0 {
                self.texts.push(0);
            }
            self.texts.extend_from_slice(text.as_bytes());
        }
        self.ends.push(u32::try_from(self.texts.len()).map_err(|_| ItemsError::TooLong)?);
        Ok(())
    }

    /// Items so far.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none so far.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The result of [`check`] for this block.
    pub fn shape(&self) -> Shape {
        let starts = std::iter::once(&0).chain(&self.ends);
        let longest = starts.zip(&self.ends).map(|(start, end)| end - start).max().unwrap_or(0);
        let count = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        Shape { count, fields: self.fields, longest: usize::try_from(longest).unwrap_or(usize::MAX) }
    }

    /// Bytes of the block so far.
    pub const fn bytes(&self) -> usize {
        HEAD + ENTRY * self.ends.len() + self.texts.len()
    }

    /// Ends the block and returns its bytes.
    pub fn finish(self) -> Bytes {
        let mut block = Vec::with_capacity(self.bytes());
        block.push(FORM);
        // Both fit: they are limited.
        block.extend_from_slice(&u16::try_from(self.fields).unwrap_or(u16::MAX).to_le_bytes());
        block.extend_from_slice(&u32::try_from(self.ends.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.ends.iter().for_each(|end| block.extend_from_slice(&end.to_le_bytes()));
        block.extend_from_slice(&self.texts);
        block.into()
    }
}

/// How many items are in a block. It looks at its head and its length, not at what is in it.
pub fn count(block: &[u8]) -> Option<u32> {
    Parts::of(block).map(|parts| parts.count)
}

/// Looks at all of a block: every item of it can be read.
pub fn check(block: &[u8]) -> Result<Shape, ItemsError> {
    if block.len() > ITEMS_BYTES_MAX {
        return Err(ItemsError::TooLong);
    }
    let parts = Parts::of(block).ok_or(ItemsError::Malformed)?;
    let mut longest = 0;
    // The table rises: every text is looked at once.
    for place in 0..parts.count {
        let text = parts.text(place).ok_or(ItemsError::Malformed)?;
        if text.bytes().filter(|byte| *byte == 0).count() + 1 != parts.fields {
            return Err(ItemsError::Fields);
        }
        longest = longest.max(text.len());
    }
    Ok(Shape { count: parts.count, fields: parts.fields, longest })
}

/// The fields of the item at that place, from 0 on; `None` if there is none, or if it cannot be read.
pub fn get(block: &[u8], place: u32) -> Option<Vec<&str>> {
    let parts = Parts::of(block)?;
    let text = parts.text(place)?;
    // Not more of them than the block may have, whatever is in the text.
    let fields: Vec<&str> = text.splitn(parts.fields + 1, '\0').collect();
    (fields.len() == parts.fields).then_some(fields)
}

/// Bytes of the item at that place.
pub fn len(block: &[u8], place: u32) -> Option<usize> {
    let parts = Parts::of(block)?;
    parts.text(place).map(str::len)
}

/// A block, taken apart.
struct Parts<'a> {
    fields: usize,
    count: u32,
    ends: &'a [u8],
    texts: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(block: &'a [u8]) -> Option<Self> {
        let (&[FORM, low, high, a, b, c, d], rest) = block.split_first_chunk::<HEAD>()? else { return None };
        let fields = usize::from(u16::from_le_bytes([low, high]));
        if fields == 0 || fields > ITEM_FIELDS_MAX {
            return None;
        }
        let count = u32::from_le_bytes([a, b, c, d]);
        let (ends, texts) = rest.split_at_checked(usize::try_from(count).ok()?.checked_mul(ENTRY)?)?;
        let parts = Self { fields, count, ends, texts };
        let end = count.checked_sub(1).map_or(Some(0), |last| parts.end(last))?;
        (end == texts.len()).then_some(parts)
    }

    fn end(&self, place: u32) -> Option<usize> {
        let at = usize::try_from(place).ok()?.checked_mul(ENTRY)?;
        let (entry, _) = self.ends.get(at..)?.split_first_chunk::<ENTRY>()?;
        usize::try_from(u32::from_le_bytes(*entry)).ok()
    }

    fn text(&self, place: u32) -> Option<&'a str> {
        let from = place.checked_sub(1).map_or(Some(0), |before| self.end(before))?;
        std::str::from_utf8(self.texts.get(from..self.end(place)?)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(fields: usize, items: &[Vec<String>]) -> Bytes {
        let mut builder = Builder::new(fields).unwrap();
        items.iter().for_each(|item| builder.push(item).unwrap());
        assert_eq!(builder.len(), items.len());
        let (bytes, shape) = (builder.bytes(), builder.shape());
        let block = builder.finish();
        assert_eq!((block.len(), Ok(shape)), (bytes, check(&block)));
        block
    }

    fn some_items() -> impl Strategy<Value = (usize, Vec<Vec<String>>)> {
        (1_usize..4).prop_flat_map(|fields| {
            let item = proptest::collection::vec("[^\\x00]{0,9}", fields);
            (Just(fields), proptest::collection::vec(item, 0..20))
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read((fields, items) in some_items()) {
            let block = block(fields, &items);
            let count = u32::try_from(items.len()).unwrap();
            let longest = items.iter().map(|item| item.join("\0").len()).max().unwrap_or(0);
            prop_assert_eq!(check(&block), Ok(Shape { count, fields, longest }));
            prop_assert_eq!(super::count(&block), Some(count));
            for (place, item) in (0..).zip(&items) {
                let item: Vec<&str> = item.iter().map(String::as_str).collect();
                prop_assert_eq!(len(&block, place), Some(item.join("\0").len()));
                prop_assert_eq!(get(&block, place), Some(item));
            }
            prop_assert_eq!(get(&block, count), None);
        }

        /// A block that passes the check can be read item by item, and nothing else matters to a reader.
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..60), place: u32) {
            let _ = (count(&bytes), get(&bytes, place), check(&bytes));
            if let Some(form) = bytes.first_mut() {
                *form = FORM;
            }
            let _ = (count(&bytes), get(&bytes, place), check(&bytes));
        }

        /// A good block with one byte changed.
        #[test]
        fn a_changed_block_is_read_or_refused((fields, items) in some_items(), at: usize, byte: u8) {
            let mut bytes = block(fields, &items).to_vec();
            let at = at % bytes.len();
            *bytes.get_mut(at).unwrap() = byte;
            let checked = check(&bytes);
            let read = (0..count(&bytes).unwrap_or(0).min(100)).map(|place| get(&bytes, place)).collect::<Vec<_>>();
            if let Ok(Shape { count, fields, .. }) = checked {
                prop_assert_eq!(read.len(), usize::try_from(count).unwrap());
                for item in read {
                    prop_assert_eq!(item.map(|item| item.len()), Some(fields));
                }
            }
        }
    }

    #[test]
    fn the_bytes_are_these() {
        let items = [vec!["a".to_owned(), "bc".to_owned()], vec![String::new(), "d".to_owned()]];
        let bytes = b"\x01\x02\x00\x02\x00\x00\x00\x04\x00\x00\x00\x06\x00\x00\x00a\x00bc\x00d";
        assert_eq!(block(2, &items), &bytes[..]);
        assert_eq!(get(bytes, 0), Some(vec!["a", "bc"]));
        assert_eq!(get(bytes, 1), Some(vec!["", "d"]));
    }

    #[test]
    fn the_limits_hold() {
        assert_eq!(Builder::new(0).unwrap_err(), ItemsError::Fields);
        assert!(Builder::new(ITEM_FIELDS_MAX).is_ok());
        assert_eq!(Builder::new(ITEM_FIELDS_MAX + 1).unwrap_err(), ItemsError::Fields);
        let mut builder = Builder::new(1).unwrap();
        assert_eq!(builder.push(&["a", "b"]), Err(ItemsError::Fields));
        assert_eq!(builder.push(&["a\0b"]), Err(ItemsError::Zero));
        let longest = "x".repeat(ITEMS_BYTES_MAX - HEAD - ENTRY);
        assert_eq!(builder.push(&[format!("{longest}x")]), Err(ItemsError::TooLong));
        assert!(builder.is_empty(), "nothing of what was refused is in it");
        builder.push(&[&longest]).unwrap();
        assert_eq!(builder.push(&[""]), Err(ItemsError::TooLong));
        let mut block = builder.finish().to_vec();
        assert_eq!(check(&block), Ok(Shape { count: 1, fields: 1, longest: longest.len() }));
        block.push(b'x');
        assert_eq!(check(&block), Err(ItemsError::TooLong));
    }

    #[test]
    fn what_is_no_such_block_is_refused() {
        let table: [(&[u8], &str); 9] = [
            (b"", "nothing"),
            (b"\x01\x01\x00\x00\x00\x00", "a head that is cut off"),
            (b"\x02\x01\x00\x00\x00\x00\x00", "another form"),
            (b"\x01\x00\x00\x00\x00\x00\x00", "no fields"),
            (b"\x01\xff\xff\x00\x00\x00\x00", "too many fields"),
            (b"\x01\x01\x00\x00\x00\x00\x00a", "something after it"),
            (b"\x01\x01\x00\xff\xff\xff\xffabcdef", "a claim of four billion items"),
            (b"\x01\x01\x00\x01\x00\x00\x00\x02\x00\x00\x00a", "an end beyond the texts"),
            (b"\x01\x01\x00\x01\x00\x00\x00\x01\x00\x00\x00\xff", "no text"),
        ];
        for (block, what) in table {
            assert_eq!(check(block), Err(ItemsError::Malformed), "{what}");
            assert_eq!(get(block, 0), None, "{what}");
        }
        // Ends that fall: the items around cannot be read, and nothing is read out of order.
        let falling = b"\x01\x01\x00\x03\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00ab";
        assert_eq!((count(falling), check(falling)), (Some(3), Err(ItemsError::Malformed)));
        assert_eq!((get(falling, 0), get(falling, 1)), (Some(vec!["ab"]), None));
        let missing = b"\x01\x02\x00\x01\x00\x00\x00\x01\x00\x00\x00a";
        assert_eq!((check(missing), get(missing, 0)), (Err(ItemsError::Fields), None), "one field of two");
        let surplus = b"\x01\x01\x00\x01\x00\x00\x00\x03\x00\x00\x00a\x00b";
        assert_eq!((check(surplus), get(surplus, 0)), (Err(ItemsError::Fields), None), "two fields of one");
    }
}
