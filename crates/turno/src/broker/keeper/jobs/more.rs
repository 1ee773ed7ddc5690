//! What a job needs and is found by, as it is stored: a part of the job's record that those written before it do not have.

use turno_proto::model::archive::UploadId;
use turno_proto::model::job::JobSpec;

use super::{Reader, len_u8};

const MAX_FAILURES: u8 = 1;

/// What was read.
#[derive(Debug, Default)]
pub(super) struct More {
    pub(super) max_failures: Option<u32>,
    pub(super) labels: Vec<(String, String)>,
    pub(super) tags: Vec<String>,
    pub(super) uploads: Vec<UploadId>,
}

/// Whether there is something to write.
pub(super) fn is_in(spec: &JobSpec) -> bool {
    spec.max_failures.is_some() || !spec.labels.is_empty() || !spec.tags.is_empty() || !spec.uploads.is_empty()
}

pub(super) fn write(spec: &JobSpec, out: &mut Vec<u8>) {
    let JobSpec { max_failures, labels, tags, uploads, .. } = spec;
    let flags = if max_failures.is_some() { MAX_FAILURES } else { 0 };
    out.extend([flags, len_u8(labels.len()), len_u8(tags.len()), len_u8(uploads.len())]);
    out.extend(max_failures.iter().flat_map(|max| max.to_le_bytes()));
    for text in labels.iter().flat_map(|(key, value)| [key, value]).chain(tags) {
        out.push(len_u8(text.len()));
        out.extend_from_slice(text.as_bytes());
    }
    uploads.iter().for_each(|UploadId(hash)| out.extend_from_slice(hash));
}

/// `None` if no version of ours wrote that.
pub(super) fn read(rest: &mut Reader<'_>) -> Option<More> {
    let [flags, labels, tags, uploads] = rest.bytes()?;
    if flags & !MAX_FAILURES != 0 {
        return None;
    }
    let mut more = More::default();
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
    Some(more)
}
