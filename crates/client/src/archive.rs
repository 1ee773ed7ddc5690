//! The broker's archive: files for tasks, and the output of tasks as it comes.

use std::io::SeekFrom;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncSeek, AsyncSeekExt as _};
use tokio::time::sleep;
use turno_proto::model::Code;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::archive::UploadId;
use turno_proto::model::limits::PIECE_BYTES_MAX;

use crate::pages::answer;
use crate::{Client, Error};

/// Pause before an overloaded archive is asked again; twice as long each time, up to the second one.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// Pauses in a row. More: the call ends with `archive_busy`.
const PAUSES_MAX: u32 = 30;
/// How often a file is sent from its beginning: a broker that restarts forgets incomplete files.
const BEGINNINGS_MAX: u32 = 5;

/// The archive behind a client.
pub(crate) struct Archive<'a>(pub(crate) &'a Client);

impl Archive<'_> {
    /// Makes a call, again while the archive is overloaded: such a call has stored nothing.
    pub(crate) async fn ask(&self, call: AdminCall) -> Result<AdminAnswer, Error> {
        let mut pauses = 0;
        loop {
            match self.0.ask(call.clone()).await {
                Err(error) if error.code() == Code::ArchiveBusy && pauses < PAUSES_MAX => {
                    sleep(PAUSE_MAX.min(PAUSE * 2_u32.saturating_pow(pauses))).await;
                    pauses += 1;
                }
                answer => return answer,
            }
        }
    }

    /// Collects the pieces of a file; `piece` is the call for the one that begins there.
    pub(crate) async fn read(&self, piece: impl Fn(u64) -> AdminCall) -> Result<Bytes, Error> {
        let mut content = BytesMut::new();
        loop {
            let call = piece(content.len() as u64);
            let (bytes, size) = answer!(self, call, AdminAnswer::Piece { bytes, size } => (bytes, size))?;
            content.extend_from_slice(&bytes);
            if bytes.is_empty() || content.len() as u64 >= size {
                return Ok(content.freeze());
            }
        }
    }

    /// Stores a file, unless it is stored.
    pub(crate) async fn put<R>(&self, mut content: R) -> Result<UploadId, Error>
    where
        R: AsyncRead + AsyncSeek + Unpin,
    {
        let (upload, size) = identify(&mut content).await?;
        let call = AdminCall::UploadCheck { uploads: vec![upload] };
        if answer!(self, call, AdminAnswer::Uploads { missing } => missing)?.is_empty() {
            return Ok(upload);
        }
        for _ in 0..BEGINNINGS_MAX {
            content.rewind().await?;
            if self.put_once(&mut content, upload, size).await? {
                return Ok(upload);
            }
        }
        Err(Error::from_code(Code::WrongPlace, ""))
    }

    /// From its beginning to its end; `false` if the broker has forgotten the pieces before.
    async fn put_once<R>(&self, content: &mut R, upload: UploadId, size: u64) -> Result<bool, Error>
    where
        R: AsyncRead + Unpin,
    {
        let mut at = 0;
        loop {
            let bytes = read_piece(content, size - at).await?;
            let next = at + bytes.len() as u64;
            if bytes.is_empty() && at < size {
                return Err(Error::from_code(Code::WrongHash, "the content became shorter while it was sent"));
            }
            let call = AdminCall::UploadPut { upload, size, at, bytes };
            match answer!(self, call, AdminAnswer::Uploads { missing } => missing.is_empty()) {
                Ok(true) => return Ok(true),
                Ok(false) if next < size => at = next,
                // Every piece was sent, and the broker does not have them all.
                Ok(false) => return Ok(false),
                Err(error) if error.code() == Code::WrongPlace => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The id of a file, and its size.
async fn identify<R>(content: &mut R) -> Result<(UploadId, u64), Error>
where
    R: AsyncRead + AsyncSeek + Unpin,
{
    content.seek(SeekFrom::Start(0)).await?;
    let (mut hash, mut size) = (Sha256::new(), 0);
    loop {
        let piece = read_piece(content, PIECE_BYTES_MAX as u64).await?;
        if piece.is_empty() {
            return Ok((UploadId(hash.finalize().into()), size));
        }
        hash.update(&piece);
        size += piece.len() as u64;
    }
}

/// The next bytes, as many as a piece has and as are `left`; fewer at the end.
async fn read_piece<R>(content: &mut R, left: u64) -> Result<Bytes, Error>
where
    R: AsyncRead + Unpin,
{
    let mut piece = Vec::new();
    content.take(left.min(PIECE_BYTES_MAX as u64)).read_to_end(&mut piece).await?;
    Ok(piece.into())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[tokio::test]
    async fn the_id_of_a_file_is_the_hash_of_its_bytes() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let (id, size) = identify(&mut Cursor::new("abc")).await.expect("read");
        assert_eq!((id.to_string().as_str(), size), (expected, 3));
    }

    #[tokio::test]
    async fn a_file_is_read_in_pieces() {
        let content = vec![7; PIECE_BYTES_MAX + 10];
        let mut reader = Cursor::new(&content);
        let mut sizes = Vec::new();
        for left in [content.len(), 10, 0] {
            sizes.push(read_piece(&mut reader, left as u64).await.expect("read").len());
        }
        assert_eq!(sizes, [PIECE_BYTES_MAX, 10, 0]);
    }
}
