//! `turno serve`: run a broker.

mod args;
mod failed;
mod ring;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use tracing::{debug, warn};
use turno_broker::config::{Config, Flag, Origin, RawValue, ValueKind};
use turno_broker::{self as broker, Bound, Ended, RingConfig, SidSource};
use turno_client::Address;
use turno_proto::model::Code;
use turno_proto::model::ring::Sid;
use turno_proto::native::Secret;

pub(crate) use self::args::ServeArgs;
use self::args::flags;
use self::ring::RingPlan;
use super::Invocation;
use super::connect;
use super::error::Failure;
use super::exposure;
use super::logging::Logging;
use super::schema::broker::Ready;
use super::shell::quoted;
use super::shown::Page;
use super::version::VERSION;
use super::words::count;

pub(crate) fn run(args: &ServeArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let flags = flags(args);
    let config = invocation.config(&flags)?;
    let (place, finding) = match ring::plan(&config)? {
        RingPlan::Nothing => (None, None),
        RingPlan::Place(place) => (Some(*place), None),
        RingPlan::Find(finding) => (None, Some(finding)),
    };
    // Without its number this is not all, but what is wrong with it now would be wrong then.
    let settings = broker_settings(args, invocation, &config, place)?;
    let logging = Logging::for_broker(&config.typed(), &invocation.global)?;
    for setting in config.settings().iter().filter(|setting| setting.origin != Origin::Default) {
        debug!(key = setting.key.name, value = %setting.value, origin = %setting.origin, "set");
    }
    exposure::warn_of_loose(&config);
    let told = invocation.output.format().is_json();
    let banner = !told && !invocation.output.quiet() && !logging.is_for_programs();
    let mut printed = Ok(());
    let ready = |settings: &broker::Settings, bound: &Bound| {
        if told {
            printed = invocation.output.document(&ready(bound));
        } else if banner {
            invocation.output.stderr(self::banner(settings, bound));
            let tried = connect::addresses(invocation).unwrap_or_default();
            invocation.output.hint(&first_steps(bound, tried.first()));
        }
    };
    let ended = match finding {
        None => broker::run(settings, ready).map_err(Failure::from),
        Some(finding) => broker::run_finding(&finding, |sid| numbered(sid, &flags, args, invocation), ready),
    };
    let end = ended.map(|ended| farewell(&ended, logging.is_for_programs(), invocation));
    logging.finish(&invocation.output);
    printed?;
    end
}

/// The settings of a broker that a member told this number.
fn numbered(sid: Sid, flags: &[Flag], args: &ServeArgs, invocation: &Invocation) -> Result<broker::Settings, Failure> {
    let number = Flag { flag: "--sid", key: "ring.sid", raw: RawValue::Integer(sid.get().into()) };
    let config = invocation.config(&[flags, &[number]].concat())?;
    match ring::plan(&config)? {
        RingPlan::Place(mut place) => {
            place.sid_source = SidSource::Assigned;
            broker_settings(args, invocation, &config, Some(*place))
        }
        RingPlan::Nothing | RingPlan::Find(_) => unreachable!("a number was just given"),
    }
}

fn broker_settings(
    args: &ServeArgs,
    invocation: &Invocation,
    config: &Config,
    ring: Option<RingConfig>,
) -> Result<broker::Settings, Failure> {
    let typed = config.typed();
    let mut settings = typed.broker;
    if !args.insecure {
        let open = exposure::open_to_all(&settings.zmq);
        refuse_to_be_open(settings.listen.iter().chain(&settings.foreman).chain(&open), &invocation.words)?;
    }
    exposure::refuse_to_be_unreachable(&settings)?;
    settings.links.secret = secret("link", settings.links.secret.as_ref(), typed.link_secret_file.as_deref())?;
    settings.ring = ring;
    Ok(settings)
}

/// A secret, from wherever it is: of links, or of the ring.
fn secret(of: &str, set: Option<&Secret>, file: Option<&Path>) -> Result<Option<Secret>, Failure> {
    let Some(path) = file else { return Ok(set.cloned()) };
    let wrong = |what: String| Failure::new(Code::BadConfig, what);
    if set.is_some() {
        return Err(wrong(format!("both {of}.secret and {of}.secret-file are set")).fix("set one of them"));
    }
    let text = std::fs::read(path).map_err(|error| {
        wrong(format!("{of}.secret-file {} cannot be read: {error}", path.display())).fix("check its path and owner")
    })?;
    // Most programs end a file with a new line.
    let secret = Secret::new(text.trim_ascii_end());
    let expected = || format!("{} contains no valid secret: expected {}", path.display(), ValueKind::Secret.expected());
    secret.map(Some).ok_or_else(|| wrong(expected()).fix("write a longer one"))
}

