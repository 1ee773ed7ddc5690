//! A broker that listens nowhere but on its Unix socket, and what is said about who may use one.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use turno_e2e::{Background, Broker, Place, Run, wait};

const SOON: Duration = Duration::from_secs(30);
/// Variables of a broker that listens at no TCP port.
const NOWHERE: [(&str, &str); 4] = [
    ("TURNO_LISTEN__NATIVE", "none"),
    ("TURNO_LISTEN__FOREMAN", "none"),
    ("TURNO_LISTEN__ZMQ", "none"),
    ("TURNO_LISTEN__LMQ", "none"),
];

/// The ready line of a broker in that place.
fn serve(place: &Place, flags: &[&str], variables: &[(&str, &str)]) -> (Background, Value) {
    let mut command = place.turno(["serve", "--json"].iter().chain(flags));
    command.envs(variables.iter().copied());
    let mut process = Background::start(command);
    let line = wait::find(wait::PATIENCE, || {
        process.stdout().into_iter().next().or_else(|| (!process.runs()).then(String::new))
    });
    let line = line.filter(|line| !line.is_empty());
    let line = line.unwrap_or_else(|| panic!("the broker did not get ready: {:?}", process.stderr()));
    (process, serde_json::from_str(&line).expect("the ready line is JSON"))
}

/// TCP sockets on which that process listens.
fn tcp_listeners(process: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{process}/fd")).expect("it runs").flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    let own: BTreeSet<String> =
        links.filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())).collect();
    let tables =
        ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default());
    let is_ours = |row: &str| {
        let columns: Vec<&str> = row.split_whitespace().collect();
        columns.get(3) == Some(&"0A") && columns.get(9).is_some_and(|inode| own.contains(*inode))
    };
    tables.iter().flat_map(|table| table.lines()).filter(|row| is_ours(row)).count()
}

/// By flags, by a file and by variables: no TCP port at all, and the socket serves.
#[test]
fn a_broker_on_its_socket_alone() {
    let flags = ["--listen", "none", "--foreman-listen", "none", "--zmq-listen", "none", "--lmq-listen", "none"];
    let file = "listen.native = []\nlisten.foreman = []\nlisten.zmq = []\nlisten.lmq = []\n";
    let table = [(&flags[..], "", &[][..]), (&[][..], file, &[][..]), (&[][..], "", &NOWHERE[..])];
    for (flags, file, variables) in table {
        let place = Place::new();
        let config = place.path().join("config/turno");
        fs::create_dir_all(&config).expect("our own place");
        fs::write(config.join("turno.toml"), file).expect("our own place");
        let (mut process, ready) = serve(&place, flags, variables);
        assert_eq!(
            (&ready["native"], &ready["foreman"], &ready["listen"]),
            (&Value::Null, &Value::Null, &Value::Array(vec![]))
        );
        assert_eq!(ready["unix"], place.data().join("turno.sock").display().to_string());
        assert_eq!(tcp_listeners(process.id()), 0);
        assert!(place.run(["send", "q", "x"]).expect(0).stderr.is_empty());
        assert_eq!(place.run(["queue", "show", "q", "--json"]).expect(0).json()["queue"]["ready"], 1);
        process.signal(Signal::TERM);
        assert_eq!(process.end(SOON), 0);
    }
}

/// What nobody could reach does not start.
#[test]
fn a_broker_that_nobody_could_reach_does_not_start() {
    let place = Place::new();
    let run = place.run(["serve", "--listen", "none", "--memory", "--json"]).expect(78);
    assert_eq!(run.error_code(), "bad_config");
    let long = place.path().join("d".repeat(100)).display().to_string();
    let run = place.run(["serve", "--listen", "none", "--data", &long, "--json"]).expect(78);
    assert_eq!(run.error_code(), "bad_config");
    let run = place.run(["serve", "--listen", "none,127.0.0.1:0"]).expect(2);
    assert!(run.stderr.contains("or [] for none"), "{}", run.stderr);
}

/// Banner and doctor say who may use a broker.
#[test]
fn it_is_said_who_may_use_a_broker() {
    let table = [
        (&["--listen", "127.0.0.1:0"][..], "every local user may submit jobs"),
        (&["--listen", "none"], "every local user may submit jobs"),
        (
            &["--listen", "none", "--foreman-listen", "none", "--zmq-listen", "none", "--lmq-listen", "none"],
            "Unix socket only: accessible to this user and root",
        ),
    ];
    for (flags, expected) in table {
        let place = Place::new();
        let mut process = Background::start(place.turno(["serve"].iter().chain(flags)));
        let is_told = || process.stderr().iter().any(|line| line.starts_with("security") && line.contains(expected));
        wait::until("the banner says so", is_told);
        process.signal(Signal::TERM);
        assert_eq!(process.end(SOON), 0);
    }
    let place = Place::new();
    fs::create_dir_all(place.data()).expect("our own place");
    let said = |run: Run| run.expect(0).text();
    assert!(said(place.run(["doctor"])).contains("every local user may submit jobs"));
    let mut command = place.turno(["doctor"]);
    command.envs(NOWHERE);
    assert!(said(Run::finish(command, b"", SOON)).contains("Unix socket only"));
}

/// Secrets and data that other users can get at are told of, at the start and by the doctor.
#[test]
fn loose_permissions_are_warned_of() {
    let place = Place::new();
    let secret = place.path().join("ring.secret");
    fs::write(&secret, "correct horse battery staple").expect("our own place");
    fs::create_dir_all(place.data()).expect("our own place");
    let flags =
        ["--sid", "1", "--ring-port", "0", "--foreman-listen", "none", "--zmq-listen", "none", "--lmq-listen", "none"];
    let path = secret.display().to_string();
    for (modes, count) in [([0o755, 0o644], 2), ([0o700, 0o600], 0)] {
        fs::set_permissions(place.data(), Permissions::from_mode(modes[0])).expect("ours");
        fs::set_permissions(&secret, Permissions::from_mode(modes[1])).expect("ours");
        let data = place.data().display().to_string();
        let words = [&flags[..], &["--data", &data, "--ring-secret-file", &path]].concat();
        let mut broker = Broker::start_in(Place::new(), &words);
        let told = |line: &&String| line.contains("other users of this machine can access this");
        let stderr = broker.process().stderr();
        assert_eq!(stderr.iter().filter(told).count(), count, "{stderr:?}");
        assert!(!stderr.concat().contains("horse"), "{stderr:?}");
        assert_eq!(broker.terminate(SOON), 0);
        let mut doctor = place.turno(["doctor", "--json"]);
        doctor.env("TURNO_RING__SECRET_FILE", &path);
        let document = Run::finish(doctor, b"", SOON).expect(0).document("turno.doctor/1");
        let findings = document["findings"].as_array().expect("a list");
        let loose: Vec<&Value> = findings.iter().filter(|finding| finding["check"] == "exposure").collect();
        assert_eq!(loose.len(), count, "{document}");
        assert!(loose.iter().all(|finding| finding["level"] == "warn" && finding["advice"].is_string()), "{document}");
    }
}
