//! Precedence of file, environment and flags, and messages about mistakes.

use std::fs;

use super::*;
use crate::settings::IfTaken;

struct Home {
    dir: tempfile::TempDir,
    world: Environment,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = Environment {
            environment: Default::default(),
            config_dir: Some(dir.path().join("config")),
            data_dir: Some(dir.path().join("share")),
            system_dir: dir.path().join("etc"),
            host: "rb-1".to_owned(),
            memory: 8 << 30,
        };
        Self { dir, world }
    }

    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn variable(mut self, name: &str, text: &str) -> Self {
        self.world.environment.insert(name.to_owned(), text.to_owned());
        self
    }

    fn load(&self, flags: &[Flag]) -> Config {
        Config::load(&self.world, None, flags).unwrap()
    }

    fn problems(&self) -> Vec<String> {
        let problems = Config::load(&self.world, None, &[]).unwrap_err();
        let base = format!("{}/", self.dir.path().display());
        problems.iter().map(|problem| problem.to_string().replace(&base, "")).collect()
    }
}

fn shown(config: &Config, name: &str) -> (String, String) {
    let setting = config.settings().iter().find(|setting| setting.key.name == name).unwrap();
    (setting.value.to_string(), setting.origin.to_string())
}

fn flag(key: &'static str, text: &str) -> Flag {
    Flag { flag: "--flag", key, raw: RawValue::Text(text.to_owned()) }
}

#[test]
fn without_a_word_the_defaults_hold() {
    let home = Home::new();
    let settings = home.load(&[]).typed();
    assert_eq!(settings.broker.name, "rb-1");
    assert_eq!(settings.data, home.dir.path().join("share/turno"));
    assert_eq!(settings.socket(), home.dir.path().join("share/turno/turno.sock"));
    assert_eq!(settings.broker.listen, ["127.0.0.1:7460".parse().unwrap()]);
    assert_eq!((settings.url, settings.broker.brokers), (vec![], vec![]));
    assert_eq!(settings.broker.limits.memory_bytes_max, 4 << 30);
    let limits = turno_proto::model::Limits { memory_bytes_max: 4 << 30, ..Default::default() };
    assert_eq!(settings.broker.limits, limits);
    assert_eq!(settings.broker.heartbeat_ms, 5_000);
    assert_eq!(
        (settings.broker.queue_defaults.lease, settings.broker.queue_defaults.policy),
        (None, turno_engine::Policy::LeastRecentlyUsed)
    );
    assert_eq!((settings.broker.queue_defaults.drop_after, settings.broker.drain_timeout.as_secs()), (2, 30));
    let keep_ms = settings.broker.keep_finished.map(|keep| keep.as_millis());
    assert_eq!(keep_ms, Some(turno_proto::model::limits::KEEP_FINISHED_MS.into()));
    assert_eq!(settings.broker.worker_grace.as_millis(), turno_proto::model::limits::TASK_GRACE_MS.into());
    assert_eq!((settings.log_level.as_str(), settings.log_format), ("info", LogFormat::Auto));
}

#[test]
fn a_flag_beats_the_environment_beats_a_file_beats_the_default() {
    let home = Home::new();
    let file = home.put("config/turno/turno.toml", "# mine\nheartbeat = \"1s\"\n\n[drain]\ntimeout = \"2m\"\n");
    let home = home.variable("TURNO_HEARTBEAT", "2s");
    let config = home.load(&[flag("heartbeat", "3s")]);
    assert_eq!(shown(&config, "heartbeat"), ("3s".to_owned(), "flag --flag".to_owned()));
    let config = home.load(&[]);
    assert_eq!(shown(&config, "heartbeat"), ("2s".to_owned(), "environment TURNO_HEARTBEAT".to_owned()));
    assert_eq!(shown(&config, "drain.timeout"), ("2m".to_owned(), format!("{}:5", file.display())));
    assert_eq!(shown(&config, "log.level"), ("info".to_owned(), "default".to_owned()));
    assert_eq!(config.files(), [file]);
}

