//! What tasks print, are given and bring back, as a raw peer asks for it.

use sha2::{Digest as _, Sha256};
use turno_proto::model::archive::{OutputPiece, OutputPlace, OutputStream, UploadId};
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

    /// What a task printed, as far as the broker has it: each stream by itself.
    #[track_caller]
    pub fn printed(&mut self, job: u64, task: u32) -> (String, String) {
        let pieces = self.output(job);
        let stream = |stream: OutputStream| {
            let pieces = pieces.iter().filter(|piece| piece.task == task && piece.stream == stream);
            let bytes: Vec<u8> = pieces.flat_map(|piece| piece.bytes.to_vec()).collect();
            String::from_utf8(bytes).expect("text")
        };
        (stream(OutputStream::Stdout), stream(OutputStream::Stderr))
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

    /// The files that tasks of a job brought back: task, name and what is in them.
    #[track_caller]
    pub fn results(&mut self, job: u64) -> Vec<(u32, String, Vec<u8>)> {
        let job = JobId(job);
        let files = match self.ask(AdminCall::JobFiles { job, after: None, limit: 1_000 }) {
            AdminAnswer::Files { files, next: None } => files,
            other => panic!("another answer: {other:?}"),
        };
        files.into_iter().map(|file| (file.task, file.name.clone(), self.result(job, file.task, &file.name))).collect()
    }

    #[track_caller]
    fn result(&mut self, job: JobId, task: u32, name: &str) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            match self.ask(AdminCall::JobFile { job, task, name: name.to_owned(), at: all.len() as u64 }) {
                AdminAnswer::Piece { bytes, size } => {
                    all.extend(&bytes);
                    if all.len() as u64 >= size {
                        return all;
                    }
                }
                other => panic!("another answer: {other:?}"),
            }
        }
    }
}
