//! The search for a free sid (`--sid auto`). A member tells it one that is free, and another one if somebody else turns
//! out to have that.

use std::time::Duration;

use tracing::warn;
use turno_proto::model::ring::Sid;
use turno_proto::model::{Code, limits};
use turno_proto::native::Secret;

use super::ask::ask_within;
use crate::error::ServeError;
use crate::run::{Bound, EndCause, Ended, Stop, in_runtime, serve_here};
use crate::settings::{IfUnreachable, Settings};

/// How long until a member that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Where a broker finds its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The member that is asked, HOST:PORT, and who that must be, if it was said.
    pub next: (Option<Sid>, String),
    /// The shared secret of all members.
    pub secret: Option<Secret>,
    /// If it does not answer: fail, or ask again each second.
    pub if_unreachable: IfUnreachable,
}

/// Runs a broker on this thread, under a number that it finds first, until a signal ends it.
///
/// `settings` says what follows from a number. Two members may tell the same number at the same moment, and on one machine its
/// port may be somebody else's: then the broker begins anew under another, [`limits::RING_SIDS_TRIED`] times at most. `ready` is
/// called once the ring has taken it in, so that nobody hears of a number that is not its own.
pub fn run_finding<E: From<ServeError>>(
    finding: &Finding,
    mut settings: impl FnMut(Sid) -> Result<Settings, E>,
    mut ready: impl FnMut(&Settings, &Bound),
) -> Result<Ended, E> {
    let (mut tries, mut before) = (0, None);
    loop {
        tries += 1;
        // A runtime for each number: with it goes all that the broker had under that one, its ports too. A signal that comes in
        // between is not lost: the next runtime hears of it.
        let served = in_runtime(async {
            let mut stop = Stop::new(EndCause::Signal)?;
            let sid = tokio::select! {
                found = find(finding) => found?,
                _ = stop.wait() => return Ok(Ok(Ended::default())),
            };
            let settings = settings(sid)?;
            Ok::<_, E>(serve_here(settings, &mut stop, &mut ready).await)
        })??;
        let error = match served {
            Ok(ended) => return Ok(ended),
            Err(error) => error,
        };
        let taken = taken(&error);
        if taken.is_none() || taken == before || tries == limits::RING_SIDS_TRIED {
            return Err(error.into());
        }
        warn!(%error, "the sid's port or directory is in use: asking for another sid");
        before = taken;
    }
}

/// The port or directory that is taken, if it may follow from the number. If it is the same under another number, it does not.
fn taken(error: &ServeError) -> Option<String> {
    match error {
        ServeError::Ring { sid, code: Code::DuplicateSid, .. } => Some(sid.to_string()),
        ServeError::Listen { address, .. } | ServeError::RingListen { address, .. } => {
            (error.code() == Code::AddressInUse).then(|| address.to_string())
        }
        ServeError::DataInUse { directory } => Some(directory.display().to_string()),
        _ => None,
    }
}

/// Asks for a number, until there is one if it is to wait.
async fn find(finding: &Finding) -> Result<Sid, ServeError> {
    let (named, address) = &finding.next;
    let next = named.map_or_else(|| address.clone(), |named| format!("{named}@{address}"));
    let mut told = None;
    loop {
        match ask_within(*named, address, finding.secret.clone()).await {
            Ok(sid) => return Ok(sid),
            Err(code @ (Code::RingDown | Code::RingBusy | Code::WrongSid))
                if finding.if_unreachable == IfUnreachable::Retry =>
            {
                if told.replace(code) != Some(code) {
                    warn!(next, %code, "no free sid yet: retrying every second");
                }
                tokio::time::sleep(AGAIN).await;
            }
            Err(code) => return Err(ServeError::NoSid { next, code }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Another number is of use only against what may follow from the number.
    #[test]
    fn what_another_number_may_mend() {
        let ring = |code| ServeError::Ring { sid: Sid::new(3), next: None, code };
        let address = "127.0.0.1:8003".parse().unwrap();
        let listen = |kind: io::ErrorKind| ServeError::Listen { address, source: kind.into() };
        let ring_listen =
            |kind: io::ErrorKind| ServeError::RingListen { sid: Sid::new(3), address, source: kind.into() };
        let table = [
            (ring(Code::DuplicateSid), Some("3")),
            (ring(Code::RingDown), None),
            (ring(Code::Fenced), None),
            (listen(io::ErrorKind::AddrInUse), Some("127.0.0.1:8003")),
            (listen(io::ErrorKind::PermissionDenied), None),
            (ring_listen(io::ErrorKind::AddrInUse), Some("127.0.0.1:8003")),
            (ring_listen(io::ErrorKind::AddrNotAvailable), None),
            (ServeError::DataInUse { directory: "/srv/turno-3".into() }, Some("/srv/turno-3")),
            (ServeError::NoSid { next: "1@localhost:8001".to_owned(), code: Code::RingDown }, None),
            (ServeError::Broken, None),
        ];
        for (error, expected) in table {
            assert_eq!(taken(&error).as_deref(), expected, "{error}");
        }
    }
}
