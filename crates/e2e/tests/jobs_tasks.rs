//! One task: what it is for, what it runs, its attempts, and what it does not inherit.

use std::fs;

use turno_e2e::Broker;

/// `job show JOB.TASK`, items in `job tasks`, and the attempts of `job logs`, of a task that fails once and of tasks that do not
/// exist.
#[test]
fn a_task_is_shown_with_its_item_its_command_and_its_attempts() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "2", "--name", "w"]);
    let script = "echo \"$1 $2 $TURNO_ATTEMPT\"; echo bad >&2; [ $TURNO_ATTEMPT = 2 ]";
    let flags = ["--each", "in/a b.csv", "c", "--retries", "1", "--slots", "2"];
    let job = broker.submit(&flags, &["sh", "-c", script, "sh", "{/.}", "{#}"]);
    assert_eq!(broker.wait_for_job(job), 0);

    let task = broker.run(&["job", "show", &format!("{job}.1"), "--json"]).expect(0).document("turno.task/1");
    let task = &task["task"];
    assert_eq!((&task["state"], &task["slots"], &task["attempt"]), (&"finished".into(), &2.into(), &2.into()));
    assert_eq!(task["item"], serde_json::json!(["in/a b.csv"]));
    assert_eq!(task["command"]["argv"], serde_json::json!(["sh", "-c", script, "sh", "a b", "1"]));
    let attempts = task["attempts"].as_array().expect("attempts");
    let told: Vec<_> =
        attempts.iter().map(|one| (&one["attempt"], &one["state"], &one["exit_code"], &one["worker"])).collect();
    let (w, failed, finished) = ("w".into(), "failed".into(), "finished".into());
    assert_eq!(told, [(&1.into(), &failed, &1.into(), &w), (&2.into(), &finished, &0.into(), &w)], "{task}");
    let text = broker.run(&["job", "show", &format!("{job}.1")]).expect(0).text();
    for part in ["item       'in/a b.csv'\n", "attempt    1: failed at w, began ", ", exit status 1: exit 1: bad\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let listed = broker.run(&["job", "tasks", &job.to_string()]).expect(0).text();
    assert!(listed.contains("in/a b.csv"), "{listed}");

    let logs = |words: &[&str]| {
        let run = broker.run(&[&["job", "logs"], words].concat()).expect(0);
        (run.text(), run.stderr)
    };
    let id = format!("{job}.1");
    let (out, err) = logs(&[&id]);
    assert_eq!(out, "a b 1 2\n");
    assert!(err.contains(&format!("attempt 2 of task {id}; show all with --attempt all\n")), "{err}");
    assert_eq!(logs(&[&id, "--attempt", "all", "--stdout"]).0, "attempt 1: a b 1 1\nattempt 2: a b 1 2\n");
    assert_eq!(logs(&[&id, "--stderr", "-q"]), ("bad\n".to_owned(), String::new()));
    let both = logs(&[&job.to_string(), "--stdout"]).0;
    assert_eq!(both, format!("{job}.1 attempt 2: a b 1 2\n{job}.2 attempt 2: c 2 2\n"));

    for command in ["show", "tasks", "logs", "result", "explain", "retry"] {
        let run = broker.run(&["job", command, &format!("{job}.5")]).expect(4);
        let expected = format!("error: job {job} has no task 5\nwhy: its tasks are 1-2\nfix: `turno job tasks {job}`");
        assert!(run.stderr.contains(&expected), "{command}: {}", run.stderr);
    }
    broker.run(&["job", "show", &format!("{job}.1-2")]).expect(2);
}

