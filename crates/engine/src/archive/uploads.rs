//! Uploads that jobs name: each is kept as long as a job does.

use std::collections::BTreeMap;

use turno_proto::model::archive::UploadId;
use turno_proto::model::job::{JobId, JobSpec};

use super::ArchiveCall;
use crate::effect::{Effect, Sink};
use crate::engine::Engine;

/// How often uploads are named, and what the archive is to hear of it.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    named: BTreeMap<UploadId, u64>,
    news: Vec<ArchiveCall>,
}

impl Engine {
    /// A job is there, and names uploads.
    pub(crate) fn name_uploads(&mut self, spec: &JobSpec) {
        let Uploads { named, news } = &mut self.archive.uploads;
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
    pub(crate) fn forget_archived(&mut self, job: JobId, spec: &JobSpec) {
        self.archive.follows.forget(job);
        let Uploads { named, news } = &mut self.archive.uploads;
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
    pub(crate) const fn has_news_for_archive(&self) -> bool {
        !self.archive.uploads.news.is_empty()
    }

    pub(crate) fn tell_archive(&mut self, out: &mut impl Sink) {
        for call in std::mem::take(&mut self.archive.uploads.news) {
            self.archive.last += 1;
            out.effect(Effect::Archive { ticket: self.archive.last, call: Box::new(call) });
        }
    }

    /// The archive is opened with what is known after the recovery, and need not hear of it.
    pub(crate) fn archive_knows(&mut self) {
        self.archive.uploads.news.clear();
    }

    /// The jobs there are: what the archive has of others is not wanted any more.
    pub fn known_jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.ids()
    }

    /// Uploads that these jobs name.
    pub fn named_uploads(&self) -> impl Iterator<Item = UploadId> {
        self.archive.uploads.named.keys().copied()
    }

    pub(super) fn check_uploads(&self) {
        assert!(self.archive.uploads.news.is_empty(), "the archive hears at once what is for it");
        let mut named = BTreeMap::new();
        for upload in self.jobs.specs().flat_map(|spec| &spec.uploads) {
            *named.entry(*upload).or_insert(0) += 1;
        }
        assert_eq!(named, self.archive.uploads.named, "uploads are named as often as jobs name them");
    }
}
