//! `turno worker`: commands return when their effect is real.

use serde_json::Value;
use turno_e2e::{Background, Broker, Place, wait};

fn show(broker: &Broker, worker: &str) -> Value {
    broker.run(&["worker", "show", worker, "--json"]).json()["worker"].take()
}

/// A program that runs until the file is there, named like its body.
fn until_told(place: &Place) -> String {
    let program =
        place.script("wait", "read name; while [ -d \"$PWD\" ] && [ ! -e $name ]; do sleep 0.02; done; echo $name");
    program.display().to_string()
}

/// Asks and waits until it runs.
fn running(broker: &Broker, name: &str) -> Background {
    let before = broker.queue("q")["in_flight"].as_u64().unwrap_or_default();
    let asked = broker.start_turno(&["request", "q", &format!("{name}\n"), "--timeout", "1m"]);
    wait::until("it runs", || broker.queue("q")["in_flight"].as_u64() > Some(before));
    asked
}

/// Lets it end.
fn release(broker: &Broker, name: &str) {
    broker.place.file(name, "");
}

/// Proves S0.10, S0.6, S0.23: ten slots unless told otherwise, `unlimited` for no limit, and a listing with address
/// and free slots of every worker.
#[test]
fn workers_are_listed_with_slots_and_address() {
    let broker = Broker::start();
    let _default = broker.worker(&["q", "--echo", "--name", "default"]);
    let _three = broker.worker(&["q", "r", "--echo", "--slots", "3", "--name", "three"]);
    let _many = broker.worker(&["q", "--echo", "-s", "unlimited", "--name", "many"]);
    let _none = broker.worker(&["q", "--echo", "-s", "0", "--name", "none"]);
    let run = broker.run(&["worker", "ls", "--columns", "name,slots,used,free,state,queues"]).expect(0);
    let rows: Vec<Vec<String>> =
        run.text().lines().skip(1).map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
    let expected = [
        ["default", "10", "0", "10", "ready", "q"],
        ["three", "3", "0", "3", "ready", "q,r"],
        ["many", "unlimited", "0", "unlimited", "ready", "q"],
        ["none", "0", "0", "0", "ready", "q"],
    ];
    assert_eq!(rows, expected);
    let document = broker.run(&["worker", "ls", "--json"]).expect(0).document("turno.worker_list/1");
    let workers = document["workers"].as_array().expect("a list");
    assert_eq!((&workers[2]["slots"], &workers[2]["free"]), (&Value::Null, &Value::Null));
    assert!(
        workers.iter().all(|worker| worker["address"].as_str().is_some_and(|a| a.starts_with("127.0.0.1:"))),
        "{document}"
    );
    let text = broker.run(&["worker", "ls"]).expect(0).text();
    assert!(text.lines().next().is_some_and(|line| line.contains("ADDRESS") && line.contains("FREE")), "{text}");
    let page = broker.run(&["worker", "ls", "--limit", "3", "--json"]).expect(0).document("turno.worker_list/1");
    let next = page["next"].as_str().expect("there is more");
    let rest = broker.run(&["worker", "ls", "--after", next, "--columns", "name"]).expect(0).text();
    assert_eq!(rest, "NAME\nnone\n");
}

/// A new number of slots holds when the command returns. Proves S0.22: what finds no slot waits.
#[test]
fn a_new_number_of_slots_holds_at_once() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--slots", "1", "--name", "w", "--", &until_told(&broker.place)]);
    let _first = running(&broker, "a");
    let mut second = broker.start_turno(&["request", "q", "b\n", "--timeout", "1m"]);
    wait::until("the second waits", || broker.queue("q")["ready"] == 1);
    let run = broker.run(&["worker", "resize", "w", "2"]).expect(0);
    assert!(run.text().contains("(w)") && run.text().contains("slots 2"), "{}", run.text());
    let now = show(&broker, "w");
    assert_eq!((&now["slots"], &now["used"], &broker.queue("q")["ready"]), (&2.into(), &2.into(), &0.into()), "{now}");
    let run = broker.run(&["worker", "resize", "w", "1"]).expect(0);
    assert!(run.stderr.contains("slots above the new limit still in use: 1"), "{}", run.stderr);
    let now = show(&broker, "w");
    assert_eq!((&now["slots"], &now["used"], &now["free"]), (&1.into(), &2.into(), &0.into()), "{now}");
    release(&broker, "b");
    assert_eq!(second.end(wait::PATIENCE), 0, "what runs is not recalled");
    broker.run(&["worker", "resize", "w", "unlimited"]).expect(0);
    assert_eq!(show(&broker, "w")["slots"], Value::Null);
    let run = broker.run(&["worker", "resize", "w", "-1"]).expect(2);
    assert_eq!(run.text(), "");
}

