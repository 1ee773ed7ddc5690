//! Uploads that jobs use: each is kept as long as one of its jobs.

use std::collections::BTreeMap;

use turno_proto::model::archive::UploadId;
use turno_proto::model::job::{JobId, JobSpec};

use super::{Archive, ArchiveCall};
use crate::effect::{ArchiveEffect, Sink};

/// How often uploads are named, and what the archive is to hear of it.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    named: BTreeMap<UploadId, u64>,
    news: Vec<ArchiveCall>,
}

impl Uploads {
    pub(super) fn check<'a>(&self, specs: impl Iterator<Item = &'a JobSpec>) {
        assert!(self.news.is_empty(), "the archive hears at once what is for it");
        let mut named = BTreeMap::new();
        for upload in specs.flat_map(|spec| &spec.uploads) {
            *named.entry(*upload).or_insert(0) += 1;
        }
        assert_eq!(named, self.named, "uploads are named as often as jobs name them");
    }
}

impl Archive {
    /// A job is there, and names uploads.
    pub(crate) fn job_came(&mut self, spec: &JobSpec) {
        let Uploads { named, news } = &mut self.uploads;
        let mut uploads = Vec::new();
        for upload in &spec.uploads {
            let count = named.entry(*upload).or_insert(0);
            *count += 1;
            if *count == 1 {
                uploads.push(*upload);
            }
        }
        if !uploads.is_empty() {
            news.push(ArchiveCall::Name { uploads });
        }
    }

    /// A job is gone, and with it what it named and what its tasks left.
    pub(crate) fn job_gone(&mut self, job: JobId, spec: &JobSpec) {
        self.follows.forget(job);
        let Uploads { named, news } = &mut self.uploads;
        let mut uploads = Vec::new();
        for upload in &spec.uploads {
            let Some(count) = named.get_mut(upload) else { continue };
            *count -= 1;
            if *count == 0 {
                named.remove(upload);
                uploads.push(*upload);
            }
        }
        news.push(ArchiveCall::Forget { job, uploads });
    }

    /// Whether the archive is to hear something.
    #[inline]
    pub(crate) const fn has_news(&self) -> bool {
        !self.uploads.news.is_empty()
    }

    pub(crate) fn tell_news(&mut self, out: &mut impl Sink) {
        for call in std::mem::take(&mut self.uploads.news) {
            self.last += 1;
            out.archive(ArchiveEffect { ticket: self.last, call: Box::new(call) });
        }
    }

    /// The archive is opened with what is known after the recovery, and need not hear of it.
    pub(crate) fn knows_all(&mut self) {
        self.uploads.news.clear();
    }

    /// Uploads that jobs name.
    pub(crate) fn named_uploads(&self) -> impl Iterator<Item = UploadId> {
        self.uploads.named.keys().copied()
    }
}
