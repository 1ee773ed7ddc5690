//! Reads of records: single ones for a prefetch, all of them after a start.

use super::Embedded;
use super::place::RecordPlace;
use super::segment::{LogSegment, name};
use super::window::Window;
use crate::batch::Op;
use crate::disk::{Disk, DiskFile, read_up_to};
use crate::error::{ReadError, Retry};
use crate::record::Raw;
use crate::store::{Item, RecordNo, Space, Stored};

/// Records this near to each other are read through one window.
const NEAR: u64 = 64 * 1024;

impl<D: Disk> Embedded<D> {
    pub(super) fn visit_all(&mut self, visit: &mut dyn FnMut(Item<'_>)) -> Result<(), ReadError> {
        let mut reader = Reader::default();
        for (space, key, place) in self.tables.keyed() {
            if let Op::Set { value, .. } = reader.read(self.readable(place)?, place)? {
                visit(Item::Keyed { space, key, value });
            }
        }
        for (record, place) in self.tables.numbered() {
            if let Op::Put { space, value, .. } = reader.read(self.readable(place)?, place)? {
                visit(Item::Numbered { space, record, value });
            }
        }
        Ok(())
    }

    pub(super) fn read_numbered(
        &mut self,
        records: &[RecordNo],
        visit: &mut dyn FnMut(RecordNo, Option<Stored<'_>>),
    ) -> Result<(), ReadError> {
        let mut reader = Reader { window: std::mem::take(&mut self.window), ..Reader::default() };
        reader.window.clear();
        for record in records {
            let Some(place) = self.tables.find(*record) else {
                visit(*record, None);
                continue;
            };
            match reader.read(self.readable(place)?, place)? {
                Op::Put { space, value, .. } => visit(*record, Some((space, value))),
                _ => visit(*record, None),
            }
        }
        self.window = reader.window;
        Ok(())
    }

    pub(super) fn read_keyed(&mut self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        let Some(place) = self.tables.find_key(space, key) else { return Ok(None) };
        match Reader::default().read(self.readable(place)?, place)? {
            Op::Set { value, .. } => Ok(Some(value.to_vec())),
            _ => Ok(None),
        }
    }

    /// The segment that a record is in.
    fn readable(&self, place: RecordPlace) -> Result<&LogSegment<D::File>, ReadError> {
        match &self.broken {
            Some(why) => Err(ReadError::Unavailable { retry: Retry::Never, why: why.clone() }),
            None => Ok(self.segment(place.slot()).expect("a live record is in a segment of the log")),
        }
    }
}

/// Reads places in a row, through a window where they follow each other.
#[derive(Default)]
pub(super) struct Reader {
    window: Window,
    single: Vec<u8>,
    last: Option<RecordPlace>,
}

impl Reader {
    pub(super) fn read<F: DiskFile>(
        &mut self,
        segment: &LogSegment<F>,
        place: RecordPlace,
    ) -> Result<Op<'_>, ReadError> {
        let is_same_file = self.last.is_some_and(|last| last.slot() == place.slot());
        if !is_same_file {
            self.window.clear();
        }
        let follows =
            |last: RecordPlace| place.offset().checked_sub(last.offset()).is_some_and(|gap| gap < NEAR + last.len());
        let is_near = is_same_file && self.last.is_some_and(follows);
        self.last = Some(place);
        let len = usize::try_from(place.len()).unwrap_or(usize::MAX);
        let unavailable = |error: std::io::Error| ReadError::Unavailable {
            retry: Retry::Later,
            why: format!("cannot read {}: {error}", segment.name()),
        };
        let bytes = if is_near {
            self.window.bytes(&segment.file, place.offset(), len, segment.end).map_err(unavailable)?
        } else {
            self.single.resize(len, 0);
            let there = read_up_to(&segment.file, place.offset(), &mut self.single).map_err(unavailable)?;
            self.single.get(..there).unwrap_or_default()
        };
        let op = Raw::checked(bytes).and_then(|raw| raw.op());
        op.ok_or_else(|| ReadError::Damaged { file: name(place.slot()), offset: place.offset() })
    }
}