/// The numbers of a list are those of the tasks, and a single number is that one task.
#[test]
fn a_list_of_numbers_is_an_array() {
    let broker = Broker::start();
    let _job_worker = broker.job_worker(&["--slots", "2"]);
    for (list, numbers) in [("5-6,1,3", vec![1, 3, 5, 6]), ("8", vec![8]), ("0-4:2%1", vec![0, 2, 4])] {
        let job =
            broker.submit(&["--array", list], &["sh", "-c", "echo $TURNO_TASK_ID > ran.$1.$TURNO_JOB_ID", "sh", "{}"]);
        assert_eq!(broker.wait_for_job(job), 0, "{list}");
        let ran: Vec<u64> = broker.tasks(job).iter().filter_map(|task| task["task"].as_u64()).collect();
        assert_eq!(ran, numbers, "{list}");
        for number in numbers {
            assert_eq!(broker.written(&format!("ran.{number}.{job}")), number.to_string());
        }
    }
    let refused = broker.run(&["submit", "--array", "1-4,3", "--", "true"]).expect(2);
    assert!(refused.stderr.contains("must not overlap"), "{}", refused.stderr);
}

/// A key names one submission: the same again is the same job, another is refused, also after a restart.
#[test]
fn a_key_is_not_reused_for_another_command() {
    let mut broker = Broker::start();
    let submit =
        |broker: &Broker, word: &str| broker.run(&["submit", "--key", "nightly", "-o", "name", "--", "echo", word]);
    let first = submit(&broker, "a").expect(0).text();
    assert_eq!(submit(&broker, "a").expect(0).text(), first);
    broker.kill();
    let broker = Broker::start_in(broker.into_place(), &[]);
    assert_eq!(submit(&broker, "a").expect(0).text(), first);
    let refused = submit(&broker, "b").expect(1);
    let parts = ["another job has the key nightly", "another command", "code: key_taken"];
    assert!(parts.iter().all(|part| refused.stderr.contains(part)), "{}", refused.stderr);
    let refused = broker.run(&["submit", "--after", "99", "--", "true"]).expect(2);
    assert!(refused.stderr.contains("--after: job 99 does not exist"), "{}", refused.stderr);
}

/// Tasks and the programs of `turno work` see neither the secrets that their worker was given nor its open files.
#[test]
fn secrets_and_files_are_not_inherited() {
    const SECRET: &str = "sixteen bytes or more";
    let broker = Broker::start();
    let script = "env > env.$0; ls -l /proc/self/fd > fd.$0; echo done > end.$0";
    // What a program has without a worker between: the test itself may have inherited some.
    let mut listing = broker.place.command("sh");
    listing.args(["-c", "ls -l /proc/self/fd"]);
    let plain = turno_e2e::Run::finish(listing, b"", turno_e2e::wait::PATIENCE).expect(0).text();
    let open = |files: &str| -> std::collections::BTreeSet<String> {
        let numbers = files.lines().filter_map(|line| line.split_once(" -> ")?.0.split(' ').next_back());
        numbers.map(ToOwned::to_owned).collect()
    };
    let mut starting = broker.turno(&["worker", "start", "--slots", "1"]);
    let mut working = broker.turno(&["work", "q", "--", "sh", "-c", script, "program"]);
    for command in [&mut starting, &mut working] {
        for name in ["TURNO_LINK__SECRET", "TURNO_RING__SECRET"] {
            command.env(name, SECRET);
        }
        command.env("OTHER", "stays");
    }
    let _job_worker = turno_e2e::Background::start(starting);
    let _worker = turno_e2e::Background::start(working);
    let job = broker.submit(&["--env", "TURNO_OWN=mine"], &["sh", "-c", script, "task"]);
    broker.run(&["send", "q", "x"]).expect(0);
    assert_eq!(broker.wait_for_job(job), 0);
    for kind in ["task", "program"] {
        assert_eq!(broker.written(&format!("end.{kind}")), "done");
        let read =
            |name: &str| fs::read_to_string(broker.place.path().join(format!("{name}.{kind}"))).expect("written");
        let env = read("env");
        assert!(env.contains("OTHER=stays") && !env.contains(SECRET) && !env.contains("SECRET"), "{kind}: {env}");
        assert_eq!(env.contains("TURNO_OWN=mine"), kind == "task", "{kind}: {env}");
        let files = read("fd");
        assert!(open(&files).is_subset(&open(&plain)), "{kind}: {files}\nand without a worker: {plain}");
        assert!(!files.contains("socket:") && !files.contains("anon_inode"), "{kind}: {files}");
    }
}
