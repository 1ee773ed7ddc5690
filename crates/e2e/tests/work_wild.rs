//! `turno work` with programs that do not behave: nothing of them is left, and the slot comes back.

use std::fs;
use std::path::Path;

use turno_e2e::process::{alive, memory_peak};
use turno_e2e::{Background, Broker, wait};

/// A worker with a shell script and one slot more than it needs.
fn scripted(broker: &Broker, name: &str, body: &str, flags: &[&str]) -> Background {
    let program = broker.place.script(name, body).display().to_string();
    broker.worker(&[flags, &["--", &program]].concat())
}

/// The process id that the program wrote into that file, once it has.
fn id_in(directory: &Path, file: &str) -> u32 {
    let read = || fs::read_to_string(directory.join(file)).ok()?.trim().parse().ok();
    wait::find(wait::PATIENCE, read).unwrap_or_else(|| panic!("the program writes {file}"))
}

fn used(broker: &Broker, worker: &str) -> u64 {
    broker.run(&["worker", "show", worker, "--json"]).json()["worker"]["used"].as_u64().expect("a number")
}

/// A program that does not hear TERM, and a child of its own that does not either.
const STUBBORN: &str = "trap '' TERM; read name
sh -c 'trap \"\" TERM; while [ -d \"$PWD\" ]; do sleep 1; done' & echo $! > child.$name
echo $$ > parent.$name
while [ -d \"$PWD\" ]; do sleep 1; done";

/// Cancelled or past its deadline, a program gets TERM and then KILL, with all that it started; its slot comes back.
/// Proves S2.38: the caller whose time is over hears of it at once, whatever the program does.
#[test]
fn a_program_that_ignores_term_is_killed_with_its_children() {
    let broker = Broker::start();
    let _worker = scripted(&broker, "stubborn", STUBBORN, &["q", "--slots", "2", "--name", "w"]);
    let mut cancelled = broker.start_turno(&["request", "q", "cancelled\n", "--timeout", "1m"]);
    let there = broker.place.path();
    let first = [id_in(there, "child.cancelled"), id_in(there, "parent.cancelled")];
    let id = broker.run(&["worker", "show", "w", "--json"]).json()["worker"]["holds"][0]["id"].clone();
    let mut expired = broker.start_turno(&["request", "q", "expired\n", "--timeout", "5s"]);
    let second = [id_in(there, "child.expired"), id_in(there, "parent.expired")];
    assert_eq!(expired.end(wait::PATIENCE), 124);
    assert!(second.into_iter().all(alive), "they have time to end by themselves");
    broker.run(&["message", "cancel", id.as_str().expect("an id"), "--yes"]).expect(0);
    assert_eq!(cancelled.end(wait::PATIENCE), 1);
    wait::until("all four are gone", || {
        let slots = used(&broker, "w");
        let running = [first, second].into_iter().filter(|ids| ids.iter().any(|id| alive(*id))).count();
        assert!(slots >= running as u64, "{slots} in use while {running} programs run");
        running == 0
    });
    wait::until("the slots are back", || used(&broker, "w") == 0);
}

/// One that does hear TERM ends at once, and so does what it waits for.
#[test]
fn a_program_that_hears_term_ends_at_once() {
    let broker = Broker::start();
    let script = "trap 'echo bye > bye; exit 1' TERM; echo $$ > pid; sleep 600 & wait";
    let _worker = scripted(&broker, "polite", script, &["q", "--slots", "1", "--name", "w"]);
    let id = broker.run(&["send", "q", "x", "-o", "name"]).expect(0).text();
    let program = id_in(broker.place.path(), "pid");
    broker.run(&["message", "cancel", id.trim(), "--yes"]).expect(0);
    wait::until("it is gone", || !alive(program));
    wait::until("the slot is back", || used(&broker, "w") == 0);
    assert!(broker.place.path().join("bye").exists(), "it had time to end");
    assert_eq!(broker.queue("q")["ready"].as_u64().unwrap_or_default(), 0, "cancelled is cancelled");
}

/// A program that writes without end is killed at the limit of a reply; the worker stays small and goes on.
#[test]
fn a_program_that_writes_too_much_is_killed() {
    let broker = Broker::start();
    let script = "read what; echo $$ > pid; case $what in much) head -c 1000000000 /dev/zero;; *) echo fine;; esac";
    let worker = scripted(&broker, "loud", script, &["q", "--slots", "1", "--name", "w"]);
    let before = memory_peak(worker.id());
    let run = broker.run(&["request", "q", "much\n", "--timeout", "1m", "--retries", "3"]).expect(1);
    assert!(run.stderr.contains("output_too_large"), "{}", run.stderr);
    assert_eq!(run.text(), "");
    assert!(!alive(id_in(broker.place.path(), "pid")), "the program is dead");
    let grown = memory_peak(worker.id()) - before;
    assert!(grown < 100_000_000, "a reply may have 16 MiB; the worker took {grown}");
    assert_eq!(used(&broker, "w"), 0);
    let counters = broker.status()["counters"].clone();
    assert_eq!(counters["deliveries"], 1, "another attempt would do no better: {counters}");
    assert_eq!(broker.run(&["request", "q", "little\n"]).expect(0).text(), "fine\n");
}

/// Where nobody wants a reply a program may write what it likes, and the worker forgets it.
#[test]
fn output_that_nobody_wants_is_not_kept() {
    let broker = Broker::start();
    let worker = scripted(&broker, "loud", "head -c 300000000 /dev/zero", &["q"]);
    let before = memory_peak(worker.id());
    broker.run(&["send", "q", "x"]).expect(0);
    wait::until("it is settled", || broker.queue("q")["counters"]["acked"] == 1);
    let grown = memory_peak(worker.id()) - before;
    assert!(grown < 50_000_000, "300 MB went through, {grown} stayed");
}

/// The largest reply that fits arrives whole.
#[test]
fn the_largest_reply_arrives_whole() {
    let broker = Broker::start();
    let size = 16 * 1024 * 1024 - 1024;
    let script = format!("head -c {size} /dev/zero");
    let _worker = scripted(&broker, "full", &script, &["q"]);
    let run = broker.run(&["request", "q", "x", "--timeout", "1m"]).expect(0);
    assert!(run.stdout.len() == size && run.stdout.iter().all(|byte| *byte == 0), "{}", run.stdout.len());
}

/// A program need not read its input, however long it is.
#[test]
fn a_program_need_not_read_its_input() {
    let broker = Broker::start();
    let _deaf = scripted(&broker, "deaf", "echo no thanks", &["deaf"]);
    let _shut = scripted(&broker, "shut", "exec <&-; sleep 0.1; echo shut", &["shut"]);
    let large = vec![b'x'; 8_000_000];
    assert_eq!(broker.place.run_with_input(["request", "deaf", "-"], &large).expect(0).text(), "no thanks\n");
    assert_eq!(broker.place.run_with_input(["request", "shut", "-"], &large).expect(0).text(), "shut\n");
}

/// A program that closes its output is not done before it ends; its exit status counts.
#[test]
fn a_program_that_closes_its_output_still_runs() {
    let broker = Broker::start();
    let script = "read end; echo early; exec >&- 2>&-; echo $$ > pid; while [ -d \"$PWD\" ] && [ ! -e go ]; do sleep 0.02; done; exit $end";
    let _worker = scripted(&broker, "early", script, &["q", "--name", "w"]);
    let mut good = broker.start_turno(&["request", "q", "0\n", "--timeout", "1m"]);
    id_in(broker.place.path(), "pid");
    assert_eq!(used(&broker, "w"), 1);
    assert!(good.runs(), "there is no reply before the program has ended");
    broker.place.file("go", "");
    assert_eq!(good.end(wait::PATIENCE), 0);
    assert_eq!(good.stdout(), ["early"]);
    let run = broker.run(&["request", "q", "4\n"]).expect(1);
    assert!(run.stderr.contains("exit 4"), "{}", run.stderr);
}

/// A flood on stderr holds up nobody but its writer, and only its end is kept.
#[test]
fn a_flood_on_stderr_does_no_harm() {
    let broker = Broker::start();
    let worker =
        scripted(&broker, "flood", "head -c 30000000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1", &["q"]);
    let before = memory_peak(worker.id());
    let run = broker.run(&["request", "q", "x", "--timeout", "1m"]).expect(1);
    assert!(run.stderr.contains("end") && run.stderr.len() < 20_000, "{}", run.stderr.len());
    let grown = memory_peak(worker.id()) - before;
    assert!(grown < 25_000_000, "30 MB went through, {grown} stayed");
}
