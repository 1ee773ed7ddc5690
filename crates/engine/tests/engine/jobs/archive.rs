//! The gate of the archive: who may hand in what, who may see it, and how much of that is under way.

use bytes::Bytes;
use turno_engine::{ArchiveCall, Effect, Input, NativeEffect, PeerEffect};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::archive::{OutputPiece, OutputPlace, OutputStream, UploadId};
use turno_proto::model::job::{JobId, JobSpec};
use turno_proto::model::limits::{
    ARCHIVE_CALLS_BYTES_MAX, ARCHIVE_CALLS_MAX, FILES_PER_TASK_MAX, FOLLOW_MS, JOB_UPLOADS_MAX, OUTPUT_PER_TASK_BYTES,
    OUTPUT_PIECES_MAX, OUTPUT_SLACK, PIECE_BYTES_MAX, TASK_RANGES_MAX,
};
use turno_proto::model::{Code, ConnId};

use super::farm::{Farm, Said, job};

fn piece(job: u64, task: u32, attempt: u32, at: u64, bytes: impl Into<Bytes>) -> OutputPiece {
    OutputPiece {
        job: JobId(job),
        task,
        attempt,
        stream: OutputStream::Stdout,
        at,
        live: false,
        bytes: bytes.into(),
        lost: 0,
    }
}

fn output(worker: &str, pieces: Vec<OutputPiece>) -> AdminCall {
    AdminCall::TaskOutput { worker: worker.to_owned(), pieces }
}

fn file(worker: &str, name: &str, at: u64) -> AdminCall {
    let (worker, name, bytes) = (worker.to_owned(), name.to_owned(), Bytes::from_static(b"body"));
    AdminCall::TaskFile { worker, job: JobId(1), task: 1, attempt: 1, name, at, last: true, bytes }
}

fn look(job: u64, tasks: Option<Vec<(u32, u32)>>, follow: bool) -> AdminCall {
    AdminCall::JobOutput { job: JobId(job), tasks, from: OutputPlace::default(), after: None, follow, limit: 100 }
}

/// Tasks that somebody looks at, and attempts that were refused.
type KeptAnswer = (Vec<(JobId, u32)>, Vec<(JobId, u32, u32)>);

/// Calls and answers of the archive.
impl Farm {
    /// What the archive is asked because of a call that is not answered yet.
    fn asked(&mut self, call: AdminCall) -> (u64, ArchiveCall) {
        assert_eq!(self.call(call), []);
        self.archive.pop().expect("the archive is asked")
    }

    fn archived(&mut self, ticket: u64, answer: Result<Option<AdminAnswer>, Code>) -> Vec<Said> {
        self.step(Input::Archived { ticket, answer: answer.map(|answer| answer.map(Box::new)) })
    }

    /// What a worker is told, the archive having kept what it brought.
    fn kept(&mut self, call: AdminCall) -> KeptAnswer {
        let mut said = self.call(call);
        if let Some((ticket, _)) = self.archive.pop() {
            said.extend(self.archived(ticket, Ok(None)));
        }
        match &said[..] {
            [Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. }))] => {
                match &**answer {
                    AdminAnswer::OutputKept { per_task, follow, refused } => {
                        assert_eq!(*per_task, OUTPUT_PER_TASK_BYTES);
                        (follow.clone(), refused.clone())
                    }
                    answer => panic!("{answer:?}"),
                }
            }
            said => panic!("{said:?}"),
        }
    }

    /// A worker `w` runs the tasks 1 and 2 of job 1.
    fn with_tasks() -> (Self, ConnId) {
        let mut farm = Self::on_disk();
        let worker = farm.worker("w", 2);
        farm.submit(job(3));
        farm.accept(worker);
        (farm, worker)
    }
}

fn pieces_of(call: ArchiveCall) -> Vec<OutputPiece> {
    match call {
        ArchiveCall::KeepOutput { pieces } => pieces,
        call => panic!("{call:?}"),
    }
}

