//! Errors: a kind to match on, a code for programs, one line for people, and the cause.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

use turno_proto::headers::HeadersError;
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::parts::PartsError;
use turno_proto::model::{Code, DedupIdError, NameError, Payload, TopicError};

use crate::{Address, AddressError};

/// Bytes of an unexpected answer in an error. More: cut.
const UNEXPECTED_BYTES_MAX: usize = 2_048;

/// Why a call, a connection or a worker ended without the wanted result.
///
/// [`kind`](Self::kind) is for `match`, [`code`](Self::code) is the stable code that the protocol and the command line
/// use, the text is one line for people, and [`source`](StdError::source) is the underlying error, if there is one. Of
/// [`CannotConnect`](ErrorKind::CannotConnect), [`ConnectionLost`](ErrorKind::ConnectionLost) and [`Io`](ErrorKind::Io) it is an
/// [`io::Error`].
///
/// ```
/// use turno_client::{Code, Error, ErrorKind};
///
/// fn can_try_again(error: &Error) -> bool {
///     match error.kind() {
///         ErrorKind::TimedOut | ErrorKind::CannotConnect | ErrorKind::NoResponder => true,
///         ErrorKind::Refused => error.code() == Code::QueueFull,
///         _ => false,
///     }
/// }
/// # assert!(can_try_again(&Error::from_code(Code::NoResponder, "")));
/// # assert!(!can_try_again(&Error::from_code(Code::Failed, "no such file")));
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    code: Code,
    detail: String,
    attempts: Vec<ConnectAttempt>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// The kinds of [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No broker could be reached; [`Error::attempts`] lists them. Nothing was sent.
    CannotConnect,
    /// The connection was lost before the answer came. Whether the request was worked on, or the message stored, is
    /// unknown.
    ConnectionLost,
    /// The time for the answer is over.
    TimedOut,
    /// The client or the worker was closed by this program.
    Closed,
    /// No worker consumes the queue, and the request asked not to wait for one.
    NoResponder,
    /// A worker took the message and reported a failure; [`Error::detail`] is its text.
    Failed,
    /// The call or the message was cancelled.
    Cancelled,
    /// The broker refused the call; [`Error::code`] says why.
    Refused,
    /// An argument is invalid: a queue name, a topic, an address, a header. Nothing was sent.
    InvalidInput,
    /// This machine failed: a file could not be read, or no thread could be started.
    Io,
}

/// One broker that could not be connected to. Its [`source`](StdError::source) is the [`io::Error`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectAttempt {
    /// The broker that was tried.
    pub address: Address,
    /// Why it could not be connected to.
    pub reason: String,
    source: Option<Arc<io::Error>>,
}

impl ConnectAttempt {
    /// An attempt at that broker, which failed for that reason.
    pub fn new(address: Address, reason: impl Into<String>) -> Self {
        Self { address, reason: reason.into(), source: None }
    }

    pub(crate) fn with_source(mut self, source: Option<Arc<io::Error>>) -> Self {
        self.source = source;
        self
    }
}

impl fmt::Display for ConnectAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.reason)
    }
}

impl StdError for ConnectAttempt {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Two attempts are equal if address and reason are.
impl PartialEq for ConnectAttempt {
    fn eq(&self, other: &Self) -> bool {
        (&self.address, &self.reason) == (&other.address, &other.reason)
    }
}

impl Eq for ConnectAttempt {}

impl Error {
    /// The kind, to match on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The stable code. Every code has a page in the documentation and in `turno explain CODE`.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The full text of the worker or the broker; may have several lines, or be empty.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// With [`ErrorKind::CannotConnect`]: the brokers that were tried, in order.
    pub fn attempts(&self) -> &[ConnectAttempt] {
        &self.0.attempts
    }

