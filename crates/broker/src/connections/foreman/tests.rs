//! The description of a task for its worker.

use std::sync::Arc;

use turno_proto::items::Builder;
use turno_proto::model::archive::UploadId;

use super::*;

fn offered(work: &Work, items: Bytes, place: u32) -> OfferedTask {
    OfferedTask {
        job: JobId(7),
        task: place * 10 + 5,
        attempt: 2,
        slots: 3,
        time_limit_ms: Some(9_000),
        name: Arc::from("sim"),
        count: 4,
        work: work::encode(work).unwrap(),
        items,
        place,
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_task_is_told_all_that_it_needs() {
    let upload = UploadId([7; 32]);
    let work = Work {
        argv: words(&["./sim", "--seed", "{}"]),
        cwd: "/data/{}".to_owned(),
        env: vec![("N".to_owned(), "{}".to_owned())],
        cwd_optional: true,
        stdin: Some(upload),
        files: vec![WorkFile { name: "sim".to_owned(), upload, executable: true }],
        collect: words(&["*.csv"]),
        out_dir: "/logs".to_owned(),
        ..Work::default()
    };
    let task = Task {
        task: 15,
        job: 7,
        name: "sim".to_owned(),
        num_tasks: 4,
        working_dir: "/data/15".to_owned(),
        logging_dir: "/logs".to_owned(),
        command: "./sim --seed 15".to_owned(),
        status: String::new(),
        attempt: 2,
        argv: words(&["./sim", "--seed", "15"]),
        env: BTreeMap::from([("N".to_owned(), "15".to_owned())]),
        procs: 3,
        time_limit: 9_000,
        dir_optional: true,
        stdin: Some(upload),
        files: vec![TaskFile { name: "sim".to_owned(), upload, executable: true }],
        collect: words(&["*.csv"]),
    };
    assert_eq!(tasks_of(&[offered(&work, Bytes::new(), 1)], &mut LastWork::default()), [task]);
}

/// Tasks of two jobs in one offer, each with its own item.
#[test]
fn each_task_has_its_own_item() {
    let mut items = Builder::new(2).unwrap();
    items.push(&["1", "a b"]).unwrap();
    items.push(&["2", "it's"]).unwrap();
    let items = items.finish();
    let columns = words(&["x", "name"]);
    let connection = Work { argv: words(&["run {name} > {x}.log"]), columns, shell: true, ..Work::default() };
    let plain = Work { argv: words(&["find", "{}"]), verbatim: true, ..Work::default() };
    let (connection, plain) = (offered(&connection, items, 0), offered(&plain, Bytes::new(), 0));
    let tasks = [connection.clone(), plain, OfferedTask { place: 1, ..connection }];
    let told = tasks_of(&tasks, &mut LastWork::default());
    let argvs: Vec<&[String]> = told.iter().map(|task| &task.argv[..]).collect();
    let shell = |connection: &str| words(&["/bin/sh", "-c", connection]);
    assert_eq!(argvs, [shell("run 'a b' > '1'.log"), words(&["find", "{}"]), shell("run 'it'\\''s' > '2'.log")]);
}

/// The engine hears of an order that was never sent as of one that was refused: it would wait for the answer for ever.
#[test]
fn an_order_that_was_not_sent_has_an_answer() {
    let told = |kind| answered(7, kind, Outcome::NotSent);
    assert!(matches!(told(ForemanKind::Job), ForemanMeaning::Input(Event::Refused { offer: 7, slots_free: 0 })));
    assert!(matches!(told(ForemanKind::Cancel), ForemanMeaning::Input(Event::NoSuchJob { cancel: 7 })));
    assert!(matches!(told(ForemanKind::Stop), ForemanMeaning::Input(Event::Stopped)));
    assert!(
        matches!(answered(7, ForemanKind::Job, Outcome::Unknown), ForemanMeaning::Nothing),
        "the connection is over"
    );
}