#[test]
fn output_of_a_running_task_is_kept_and_then_answered() {
    let (mut farm, _) = Farm::with_tasks();
    let pieces = vec![piece(1, 1, 1, 0, "one"), piece(1, 2, 1, 7, "two")];
    let (ticket, call) = farm.asked(output("w", pieces.clone()));
    assert_eq!(call, ArchiveCall::KeepOutput { pieces });
    let kept = AdminAnswer::OutputKept { per_task: OUTPUT_PER_TASK_BYTES, follow: Vec::new(), refused: Vec::new() };
    let answer = Effect::Peer(PeerEffect::Native {
        conn: farm.admin,
        effect: NativeEffect::Admin { seq: farm.seqs, answer: Box::new(kept) },
    });
    assert_eq!(farm.archived(ticket, Ok(None)), [Said::Other(answer)]);
    assert_eq!(farm.archived(ticket, Ok(None)), [], "once");

    let (ticket, _) = farm.asked(output("w", vec![piece(1, 1, 1, 3, "more")]));
    assert_eq!(farm.archived(ticket, Err(Code::OverDisk)), [Said::Error(farm.seqs, Code::OverDisk)]);
    // Who hands nothing in learns what is wanted.
    assert_eq!(farm.kept(output("w", Vec::new())), (Vec::new(), Vec::new()));
    assert_eq!(farm.kept(output("stranger", Vec::new())), (Vec::new(), Vec::new()));
}

#[test]
fn only_the_worker_of_a_task_may_hand_in_output() {
    let (mut farm, worker) = Farm::with_tasks();
    farm.worker("other", 0);
    for (who, job, task, attempt) in [
        ("other", 1, 1, 1),
        ("nobody", 1, 1, 1),
        ("", 1, 1, 1),
        ("w", 1, 1, 0),
        ("w", 1, 1, 2),
        ("w", 1, 3, 1),
        ("w", 1, 4, 1),
        ("w", 2, 1, 1),
        ("w", u64::MAX, u32::MAX, u32::MAX),
    ] {
        let strange = piece(job, task, attempt, 0, "not mine");
        let refused = vec![(JobId(job), task, attempt)];
        assert_eq!(farm.kept(output(who, vec![strange.clone(), strange.clone()])), (Vec::new(), refused.clone()));
        assert_eq!(farm.archive, [], "{who} {job}.{task} {attempt}");
        // What else it brings is kept.
        let (ticket, call) = farm.asked(output("w", vec![strange.clone(), piece(1, 2, 1, 0, "mine")]));
        let mine = piece(1, 2, 1, 0, "mine");
        assert_eq!(
            pieces_of(call),
            if who == "w" { vec![mine] } else { vec![piece(1, 1, attempt, 0, "not mine"), mine] }
        );
        farm.archived(ticket, Ok(None));
    }
    farm.finished(worker, 1, 1, 1);
    assert_eq!(farm.kept(output("w", vec![piece(1, 1, 1, 9, "late")])).1, [(JobId(1), 1, 1)]);
    // An end counts when it is stored.
    farm.quick = false;
    farm.update(worker, 1, 2, Some(1), false);
    assert_eq!(farm.kept(output("w", vec![piece(1, 2, 1, 9, "last lines")])).1, []);
    farm.flush();
    assert_eq!(farm.kept(output("w", vec![piece(1, 2, 1, 9, "too late")])).1, [(JobId(1), 2, 1)]);
}

#[test]
fn a_task_is_its_workers_until_it_has_let_go_of_it() {
    let (mut farm, worker) = Farm::with_tasks();
    farm.cancel(1, None);
    farm.confirm(worker, 1, 1);
    // Its state is known, its process may still write.
    assert_eq!(farm.kept(output("w", vec![piece(1, 1, 1, 0, "dying")])).1, []);
    farm.ended(worker, 1, 1, 1, false);
    assert_eq!(farm.kept(output("w", vec![piece(1, 1, 1, 5, "dead")])).1, [(JobId(1), 1, 1)]);

    let (mut farm, worker) = Farm::with_tasks();
    farm.lose(worker);
    assert_eq!(farm.kept(output("w", vec![piece(1, 1, 1, 0, "away")])).1, []);
    farm.restart(1_000);
    assert_eq!(farm.kept(output("w", vec![piece(1, 1, 1, 4, "and away")])).1, []);
    farm.pass(120_000);
    assert_eq!(farm.kept(output("w", vec![piece(1, 1, 1, 4, "too long")])).1, [(JobId(1), 1, 1)]);
}

