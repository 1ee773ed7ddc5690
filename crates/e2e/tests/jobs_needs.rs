//! Items, labels and reasons through the real broker: a job of lines with a shell, asked for by label, explained by the
//! command, and known after a kill.

use turno_e2e::{Broker, JobWorker, Peer};
use turno_proto::items::Builder;
use turno_proto::model::Code;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::job::{Array, JobSpec, Work};
use turno_proto::native::Frame;
use turno_proto::work;

fn lines(items: &[&str], work: &Work) -> JobSpec {
    let mut builder = Builder::new(1).expect("one field");
    items.iter().for_each(|item| builder.push(&[item]).expect("short"));
    let count = u32::try_from(items.len()).expect("few");
    JobSpec {
        items: builder.finish(),
        labels: vec![("gpu".to_owned(), "yes".to_owned())],
        ..JobSpec::new("lines", Array { first: 1, count, step: 1 }, work::encode(work).expect("short"))
    }
}

fn shell(line: &str) -> Work {
    Work { argv: vec![line.to_owned()], shell: true, ..Work::default() }
}

fn submit(client: &mut Peer, spec: JobSpec) -> u64 {
    match client.ask(AdminCall::JobSubmit { spec: Box::new(spec) }) {
        AdminAnswer::Job { job } => job.id.0,
        other => panic!("{other:?} is no job"),
    }
}

/// The reason that `job explain` gives, and its line.
fn explained(broker: &Broker, task: &str) -> (String, String) {
    let document = broker.run(&["job", "explain", task, "--json"]).expect(0).document("turno.job_explain/1");
    let reason = document["because"]["reason"].as_str().expect("a word").to_owned();
    (reason, broker.run(&["job", "explain", task]).expect(0).text())
}

/// Proves that the worker gets its own item, quoted, only if it has the labels, and that all of it outlives a kill.
#[test]
fn a_job_of_lines_finds_its_worker() {
    let mut broker = Broker::start();
    let mut client = Peer::greeted(broker.address(), 0);
    let id = submit(&mut client, lines(&["a b", "it's", "c"], &shell("run {} > {}.log")));
    let task = format!("{id}.2");
    let (reason, line) = explained(&broker, &task);
    assert_eq!((reason.as_str(), line), ("no_worker", format!("task {task} (waiting): no job worker is connected\n")));
    let _plain = JobWorker::start(broker.foreman(), "plain", 4);
    let (reason, line) = explained(&broker, "last");
    assert_eq!(reason, "no_labels");
    assert!(line.contains("gpu=yes"), "{line}");
    assert_eq!(broker.run(&["worker", "ls", "--label", "gpu=yes", "-o", "name"]).expect(0).text(), "");

    broker.kill();
    let broker = Broker::start_in(broker.into_place(), &[]);
    let mut worker = JobWorker::labelled(broker.foreman(), "able", 2, &[("gpu", "yes")]);
    let tasks = worker.tasks();
    let commands: Vec<&str> = tasks.iter().map(|task| task.argv[2].as_str()).collect();
    assert_eq!(commands, ["run 'a b' > 'a b'.log", "run 'it'\\''s' > 'it'\\''s'.log"]);
    assert_eq!(tasks[0].argv[..2], ["/bin/sh", "-c"]);
    let shown = broker.run(&["worker", "show", "able", "--json"]).expect(0).document("turno.worker/1");
    assert_eq!(shown["worker"]["labels"], serde_json::json!({ "gpu": "yes" }));
    assert!(!broker.run(&["worker", "ls", "--label", "gpu=yes", "-o", "name"]).expect(0).text().is_empty());
    assert_eq!(explained(&broker, &task).0, "runs");
    assert_eq!(explained(&broker, &format!("{id}.3")).0, "busy");
    for task in tasks {
        worker.end(task.id(), 0);
    }
    let last = worker.tasks();
    assert_eq!(last[0].argv[2], "run 'c' > 'c'.log");
    worker.end(last[0].id(), 0);
    worker.reported(last[0].id());
    broker.run(&["job", "wait", &id.to_string()]).expect(0);
    assert_eq!(explained(&broker, &task).0, "finished");
    assert_eq!(broker.run(&["job", "explain", &format!("{id}.9"), "--json"]).expect(4).error_code(), "not_found");
    assert_eq!(broker.run(&["job", "explain", "99", "--json"]).expect(4).error_code(), "not_found");
    assert_eq!(broker.run(&["job", "explain", &format!("{id}.1-3"), "--json"]).expect(2).error_code(), "bad_usage");
}

/// What cannot be filled is refused before it is a job.
#[test]
fn what_cannot_be_filled_is_refused() {
    let broker = Broker::start();
    let mut client = Peer::greeted(broker.address(), 0);
    let columns = || vec!["x".to_owned()];
    let good = lines(&["a", "b"], &shell("run {}"));
    let mut cut = good.items.to_vec();
    let last = cut.len() - 1;
    cut[last] = 0xff;
    let wrong = [
        ("a placeholder in quotes", lines(&["a"], &shell("echo '{}'"))),
        ("an unknown column", lines(&["a"], &Work { columns: columns(), ..shell("echo {y}") })),
        (
            "columns without items",
            JobSpec { items: Vec::new().into(), ..lines(&["a"], &Work { columns: columns(), ..shell("echo {x}") }) },
        ),
        ("an item that is no text", JobSpec { items: cut.into(), ..good }),
    ];
    for (what, spec) in wrong {
        client.say(&Frame::AdminCall { seq: 9, call: AdminCall::JobSubmit { spec: Box::new(spec) } });
        client.hear(|frame| {
            let Frame::Error { seq: 9, code: Code::BadJob, fatal: false, detail } = frame else {
                panic!("{what}: {frame:?}");
            };
            assert!(!detail.is_empty() && detail != Code::BadJob.text().what, "{what}: no rule is named in {detail:?}");
        });
    }
}