#[test]
fn every_key_can_be_set_by_file_and_by_variable() {
    let texts = [
        ("name", "n", "\"n\""),
        ("data", "/d", "\"/d\""),
        ("persistence", "memory", "\"memory\""),
        ("url", "turno://a:1,unix:/s", "[\"turno://a:1\", \"unix:/s\"]"),
        ("brokers", "turno://a:1,turno://b:2", "[\"turno://a:1\", \"turno://b:2\"]"),
        ("listen.native", "127.0.0.1:1,[::1]:2", "[\"127.0.0.1:1\", \"[::1]:2\"]"),
        ("listen.foreman", "127.0.0.1:3", "[\"127.0.0.1:3\"]"),
        ("listen.zmq", "127.0.0.1:4", "[\"127.0.0.1:4\"]"),
        ("zmq.queue", "orders", "\"orders\""),
        ("listen.lmq", "127.0.0.1:5", "[\"127.0.0.1:5\"]"),
        ("lmq.queue", "pings", "\"pings\""),
        ("link.to", "a:1,turno://b", "[\"a:1\", \"turno://b\"]"),
        ("link.secret", "correct horse battery staple", "\"correct horse battery staple\""),
        ("link.secret-file", "/s", "\"/s\""),
        ("link.order", "rb-1,rb-2", "[\"rb-1\", \"rb-2\"]"),
        ("ring.sid", "7", "7"),
        ("ring.next", "3@a:8003", "\"3@a:8003\""),
        ("ring.wait", "true", "true"),
        ("ring.port", "9007", "9007"),
        ("ring.listen", "10.0.0.7:8007", "\"10.0.0.7:8007\""),
        ("ring.advertise", "rb-7", "\"rb-7\""),
        ("ring.secret", "correct horse battery staple", "\"correct horse battery staple\""),
        ("ring.secret-file", "/r", "\"/r\""),
        ("ring.sorted", "true", "true"),
        ("ring.fast", "true", "true"),
        ("ring.links", "true", "true"),
        ("routers", "2", "2"),
        ("limits.message", "1MiB", "\"1MiB\""),
        ("limits.connections", "7", "7"),
        ("limits.queues", "8", "8"),
        ("limits.in-flight", "9", "9"),
        ("limits.memory", "2GiB", "\"2GiB\""),
        ("limits.dead", "0", "0"),
        ("heartbeat", "1s", "\"1s\""),
        ("request.deadline", "1m", "\"1m\""),
        ("queue.defaults.lease", "2m", "\"2m\""),
        ("queue.defaults.policy", "fill", "\"fill\""),
        ("queue.defaults.drop-after", "0", "0"),
        ("queue.defaults.retry-delay", "2s", "\"2s\""),
        ("queue.defaults.retry-delay-max", "1h", "\"1h\""),
        ("jobs.keep-finished", "none", "\"none\""),
        ("jobs.worker-grace", "10s", "\"10s\""),
        ("jobs.output-per-task", "2MiB", "\"2MiB\""),
        ("jobs.output-total", "3GiB", "\"3GiB\""),
        ("jobs.result-total", "5GiB", "\"5GiB\""),
        ("drain.timeout", "10s", "\"10s\""),
        ("log.level", "debug", "\"debug\""),
        ("log.format", "json", "\"json\""),
    ];
    assert_eq!(texts.map(|(name, ..)| name).to_vec(), KEYS.iter().map(|key| key.name).collect::<Vec<_>>());
    let (by_file, mut by_variable) = (Home::new(), Home::new());
    let toml: String = texts.iter().map(|(name, _, toml)| format!("{name} = {toml}\n")).collect();
    by_file.put("config/turno/turno.toml", &toml);
    for (key, (_, text, _)) in KEYS.iter().zip(texts) {
        by_variable = by_variable.variable(&key.variable(), text);
    }
    let (by_file, by_variable) = (by_file.load(&[]), by_variable.load(&[]));
    for (name, text, _) in texts {
        let text = if name.ends_with(".secret") { "(hidden)" } else { text };
        assert_eq!(shown(&by_file, name).0, text, "{name}");
        assert_eq!(shown(&by_variable, name).0, text, "{name}");
    }
    assert_eq!(by_file.typed(), by_variable.typed());
    assert_eq!(KEYS.iter().find(|key| key.name == "limits.in-flight").unwrap().variable(), "TURNO_LIMITS__IN_FLIGHT");
}