#[test]
fn output_that_is_too_much_for_one_call_is_refused() {
    let (mut farm, _) = Farm::with_tasks();
    let many = vec![piece(1, 1, 1, 0, "x"); OUTPUT_PIECES_MAX + 1];
    let half = piece(1, 1, 1, 0, vec![0; PIECE_BYTES_MAX / 2 + 1]);
    let beyond = piece(1, 1, 1, u64::MAX, "x");
    for pieces in [many, vec![half.clone(), half], vec![beyond]] {
        assert_eq!(farm.refused(output("w", pieces)), Code::BadCall);
    }
    assert_eq!(farm.archive, []);
}

/// Whatever a worker sends, no more of one attempt is kept than twice what it was told (10 GB here).
#[test]
fn no_attempt_has_more_output_than_its_share() {
    let (mut farm, worker) = Farm::with_tasks();
    let body = Bytes::from(vec![b'x'; PIECE_BYTES_MAX - 1]);
    let mut kept = 0;
    for call in 0..40_000_u64 {
        let at = call * body.len() as u64;
        farm.kept_bytes(output("w", vec![piece(1, 1, 1, at, body.clone())]), &mut kept);
    }
    assert_eq!(kept as u64, OUTPUT_SLACK * OUTPUT_PER_TASK_BYTES);
    // Another attempt has its own share, and so has another task.
    farm.kept_bytes(output("w", vec![piece(1, 2, 1, 0, "x")]), &mut kept);
    assert_eq!(kept as u64, OUTPUT_SLACK * OUTPUT_PER_TASK_BYTES + 1);
    // To reconnect is of no use.
    let conn = farm.connect();
    farm.hello(conn, "w", 2, &[(1, 1, Some(1)), (1, 2, Some(1))]);
    farm.lose(worker);
    farm.kept_bytes(output("w", vec![piece(1, 1, 1, 0, "x")]), &mut kept);
    assert_eq!(kept as u64, OUTPUT_SLACK * OUTPUT_PER_TASK_BYTES + 1);
}

impl Farm {
    /// As `kept`, counting what reached the archive.
    fn kept_bytes(&mut self, call: AdminCall, kept: &mut usize) {
        let said = self.call(call);
        match self.archive.pop() {
            Some((ticket, call)) => {
                *kept += pieces_of(call).iter().map(|piece| piece.bytes.len()).sum::<usize>();
                assert_eq!(self.archived(ticket, Ok(None)).len(), 1);
            }
            None => assert_eq!(said.len(), 1),
        }
    }
}

#[test]
fn only_so_much_is_under_way() {
    let (mut farm, _) = Farm::with_tasks();
    let tickets: Vec<u64> =
        (0..ARCHIVE_CALLS_MAX).map(|_| farm.asked(output("w", vec![piece(1, 1, 1, 0, "x")])).0).collect();
    for call in [output("w", vec![piece(1, 1, 1, 0, "x")]), file("w", "a", 0), look(1, None, false)] {
        assert_eq!(farm.refused(call), Code::ArchiveBusy);
    }
    assert_eq!(farm.refused(AdminCall::UploadCheck { uploads: Vec::new() }), Code::ArchiveBusy);
    farm.archived(tickets[5], Ok(None));
    farm.asked(look(1, None, false));

    let (mut farm, _) = Farm::with_tasks();
    let put = || {
        let bytes = Bytes::from(vec![0; PIECE_BYTES_MAX]);
        AdminCall::UploadPut { upload: UploadId([1; 32]), size: 1 << 40, at: 0, bytes }
    };
    let tickets: Vec<u64> = (0..ARCHIVE_CALLS_BYTES_MAX / PIECE_BYTES_MAX).map(|_| farm.asked(put()).0).collect();
    assert_eq!(farm.refused(put()), Code::ArchiveBusy);
    assert_eq!(farm.refused(output("w", vec![piece(1, 1, 1, 0, "x")])), Code::ArchiveBusy);
    let answer = AdminAnswer::Uploads { missing: Vec::new() };
    assert_eq!(farm.archived(tickets[0], Ok(Some(answer))).len(), 1);
    farm.asked(output("w", vec![piece(1, 1, 1, 0, "x")]));
}

