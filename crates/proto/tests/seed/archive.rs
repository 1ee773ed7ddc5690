//! Any call about output, results and uploads, and any answer.

use turno_proto::model::TaskId;
use turno_proto::model::archive::{FileView, OutputPiece, OutputPlace, OutputStream, UploadId};
use turno_proto::model::job::JobId;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use super::Seed;

impl Seed {
    pub(super) fn archive_call(&self, which: u8) -> AdminCall {
        let [some, more, last, ..] = self.bits;
        let (job, task, attempt, at) = (JobId(self.long), self.number, self.word, self.long);
        let upload = UploadId([self.choice; 32]);
        match which {
            0 => AdminCall::TaskOutput { worker: self.text(), pieces: self.pieces(17) },
            1 => {
                let (worker, name, bytes) = (self.text(), self.text(), self.bytes.clone().into());
                AdminCall::TaskFile { worker, job, task, attempt, name, at, last, bytes }
            }
            2 => {
                let tasks = some.then(|| vec![(self.word, self.number); usize::from(self.small % 65)]);
                let after = more.then_some(self.long);
                AdminCall::JobOutput { job, tasks, from: self.place(), after, follow: last, limit: self.word }
            }
            3 => AdminCall::JobFiles { job, after: some.then(|| (task, self.text())), limit: self.word },
            4 => AdminCall::JobFile { job, task, name: self.text(), at },
            5 => AdminCall::UploadCheck { uploads: vec![upload; usize::from(self.small % 65)] },
            6 => AdminCall::UploadPut { upload, size: self.long, at, bytes: self.bytes.clone().into() },
            _ => AdminCall::UploadGet { upload, at },
        }
    }

    pub(super) fn archive_answer(&self, which: u8) -> AdminAnswer {
        let [some, end, ..] = self.bits;
        let rows = usize::from(self.small % 20);
        let job = JobId(self.long);
        match which {
            0 => AdminAnswer::OutputKept {
                per_task: self.long,
                follow: vec![(job, self.word); rows],
                refused: vec![(job, self.word, self.number); rows],
            },
            1 => AdminAnswer::Output {
                pieces: self.pieces(100),
                next: self.place(),
                arrived: self.long,
                end,
                damaged: some,
            },
            2 => {
                let id = TaskId { job, task: self.word };
                let (attempt, bytes) = (self.number, self.long);
                let file = FileView { id, task: self.word, attempt, name: self.text(), bytes, lost: end };
                AdminAnswer::Files {
                    files: vec![file; rows],
                    next: some.then(|| (self.word, self.text())),
                    damaged: end,
                }
            }
            3 => AdminAnswer::Piece { bytes: self.bytes.clone().into(), size: self.long },
            _ => AdminAnswer::Uploads { missing: vec![UploadId([self.choice; 32]); rows] },
        }
    }

    fn place(&self) -> OutputPlace {
        OutputPlace { task: self.word, attempt: self.number, at: self.long }
    }

    fn pieces(&self, most: u16) -> Vec<OutputPiece> {
        let piece = OutputPiece {
            job: JobId(self.long),
            task: self.number,
            attempt: self.word,
            stream: if self.bits[0] { OutputStream::Stdout } else { OutputStream::Stderr },
            at: self.long,
            live: self.bits[1],
            bytes: self.bytes.clone().into(),
            lost: if self.bits[2] { self.long } else { 0 },
        };
        vec![piece; usize::from(self.small % most)]
    }
}
