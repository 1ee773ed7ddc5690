//! The parts of a message: its options and its body.

use std::io::{self, IsTerminal as _, Read as _};

use bytes::Bytes;
use clap::Args;
use tokio::sync::oneshot;
use turno_client::{Config, Message, QueueName, RequestBuilder, SendBuilder};
use turno_proto::model::parts::{self, PartsError};
use turno_proto::model::{Code, limits, units};

use super::error::Failure;

/// Bytes of a frame that are not for the body, with room for headers of usual length.
const FRAME_BYTES_RESERVED: u64 = 1024;

/// The argument that stands for standard input.
const STDIN: &str = "-";

/// The body of a message, or its parts.
#[derive(Args, Debug)]
pub(crate) struct BodyArgs {
    /// Message body; - or no argument reads standard input
    body: Option<String>,

    /// Part of a message without BODY; - reads standard input; repeatable
    #[arg(long, value_name = "PART", conflicts_with = "body")]
    part: Vec<String>,
}

impl BodyArgs {
    /// Checks the parts before anything is asked of a broker.
    pub(crate) fn check(&self, headers: &[(String, String)]) -> Result<(), Failure> {
        if self.part.len() > limits::MESSAGE_PARTS_MAX {
            return Err(turno_client::Error::from(PartsError::TooMany).into());
        }
        if self.part.iter().filter(|part| *part == STDIN).count() > 1 {
            return Err(Failure::new(Code::BadUsage, "more than one --part is -")
                .why("standard input can be read once")
                .fix("give the other parts as arguments"));
        }
        if !self.part.is_empty() && headers.iter().any(|(name, _)| name == parts::HEADER) {
            return Err(Failure::new(Code::BadUsage, "--part and the header `parts` exclude each other")
                .why("--part sets this header")
                .fix("omit one of them"));
        }
        Ok(())
    }

    /// The message: as typed, or from stdin where it is `-`, or if nothing was typed and something is piped in.
    pub(crate) async fn message(&self, config: &Config) -> Result<Message, Failure> {
        if self.part.is_empty() {
            return Ok(body(self.body.as_deref(), config).await?.into());
        }
        let mut parts = Vec::with_capacity(self.part.len());
        for part in &self.part {
            parts.push(body(Some(part), config).await?);
        }
        Ok(Message::from_parts(parts)?)
    }
}

/// Options of a request and of a send.
#[derive(Args, Debug)]
pub(crate) struct MessageFlags {
    /// Retry up to N times after a failure or a lost worker
    #[arg(long, value_name = "N")]
    pub(crate) retries: Option<u8>,

    /// Priority 0 to 9; 9 is highest [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=i64::from(limits::PRIORITY_MAX)))]
    pub(crate) priority: Option<u8>,

    /// Worker slots the message takes [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cost: Option<u16>,

    /// Add a header; repeatable
    #[arg(short = 'H', long, value_name = "KEY=VALUE", value_parser = parse_header)]
    pub(crate) header: Vec<(String, String)>,
}

impl MessageFlags {
    pub(crate) fn request(&self, request: RequestBuilder) -> RequestBuilder {
        let request = request.retries(self.retries).priority(self.priority).cost(self.cost);
        self.header.iter().fold(request, |request, (key, value)| request.header(key, value))
    }

    pub(crate) fn send(&self, send: SendBuilder) -> SendBuilder {
        let send = send.retries(self.retries).priority(self.priority).cost(self.cost);
        self.header.iter().fold(send, |send, (key, value)| send.header(key, value))
    }
}

pub(crate) fn parse_header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("invalid header: expected KEY=VALUE".to_owned()),
    }
}

/// Reads a whole number, `10_000` for one.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    match units::parse_count(text) {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

/// Checks the name of a queue before anything is asked of a broker.
pub(crate) fn check_queue(queue: &str) -> Result<(), Failure> {
    match queue.parse::<QueueName>() {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(Code::BadName, format!("invalid queue name {queue:?}")).why(error.to_string())),
    }
}

/// The longest body that fits into one frame of that broker.
pub(crate) fn body_bytes_max(config: &Config) -> u64 {
    config.frame_bytes_max.saturating_sub(FRAME_BYTES_RESERVED)
}

async fn body(typed: Option<&str>, config: &Config) -> Result<Bytes, Failure> {
    match typed {
        Some(STDIN) => read_stdin(body_bytes_max(config)).await,
        Some(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        None if io::stdin().is_terminal() => Ok(Bytes::new()),
        None => read_stdin(body_bytes_max(config)).await,
    }
}

/// Reads on a thread of its own, so that the connection lives while a person types.
async fn read_stdin(bytes_max: u64) -> Result<Bytes, Failure> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().take(bytes_max.saturating_add(1)).read_to_end(&mut bytes);
        // Nobody listens only if the command has ended.
        let _ = tell.send(read.map(|_| bytes));
    });
    let failed = |error: io::Error| Failure::system("cannot read standard input", &error);
    let bytes = told.await.unwrap_or_else(|_| Ok(Vec::new())).map_err(failed)?;
    if bytes.len() as u64 > bytes_max { Err(too_long(bytes_max)) } else { Ok(bytes.into()) }
}

/// For a body that no frame of the broker could hold.
pub(crate) fn too_long(bytes_max: u64) -> Failure {
    Failure::new(Code::FrameTooLarge, format!("the body exceeds this broker's limit of {bytes_max} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_typed() {
        let pair = |key: &str, value: &str| Some((key.to_owned(), value.to_owned()));
        let table = [
            ("a=b", pair("a", "b")),
            ("a=", pair("a", "")),
            ("a=b=c", pair("a", "b=c")),
            ("a", None),
            ("=b", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_header(text).ok(), expected, "{text:?}");
        }
    }

    fn parts(parts: &[&str]) -> BodyArgs {
        BodyArgs { body: None, part: parts.iter().map(|part| (*part).to_owned()).collect() }
    }

    #[test]
    fn parts_are_checked_before_anything_is_asked() {
        let list = ("parts".to_owned(), "1 1".to_owned());
        let code = |args: BodyArgs, headers: &[_]| args.check(headers).err().map(|failure| failure.code());
        let table = [
            (parts(&[]), Some(&list), None),
            (parts(&["a", "-", ""]), None, None),
            (parts(&[""; 1_024]), None, None),
            (parts(&[""; 1_025]), None, Some(Code::TooManyParts)),
            (parts(&["-", "a", "-"]), None, Some(Code::BadUsage)),
            (parts(&["a"]), Some(&list), Some(Code::BadUsage)),
        ];
        for (args, header, expected) in table {
            let shown = format!("{:.60}", format!("{args:?}"));
            assert_eq!(code(args, &Vec::from_iter(header.cloned())), expected, "{shown}");
        }
    }

    #[test]
    fn a_bad_name_is_told_before_anything_is_asked() {
        assert!(check_queue("emails").is_ok());
        let failure = check_queue("a b").unwrap_err();
        assert_eq!((failure.code(), failure.exit()), (Code::BadName, 2));
    }
}
