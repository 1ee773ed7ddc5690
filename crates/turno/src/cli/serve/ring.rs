//! The ring membership from the configuration, and its errors.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use turno_broker::config::{Config, Next, Origin, RingKeys, SidWanted};
use turno_broker::{Finding, RingConfig};
use turno_proto::model::Code;
use turno_proto::model::ring::Sid;

use super::super::error::Failure;
use super::secret;

/// The key that each flag of `turno serve` sets.
const FLAGS: &[(&str, &str)] = &[
    ("ring.sid", "--sid"),
    ("ring.next", "--ring-next"),
    ("ring.port", "--ring-port"),
    ("ring.listen", "--ring-listen"),
    ("ring.advertise", "--ring-advertise"),
    ("listen.native", "--listen"),
];

/// The plan for the ring.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RingPlan {
    /// Nothing: the broker is in none.
    Nothing,
    /// It must find a number first.
    Find(Finding),
    /// It takes that place.
    Place(Box<RingConfig>),
}

/// Makes the plan for the ring from the configuration.
pub(super) fn plan(config: &Config) -> Result<RingPlan, Failure> {
    let keys = config.typed().ring;
    match keys.sid {
        None => nothing(config),
        Some(SidWanted::Auto) => find(config, keys),
        Some(SidWanted::Number(sid)) => place(config, keys, sid).map(|place| RingPlan::Place(Box::new(place))),
    }
}

/// As it was set: by its flag, or by its key.
fn called(config: &Config, key: &'static str) -> &'static str {
    match config.origin(key) {
        Origin::Flag(flag) => flag,
        _ => key,
    }
}

/// A mistake in a flag is wrong usage, all else is wrong configuration.
fn wrong(config: &Config, key: &'static str, what: impl Into<String>) -> Failure {
    let code = if matches!(config.origin(key), Origin::Flag(_)) { Code::BadUsage } else { Code::BadConfig };
    Failure::new(code, what)
}

fn nothing(config: &Config) -> Result<RingPlan, Failure> {
    let typed = |key: &str| matches!(config.origin(key), Origin::Flag(_));
    let of_ring = FLAGS.iter().filter(|(key, _)| key.starts_with("ring."));
    match of_ring.map(|(key, _)| *key).find(|key| typed(key)) {
        Some(key) => Err(wrong(config, key, format!("{} requires --sid", called(config, key)))
            .why("a ring member needs a sid")
            .fix("add --sid N with an unused number, or --sid auto")),
        // A file for several brokers may say what holds for those of them that get a number by a flag.
        None => Ok(RingPlan::Nothing),
    }
}

fn find(config: &Config, keys: RingKeys) -> Result<RingPlan, Failure> {
    match keys.next {
        Some(next) => {
            let secret = secret("ring", keys.secret.as_ref(), keys.secret_file.as_deref())?;
            Ok(RingPlan::Find(Finding {
                next: (Some(next.sid), next.address),
                secret,
                if_unreachable: keys.if_unreachable,
            }))
        }
        None => Err(wrong(config, "ring.sid", format!("{} auto requires --ring-next", called(config, "ring.sid")))
            .why("a ring member assigns the free sid")
            .fix("add --ring-next SID@HOST; give the first broker of a ring a number: --sid 1")),
    }
}

fn place(config: &Config, keys: RingKeys, sid: Sid) -> Result<RingConfig, Failure> {
    let by = |key| called(config, key);
    if let Some(next) = keys.next.as_ref().filter(|next| next.sid == sid) {
        return Err(wrong(config, "ring.next", format!("{} {next} is this broker's own sid", by("ring.next")))
            .why("a broker joins a ring at another member")
            .fix("choose another member, or omit it to start a new ring"));
    }
    let listen = listener(config, &keys, sid)?;
    let secret = secret("ring", keys.secret.as_ref(), keys.secret_file.as_deref())?;
    if secret.is_none() && !listen.ip().is_loopback() {
        return Err(Failure::new(
            Code::InsecureListen,
            format!("refusing to listen on {listen} for a ring without a secret"),
        )
        .why("anyone who can reach it could join, read everything and publish anything")
        .fix("openssl rand -hex 32 > ring.secret; give all members the file: --ring-secret-file ring.secret"));
    }
    if let Some(next) = keys.next.as_ref().filter(|next| secret.is_none() && is_elsewhere(next)) {
        return Err(wrong(
            config,
            "ring.next",
            format!("{} {next} is on another machine, and there is no secret", by("ring.next")),
        )
        .why("without a secret, only brokers on the same machine may form a ring")
        .fix("give all members the same --ring-secret-file"));
    }
    if listen.ip().is_unspecified() && keys.advertise.is_none() {
        return Err(wrong(
            config,
            "ring.listen",
            format!("{} {listen} is not an address that other members can dial", by("ring.listen")),
        )
        .why("members announce their addresses to each other")
        .fix("add --ring-advertise HOST, or listen on one address"));
    }
    let mut ring = RingConfig::new(sid, listen);
    ring.advertise = keys.advertise;
    ring.next = keys.next.map(|next| (Some(next.sid), next.address));
    ring.if_unreachable = keys.if_unreachable;
    ring.order = keys.order;
    ring.timing = keys.timing;
    ring.secret = secret;
    ring.links = keys.links;
    Ok(ring)
}

/// Where other members reach it. Proves that large sids were given ports (S3.48).
fn listener(config: &Config, keys: &RingKeys, sid: Sid) -> Result<SocketAddr, Failure> {
    let is_set = |key: &str| *config.origin(key) != Origin::Default;
    if !is_set("listen.native") || (keys.port.is_none() && keys.listen.is_none()) {
        return Err(wrong(
            config,
            "ring.sid",
            format!("{} {sid} needs --ring-port and --listen", called(config, "ring.sid")),
        )
        .why("the default ports, 8000 and 8100 plus the sid, exist for sids 0 to 99")
        .fix(format!("for example: turno serve --sid {sid} --ring-port 9001 --listen 127.0.0.1:9101")));
    }
    match (keys.listen, keys.port) {
        (Some(_), Some(_)) => Err(wrong(config, "ring.port", "both ring.port and ring.listen are set")
            .why("both set the address for other members")
            .fix("set one of them")),
        (Some(listen), None) => Ok(listen),
        (None, port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or_default()))),
    }
}

