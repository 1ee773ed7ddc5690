//! `--dry-run`: prints the job without submitting it.

use std::slice;

use turno_proto::items;
use turno_proto::model::job::{AfterView, JobSpec, SpecView, Work};
use turno_proto::placeholders::{self, PlaceholderValues};

use super::flags::Flags;
use super::plan::SubmitPlan;
use super::uploads::Upload;
use super::values::AfterArg;
use crate::cli::Invocation;
use crate::cli::error::Failure;
use crate::cli::job::text::{number_of_tasks, words};
use crate::cli::schema::submission::{SubmissionBody, SubmissionDocument, SubmissionFile, SubmissionTask};
use crate::cli::shown::Page;
use crate::cli::size;
use crate::cli::table;

/// Prints it. Nobody is asked anything.
pub(super) fn show(plan: &SubmitPlan, flags: &Flags, invocation: &Invocation) -> Result<u8, Failure> {
    let document = SubmissionDocument { submission: body(plan, flags) };
    invocation.output.one(&document, &document.submission.name, || text(&document.submission))?;
    invocation.output.hint("nothing was submitted; omit --dry-run to submit");
    Ok(0)
}

fn body(plan: &SubmitPlan, flags: &Flags) -> SubmissionBody {
    let SubmitPlan { spec, work, files, stdin } = plan;
    let file = |upload: &Upload| SubmissionFile {
        name: upload.name.clone(),
        path: upload.path.display().to_string(),
        bytes: upload.size,
        executable: upload.executable,
    };
    let after = |after: &AfterArg| AfterView { job: after.job.to_string(), when: after.when };
    SubmissionBody {
        name: spec.name.clone(),
        array: spec.numbers().to_string(),
        tasks: spec.array.count,
        first: task(spec, work, 0),
        last: task(spec, work, spec.array.count.saturating_sub(1)),
        files: files.iter().map(file).collect(),
        stdin: stdin.as_ref().map(file),
        bytes: plan.uploads().map(|upload| upload.size).sum(),
        spec: SpecView { after: flags.after.iter().map(after).collect(), ..spec.into() },
    }
}

/// The command of the task at that place.
fn task(spec: &JobSpec, work: &Work, place: u32) -> SubmissionTask {
    let number = spec.numbers().number_of(place);
    let item = items::get(&spec.items, place);
    let filled = placeholders::fill(work, PlaceholderValues { task: number, item: item.as_deref() });
    SubmissionTask { task: number, argv: filled.argv, cwd: filled.cwd, env: filled.env.into_iter().collect() }
}

fn text(body: &SubmissionBody) -> Page {
    let mut facts = vec![
        ("name", body.name.clone()),
        ("tasks", format!("{}, numbers {}", number_of_tasks(body.tasks.into()), body.array)),
    ];
    let mut tell = |name, task: &SubmissionTask| {
        facts.push((name, words(&task.argv)));
        if !task.cwd.is_empty() {
            facts.push(("  in", task.cwd.clone()));
        }
        for (key, value) in &task.env {
            facts.push(("  with", words(&[format!("{key}={value}")])));
        }
    };
    tell("first", &body.first);
    if body.tasks > 1 {
        tell("last", &body.last);
    }
    for file in &body.files {
        let executable = if file.executable { ", executable" } else { "" };
        facts.push((
            "file",
            format!(
                "{} ({}{executable}), from {}",
                words(slice::from_ref(&file.name)),
                size::short(file.bytes),
                file.path
            ),
        ));
    }
    if let Some(file) = &body.stdin {
        facts.push(("stdin", format!("{} ({})", file.path, size::short(file.bytes))));
    }
    table::facts(&facts)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use serde_json::json;
    use turno_proto::model::job::{AfterWhen, Array};

    use super::*;
    use crate::cli::job::select::JobSelector;
    use crate::cli::job::submit::each;
    use crate::cli::job::submit::flags::Source;
    use crate::cli::job::submit::plan::TaskCommand;
    use crate::cli::job::submit::values::ArrayArg;

    fn planned(flags: &Flags, words: &[&str], files: Vec<Upload>) -> SubmissionBody {
        let tasks = each::tasks(&flags.source, std::io::empty()).unwrap();
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let stdin = flags.stdin.as_ref().map(|path| file("stdin", path.to_str().unwrap(), 1_536, false));
        let plan = SubmitPlan::new(flags, TaskCommand::Words(words), tasks, files, stdin, Path::new("/data")).unwrap();
        body(&plan, flags)
    }

    fn file(name: &str, path: &str, size: u64, executable: bool) -> Upload {
        Upload { name: name.to_owned(), path: PathBuf::from(path), size, executable }
    }

    #[test]
    fn people_see_the_first_and_the_last_command() {
        let each = ["a b", "it's"].map(ToOwned::to_owned).to_vec();
        let env = vec![("ITEM".to_owned(), "{}".to_owned())];
        let stdin = Some(PathBuf::from("/in"));
        let flags = Flags { source: Source { each, ..Source::default() }, env, stdin, ..Flags::default() };
        let files = vec![file("run", "./run", 10, true), file("d/x", "x", 2_048, false)];
        assert_eq!(
            text(&planned(&flags, &["./run", "{}"], files)),
            "name    run\n\
             tasks   2 tasks, numbers 1-2\n\
             first   ./run 'a b'\n  \
             with  'ITEM=a b'\n\
             last    ./run 'it'\\''s'\n  \
             with  'ITEM=it'\\''s'\n\
             file    d/x (2.00KiB), from x\n\
             file    run (10B, executable), from ./run\n\
             stdin   /in (1.50KiB)\n"
        );
        let one = planned(&Flags::default(), &["echo", "{}"], Vec::new());
        assert_eq!(text(&one), "name   echo\ntasks  1 task, numbers 1-1\nfirst  echo '{}'\n  in   /data\n");
    }

    #[test]
    fn programs_see_all_of_it() {
        let array = Array { first: 0, count: 3, step: 5 };
        let array = ArrayArg { array, parts: Vec::new(), max_parallel: Some(2) };
        let source = Source { array: Some(array), ..Source::default() };
        let after = vec![AfterArg { job: JobSelector::Last, when: AfterWhen::Any }];
        let flags = Flags { source, after, cwd: Some(PathBuf::from("run-{}")), ..Flags::default() };
        let document = SubmissionDocument { submission: planned(&flags, &["./sim", "{}"], Vec::new()) };
        let value = serde_json::to_value(crate::cli::schema::envelope(&document)).unwrap();
        assert_eq!(value["schema"], "turno.submission/1");
        let submission = &value["submission"];
        assert_eq!(submission["first"], json!({ "task": 0, "argv": ["./sim", "0"], "cwd": "/data/run-0", "env": {} }));
        assert_eq!(submission["last"]["task"], 10);
        assert_eq!(
            (&submission["tasks"], &submission["array"], &submission["bytes"]),
            (&json!(3), &json!("0-10:5"), &json!(0))
        );
        assert_eq!(submission["spec"]["after"], json!([{ "job": "last", "when": "any" }]));
        assert_eq!(submission["spec"]["max_parallel"], 2);
        assert_eq!(submission["spec"]["command"]["argv"], json!(["./sim", "{}"]));
    }
}
