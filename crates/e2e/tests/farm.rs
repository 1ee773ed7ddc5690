//! Ten thousand real tasks on three workers of different sizes, through everything that can happen to them in an afternoon.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use turno_e2e::{Background, Broker, wait};

const TASKS: u32 = 10_000;
const LONG: Duration = Duration::from_secs(300);

/// Slots of the workers that are lost with what they run: "middle" and "small".
const LOST_SLOTS: usize = 4 + 2;
/// Slots of the workers that are there when the broker is killed: "small" and "large".
const SLOTS_WITHOUT_BROKER: usize = 2 + 8;

/// What each task does: it writes down that it ran.
const TASK: &str = "echo $TURNO_JOB_ID $TURNO_TASK_ID $TURNO_ATTEMPT >> runs";

fn start(broker: &Broker, name: &str, slots: &str) -> Background {
    let worker = broker.start_turno(&["worker", "start", "--name", name, "--slots", slots]);
    worker.expect_line(name);
    worker
}

fn job(broker: &Broker, id: &str) -> Value {
    broker.run(&["job", "show", id, "--json"]).expect(0).document("turno.job/1")["job"].clone()
}

fn count(job: &Value, state: &str) -> u64 {
    job[state].as_u64().expect("a count")
}

/// Waits until so many tasks of the first job have finished.
fn until_finished(broker: &Broker, many: u64) {
    let found = wait::find(LONG, || (count(&job(broker, "1"), "finished") >= many).then_some(()));
    assert!(found.is_some(), "{many} finish: {}", job(broker, "1"));
}

/// The lines that tasks wrote: how often each attempt of each task of each job ran.
fn runs(place: &Path) -> BTreeMap<(u32, u32, u32), u32> {
    let mut runs = BTreeMap::new();
    for line in fs::read_to_string(place.join("runs")).expect("tasks ran").lines() {
        let numbers: Vec<u32> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [job, task, attempt] = numbers[..] else { panic!("{line:?} is not what a task writes") };
        *runs.entry((job, task, attempt)).or_default() += 1;
    }
    runs
}

/// Processes that have that word on their command line.
fn running(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("a system with /proc").flatten();
    let lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(word)).collect()
}

/// One worker is killed, then the broker, then a worker is told to end at once, and half of another array is cancelled
/// while its tasks end: every task of the first job finishes, no attempt of any task ran twice, all counts add up, and
/// nothing is left running. Proves S4.63, S4.76, S4.77, S4.82.
#[test]
fn ten_thousand_tasks_outlive_killed_workers_and_a_killed_broker() {
    // A lost worker's tasks are taken for lost soon, so that the test need not wait for a minute.
    let mut broker = Broker::start_with(&["--foreman-listen", "127.0.0.1:0"]);
    let foreman = broker.foreman().to_string();
    let place = broker.place.path().to_owned();
    let cwd = place.display().to_string();
    let marker = format!("farm-{}", std::process::id());
    let (mut small, mut middle, mut large) =
        (start(&broker, "small", "2"), start(&broker, "middle", "4"), start(&broker, "large", "8"));

    let line = format!("{TASK} # {marker}");
    let submit = |broker: &Broker, array: &str| {
        let words = ["submit", "--cwd", &cwd, "--array", array, "--", "sh", "-c", &line];
        broker.run(&words).expect(0);
    };
    submit(&broker, &format!("1-{TASKS}"));
    until_finished(&broker, 500);

    middle.signal(Signal::KILL);
    middle.end(LONG);
    until_finished(&broker, 1_500);

    broker.kill();
    let address = broker.address().to_string();
    let broker = Broker::start_in_at(broker.into_place(), &address, &["--foreman-listen", &foreman]);
    until_finished(&broker, 3_000);

    broker.run(&["worker", "stop", "small", "--now", "--yes"]).expect(0);
    assert_eq!(small.end(LONG), 0, "told to end at once: {:?}", small.stderr());
    submit(&broker, "1-400");
    let begun = wait::find(LONG, || (count(&job(&broker, "2"), "finished") > 0).then_some(()));
    assert!(begun.is_some(), "the second job runs beside the first");
    broker.run(&["job", "cancel", "2.201-400", "--yes"]).expect(0);

    broker.run(&["job", "wait", "1", "--timeout", "5m"]).expect(0);
    broker.run(&["job", "wait", "2", "--timeout", "5m"]);
    let first = job(&broker, "1");
    assert_eq!(count(&first, "finished"), u64::from(TASKS), "{first}");
    let second = job(&broker, "2");
    let (finished, cancelled) = (count(&second, "finished"), count(&second, "cancelled"));
    assert_eq!(finished + cancelled, 400, "{second}");
    assert!(cancelled <= 200 && finished >= 200, "{second}");

    let runs = runs(&place);
    assert!(runs.values().all(|times| *times == 1), "no attempt ran twice");
    let tasks: BTreeSet<u32> = runs.keys().filter(|(job, ..)| *job == 1).map(|(_, task, _)| *task).collect();
    assert!(tasks.iter().copied().eq(1..=TASKS), "every task ran");
    let again: Vec<u32> = runs.keys().filter(|(job, _, attempt)| *job == 1 && *attempt > 1).map(|run| run.1).collect();
    let twice = again.iter().filter(|task| runs.contains_key(&(1, **task, 1))).count();
    assert!(twice <= LOST_SLOTS, "only what the two lost workers had ran again: {twice}");
    // A start is stored before its worker hears of it. Of the killed broker's last ones the workers may know nothing.
    let most = LOST_SLOTS + SLOTS_WITHOUT_BROKER;
    assert!(again.len() <= most, "only what two workers and the broker had in hand began again: {}", again.len());

    large.signal(Signal::TERM);
    assert_eq!(large.end(LONG), 0);
    wait::until("nothing is left running", || running(&marker).iter().all(|line| line.contains("nextest")));
    let files = fs::read_dir(broker.place.data()).expect("a data directory").count();
    assert!(files < 50, "{files} files at the broker");
}
