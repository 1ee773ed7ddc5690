//! Admin calls about output, results and uploads, and their answers.

use bytes::Bytes;
use turno_proto::model::TaskId;
use turno_proto::model::archive::{FileView, OutputPiece, OutputPlace, OutputStream, UploadId};
use turno_proto::model::job::JobId;
use turno_proto::native::Frame;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

const JOB: JobId = JobId(7);
const SECOND: UploadId = UploadId([0xFF; 32]);

fn first() -> UploadId {
    UploadId(std::array::from_fn(|at| u8::try_from(at).expect("below 32")))
}

pub(super) fn calls() -> Vec<(&'static str, Frame<'static>)> {
    let (job, worker, name) = (JOB, || "w1".to_owned(), || "out/a.csv".to_owned());
    let live =
        OutputPiece { live: true, attempt: 2, ..piece(70_000, OutputStream::Stderr, 5_000_000_000, b"\x00\xff") };
    let table = vec![
        ("call_task_output", AdminCall::TaskOutput { worker: worker(), pieces: vec![hello(), live] }),
        ("call_task_output_none", AdminCall::TaskOutput { worker: worker(), pieces: Vec::new() }),
        (
            "call_task_file",
            AdminCall::TaskFile {
                worker: worker(),
                job,
                task: 3,
                attempt: 2,
                name: name(),
                at: 262_144,
                last: true,
                bytes: Bytes::from_static(b"1,2\n"),
            },
        ),
        (
            "call_job_output",
            AdminCall::JobOutput {
                job,
                tasks: None,
                from: OutputPlace::default(),
                after: None,
                follow: false,
                limit: 262_144,
            },
        ),
        (
            "call_job_output_follow",
            AdminCall::JobOutput {
                job,
                tasks: Some(vec![(1, 20), (33, 33)]),
                from: OutputPlace { task: 3, attempt: 2, at: 70_000 },
                after: Some(5_000_000_000),
                follow: true,
                limit: 1_000,
            },
        ),
        ("call_job_files", AdminCall::JobFiles { job, after: None, limit: 1_000 }),
        ("call_job_files_after", AdminCall::JobFiles { job, after: Some((3, name())), limit: 1_000 }),
        ("call_job_file", AdminCall::JobFile { job, task: 3, name: name(), at: 262_144 }),
        ("call_upload_check", AdminCall::UploadCheck { uploads: vec![first(), SECOND] }),
        (
            "call_upload_put",
            AdminCall::UploadPut { upload: first(), size: 300, at: 256, bytes: Bytes::from_static(b"the rest") },
        ),
        ("call_upload_get", AdminCall::UploadGet { upload: first(), at: 262_144 }),
    ];
    table.into_iter().map(|(name, call)| (name, Frame::AdminCall { seq: 11, call })).collect()
}

pub(super) fn answers() -> Vec<(&'static str, Frame<'static>)> {
    let per_task = 1_048_576;
    let pieces = vec![hello(), piece(3, OutputStream::Stderr, 6, b"\x00\xff")];
    let next = OutputPlace { task: 3, attempt: 1, at: 8 };
    let file = FileView {
        id: TaskId { job: JOB, task: 3 },
        task: 3,
        attempt: 2,
        name: "out/a.csv".to_owned(),
        bytes: 5_000_000_000,
        lost: false,
    };
    let table = vec![
        ("answer_kept", AdminAnswer::OutputKept { per_task, follow: Vec::new(), refused: Vec::new() }),
        (
            "answer_kept_follow",
            AdminAnswer::OutputKept {
                per_task,
                follow: vec![(JOB, 3), (JOB, 70_000)],
                refused: vec![(JobId(6), 1, 2)],
            },
        ),
        ("answer_output", AdminAnswer::Output { pieces, next, arrived: 5_000_000_000, end: false, damaged: false }),
        (
            "answer_output_none",
            AdminAnswer::Output {
                pieces: Vec::new(),
                next: OutputPlace::default(),
                arrived: 0,
                end: true,
                damaged: false,
            },
        ),
        (
            "answer_output_lost",
            AdminAnswer::Output {
                pieces: vec![OutputPiece { lost: 70_000, ..piece(3, OutputStream::Stdout, 6, b"") }],
                next,
                arrived: 5_000_000_000,
                end: true,
                damaged: true,
            },
        ),
        (
            "answer_files",
            AdminAnswer::Files { files: vec![file.clone()], next: Some((3, "out/a.csv".to_owned())), damaged: false },
        ),
        ("answer_files_none", AdminAnswer::Files { files: Vec::new(), next: None, damaged: false }),
        (
            "answer_files_lost",
            AdminAnswer::Files { files: vec![FileView { lost: true, ..file }], next: None, damaged: true },
        ),
        ("answer_piece", AdminAnswer::Piece { bytes: Bytes::from_static(b"1,2\n"), size: 300 }),
        ("answer_uploads", AdminAnswer::Uploads { missing: vec![SECOND] }),
        ("answer_uploads_none", AdminAnswer::Uploads { missing: Vec::new() }),
    ];
    table.into_iter().map(|(name, answer)| (name, Frame::AdminAnswer { seq: 11, answer })).collect()
}

fn hello() -> OutputPiece {
    piece(3, OutputStream::Stdout, 0, b"hello\n")
}

fn piece(task: u32, stream: OutputStream, at: u64, bytes: &'static [u8]) -> OutputPiece {
    OutputPiece { job: JOB, task, attempt: 1, stream, at, live: false, bytes: Bytes::from_static(bytes), lost: 0 }
}
