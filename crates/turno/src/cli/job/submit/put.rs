//! Uploads to the broker; files that it has already are not sent.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::Code;
use turno_proto::model::archive::UploadId;
use turno_proto::model::limits::JOB_UPLOADS_MAX;

use super::reader::UploadReader;
use super::uploads::Upload;
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::progress::{ProgressStyle, style_here};
use crate::cli::shown::escaped;
use crate::cli::size;
use crate::cli::window::Window;

/// Pieces on their way at a time.
const PIECES: usize = 8;
/// How long an answer to one of them may take: it may have to wait for the pieces before it on a slow line.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause before a piece is sent again to an archive that has too much to do; twice as long each time.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// How often in a row it may have too much to do.
const BUSY_MAX: u32 = 30;
/// How often a file is sent from its beginning: the broker may be started again meanwhile.
const BEGINNINGS_MAX: u32 = 5;
/// Bytes that are sent without showing progress.
const SILENT_BYTES: u64 = 8 * 1024 * 1024;
/// Time between two words of how far it is, drawn on one line and told in lines.
const DRAWN_EVERY: Duration = Duration::from_millis(250);
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Brings to the broker what it does not have of these files.
pub(super) async fn put(files: &[(Upload, UploadId)], client: &Client, invocation: &Invocation) -> Result<(), Failure> {
    let by_id: BTreeMap<UploadId, &Upload> = files.iter().map(|(upload, id)| (*id, upload)).collect();
    let ids: Vec<UploadId> = by_id.keys().copied().collect();
    let mut missing = Vec::new();
    for ids in ids.chunks(JOB_UPLOADS_MAX) {
        missing.extend(check(ids, client, invocation.global.timeout()).await?);
    }
    let missing: Vec<(UploadId, &Upload)> =
        missing.into_iter().filter_map(|id| by_id.get(&id).map(|upload| (id, *upload))).collect();
    let mut told = UploadProgress::new(&missing, invocation);
    for (id, upload) in missing {
        told.begin(upload);
        send(upload, id, client, &mut told)
            .await
            .inspect_err(|_| told.clear())
            .map_err(|failure| not_sent(failure, upload))?;
    }
    told.clear();
    Ok(())
}

/// Which of these the broker does not have.
async fn check(ids: &[UploadId], client: &Client, timeout: Duration) -> Result<Vec<UploadId>, Failure> {
    let mut pauses = Pauses::default();
    loop {
        let call = AdminCall::UploadCheck { uploads: ids.to_vec() };
        match connect::admin(client, call, timeout).await {
            Err(failure) if failure.code() == Code::ArchiveBusy => pauses.wait().await?,
            answer => return answer.and_then(uploads),
        }
    }
}

fn uploads(answer: AdminAnswer) -> Result<Vec<UploadId>, Failure> {
    match answer {
        AdminAnswer::Uploads { missing } => Ok(missing),
        other => Err(connect::unexpected(&other)),
    }
}

fn not_sent(failure: Failure, upload: &Upload) -> Failure {
    let path = upload.path.display();
    match failure.code() {
        Code::WrongHash => failure,
        Code::OverDisk => Failure::new(Code::OverDisk, format!("the broker has no space for {path}")).why(format!(
            "its disk is nearly full, or its upload limit is reached; the file has {}",
            size::short(upload.size)
        )),
        _ => failure.fix(format!("{path} was not uploaded; submit again: files already uploaded are not sent twice")),
    }
}

/// Patience with an archive that has too much to do.
#[derive(Default)]
struct Pauses {
    /// In a row.
    count: u32,
}

impl Pauses {
    async fn wait(&mut self) -> Result<(), Failure> {
        if self.count == BUSY_MAX {
            return Err(Failure::of(Code::ArchiveBusy));
        }
        sleep(PAUSE_MAX.min(PAUSE * 2_u32.saturating_pow(self.count))).await;
        self.count += 1;
        Ok(())
    }
}

/// How a round of pieces ended.
enum Round {
    /// The broker has all of the file.
    Whole,
    /// All of these pieces are there.
    Kept,
    /// All before that one; it has too much to do now.
    Busy(usize),
    /// It knows nothing of those before.
    Forgotten,
}

