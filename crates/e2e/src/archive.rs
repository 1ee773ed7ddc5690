//! Output, uploads and results of tasks, as a raw peer asks for them.

use sha2::{Digest as _, Sha256};
use turno_proto::model::archive::{OutputPiece, OutputPlace, UploadId};
use turno_proto::model::job::{Array, JobId, JobSpec, Work};
use turno_proto::model::limits::PIECE_BYTES_MAX;
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::work;

use crate::Peer;

impl Peer {
    /// Submits a job of so many tasks; its number.
    #[track_caller]
    pub fn submit_work(&mut self, tasks: u32, work: &Work, uploads: &[UploadId]) -> u64 {
        let array = Array { first: 1, count: tasks, step: 1 };
        let work = work::encode(work).expect("work for tasks");
        let spec = JobSpec { uploads: uploads.to_vec(), ..JobSpec::new("e2e", array, work) };
        match self.ask(AdminCall::JobSubmit { spec: Box::new(spec) }) {
            AdminAnswer::Job { job } => job.id.0,
            other => panic!("another answer: {other:?}"),
        }
    }

    /// All that the broker has of a job's output, in order.
    #[track_caller]
    pub fn output(&mut self, job: u64) -> Vec<OutputPiece> {
        let (mut all, mut from) = (Vec::new(), OutputPlace::default());
        loop {
            let call =
                AdminCall::JobOutput { job: JobId(job), tasks: None, from, after: None, follow: false, limit: 1 << 20 };
            match self.ask(call) {
                AdminAnswer::Output { pieces, next, end, .. } => {
                    all.extend(pieces);
                    from = next;
                    if end {
                        return all;
                    }
                }
                other => panic!("another answer: {other:?}"),
            }
        }
    }

    /// Puts a file for tasks there.
    #[track_caller]
    pub fn upload(&mut self, bytes: &[u8]) -> UploadId {
        let upload = UploadId(Sha256::digest(bytes).into());
        let size = bytes.len() as u64;
        for at in (0..bytes.len().max(1)).step_by(PIECE_BYTES_MAX) {
            let piece = bytes[at..bytes.len().min(at + PIECE_BYTES_MAX)].to_vec().into();
            match self.ask(AdminCall::UploadPut { upload, size, at: at as u64, bytes: piece }) {
                AdminAnswer::Uploads { .. } => {}
                other => panic!("another answer: {other:?}"),
            }
        }
        upload
    }
}