    /// The error that a broker's answer with this code makes; for tests and for programs that pass errors on.
    pub fn from_code(code: Code, detail: impl Into<String>) -> Self {
        let kind = match code {
            Code::CannotConnect => ErrorKind::CannotConnect,
            Code::ConnectionLost => ErrorKind::ConnectionLost,
            Code::TimedOut => ErrorKind::TimedOut,
            Code::NoResponder => ErrorKind::NoResponder,
            Code::Failed => ErrorKind::Failed,
            Code::Cancelled => ErrorKind::Cancelled,
            Code::Io => ErrorKind::Io,
            _ => ErrorKind::Refused,
        };
        Self::new(kind, code).with_detail(detail.into())
    }

    /// None of these brokers could be connected to.
    pub fn cannot_connect(attempts: impl IntoIterator<Item = ConnectAttempt>) -> Self {
        let mut error = Self::new(ErrorKind::CannotConnect, Code::CannotConnect);
        error.0.attempts = attempts.into_iter().collect();
        let last = error.0.attempts.last().and_then(|attempt| attempt.source.clone());
        error.0.source = last.map(|source| source as _);
        error
    }

    /// The reason why the connection was lost, if that is the error.
    pub(crate) fn lost_by(mut self, cause: Option<&Arc<io::Error>>) -> Self {
        if self.kind() == ErrorKind::ConnectionLost {
            self.0.source = cause.map(|cause| Arc::clone(cause) as _);
        }
        self
    }

    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed, Code::ConnectionLost)
    }

    pub(crate) fn invalid(code: Code, source: impl StdError + Send + Sync + 'static) -> Self {
        Self::new(ErrorKind::InvalidInput, code).with_source(source)
    }

    pub(crate) fn no_broker() -> Self {
        Self::new(ErrorKind::InvalidInput, Code::BadUsage)
            .with_detail("the address of at least one broker is needed".to_owned())
    }

    pub(crate) fn no_queue() -> Self {
        Self::new(ErrorKind::InvalidInput, Code::BadUsage).with_detail("a worker needs at least one queue".to_owned())
    }

    #[cfg(any(test, feature = "blocking"))]
    pub(crate) fn no_thread(source: io::Error) -> Self {
        Self::from(source).with_detail("cannot start the client's thread".to_owned())
    }

    /// The broker answered a call with something else than the answer to it.
    pub(crate) fn unexpected(answer: &AdminAnswer) -> Self {
        let mut detail = format!("unexpected answer from the broker: {answer:?}");
        detail.truncate(detail.floor_char_boundary(UNEXPECTED_BYTES_MAX));
        Self::new(ErrorKind::Refused, Code::BadBody).with_detail(detail)
    }

    /// The error for a call that ended with a code and perhaps a text.
    pub(crate) fn from_end(code: Code, payload: &Payload) -> Self {
        Self::from_code(code, String::from_utf8_lossy(&payload.split().1).into_owned())
    }

    fn new(kind: ErrorKind, code: Code) -> Self {
        Self(Box::new(Inner { kind, code, detail: String::new(), attempts: Vec::new(), source: None }))
    }

    fn with_detail(mut self, detail: String) -> Self {
        self.0.detail = detail;
        self
    }

    fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, code, detail, attempts, source } = &*self.0;
        match (kind, source) {
            (ErrorKind::InvalidInput | ErrorKind::Io, Some(source)) if detail.is_empty() => write!(f, "{source}"),
            (ErrorKind::Io, Some(source)) => write!(f, "{detail}: {source}"),
            (ErrorKind::InvalidInput, _) => f.write_str(detail),
            (ErrorKind::CannotConnect, _) => {
                let lines: Vec<String> = attempts.iter().map(ToString::to_string).collect();
                write!(f, "cannot connect to a broker: {}", lines.join("; "))
            }
            (ErrorKind::ConnectionLost, _) => {
                f.write_str("the connection to the broker was lost before the answer arrived")
            }
            (ErrorKind::TimedOut, _) => f.write_str("the deadline passed before there was an answer"),
            (ErrorKind::Closed, _) => f.write_str("the client is closed"),
            _ => {
                let what = code.text().what;
                // One line: the text of a worker may have many.
                let line = detail.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
                if line.is_empty() || line == what { f.write_str(what) } else { write!(f, "{what}: {line}") }
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, code, detail, attempts, source } = &*self.0;
        let mut fields = f.debug_struct("Error");
        fields.field("kind", kind).field("code", code);
        if !detail.is_empty() {
            fields.field("detail", detail);
        }
        if !attempts.is_empty() {
            fields.field("attempts", attempts);
        }
        if let Some(source) = source {
            fields.field("source", source);
        }
        fields.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Two errors are equal if kind, code, text and attempts are; sources are compared by their texts.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&*self.0, &*other.0);
        (one.kind, one.code, &one.detail, &one.attempts) == (two.kind, two.code, &two.detail, &two.attempts)
            && one.source.as_ref().map(ToString::to_string) == two.source.as_ref().map(ToString::to_string)
    }
}