/// A drain returns when nothing runs any more, and not before; nothing new comes until `resume`.
#[test]
fn a_drain_returns_when_nothing_runs() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--name", "w", "--", &until_told(&broker.place)]);
    let mut asked = running(&broker, "a");
    let id = show(&broker, "w")["holds"][0]["id"].as_str().expect("an id").to_owned();
    let run = broker.run(&["worker", "drain", "w", "--timeout", wait::SHORT]).expect(124);
    assert!(run.stderr.contains("still has 1 slots in use") && run.stderr.contains(&id), "{}", run.stderr);
    assert!(run.stderr.contains("code: timed_out"), "{}", run.stderr);
    assert_eq!(show(&broker, "w")["state"], "draining", "it stays so");
    let mut draining = broker.start_turno(&["worker", "drain", "w", "--timeout", "1m"]);
    let mut waiting = broker.start_turno(&["request", "q", "b\n", "--timeout", "1m"]);
    wait::until("the next one waits", || broker.queue("q")["ready"] == 1);
    assert!(draining.runs(), "it does not return while work runs");
    release(&broker, "a");
    assert_eq!((asked.end(wait::PATIENCE), draining.end(wait::PATIENCE)), (0, 0));
    draining.expect_line("(w) is drained");
    assert_eq!((&show(&broker, "w")["used"], &broker.queue("q")["ready"]), (&0.into(), &1.into()));
    release(&broker, "b");
    let run = broker.run(&["worker", "resume", "w"]).expect(0);
    assert!(run.text().contains("(w) accepts work again"), "{}", run.text());
    assert_eq!(show(&broker, "w")["state"], "ready");
    assert_eq!(waiting.end(wait::PATIENCE), 0);
    assert_eq!(broker.run(&["worker", "drain", "w"]).expect(0).text().lines().count(), 1, "nothing to wait for");
}

/// A stop lets what runs finish; the worker is gone when it returns, and its program has ended well.
#[test]
fn a_stop_returns_when_the_worker_is_gone() {
    let broker = Broker::start();
    let mut worker = broker.worker(&["q", "--name", "w", "--", &until_told(&broker.place)]);
    let mut asked = running(&broker, "a");
    let mut stopping = broker.start_turno(&["worker", "stop", "w", "--timeout", "1m"]);
    wait::until("it is asked to stop", || show(&broker, "w")["state"] == "draining");
    let run = broker.run(&["worker", "stop", "w", "--timeout", wait::SHORT, "--json"]).expect(124);
    assert_eq!(run.error_code(), "timed_out");
    assert!(worker.runs() && stopping.runs());
    release(&broker, "a");
    assert_eq!((asked.end(wait::PATIENCE), stopping.end(wait::PATIENCE)), (0, 0));
    assert_eq!(asked.stdout(), ["a"], "what ran was finished");
    stopping.expect_line("(w) stopped");
    assert_eq!(broker.run(&["worker", "ls", "-o", "name"]).expect(0).text(), "");
    assert_eq!(worker.end(wait::PATIENCE), 0);
    worker.expect_line("stopped by `turno worker stop`, after its running work");
}

/// `--now` does not wait: what ran goes to others, and counts as no attempt.
#[test]
fn a_stop_now_gives_the_work_to_others() {
    let broker = Broker::start();
    let mut first = broker.worker(&["q", "--name", "first", "--", &until_told(&broker.place)]);
    let mut asked = running(&broker, "a");
    let run = broker.run(&["worker", "stop", "first", "--now", "--yes"]).expect(0);
    assert!(run.text().contains("(first) stopped"), "{}", run.text());
    assert_eq!(broker.run(&["worker", "ls", "-o", "name"]).expect(0).text(), "");
    assert_eq!(first.end(wait::PATIENCE), 0);
    let queue = broker.queue("q");
    assert_eq!((&queue["ready"], &queue["head"][0]["attempts"]), (&1.into(), &0.into()), "{queue}");
    let program = broker.place.script("attempt", "echo attempt $TURNO_ATTEMPT");
    let _second = broker.worker(&["q", "--", &program.display().to_string()]);
    assert_eq!(asked.end(wait::PATIENCE), 0);
    assert_eq!(asked.stdout(), ["attempt 1"]);
}

/// A name that several have is nobody's; ids are always one's own.
#[test]
fn a_name_that_several_have_is_refused() {
    let broker = Broker::start();
    let _workers = [
        broker.worker(&["q", "--echo", "--name", "same name"]),
        broker.worker(&["q", "--echo", "--name", "same name"]),
    ];
    let table: [&[&str]; 5] = [
        &["worker", "show", "same name"],
        &["worker", "resize", "same name", "3"],
        &["worker", "drain", "same name"],
        &["worker", "resume", "same name"],
        &["worker", "stop", "same name", "--now", "--yes"],
    ];
    for words in table {
        let run = broker.run(words).expect(2);
        assert!(run.stderr.contains("code: ambiguous") && run.stderr.contains("turno worker ls"), "{}", run.stderr);
    }
    let ids = broker.run(&["worker", "ls", "-o", "name"]).expect(0).text();
    let id = ids.lines().next().expect("two workers");
    broker.run(&["worker", "stop", id, "--now", "--yes"]).expect(0);
    assert_eq!(broker.workers(), 1);
    broker.run(&["worker", "show", "same name"]).expect(0);
}

/// Proves S0.25: slow work is spread so that no two workers differ by more than one.
#[test]
fn work_is_spread_evenly() {
    let broker = Broker::start();
    let program = until_told(&broker.place);
    let _workers: Vec<Background> = (0..3).map(|_| broker.worker(&["q", "--slots", "4", "--", &program])).collect();
    let mut asked = broker.start_turno(&["request", "q", "go\n", "--count", "8", "--parallel", "8", "--timeout", "1m"]);
    wait::until("all run", || broker.queue("q")["in_flight"] == 8);
    let listed = broker.run(&["worker", "ls", "--json"]).expect(0).document("turno.worker_list/1");
    let mut used: Vec<u64> =
        listed["workers"].as_array().expect("a list").iter().filter_map(|worker| worker["used"].as_u64()).collect();
    used.sort_unstable();
    assert_eq!(used, [2, 3, 3]);
    release(&broker, "go");
    assert_eq!(asked.end(wait::PATIENCE), 0);
}