/// Proves S1.15: TCP listeners and the place of the Unix socket are configurable.
#[test]
fn listeners_are_configurable() {
    let home = Home::new();
    home.put("config/turno/turno.toml", "data = \"/run/rb\"\nlisten.native = [\"127.0.0.1:0\", \"[::1]:7460\"]\n");
    let settings = home.load(&[]).typed();
    assert_eq!(settings.broker.listen, ["127.0.0.1:0".parse().unwrap(), "[::1]:7460".parse().unwrap()]);
    assert_eq!(settings.socket(), PathBuf::from("/run/rb/turno.sock"));
    home.put("config/turno/turno.toml", "listen.native = []\nlisten.foreman = \"none\"\n");
    let config = home.load(&[]);
    let settings = config.typed();
    assert_eq!(
        (settings.broker.listen, settings.broker.foreman, settings.broker.foreman_if_taken),
        (Vec::new(), Vec::new(), IfTaken::Fail)
    );
    assert_eq!(shown(&config, "listen.native").0, "none");
}

#[test]
fn every_default_is_in_range_and_documented() {
    let home = Home::new();
    for key in KEYS {
        assert!(home.world.default_of(key).is_ok(), "{}", key.name);
        assert!(!key.doc.is_empty() && !key.doc.ends_with('.'), "{}", key.name);
    }
}

#[test]
fn the_users_file_hides_the_machines_and_additions_come_in_order() {
    let home = Home::new();
    home.put("etc/turno.toml", "name = \"machine\"\nheartbeat = \"1s\"\n");
    home.put("etc/turno.d/20-b.toml", "name = \"b\"\n");
    home.put("etc/turno.d/10-a.toml", "name = \"a\"\ndata = \"/a\"\n");
    home.put("etc/turno.d/README", "not TOML");
    let config = home.load(&[]);
    assert_eq!(config.files().len(), 3);
    assert_eq!(config.typed().broker.name, "b");
    assert_eq!((config.typed().data, config.typed().broker.heartbeat_ms), ("/a".into(), 1_000));
    home.put("config/turno/turno.toml", "name = \"mine\"\n");
    let config = home.load(&[]);
    assert_eq!((config.typed().broker.name.as_str(), config.typed().broker.heartbeat_ms), ("mine", 5_000));
}

#[test]
fn a_named_file_is_the_only_one_and_must_exist() {
    let home = Home::new();
    home.put("config/turno/turno.toml", "name = \"mine\"\n");
    let named = home.put("other.toml", "heartbeat = \"1s\"\n");
    let config = Config::load(&home.world, Some(&named), &[]).unwrap();
    assert_eq!((config.typed().broker.name.as_str(), config.typed().broker.heartbeat_ms), ("rb-1", 1_000));
    let missing = Config::load(&home.world, Some(&home.dir.path().join("nope.toml")), &[]).unwrap_err();
    assert!(missing[0].to_string().ends_with("nope.toml: the configuration file does not exist"), "{missing:?}");
    let directory = Config::load(&home.world, Some(home.dir.path()), &[]).unwrap_err();
    assert!(directory[0].to_string().ends_with(": is not a regular file"), "{directory:?}");
}

/// Not the same as no file: what is set there would silently not hold. A link to itself is unreadable for root, too.
#[test]
fn a_file_that_cannot_be_read_is_a_problem_of_its_own() {
    for place in ["config/turno/turno.toml", "etc/turno.toml", "etc/turno.d"] {
        let home = Home::new();
        let path = home.put(place, "");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let problems = Config::load(&home.world, None, &[]).unwrap_err();
        assert!(problems[0].unreadable.is_some(), "{place}: {problems:?}");
        assert!(problems[0].to_string().contains(&format!("{place}: cannot be read: ")), "{problems:?}");
    }
}

