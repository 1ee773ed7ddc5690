//! Errors of the system, with advice for each.

use std::io::{self, ErrorKind};

use turno_client::{Address, ConnectAttempt};
use turno_proto::model::Code;

use super::Failure;

impl Failure {
    /// Something on this machine failed; `what` names it, the rest comes from the system's reason.
    pub(crate) fn system(what: impl Into<String>, error: &io::Error) -> Self {
        Self::new(Code::Io, what).why(error.to_string()).fix(remedy(error))
    }
}

/// Advice about an error of the system.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    // EMFILE and ENFILE have no kind of their own.
    match error.raw_os_error() {
        Some(23 | 24) => "raise the open-file limit (`ulimit -n` shows it)",
        _ => remedy_of(error.kind()),
    }
}

/// The same where only the kind of error is known.
pub(super) fn remedy_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::PermissionDenied => "run the command as a user with that permission, or change the permission",
        ErrorKind::NotFound => "check the path: a part of it does not exist",
        ErrorKind::NotADirectory => "check the path: a part of it is a file, not a directory",
        ErrorKind::IsADirectory => "use a file, not a directory",
        ErrorKind::AlreadyExists => "remove the existing file, or choose another name",
        ErrorKind::InvalidData => "check that it is text in UTF-8",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free space on that disk (`df -h` shows it), or choose another"
        }
        ErrorKind::FileTooLarge => {
            "the file system or `ulimit -f` limits the size of a file; write elsewhere or raise it"
        }
        ErrorKind::ReadOnlyFilesystem => "choose a writable location",
        ErrorKind::AddrNotAvailable => "use an address that this machine has (`ip address` lists them)",
        ErrorKind::OutOfMemory => {
            "free memory on this machine, or raise the limit of this process (`ulimit -a` shows it)"
        }
        ErrorKind::WouldBlock => "raise the number of processes that this user may have (`ulimit -u` shows it)",
        _ => "check the file, device or network that the error names, then try again",
    }
}

/// Every address was tried: what was wrong with each, and the remedy for the one that came closest to a broker.
pub(super) fn unreachable(tried: &[ConnectAttempt]) -> Failure {
    let places: Vec<String> = tried.iter().map(|attempt| attempt.address.to_string()).collect();
    let reasons: Vec<String> = tried.iter().map(|attempt| format!("{}: {}", attempt.address, attempt.reason)).collect();
    let failure = Failure::new(Code::CannotConnect, format!("cannot connect to a broker at {}", places.join(", ")))
        .why(reasons.join("; "));
    let kinds: Vec<Option<ErrorKind>> = tried.iter().map(|attempt| kind(&attempt.reason)).collect();
    let has = |kind| kinds.contains(&Some(kind));
    let denied = tried.iter().zip(&kinds).find(|(_, kind)| **kind == Some(ErrorKind::PermissionDenied));
    match denied.map(|(attempt, _)| &attempt.address) {
        Some(Address::Unix(path)) => failure.fix(format!(
            "only the user who runs the broker may use {}: run the command as that user, or use a TCP address with --url",
            path.display()
        )),
        Some(_) => failure.fix("the operating system blocked this connection: check the firewall, or use another broker with --url"),
        // Nothing listens there: the table's remedy is right.
        None if has(ErrorKind::ConnectionRefused) || has(ErrorKind::NotFound) => failure,
        None if has(ErrorKind::HostUnreachable) || has(ErrorKind::NetworkUnreachable) => {
            failure.fix("check the network between the two machines, or use another broker with --url")
        }
        None if tried.iter().any(|attempt| attempt.reason.contains("lookup")) => {
            failure.fix("check the host name, or use its address: --url turno://HOST:PORT")
        }
        None => failure.fix("check that a Turno broker listens there and is not overloaded, or use another one with --url"),
    }
}

/// The kind of an error of which only the text is left: the system's own errors end with `(os error N)`.
fn kind(text: &str) -> Option<ErrorKind> {
    let number = text.rsplit_once("(os error ")?.1.strip_suffix(')')?;
    Some(io::Error::from_raw_os_error(number.parse().ok()?).kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix(failure: &Failure) -> String {
        failure.body().hint
    }

    #[test]
    fn each_reason_has_its_remedy() {
        let table = [(13, "permission"), (2, "does not exist"), (28, "df -h"), (30, "writable"), (24, "ulimit -n")];
        for (number, expected) in table {
            let failure = Failure::system("cannot write x", &io::Error::from_raw_os_error(number));
            assert!(fix(&failure).contains(expected), "{failure:?}");
            assert!(failure.body().why.contains("os error"), "{failure:?}");
        }
        let other = Failure::system("cannot write x", &io::Error::other("a tape is torn"));
        assert_eq!((other.body().why.as_str(), other.code()), ("a tape is torn", Code::Io));
    }

    #[test]
    fn who_cannot_connect_is_told_why_and_what_helps() {
        let unix = || Address::Unix("/run/turno/turno.sock".into());
        let tcp = || Address::Tcp("h:7460".to_owned());
        let system = |number| io::Error::from_raw_os_error(number).to_string();
        let table = [
            (vec![(unix(), system(13)), (tcp(), system(111))], "may use /run/turno/turno.sock"),
            (vec![(tcp(), system(13))], "firewall"),
            (vec![(unix(), system(2)), (tcp(), system(111))], "turno serve"),
            (vec![(tcp(), system(113))], "network"),
            (vec![(tcp(), "failed to lookup address information: Name or service not known".to_owned())], "host name"),
            (vec![(tcp(), "no answer within 50 ms".to_owned())], "overloaded"),
        ];
        for (tried, expected) in table {
            let tried: Vec<_> = tried.into_iter().map(|(address, why)| ConnectAttempt::new(address, why)).collect();
            let failure = unreachable(&tried);
            assert!(fix(&failure).contains(expected), "{failure:?}");
            assert_eq!(failure.exit(), 5);
            assert!(tried.iter().all(|attempt| failure.body().why.contains(&attempt.reason)), "{failure:?}");
        }
    }
}