impl Eq for Error {}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<NameError> for Error {
    fn from(error: NameError) -> Self {
        Self::invalid(Code::BadName, error)
    }
}

impl From<TopicError> for Error {
    fn from(error: TopicError) -> Self {
        Self::invalid(Code::BadTopic, error)
    }
}

impl From<DedupIdError> for Error {
    fn from(error: DedupIdError) -> Self {
        Self::invalid(Code::BadOption, error)
    }
}

impl From<HeadersError> for Error {
    fn from(error: HeadersError) -> Self {
        Self::invalid(Code::BadOption, error)
    }
}

impl From<PartsError> for Error {
    fn from(error: PartsError) -> Self {
        let code = if error == PartsError::TooMany { Code::TooManyParts } else { Code::BadOption };
        Self::invalid(code, error)
    }
}

impl From<AddressError> for Error {
    fn from(error: AddressError) -> Self {
        Self::invalid(Code::BadUsage, error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::new(ErrorKind::Io, Code::Io).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_one_line_and_has_its_kind_and_code() {
        let failed = format!("{}: no such file", Code::Failed.text().what);
        let table = [
            (
                Error::from_code(Code::Failed, "\n no such file\nat line 3"),
                ErrorKind::Failed,
                Code::Failed,
                failed.as_str(),
            ),
            (
                Error::from_code(Code::NoResponder, ""),
                ErrorKind::NoResponder,
                Code::NoResponder,
                Code::NoResponder.text().what,
            ),
            (
                Error::cannot_connect([ConnectAttempt::new(Address::Tcp("a:1".to_owned()), "refused")]),
                ErrorKind::CannotConnect,
                Code::CannotConnect,
                "cannot connect to a broker: turno://a:1: refused",
            ),
            (
                Error::no_broker(),
                ErrorKind::InvalidInput,
                Code::BadUsage,
                "the address of at least one broker is needed",
            ),
            (
                Error::no_thread(io::Error::other("no memory")),
                ErrorKind::Io,
                Code::Io,
                "cannot start the client's thread: no memory",
            ),
            (Error::from(io::Error::other("no such file")), ErrorKind::Io, Code::Io, "no such file"),
        ];
        for (error, kind, code, text) in table {
            assert_eq!((error.kind(), error.code(), error.to_string().as_str()), (kind, code, text));
            assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn an_invalid_argument_is_the_source() {
        let error = Error::from(NameError::BadCharacter);
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, Code::BadName));
        let source = error.source().and_then(|source| source.downcast_ref::<NameError>());
        assert_eq!(source, Some(&NameError::BadCharacter));
        assert_eq!(error.to_string(), NameError::BadCharacter.to_string());
        assert_eq!(error, Error::from(NameError::BadCharacter));
        assert_ne!(error, Error::from(TopicError::BadStar));
        assert!(Error::closed().source().is_none());
    }
}