#[test]
fn mistakes_name_their_place_and_what_is_expected() {
    let table = [
        ("listen.nativ = []\n", "config/turno/turno.toml:1: unknown key listen.nativ; did you mean listen.native?"),
        (
            "\n[limits]\nin_flight = 3\n",
            "config/turno/turno.toml:3: unknown key limits.in_flight; did you mean limits.in-flight?",
        ),
        ("frobnicate = 1\n", "config/turno/turno.toml:1: unknown key frobnicate; `turno config show` lists every key"),
        (
            "name = \"a\"\nheartbeat = \"1h\"\n",
            "config/turno/turno.toml:2: heartbeat = \"1h\": expected a duration like \"30s\", from 250ms to 1m",
        ),
        (
            "[limits]\nqueues = \"many\"\n",
            "config/turno/turno.toml:2: limits.queues = \"many\": expected a whole number from 1 to 4294967295",
        ),
        (
            "[queue.defaults]\npolicy = \"random\"\n",
            "config/turno/turno.toml:2: queue.defaults.policy = \"random\": expected one of lru, fill",
        ),
        ("name = true\n", "config/turno/turno.toml:1: name = true: expected text"),
        (
            "[ring]\nsid = \"next\"\n",
            "config/turno/turno.toml:2: ring.sid = \"next\": expected a number from 0 to 65535, or \"auto\"",
        ),
        (
            "[ring]\nnext = \"10.0.0.7\"\n",
            "config/turno/turno.toml:2: ring.next = \"10.0.0.7\": expected a member like 3@10.0.0.7 or \
                 300@10.0.0.7:9000; a sid above 99 requires a port",
        ),
        ("ring.fast = 1\n", "config/turno/turno.toml:1: ring.fast = 1: expected true or false"),
        ("drain = 3\n", "config/turno/turno.toml:1: drain is a table: write [drain] with its keys below"),
    ];
    for (text, expected) in table {
        let home = Home::new();
        home.put("config/turno/turno.toml", text);
        assert_eq!(home.problems(), [expected], "{text}");
    }
}

#[test]
fn what_is_no_toml_names_its_line() {
    let home = Home::new();
    home.put("config/turno/turno.toml", "name = \"a\"\nname = \n");
    let problems = home.problems();
    assert!(problems[0].starts_with("config/turno/turno.toml:2: not TOML: "), "{problems:?}");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let home = Home::new().variable("TURNO_HEARTBEAT", "soon").variable("TURNO_LISTEN__NATIV", "x");
    home.put("config/turno/turno.toml", "nam = \"a\"\nlog.level = \"=\"\n");
    let problems = home.problems();
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems[2].starts_with("environment TURNO_HEARTBEAT: heartbeat = \"soon\": expected"), "{problems:?}");
    assert!(problems[3].ends_with("did you mean TURNO_LISTEN__NATIVE?"), "{problems:?}");
}

#[test]
fn other_variables_are_somebody_elses() {
    let home = Home::new()
        .variable("TURNO_QUEUE", "q")
        .variable("TURNO_MESSAGE_ID", "17")
        .variable("TURNO_OUTPUT", "json")
        .variable("TURNO_DATA", "");
    assert_eq!(shown(&home.load(&[]), "data").1, "default");
}

#[test]
fn without_a_home_the_data_directory_must_be_named() {
    let mut home = Home::new();
    home.world.data_dir = None;
    assert_eq!(home.problems(), ["no home directory; set `data` (or --data, TURNO_DATA)"]);
    assert_eq!(home.load(&[flag("data", "/d")]).typed().data, PathBuf::from("/d"));
}

/// Nearly the largest file there may be, full of keys that nobody knows. Each key's line used to be counted
/// from the first one, which made reading it quadratic.
#[test]
fn a_file_of_many_mistakes_is_read_through() {
    let home = Home::new();
    let count = 80_000;
    let text: String = (1..=count).map(|number| format!("k{number:05} = 1\n")).collect();
    home.put("etc/turno.toml", &text);
    let problems = home.problems();
    assert_eq!(problems.len(), count);
    assert!(problems[0].starts_with("etc/turno.toml:1: unknown key k00001"), "{}", problems[0]);
    assert!(problems[count - 1].starts_with("etc/turno.toml:80000: unknown key k80000"), "{}", problems[count - 1]);
}