/// Nobody but this machine may reach a broker that asks no one who they are.
fn refuse_to_be_open<'a>(listen: impl Iterator<Item = &'a SocketAddr>, words: &[OsString]) -> Result<(), Failure> {
    let open: Vec<String> = listen.filter(|address| !address.ip().is_loopback()).map(ToString::to_string).collect();
    if open.is_empty() {
        return Ok(());
    }
    let what = format!("refusing to listen on {} without authentication", open.join(", "));
    let mut command: Vec<String> = vec!["turno".to_owned()];
    command.extend(words.iter().skip(1).map(|word| quoted(&word.to_string_lossy())));
    command.push("--insecure".to_owned());
    let fix = format!("on a trusted network: {}", command.join(" "));
    Err(Failure::new(Code::InsecureListen, what).fix(fix))
}

fn ready(bound: &Bound) -> Ready {
    let listen: Vec<String> = bound.native.iter().map(ToString::to_string).collect();
    Ready {
        native: listen.first().cloned(),
        listen,
        unix: bound.unix.as_ref().map(|path| path.display().to_string()),
        foreman: bound.foreman.first().map(ToString::to_string),
        zmq: bound.plain_zmq().map(ToString::to_string).collect(),
        lmq: bound.lmq.iter().map(ToString::to_string).collect(),
        ring: bound.ring.as_ref().map(ToString::to_string),
    }
}

/// The next commands for a new user. `tried`: the address that commands use; a broker that is elsewhere is named.
fn first_steps(bound: &Bound, tried: Option<&Address>) -> String {
    let tcp = bound.native.iter().map(|address| Address::Tcp(address.to_string()));
    let own: Vec<Address> = tcp.chain(bound.unix.clone().map(Address::Unix)).collect();
    let url = match own.first() {
        Some(first) if !tried.is_some_and(|tried| own.contains(tried)) => format!(" --url {first}"),
        _ => String::new(),
    };
    format!("turno work hello --echo{url}, then: turno request hello hi{url}")
}

fn banner(settings: &broker::Settings, bound: &Bound) -> Page {
    let native: Vec<String> = bound.native.iter().map(|address| format!("turno://{address}")).collect();
    let foreman: Vec<String> = bound.foreman.iter().map(ToString::to_string).collect();
    let listed = |addresses: Vec<String>| if addresses.is_empty() { "none".to_owned() } else { addresses.join(", ") };
    let mut facts = vec![
        ("broker", format!("{} (turno {VERSION})", settings.name)),
        ("native", listed(native)),
        ("job workers", listed(foreman)),
        ("ZeroMQ", listed(bound.plain_zmq().map(ToString::to_string).collect())),
        ("LMQ", listed(bound.lmq.iter().map(ToString::to_string).collect())),
    ];
    if let (Some(ring), Some(address)) = (&settings.ring, &bound.ring) {
        let next = ring.next.as_ref().map(|(_, next)| format!(", joins at {next}")).unwrap_or_default();
        let secret = if ring.secret.is_some() { "" } else { ", without a secret" };
        facts.push(("ring", format!("sid {} at {address}{next}{secret}", ring.sid)));
    }
    if let Some(path) = &bound.unix {
        facts.push(("unix", format!("unix:{}", path.display())));
    }
    if let Some(data) = &settings.data {
        facts.push(("data", data.display().to_string()));
        facts.push(("persistence", "disk: sends are stored before they are acknowledged".to_owned()));
    } else {
        facts.push(("persistence", "memory only: messages do not survive a restart".to_owned()));
    }
    let open = exposure::open_now(&settings.zmq, &bound.zmq);
    facts.push(("security", exposure::access(bound.native.iter().chain(&bound.foreman).chain(&open)).to_owned()));
    super::table::facts(&facts)
}