/// Whether its address shows that it is on another machine. A name may be anywhere: the greeting finds out.
fn is_elsewhere(next: &Next) -> bool {
    let host = next.address.rsplit_once(':').map_or(next.address.as_str(), |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().is_ok_and(|ip| !ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use turno_broker::config::{Environment, Flag, RawValue};
    use turno_proto::native::Secret;

    use turno_broker::{IfUnreachable, RingLinks, RingOrder, RingTiming};

    use super::*;
    use crate::cli::paint::Paint;

    /// Keys and what they are set to.
    type Words<'a> = &'a [(&'static str, &'a str)];

    fn config(words: Words<'_>) -> Config {
        let world = Environment {
            data_dir: Some("/srv/u".into()),
            host: "rb".to_owned(),
            memory: 1 << 30,
            ..Default::default()
        };
        let flags: Vec<Flag> = words
            .iter()
            .map(|(key, text)| {
                let flag = FLAGS.iter().find(|(known, _)| known == key).map_or("--flag", |(_, flag)| flag);
                Flag { flag, key, raw: RawValue::Text((*text).to_owned()) }
            })
            .collect();
        Config::load(&world, None, &flags).unwrap()
    }

    const SECRET: (&str, &str) = ("ring.secret", "correct horse battery staple");

    #[test]
    fn places_in_a_ring() {
        assert_eq!(plan(&config(&[])).unwrap(), RingPlan::Nothing);
        let first = RingConfig::new(Sid::new(3), "127.0.0.1:8003".parse().unwrap());
        let place = |words: Words<'_>| match plan(&config(words)).unwrap() {
            RingPlan::Place(place) => *place,
            other => panic!("{other:?}"),
        };
        assert_eq!(place(&[("ring.sid", "3")]), first);
        let more = place(&[
            ("ring.sid", "300"),
            ("ring.next", "3@10.0.0.3"),
            ("ring.listen", "0.0.0.0:9000"),
            ("ring.advertise", "10.0.0.7"),
            ("listen.native", "127.0.0.1:0"),
            ("ring.wait", "true"),
            ("ring.sorted", "true"),
            ("ring.fast", "true"),
            ("ring.links", "true"),
            SECRET,
        ]);
        let mut expected = RingConfig::new(Sid::new(300), "0.0.0.0:9000".parse().unwrap());
        expected.advertise = Some("10.0.0.7".to_owned());
        expected.next = Some((Some(Sid::new(3)), "10.0.0.3:8003".to_owned()));
        expected.if_unreachable = IfUnreachable::Retry;
        expected.order = RingOrder::BySid;
        expected.timing = RingTiming::Fast;
        expected.secret = Secret::new(SECRET.1.as_bytes());
        expected.links = RingLinks::Neighbours;
        assert_eq!(more, expected);
        let port = place(&[("ring.sid", "3"), ("ring.port", "0")]);
        assert_eq!(port.listen, "127.0.0.1:0".parse().unwrap());
        let auto = plan(&config(&[("ring.sid", "auto"), ("ring.next", "3@localhost")])).unwrap();
        let next = (Some(Sid::new(3)), "localhost:8003".to_owned());
        assert_eq!(auto, RingPlan::Find(Finding { next, secret: None, if_unreachable: IfUnreachable::Fail }));
    }

    /// Proves S3.48, and that what cannot be is told before anything starts.
    #[test]
    fn places_that_cannot_be() {
        let table: [(Words<'_>, i32, &str); 11] = [
            (&[("ring.next", "3@localhost")], 2, "--ring-next requires --sid"),
            (&[("ring.port", "9000")], 2, "--ring-port requires --sid"),
            (&[("ring.sid", "auto")], 2, "--sid auto requires --ring-next"),
            (&[("ring.sid", "100")], 2, "--sid 100 needs --ring-port and --listen"),
            (&[("ring.sid", "100"), ("ring.port", "9000")], 2, "--sid 100 needs --ring-port and --listen"),
            (&[("ring.sid", "100"), ("listen.native", "127.0.0.1:1")], 2, "--sid 100 needs --ring-port and --listen"),
            (
                &[("ring.sid", "3"), ("ring.next", "3@localhost")],
                2,
                "--ring-next 3@localhost:8003 is this broker's own sid",
            ),
            (
                &[("ring.sid", "3"), ("ring.listen", "10.0.0.7:8003")],
                78,
                "refusing to listen on 10.0.0.7:8003 for a ring without a secret",
            ),
            (
                &[("ring.sid", "3"), ("ring.next", "4@10.0.0.7")],
                2,
                "--ring-next 4@10.0.0.7:8004 is on another machine, and there is no secret",
            ),
            (
                &[("ring.sid", "3"), ("ring.listen", "0.0.0.0:8003"), SECRET],
                2,
                "--ring-listen 0.0.0.0:8003 is not an address that other members can dial",
            ),
            (
                &[("ring.sid", "3"), ("ring.listen", "127.0.0.1:1"), ("ring.port", "2")],
                2,
                "both ring.port and ring.listen are set",
            ),
        ];
        for (words, exit, expected) in table {
            let failure = plan(&config(words)).unwrap_err();
            let text = failure.render(Paint::plain());
            assert!(text.starts_with(&format!("error: {expected}\nwhy: ")), "{words:?}: {text}");
            assert!(text.contains("\nfix: "), "{text}");
            assert_eq!(i32::from(failure.exit()), exit, "{text}");
        }
    }
}
