//! `[[zmq.endpoint]]`: endpoints for ZeroMQ programs besides the one of `listen.zmq`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use turno_proto::model::{QueueName, Topic, limits};
use turno_proto::zmtp::SocketType;
use turno_proto::zmtp::curve::{KeyPair, PublicKey};

use super::file::raw;
use super::kind::ValueKind;
use super::nearest::nearest;
use super::ring::is_host;
use super::value::{RawValue, Value};
use super::{Config, Problem};
use crate::settings::IfTaken;
use crate::zmq::{ZmqAccess, ZmqAddress, ZmqEndpoint, ZmqPlace, ZmqRole};

/// The list of tables.
pub(super) const ENDPOINT: &str = "zmq.endpoint";

const MECHANISMS: &[&str] = &["null", "plain", "curve"];
const SOCKETS: &[&str] = &["dealer", "sub", "pub", "push", "pull"];
const ROLES: &[&str] = &["client", "worker", "lmq"];
const SLOTS: ValueKind = ValueKind::Count { min: 1, max: 1_000_000 };
const RETRIES: ValueKind = ValueKind::Count { min: 0, max: u8::MAX as u64 };

/// Every key of an endpoint. docs/reference/zeromq.md says what each does.
const KEYS: &[&str] = &[
    "listen",
    "connect",
    "socket",
    "name",
    "queue",
    "role",
    "topic",
    "slots",
    "retries",
    "error-frame",
    "mechanism",
    "users",
    "user",
    "password",
    "password-file",
    "secret-key",
    "secret-key-file",
    "client-keys",
    "server-key",
];

/// Those of them that belong to one mechanism, at endpoints that listen or that connect.
const SECRETS: &[&str] =
    &["users", "user", "password", "password-file", "secret-key", "secret-key-file", "client-keys", "server-key"];
/// Bytes of a user's name and of a password, whose lengths take one byte each in PLAIN.
const PLAIN_BYTES_MAX: usize = 255;

/// A mistake, and its place if it is in one key.
type Wrong = (Option<Range<usize>>, String);

/// Values of a table as they were found.
struct Table<'a, 'b> {
    keys: &'a DeTable<'b>,
    wrong: Vec<Wrong>,
}

impl<'a, 'b> Table<'a, 'b> {
    fn get(&self, name: &str) -> Option<(Range<usize>, &'a Spanned<DeValue<'b>>)> {
        self.keys.iter().find(|(key, _)| key.get_ref() == name).map(|(key, value)| (key.span(), value))
    }

    /// A value, read by `read`. The error says what is expected.
    fn read<T>(&mut self, name: &str, read: impl FnOnce(&RawValue) -> Result<T, String>) -> Option<T> {
        let (span, value) = self.get(name)?;
        let raw = raw(value);
        match read(&raw) {
            Ok(value) => Some(value),
            Err(expected) => {
                let shown = if is_secret(name) { String::new() } else { format!(" = {raw}") };
                self.wrong.push((Some(span), format!("{ENDPOINT}: {name}{shown}: expected {expected}")));
                None
            }
        }
    }

    fn text(&mut self, name: &str, kind: ValueKind) -> Option<String> {
        self.read(name, |raw| match kind.read(raw)? {
            Value::Text(text) => Ok(text),
            Value::Path(path) => Ok(path.display().to_string()),
            other => Ok(other.to_string()),
        })
    }

    fn wrong(&mut self, text: impl Into<String>) {
        self.wrong.push((None, format!("{ENDPOINT}: {}", text.into())));
    }
}

fn is_secret(name: &str) -> bool {
    matches!(name, "users" | "password" | "secret-key")
}

