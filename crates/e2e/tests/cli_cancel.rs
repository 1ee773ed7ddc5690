//! Many messages are cancelled in one go.

use turno_e2e::Broker;

const UNKNOWN: &str = "5f3a9c0d21e4000000000001c0000007";

fn send(broker: &Broker, count: usize) -> Vec<String> {
    let lines = "x\n".repeat(count);
    let run = broker.place.run_with_input(["send", "waiting", "--lines", "-o", "name"], lines.as_bytes()).expect(0);
    run.text().lines().map(str::to_owned).collect()
}

/// Proves S0.28: several ids, as arguments and as lines of standard input, in the order in which they were named.
#[test]
fn several_ids_go_in_one_go() {
    let broker = Broker::start();
    let ids = send(&broker, 300);
    let run = broker.run(&["message", "cancel", &ids[1], &ids[0], "--yes", "-o", "name"]).expect(0);
    assert_eq!(run.text(), format!("{}\n{}\n", ids[1], ids[0]));
    assert_eq!(broker.queue("waiting")["ready"], 298);
    let lines = ids[2..].join("\n\n");
    let run = broker.place.run_with_input(["message", "cancel", "-", "--yes", "--json"], lines.as_bytes()).expect(0);
    let document = run.document("turno.cancelled_list/1");
    assert_eq!((&document["cancelled"], &document["failed"]), (&298.into(), &0.into()));
    let said = document["messages"].as_array().expect("a list");
    assert!(said.iter().zip(&ids[2..]).all(|(row, id)| row["id"] == **id && row["message"]["state"] == "ready"));
    assert_eq!(broker.status()["ready"], 0);
}

/// Proves S0.28: one that is not there is told of and keeps no other from being cancelled; one that is no id keeps all,
/// and so does a missing yes.
#[test]
fn what_is_not_there_keeps_no_other() {
    let broker = Broker::start();
    let ids = send(&broker, 2);
    let all = [ids[0].as_str(), UNKNOWN, ids[1].as_str()];
    broker.run(&[&["message", "cancel", "no id"], &all[..], &["--yes"]].concat()).expect(2);
    broker.run(&[&["message", "cancel"], &all[..]].concat()).expect(2);
    assert_eq!(broker.queue("waiting")["ready"], 2, "nothing happened");
    let run = broker.run(&[&["message", "cancel"], &all[..], &["--yes"]].concat()).expect(3);
    assert_eq!(run.text().lines().count(), 2);
    let errors = &run.stderr;
    assert!(errors.contains("2 cancelled, 1 failed") && errors.contains(UNKNOWN), "{errors}");
    let run = broker.run(&[&["message", "cancel"], &all[..], &["--yes", "-o", "jsonl"]].concat()).expect(4);
    assert_eq!(run.text().matches("\"not_found\"").count(), 3);
}