async fn send(upload: &Upload, id: UploadId, client: &Client, told: &mut UploadProgress<'_>) -> Result<(), Failure> {
    for _ in 0..BEGINNINGS_MAX {
        if send_once(upload, id, client, told).await? {
            return Ok(());
        }
    }
    Err(Failure::of(Code::WrongPlace))
}

/// From its beginning to its end; `false` if that has to be done again.
async fn send_once(
    upload: &Upload,
    id: UploadId,
    client: &Client,
    told: &mut UploadProgress<'_>,
) -> Result<bool, Failure> {
    let mut reader = UploadReader::open(upload, Some(id))?;
    let mut pieces: Vec<(u64, Bytes)> = Vec::new();
    let mut pauses = Pauses::default();
    loop {
        while pieces.len() < PIECES
            && let Some(piece) = reader.next()?
        {
            pieces.push(piece);
        }
        if pieces.is_empty() {
            // Every piece is there, and the broker says that the file is not.
            return Ok(false);
        }
        match round(&pieces, id, upload.size, client).await? {
            Round::Whole => return Ok(true),
            Round::Kept => {
                pieces.clear();
                pauses = Pauses::default();
                told.sent(reader.at);
            }
            Round::Forgotten => return Ok(false),
            Round::Busy(place) => {
                if place > 0 {
                    pauses = Pauses::default();
                }
                pieces.drain(..place);
                pauses.wait().await?;
            }
        }
    }
}

/// Sends pieces one behind the other without waiting in between.
async fn round(pieces: &[(u64, Bytes)], upload: UploadId, size: u64, client: &Client) -> Result<Round, Failure> {
    let mut window = Window::new(PIECES);
    for (at, bytes) in pieces {
        let call = AdminCall::UploadPut { upload, size, at: *at, bytes: bytes.clone() };
        let client = client.clone();
        window.begin(async move { connect::admin(&client, call, PATIENCE).await });
    }
    let mut end = Round::Kept;
    let mut place = 0;
    while let Some(answer) = window.finish().await {
        // Pieces after one that was not kept were not kept either.
        if matches!(end, Round::Kept) {
            end = match answer.and_then(uploads) {
                Ok(missing) if missing.is_empty() => Round::Whole,
                Ok(_) => Round::Kept,
                Err(failure) if failure.code() == Code::ArchiveBusy => Round::Busy(place),
                Err(failure) if failure.code() == Code::WrongPlace => Round::Forgotten,
                Err(failure) => return Err(failure),
            };
        }
        place += 1;
    }
    Ok(end)
}

/// How far it is, for people: a line that changes on a terminal, a new one now and then elsewhere.
struct UploadProgress<'a> {
    invocation: &'a Invocation,
    style: ProgressStyle,
    total: u64,
    /// Bytes of the files before this one.
    before: u64,
    name: String,
    size: u64,
    due: Instant,
    is_shown: bool,
}

/// Back to the beginning of the line, and nothing on it.
const CLEAR: &str = "\r\x1b[K";

impl<'a> UploadProgress<'a> {
    fn new(missing: &[(UploadId, &Upload)], invocation: &'a Invocation) -> Self {
        let total = missing.iter().map(|(_, upload)| upload.size).sum();
        let style = match total {
            ..=SILENT_BYTES => ProgressStyle::Nothing,
            _ => style_here(invocation.global.progress, invocation.global.quiet),
        };
        Self { invocation, style, total, before: 0, name: String::new(), size: 0, due: Instant::now(), is_shown: false }
    }

    fn begin(&mut self, upload: &Upload) {
        self.before += self.size;
        (self.name, self.size) = (upload.name.clone(), upload.size);
    }

    fn sent(&mut self, bytes: u64) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        let (done, total) = (size::short(self.before + bytes), size::short(self.total));
        let line = format!("uploading {}: {done} of {total}", self.name);
        match self.style {
            ProgressStyle::Nothing => {}
            ProgressStyle::Lines => {
                self.invocation.output.note(&line);
                self.due = now + TOLD_EVERY;
            }
            ProgressStyle::Bars => {
                self.invocation.output.stderr_raw(format!("{CLEAR}{}", escaped(&line)).as_bytes());
                self.due = now + DRAWN_EVERY;
                self.is_shown = true;
            }
        }
    }

    /// Takes the line away, so that what comes next begins on a clean one.
    fn clear(&mut self) {
        if self.is_shown {
            self.invocation.output.stderr_raw(CLEAR.as_bytes());
            self.is_shown = false;
        }
    }
}