/// Reports a bad end; a good end is silent.
fn farewell(ended: &Ended, logged: bool, invocation: &Invocation) -> u8 {
    let told = [
        (
            ended.returned,
            "waiting request was returned to its caller",
            "waiting requests were returned to their callers",
        ),
        (ended.cut, "delivery was cut short", "deliveries were cut short"),
        (ended.lost, "message in memory was discarded", "messages in memory were discarded"),
    ];
    for (number, one, many) in told.into_iter().filter(|(number, ..)| *number > 0) {
        match logged {
            true => warn!(count = number, "shutdown: {many}"),
            false => invocation.output.note(&count(number, one, many)),
        }
    }
    ended.cut_by.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::cli::paint::Paint;
    use crate::cli::schema;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn only_loopback_is_open_to_all() {
        let table = [
            ("127.0.0.1:7460", true),
            ("127.1.2.3:0", true),
            ("[::1]:7460", true),
            ("0.0.0.0:7460", false),
            ("[::]:7460", false),
            ("10.0.0.7:7460", false),
        ];
        for (address, fine) in table {
            let result = refuse_to_be_open([address.parse().unwrap()].iter(), &words("turno serve"));
            assert_eq!(result.is_ok(), fine, "{address}");
        }
    }

    #[test]
    fn the_refusal_names_the_command_that_mends_it() {
        let line = "turno serve --listen 0.0.0.0:7460 --name it's";
        let failure = refuse_to_be_open(["0.0.0.0:7460".parse().unwrap()].iter(), &words(line)).unwrap_err();
        assert_eq!((failure.code(), failure.exit()), (Code::InsecureListen, 78));
        let text = failure.render(Paint::plain());
        assert!(text.contains(r"turno serve --listen 0.0.0.0:7460 --name 'it'\''s' --insecure"), "{text}");
    }

    fn settings() -> broker::Settings {
        let world = turno_broker::config::Environment {
            data_dir: Some("/srv/u".into()),
            host: "rb".to_owned(),
            memory: 1 << 30,
            ..Default::default()
        };
        let mut settings = broker::Settings::default();
        settings.data = Some(Config::load(&world, None, &[]).unwrap().typed().data);
        settings
    }

    #[test]
    fn a_secret_comes_from_one_place() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        let secret = Secret::new(b"correct horse battery staple");
        let read =
            |set: Option<&Secret>, file: Option<&PathBuf>| super::secret("ring", set, file.map(PathBuf::as_path));
        assert_eq!(read(None, None).unwrap(), None);
        assert_eq!(read(secret.as_ref(), None).unwrap(), secret);
        let good = file("good", b"correct horse battery staple\n");
        assert_eq!(read(None, good.as_ref()).unwrap(), secret);
        let missing = Some(directory.path().join("missing"));
        let table = [
            (secret, good, "both"),
            (None, missing, "cannot be read"),
            (None, file("short", b"short\n"), "16 to 1024 random bytes"),
            (None, file("empty", b""), "16 to 1024 random bytes"),
        ];
        for (secret, path, expected) in table {
            let failure = read(secret.as_ref(), path.as_ref()).unwrap_err();
            let text = failure.render(Paint::plain());
            assert!(failure.exit() == 78 && text.contains(expected), "{text}");
            assert!(!text.contains("horse"), "{text}");
        }
    }

    fn bound(native: &str) -> Bound {
        let mut bound = Bound::default();
        bound.native = vec![native.parse().unwrap()];
        bound
    }

    #[test]
    fn the_ready_line_has_every_address() {
        let mut bound = bound("127.0.0.1:4711");
        bound.foreman = vec!["127.0.0.1:5429".parse().unwrap()];
        bound.zmq = vec!["tcp://127.0.0.1:7461".parse().unwrap(), "tcp://127.0.0.1:6714".parse().unwrap()];
        bound.lmq = vec!["tcp://127.0.0.1:6714".parse().unwrap()];
        bound.unix = Some("/d/turno.sock".into());
        bound.ring = Some("127.0.0.1:8003".parse().unwrap());
        let ready = ready(&bound);
        assert_eq!(
            schema::line(&schema::envelope(&ready)),
            concat!(
                r#"{"schema":"turno.ready/1","native":"127.0.0.1:4711","listen":["127.0.0.1:4711"],"#,
                r#""unix":"/d/turno.sock","foreman":"127.0.0.1:5429","zmq":["tcp://127.0.0.1:7461"],"#,
                r#""lmq":["tcp://127.0.0.1:6714"],"ring":"127.0.0.1:8003"}"#,
                "\n"
            )
        );
    }

    #[test]
    fn the_banner_tells_addresses_persistence_and_security() {
        let settings = settings();
        let (open, bound) = (bound("0.0.0.0:7460"), bound("127.0.0.1:7460"));
        let text = banner(&settings, &bound);
        for expected in ["turno://127.0.0.1:7460", "disk: ", "loopback only, no authentication", "/srv/u/turno"] {
            assert!(text.contains(expected), "{text}");
        }
        let mut memory = settings.clone();
        memory.data = None;
        let text = banner(&memory, &bound);
        assert!(text.contains("memory only") && !text.contains("/srv/u/turno"), "{text}");
        assert!(banner(&settings, &open).contains("OPEN TO THE NETWORK"));
    }
}