/// One endpoint, or all that is wrong with it.
pub(super) fn read(keys: &DeTable<'_>) -> Result<ZmqEndpoint, Vec<Wrong>> {
    let mut table = Table { keys, wrong: Vec::new() };
    for (key, _) in keys {
        if !KEYS.iter().any(|known| known == key.get_ref()) {
            let near = nearest(key.get_ref(), KEYS.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            table.wrong.push((Some(key.span()), format!("unknown key {ENDPOINT}.{}{near}", key.get_ref())));
        }
    }
    let place = place(&mut table);
    let topic = table.read("topic", |raw| match raw {
        RawValue::Text(text) if format!("{text}x").parse::<Topic>().is_ok() => Ok(text.clone()),
        _ => Err("the beginning of a topic, such as \"plant-1.\"".to_owned()),
    });
    let queue = table.text("queue", ValueKind::Queue).unwrap_or_else(|| "zmq".to_owned());
    let role = match table.text("role", ValueKind::Choice(ROLES)).as_deref() {
        Some("worker") => ZmqRole::Worker,
        Some("lmq") => ZmqRole::Lmq,
        _ => ZmqRole::Client,
    };
    let slots = table.read("slots", |raw| match SLOTS.read(raw)? {
        Value::Count(slots) => Ok(u32::try_from(slots).unwrap_or(u32::MAX)),
        _ => Err(SLOTS.expected()),
    });
    let retries = table.read("retries", |raw| match RETRIES.read(raw)? {
        Value::Count(retries) => Ok(u8::try_from(retries).unwrap_or(u8::MAX)),
        _ => Err(RETRIES.expected()),
    });
    let (name, error_frame) = (table.text("name", ValueKind::Text), table.text("error-frame", ValueKind::Text));
    let access = access(&mut table);
    let (Some(place), Some(access), true) = (place, access, table.wrong.is_empty()) else { return Err(table.wrong) };
    Ok(ZmqEndpoint {
        name: name.unwrap_or_else(|| place.to_string()),
        role,
        topic: topic.unwrap_or_default(),
        slots,
        retries: retries.unwrap_or_default(),
        error_frame,
        access,
        if_taken: IfTaken::Fail,
        queue: queue.parse().expect("a queue's name was read"),
        place,
    })
}

/// Reads the address of an endpoint.
fn place(table: &mut Table<'_, '_>) -> Option<ZmqPlace> {
    let listen: Option<ZmqAddress> = table.read("listen", |raw| match raw {
        RawValue::Text(text) => text.parse().map_err(str::to_owned),
        _ => Err(ZmqAddress::EXPECTED.to_owned()),
    });
    let connect = table.read("connect", |raw| match raw {
        RawValue::Text(text) if is_target(text) => Ok(text.clone()),
        _ => Err("an address like \"tcp://HOST:PORT\" or \"ipc:///PATH\"".to_owned()),
    });
    let socket = table.text("socket", ValueKind::Choice(SOCKETS));
    match (table.get("listen").is_some(), table.get("connect").is_some()) {
        (true, false) => {
            if socket.is_some() {
                table.wrong(
                    "socket applies to connect only: with listen, the broker uses the type that suits each peer",
                );
            }
            listen.map(ZmqPlace::Listen)
        }
        (false, true) => {
            let Some(socket) = socket.as_deref().and_then(socket_type) else {
                table.wrong("connect needs socket, the broker's socket type");
                return None;
            };
            connect.map(|address| ZmqPlace::Connect { address, socket })
        }
        (false, false) | (true, true) => {
            table.wrong("needs one of listen and connect");
            None
        }
    }
}

/// Whether a program can be dialled there.
fn is_target(text: &str) -> bool {
    if let Some(path) = text.strip_prefix("ipc://") {
        return !path.is_empty();
    }
    let Some((host, port)) = text.strip_prefix("tcp://").and_then(|place| place.rsplit_once(':')) else { return false };
    is_host(host) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// The broker's end.
fn socket_type(name: &str) -> Option<SocketType> {
    Some(match name {
        "dealer" => SocketType::Dealer,
        "sub" => SocketType::Sub,
        "pub" => SocketType::Xpub,
        "push" => SocketType::Push,
        "pull" => SocketType::Pull,
        _ => return None,
    })
}

fn access(table: &mut Table<'_, '_>) -> Option<ZmqAccess> {
    let mechanism = table.text("mechanism", ValueKind::Choice(MECHANISMS)).unwrap_or_else(|| "null".to_owned());
    let connects = table.get("connect").is_some();
    let used: &[&str] = match (mechanism.as_str(), connects) {
        ("plain", false) => &["users"],
        ("plain", true) => &["user", "password", "password-file"],
        ("curve", false) => &["secret-key", "secret-key-file", "client-keys"],
        ("curve", true) => &["secret-key", "secret-key-file", "server-key"],
        _ => &[],
    };
    for name in SECRETS.iter().filter(|name| !used.contains(name)) {
        if let Some((span, _)) = table.get(name) {
            let place = if connects { "connect" } else { "listen" };
            let text = format!("{ENDPOINT}: {name} does not apply to mechanism {mechanism} with {place}");
            table.wrong.push((Some(span), text));
        }
    }
    match (mechanism.as_str(), connects) {
        ("plain", false) => users(table).map(ZmqAccess::Plain),
        ("plain", true) => {
            let (user, password) = (user(table), password(table));
            Some(ZmqAccess::PlainClient { user: user?, password: password? })
        }
        ("curve", false) => {
            let (keys, clients) = (secret_key(table), client_keys(table));
            Some(ZmqAccess::Curve { keys: keys?, clients: clients? })
        }
        ("curve", true) => {
            let (keys, server) = (secret_key(table), server_key(table));
            Some(ZmqAccess::CurveClient { keys: keys?, server: server? })
        }
        _ => Some(ZmqAccess::Null),
    }
}

fn users(table: &mut Table<'_, '_>) -> Option<BTreeMap<String, String>> {
    let expected = "users: expected a table like { ann = \"her password\" }, each of at most 255 bytes";
    let Some((_, DeValue::Table(users))) = table.get("users").map(|(span, value)| (span, value.get_ref())) else {
        table.wrong(expected);
        return None;
    };
    let pairs = users.iter().map(|(name, password)| match password.get_ref() {
        DeValue::String(password) if name.get_ref().len() <= PLAIN_BYTES_MAX && is_password(password) => {
            Some((name.get_ref().to_string(), password.to_string()))
        }
        _ => None,
    });
    let users: Option<BTreeMap<String, String>> = pairs.collect();
    if users.as_ref().is_none_or(BTreeMap::is_empty) {
        table.wrong(expected);
        return None;
    }
    users
}

fn is_password(text: &str) -> bool {
    (1..=PLAIN_BYTES_MAX).contains(&text.len())
}

/// The user name of the broker.
fn user(table: &mut Table<'_, '_>) -> Option<String> {
    let user = table.read("user", |raw| match raw {
        RawValue::Text(text) if text.len() <= PLAIN_BYTES_MAX => Ok(text.clone()),
        _ => Err(format!("a name of at most {PLAIN_BYTES_MAX} bytes")),
    });
    if table.get("user").is_none() {
        table.wrong("mechanism plain needs user, the name that the broker shows");
    }
    user
}

fn password(table: &mut Table<'_, '_>) -> Option<String> {
    let password = secret(table, ["password", "password-file"], "plain")?;
    if !is_password(&password) {
        table.wrong(format!("password: expected 1 to {PLAIN_BYTES_MAX} bytes"));
        return None;
    }
    Some(password)
}

fn secret_key(table: &mut Table<'_, '_>) -> Option<KeyPair> {
    let text = secret(table, ["secret-key", "secret-key-file"], "curve")?;
    match KeyPair::from_secret_text(&text) {
        Ok(keys) => Some(keys),
        Err(error) => {
            table.wrong(error.to_string());
            None
        }
    }
}

/// A secret that is written in the table, or in a file that the table names.
fn secret(table: &mut Table<'_, '_>, [direct, in_file]: [&str; 2], mechanism: &str) -> Option<String> {
    match (table.text(direct, ValueKind::Text), table.text(in_file, ValueKind::Path)) {
        (Some(text), None) => Some(text),
        (None, Some(path)) => match std::fs::read_to_string(&path) {
            Ok(text) => Some(text.trim_end().to_owned()),
            Err(error) => {
                table.wrong(format!("{in_file} {path} cannot be read: {error}"));
                None
            }
        },
        _ => {
            table.wrong(format!("mechanism {mechanism} needs one of {direct} and {in_file}"));
            None
        }
    }
}

/// The key of the program that the broker connects to.
fn server_key(table: &mut Table<'_, '_>) -> Option<PublicKey> {
    let key = table.read("server-key", |raw| match raw {
        RawValue::Text(text) => text.parse().map_err(|_| "a public key of 40 characters".to_owned()),
        _ => Err("a public key of 40 characters".to_owned()),
    });
    if table.get("server-key").is_none() {
        table.wrong("mechanism curve needs server-key, the public key of the program");
    }
    key
}

/// `Some(None)`: any key.
fn client_keys(table: &mut Table<'_, '_>) -> Option<Option<Vec<PublicKey>>> {
    let keys = table.read("client-keys", |raw| {
        let expected = || "public keys of 40 characters, or \"any\"".to_owned();
        match raw {
            RawValue::Text(text) if text == "any" => Ok(None),
            RawValue::List(keys) if !keys.is_empty() => {
                let keys = keys.iter().map(|key| key.parse().map_err(|_| expected()));
                keys.collect::<Result<Vec<PublicKey>, String>>().map(Some)
            }
            _ => Err(expected()),
        }
    });
    if table.get("client-keys").is_none() {
        table.wrong("mechanism curve needs client-keys: the public keys of clients, or \"any\"");
    }
    keys
}

/// Checks all endpoints together.
pub(super) fn check(endpoints: &[ZmqEndpoint], problems: &mut Vec<Problem>) {
    let mut problem = |text| problems.push(Problem { place: None, text, typed: false, unreadable: None });
    if endpoints.len() > limits::ZMQ_ENDPOINTS_MAX {
        problem(format!("at most {} [[{ENDPOINT}]] tables are possible", limits::ZMQ_ENDPOINTS_MAX));
    }
    let mut names = BTreeSet::new();
    for endpoint in endpoints {
        if !names.insert(&endpoint.name) {
            problem(format!("two [[{ENDPOINT}]] tables have the name {}", endpoint.name));
        }
    }
}

/// All endpoints of a broker: those of `listen.zmq` and `listen.lmq`, and the tables.
pub(super) fn all(config: &Config) -> Vec<ZmqEndpoint> {
    let plain = listening(config, "listen.zmq", "zmq.queue", "default", ZmqRole::Client);
    let lmq = listening(config, "listen.lmq", "lmq.queue", "lmq", ZmqRole::Lmq);
    plain.chain(lmq).chain(config.endpoints.iter().cloned()).collect()
}

/// Endpoints at the addresses of a key.
fn listening(
    config: &Config,
    key: &'static str,
    queue: &str,
    name: &str,
    role: ZmqRole,
) -> impl Iterator<Item = ZmqEndpoint> {
    let queue: QueueName = config.text(queue).parse().expect("a queue's name was read");
    let if_taken = if config.is_default(key) { IfTaken::FreePort } else { IfTaken::Fail };
    config.listen(key).into_iter().zip(1..).map(move |(address, number)| ZmqEndpoint {
        name: if number == 1 { name.to_owned() } else { format!("{name}-{number}") },
        if_taken,
        role,
        ..ZmqEndpoint::new(ZmqAddress::Tcp(address), queue.clone())
    })
}

#[cfg(test)]
mod tests;
