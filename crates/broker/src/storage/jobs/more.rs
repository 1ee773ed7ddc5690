//! Labels, name and tags in a job's record, an extension that older records do not have.

use turno_proto::model::archive::UploadId;
use turno_proto::model::job::{Array, JobSpec};

use super::{Reader, len_u8};

const MAX_FAILURES: u8 = 1;
/// The parts of a list of numbers follow.
const PARTS: u8 = 2;

/// The parsed part.
#[derive(Debug, Default)]
pub(super) struct JobExtension {
    pub(super) max_failures: Option<u32>,
    pub(super) labels: Vec<(String, String)>,
    pub(super) tags: Vec<String>,
    pub(super) uploads: Vec<UploadId>,
    pub(super) parts: Vec<Array>,
}

/// Whether there is something to write.
pub(super) fn is_in(spec: &JobSpec) -> bool {
    let JobSpec { max_failures, labels, tags, uploads, parts, .. } = spec;
    max_failures.is_some() || !labels.is_empty() || !tags.is_empty() || !uploads.is_empty() || !parts.is_empty()
}

pub(super) fn write(spec: &JobSpec, out: &mut Vec<u8>) {
    let JobSpec { max_failures, labels, tags, uploads, parts, .. } = spec;
    let flags = if max_failures.is_some() { MAX_FAILURES } else { 0 } | if parts.is_empty() { 0 } else { PARTS };
    out.extend([flags, len_u8(labels.len()), len_u8(tags.len()), len_u8(uploads.len())]);
    out.extend(max_failures.iter().flat_map(|max| max.to_le_bytes()));
    for text in labels.iter().flat_map(|(key, value)| [key, value]).chain(tags) {
        out.push(len_u8(text.len()));
        out.extend_from_slice(text.as_bytes());
    }
    uploads.iter().for_each(|UploadId(hash)| out.extend_from_slice(hash));
    if !parts.is_empty() {
        out.extend(u16::try_from(parts.len()).expect("parts are limited").to_le_bytes());
        let numbers = parts.iter().flat_map(|part| [part.first, part.count, part.step]);
        numbers.for_each(|number| out.extend(number.to_le_bytes()));
    }
}

/// `None` if no version of ours wrote that.
pub(super) fn read(rest: &mut Reader<'_>) -> Option<JobExtension> {
    let [flags, labels, tags, uploads] = rest.bytes()?;
    if flags & !(MAX_FAILURES | PARTS) != 0 {
        return None;
    }
    let mut more = JobExtension::default();
    if flags & MAX_FAILURES != 0 {
        more.max_failures = Some(rest.u32()?);
    }
    for _ in 0..labels {
        more.labels.push((rest.short_text()?.to_string(), rest.short_text()?.to_string()));
    }
    for _ in 0..tags {
        more.tags.push(rest.short_text()?.to_string());
    }
    for _ in 0..uploads {
        more.uploads.push(UploadId(rest.bytes()?));
    }
    if flags & PARTS != 0 {
        for _ in 0..rest.u16()? {
            more.parts.push(Array { first: rest.u32()?, count: rest.u32()?, step: rest.u32()? });
        }
    }
    Some(more)
}