/// Proves S3.8, S3.46 and S3.47: what nobody set follows from the sid, and nothing does without one.
#[test]
fn a_sid_brings_a_directory_and_ports_of_its_own() {
    let home = Home::new();
    assert_eq!(home.load(&[]).typed().ring.sid, None);
    assert_eq!(shown(&home.load(&[]), "ring.port"), ("none".to_owned(), "default".to_owned()));
    let config = home.load(&[flag("ring.sid", "7")]);
    let from = || "default for sid 7".to_owned();
    assert_eq!(shown(&config, "listen.native"), ("127.0.0.1:8107".to_owned(), from()));
    assert_eq!(shown(&config, "listen.foreman"), ("127.0.0.1:8407".to_owned(), from()));
    assert_eq!(shown(&config, "ring.port"), ("8007".to_owned(), from()));
    assert_eq!(shown(&config, "name"), ("rb-1-7".to_owned(), from()));
    let typed = config.typed();
    assert_eq!(typed.data, home.dir.path().join("share/turno-7"));
    assert_eq!((typed.broker.foreman_if_taken, typed.url), (IfTaken::FreePort, Vec::<String>::new()));

    let set = ["listen.native", "listen.foreman", "ring.listen"].map(|key| flag(key, "127.0.0.1:1"));
    let set = [&set[..], &[flag("ring.sid", "7"), flag("data", "/d"), flag("name", "n")]].concat();
    let config = home.load(&set);
    for (key, value) in
        [("listen.native", "127.0.0.1:1"), ("listen.foreman", "127.0.0.1:1"), ("data", "/d"), ("name", "n")]
    {
        assert_eq!(shown(&config, key), (value.to_owned(), "flag --flag".to_owned()));
    }
    assert_eq!(config.typed().ring.port, None, "ring.listen has the port");

    let config = home.load(&[flag("ring.sid", "100")]);
    assert_eq!(shown(&config, "listen.native"), ("127.0.0.1:7460".to_owned(), "default".to_owned()));
    assert_eq!(shown(&config, "ring.port"), ("none".to_owned(), "default".to_owned()));
    assert_eq!(config.typed().data, home.dir.path().join("share/turno-100"));
    let config = home.load(&[flag("ring.sid", "auto")]);
    assert_eq!(config.typed().ring.sid, Some(SidWanted::Auto));
    assert_eq!(shown(&config, "data").1, "default");
}

/// Wherever it was set and however wrong it is.
#[test]
fn a_secret_is_never_shown() {
    let home = Home::new().variable("TURNO_LINK__SECRET", "correct horse battery staple");
    home.put("config/turno/turno.toml", "link.to = [\"rb-2:7460\", \"rb-3\"]\nlink.order = [\"rb-2\", \"rb-1\"]\n");
    let config = home.load(&[]);
    assert_eq!(shown(&config, "link.secret"), ("(hidden)".to_owned(), "environment TURNO_LINK__SECRET".to_owned()));
    assert!(!format!("{config:?}").contains("horse"));
    assert!(config.settings().iter().all(|setting| !setting.value.to_string().contains("horse")));
    let typed = config.typed();
    assert_eq!(typed.broker.links.secret, turno_proto::native::Secret::new(b"correct horse battery staple"));
    assert_eq!(
        (typed.broker.links.to, typed.broker.links.order),
        (words(&["rb-2:7460", "rb-3"]), words(&["rb-2", "rb-1"]))
    );

    let home = Home::new();
    home.put("config/turno/turno.toml", "[link]\nsecret = \"horse\"\n");
    let problems = home.problems();
    assert!(problems[0].contains("link.secret: expected 16 to 1024 random bytes"), "{problems:?}");
    assert!(!problems[0].contains("horse"), "{problems:?}");
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
