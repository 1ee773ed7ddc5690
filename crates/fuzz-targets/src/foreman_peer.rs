//! The other end of a foreman's or worker's connection, which does anything: it knows enough of the rules to come far,
//! and keeps to none of them.

use turno_proto::foreman::{
    Counts, ErrorCode, ForemanFrame, ForemanKind, ForemanSettings, Hello, Role, Running, StatusUpdate, Stop, Task,
    TaskPair, decode, encode, split,
};

use turno_oracle::Bytes;

/// The peer's state: frames it has seen, and numbers for its next ones.
#[derive(Default)]
pub(crate) struct Peer {
    /// The number of the last request it got.
    asked: u32,
    /// The highest number so far.
    highest: u32,
}

/// Limits that a short conversation can reach.
pub(crate) fn settings(bytes: &mut Bytes<'_>) -> ForemanSettings {
    let [seq, held] = bytes.array();
    let seq_max = if seq < 64 { u32::MAX } else { u32::from(seq) };
    ForemanSettings { body_bytes_max: 4 * 1024, held_max: usize::from(held % 4), seq_max }
}

impl Peer {
    /// Looks through what the end with that role wrote: whole frames, and its own to send, with numbers of its own.
    pub(crate) fn reads(&mut self, role: Role, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let piece = split(bytes, usize::MAX).expect("frames are written").expect("and whole ones");
            let frame = decode(&piece).expect("that can be read");
            assert!(frame.kind().is_sent_by(role), "{role:?} may not send {frame:?}");
            if !matches!(frame.kind(), ForemanKind::Ok | ForemanKind::Error | ForemanKind::Reset) {
                assert_eq!(frame.seq() % 2, role.parity(), "{role:?} has numbers of its own: {frame:?}");
            }
            if !matches!(frame.kind(), ForemanKind::Ok | ForemanKind::Error) {
                self.asked = frame.seq();
                self.highest = self.highest.max(frame.seq());
            }
            bytes = &bytes[piece.used..];
        }
    }

    /// The bytes it says to the end with that role.
    pub(crate) fn says(&mut self, role: Role, bytes: &mut Bytes<'_>) -> Vec<u8> {
        let [what, how] = bytes.array();
        let other = 1 - role.parity();
        let next = self.highest.wrapping_add(1 + u32::from(how >> 6));
        let seq = if how & 0x20 != 0 || next % 2 == other { next } else { next.wrapping_add(1) };
        let [job, task] = bytes.array().map(u32::from);
        let (small, job) = (u32::from(how & 0x1F), u64::from(job % 2));
        let task = task % 8;
        let frame = match what % 12 {
            0 => {
                let count = usize::from(how % 40);
                return (0..count).map(|_| bytes.byte()).collect();
            }
            1 => ForemanFrame::Ok { seq: self.asked, counts: Counts { nrun: bytes.u16() % 9, nproc: bytes.u16() % 9 } },
            2 => ForemanFrame::Ok { seq: self.asked, counts: Counts::from_word(bytes.u32()) },
            3 => ForemanFrame::Error { seq: self.asked, code: ErrorCode::from_number(how % 7), arg0: bytes.u32() },
            4 => ForemanFrame::Reset { seq: self.asked, last: small },
            5 => ForemanFrame::Reset { seq, last: small },
            6 | 7 if role == Role::Worker => {
                let tasks = (0..how % 3).map(|i| Task { task: task + u32::from(i), job, ..Task::default() });
                ForemanFrame::Job { seq, tasks: tasks.collect() }
            }
            6 => ForemanFrame::Hello { seq, hello: Some(hello(how, job, task)) },
            7 => ForemanFrame::Update { seq, update: StatusUpdate { job, task, ..StatusUpdate::default() } },
            8 => ForemanFrame::Cancel { seq, pairs: vec![TaskPair { job, task: (how & 1 == 0).then_some(task) }] },
            9 => ForemanFrame::Stop { seq, stop: Stop::from_word(small) },
            10 => ForemanFrame::Ok { seq: 0, counts: Counts::ZERO },
            _ => ForemanFrame::Hello { seq: 0, hello: Some(hello(how, job, task)) },
        };
        if !matches!(frame.kind(), ForemanKind::Ok | ForemanKind::Error) {
            self.highest = self.highest.max(frame.seq());
        }
        if matches!(frame, ForemanFrame::Reset { .. } | ForemanFrame::Hello { seq: 0, .. }) {
            self.highest = 0;
        }
        let mut written = Vec::new();
        encode(&frame, &mut written);
        written
    }
}

fn hello(how: u8, job: u64, task: u32) -> Hello {
    let running = (0..how % 3).map(|i| Running { task: task + u32::from(i), job, attempt: 0, procs: 1 }).collect();
    Hello { num_procs: u16::from(how % 8), running, ..Hello::default() }
}