/// Who asked and left is not answered; what it asked for does not count any more.
#[test]
fn an_answer_for_somebody_who_left_is_dropped() {
    let (mut farm, _) = Farm::with_tasks();
    let conn = ConnId { index: 99, generation: 1 };
    farm.step(Input::Connected { conn, name: "gone".into(), address: String::new() });
    farm.step(Input::Admin { conn, seq: 1, call: look(1, None, false) });
    farm.step(Input::Disconnected { conn });
    let (ticket, _) = farm.archive.pop().unwrap();
    assert_eq!(farm.archived(ticket, Err(Code::Io)), []);
    assert_eq!(farm.archived(77, Ok(None)), []);
}

#[test]
fn workers_hear_which_tasks_are_looked_at() {
    let (mut farm, _) = Farm::with_tasks();
    let live = |task| OutputPiece { live: true, ..piece(1, task, 1, 1 << 30, "now") };
    assert_eq!(farm.kept(output("w", vec![live(1)])), (Vec::new(), Vec::new()));
    assert_eq!(farm.archive, [], "nobody looks");
    farm.asked(look(1, Some(vec![(2, 9)]), true));
    assert_eq!(farm.kept(output("w", Vec::new())).0, [(JobId(1), 2)]);
    assert_eq!(farm.kept(output("other", Vec::new())).0, []);
    let (_, call) = farm.asked(output("w", vec![live(1), live(2)]));
    assert_eq!(pieces_of(call), [live(2)]);
    farm.pass(FOLLOW_MS - 1);
    farm.asked(look(1, None, true));
    assert_eq!(farm.kept(output("w", Vec::new())).0, [(JobId(1), 1), (JobId(1), 2)]);
    farm.pass(FOLLOW_MS);
    assert_eq!(farm.kept(output("w", Vec::new())).0, []);
}

#[test]
fn files_pass_only_with_good_names_and_from_their_worker() {
    let (mut farm, _) = Farm::with_tasks();
    let (_, call) = farm.asked(file("w", "out/a.txt", 9));
    let kept = ArchiveCall::KeepFile {
        job: JobId(1),
        task: 1,
        attempt: 1,
        name: "out/a.txt".to_owned(),
        at: 9,
        last: true,
        bytes: Bytes::from_static(b"body"),
    };
    assert_eq!(call, kept);
    assert_eq!(farm.kept(file("w", "a", 0)), (Vec::new(), Vec::new()));
    for name in ["", "..", "/etc/passwd", "a/../../b", "a\0"] {
        assert_eq!(farm.refused(file("w", name, 0)), Code::BadCall, "{name:?}");
    }
    assert_eq!(farm.refused(file("other", "a", 0)), Code::NotYourTask);
    let AdminCall::TaskFile { worker, job, task, name, .. } = file("w", "a", 0) else { unreachable!() };
    let bytes = Bytes::from(vec![0; PIECE_BYTES_MAX + 1]);
    let large = AdminCall::TaskFile { worker, job, task, attempt: 1, name, at: 0, last: true, bytes };
    assert_eq!(farm.refused(large), Code::BadCall);

    for _ in 1..u64::from(FILES_PER_TASK_MAX) * OUTPUT_SLACK {
        farm.kept(file("w", "a", 0));
    }
    assert_eq!(farm.refused(file("w", "one more", 0)), Code::ArchiveFull);
    assert_eq!(farm.kept(file("w", "a", 4)), (Vec::new(), Vec::new()));
}

