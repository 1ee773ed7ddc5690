//! Workers on other machines over ssh, with a stand-in for it: every host is this machine, and all that a worker says goes
//! through the stand-in's tunnels.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use turno_e2e::{Background, Broker, Place, process, wait};

const SSH: &str = env!("CARGO_BIN_EXE_stand-in-ssh");
const LONG: Duration = wait::PATIENCE;

/// A deployment of these hosts, `{turno}` standing for the program there.
fn deploy(broker: &Broker, hosts: &str, flags: &[&str]) -> Background {
    let file = broker.place.path().join("hosts");
    let hosts = hosts.replace("{turno}", &Place::turno_path().display().to_string());
    std::fs::write(&file, hosts).expect("a place to write");
    let file = file.display().to_string();
    let mut words = vec!["worker", "deploy", "--hosts", &file, "--ssh", SSH];
    words.extend_from_slice(flags);
    broker.start_turno(&words)
}

fn workers(broker: &Broker) -> Vec<(String, u64)> {
    let list = broker.run(&["worker", "ls", "--json"]).expect(0).json();
    let rows = list["workers"].as_array().expect("rows").iter();
    let mut rows: Vec<_> = rows
        .map(|row| (row["name"].as_str().expect("a name").to_owned(), row["slots"].as_u64().unwrap_or(0)))
        .collect();
    rows.sort();
    rows
}

/// Three hosts of different sizes take tasks through their tunnels, one of them after its first ports were taken; when
/// the command is asked to end, they finish what they have and go.
#[test]
fn workers_on_three_hosts_take_tasks_and_end_in_order() {
    let broker = Broker::start();
    let hosts =
        "one slots=1 turno={turno}\ntwo slots=2 turno={turno} # larger\ntaken name=three slots=3 turno={turno}\n";
    let mut deployed = deploy(&broker, hosts, &["--json"]);
    deployed.expect_line("3 of 3 workers are ready");
    let document: serde_json::Value = serde_json::from_str(&deployed.expect_line("\"hosts\"")).expect("one document");
    assert_eq!(document["hosts"][1]["slots"], 2, "{document}");
    let named = [("one", 1), ("three", 3), ("two", 2)].map(|(name, slots)| (name.to_owned(), slots));
    assert_eq!(workers(&broker), named);
    assert!(
        !deployed.stderr().iter().any(|line| line.contains("ending")),
        "nobody asked them to: {:?}",
        deployed.stderr()
    );
    broker.run(&["submit", "--array", "1-30", "--wait", "--", "true"]).expect(0);
    deployed.signal(Signal::TERM);
    assert_eq!(deployed.end(LONG), 0, "{:?}", deployed.stderr());
    assert_eq!(workers(&broker), []);
}

/// A line that breaks is fixed: the worker behind it is there again.
#[test]
fn a_lost_line_is_mended() {
    let broker = Broker::start();
    let mut deployed = deploy(&broker, "one slots=2 turno={turno}\n", &[]);
    deployed.expect_line("1 of 1 workers are ready");
    let ssh = wait::find(LONG, || process::children(deployed.id()).first().copied()).expect("ssh runs");
    let ssh = i32::try_from(ssh).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(ssh, Signal::KILL).expect("started by what we started");
    deployed.expect_line("retrying in 1s");
    let again = || deployed.stderr().iter().filter(|line| line.contains("one: ready")).count() == 2;
    assert!(wait::find(LONG, || again().then_some(())).is_some(), "{:?}", deployed.stderr());
    broker.run(&["submit", "--wait", "--", "true"]).expect(0);
    deployed.signal(Signal::TERM);
    assert_eq!(deployed.end(LONG), 0);
}

/// Hosts that cannot be reached or have no turno are told with the reason, and the others work.
#[test]
fn hosts_that_fail_are_told_and_the_others_work() {
    let broker = Broker::start();
    let hosts = "nowhere\none slots=1 turno={turno}\nbare turno=/no/such/turno\n";
    let mut deployed = deploy(&broker, hosts, &["--json"]);
    deployed.expect_line("1 of 3 workers are ready");
    deployed.expect_line("nowhere: ssh could not connect, or lost the connection: ssh: connect to host nowhere");
    deployed.expect_line("bare: /no/such/turno not found on the host");
    broker.run(&["submit", "--wait", "--", "true"]).expect(0);
    deployed.signal(Signal::INT);
    assert_eq!(deployed.end(LONG), 3);
    let mut none = deploy(&broker, "nowhere\n", &[]);
    assert_eq!(none.end(LONG), 1);
    none.expect_line("no worker was started on any host");
}

/// What is no hosts file is refused before ssh is started.
#[test]
fn a_bad_hosts_file_is_refused_with_its_line() {
    let broker = Broker::start();
    for (hosts, expected) in
        [("", "contains no host"), ("a slot=3\n", "hosts:1: unknown key slot; did you mean slots?")]
    {
        let mut deployed = deploy(&broker, hosts, &[]);
        assert_eq!(deployed.end(LONG), 2);
        deployed.expect_line(expected);
    }
    broker.run(&["worker", "deploy", "--hosts", "/no/such/file"]).expect(1);
}