#[test]
fn only_what_is_there_can_be_looked_at() {
    let (mut farm, _) = Farm::with_tasks();
    let job = JobId(7);
    for call in [
        look(7, None, true),
        AdminCall::JobFiles { job, after: None, limit: 1 },
        AdminCall::JobFile { job, task: 1, name: "a".to_owned(), at: 0 },
    ] {
        assert_eq!(farm.refused(call), Code::NotFound);
    }
    for tasks in [vec![(2, 1)], vec![(1, 1); TASK_RANGES_MAX + 1]] {
        assert_eq!(farm.refused(look(1, Some(tasks), false)), Code::BadCall);
    }
    let uploads = vec![UploadId([0; 32]); JOB_UPLOADS_MAX + 1];
    assert_eq!(farm.refused(AdminCall::UploadCheck { uploads }), Code::BadCall);

    let job = JobId(1);
    let from = OutputPlace { task: 2, attempt: 1, at: 5 };
    let tasks = Some(vec![(1, 2)]);
    let call = AdminCall::JobOutput { job, tasks: tasks.clone(), from, after: Some(3), follow: false, limit: u32::MAX };
    let asked = ArchiveCall::Output { job, tasks, from, after: Some(3), limit: PIECE_BYTES_MAX };
    assert_eq!(farm.asked(call).1, asked);
    let call = AdminCall::JobFiles { job, after: Some((1, "a".to_owned())), limit: 0 };
    assert_eq!(farm.asked(call).1, ArchiveCall::Files { job, after: Some((1, "a".to_owned())), limit: 1 });
    let call = AdminCall::JobFile { job, task: 1, name: "a".to_owned(), at: 5 };
    let (ticket, asked) = farm.asked(call);
    assert_eq!(asked, ArchiveCall::File { job, task: 1, name: "a".to_owned(), at: 5 });
    let answer = AdminAnswer::Piece { bytes: Bytes::from_static(b"a"), size: 6 };
    let told = Effect::Peer(PeerEffect::Native {
        conn: farm.admin,
        effect: NativeEffect::Admin { seq: farm.seqs, answer: Box::new(answer.clone()) },
    });
    assert_eq!(farm.archived(ticket, Ok(Some(answer))), [Said::Other(told)]);
    assert_eq!(
        farm.asked(AdminCall::UploadGet { upload: UploadId([3; 32]), at: 1 }).1,
        ArchiveCall::Get { upload: UploadId([3; 32]), at: 1 }
    );
}

/// The archive hears which uploads jobs name, and of each job that goes.
#[test]
fn uploads_are_kept_as_long_as_a_job_names_them() {
    let mut farm = Farm::on_disk();
    let [a, b] = [UploadId([0xA; 32]), UploadId([0xB; 32])];
    farm.submit(JobSpec { uploads: vec![a, b], ..job(1) });
    farm.submit(JobSpec { uploads: vec![b], ..job(1) });
    farm.submit(job(1));
    let calls = |farm: &mut Farm| -> Vec<ArchiveCall> { farm.archive.drain(..).map(|(_, call)| call).collect() };
    assert_eq!(calls(&mut farm), [ArchiveCall::Name { uploads: vec![a, b] }]);
    for id in 1..=3 {
        farm.cancel(id, None);
    }
    let removed = |farm: &mut Farm, id: u64| {
        farm.told(AdminCall::JobRm { job: JobId(id) });
        calls(farm)
    };
    assert_eq!(removed(&mut farm, 3), [ArchiveCall::Forget { job: JobId(3), uploads: Vec::new() }]);
    assert_eq!(removed(&mut farm, 1), [ArchiveCall::Forget { job: JobId(1), uploads: vec![a] }]);
    assert_eq!(farm.engine.known_jobs().collect::<Vec<_>>(), [JobId(2)]);
    assert_eq!(farm.engine.named_uploads().collect::<Vec<_>>(), [b]);
    // What is known after a restart the archive is opened with.
    farm.restart(1_000);
    assert_eq!(calls(&mut farm), []);
    assert_eq!(farm.engine.named_uploads().collect::<Vec<_>>(), [b]);
    assert_eq!(removed(&mut farm, 2), [ArchiveCall::Forget { job: JobId(2), uploads: vec![b] }]);

    let uploads = vec![a; JOB_UPLOADS_MAX + 1];
    let spec = Box::new(JobSpec { uploads, ..job(1) });
    assert_eq!(farm.refused(AdminCall::JobSubmit { spec }), Code::BadJob);
}
