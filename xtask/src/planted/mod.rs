//! Bugs that are planted on purpose, one by one, into a copy of the tree: the simulator must find each of them, or the
//! tests that its patch names.
//!
//! A bug is a patch file in `planted/`, with words on top that say what is wrong and which invariant should see it.
//! The project's own files are never touched. One that survives is a hole in the oracle, in the weather or in a test.

mod check;
mod copy;
mod finding;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use self::check::Check;
use self::copy::Copy;
use self::finding::{Failure, SimFinding};

/// Where the patches lie, from the root.
const FOLDER: &str = "planted";

/// One planted bug.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bug {
    /// The name of its file, without the extension.
    name: String,
    patch: PathBuf,
    check: Check,
}

/// The result of planting one bug.
#[derive(Debug, PartialEq, Eq)]
enum PlantedVerdict {
    /// Found; if it was the broker's own check that found it, also what shows without that.
    Caught {
        by: SimFinding,
        blind: Option<Option<SimFinding>>,
    },
    CaughtByTest(Failure),
    Survived(Check),
    DoesNotApply(String),
    DoesNotBuild(String),
}

/// Plants the named bugs, or all of them; `true` if each was caught.
pub(crate) fn run(root: &Path, names: &[String]) -> Result<bool> {
    let bugs = select(bugs(root)?, names)?;
    let copy = Copy::new(root);
    copy.refresh()?;
    let mut checks: Vec<&Check> = Vec::new();
    for bug in &bugs {
        if !checks.contains(&&bug.check) {
            checks.push(&bug.check);
        }
    }
    for check in checks {
        // Otherwise every bug would be caught, by what is wrong anyway.
        match examine(&copy, check)? {
            PlantedVerdict::Survived(_) => {}
            verdict => bail!("without any planted bug: {}", line("the tree", 0, &verdict)),
        }
    }
    let width = bugs.iter().map(|bug| bug.name.len()).max().unwrap_or_default();
    let mut caught = 0;
    for bug in &bugs {
        let verdict = plant(&copy, bug)?;
        caught += usize::from(matches!(verdict, PlantedVerdict::Caught { .. } | PlantedVerdict::CaughtByTest(_)));
        println!("{}", line(&bug.name, width, &verdict));
    }
    copy.refresh()?;
    println!("\n{caught} of {} planted bugs caught", bugs.len());
    Ok(caught == bugs.len())
}

fn plant(copy: &Copy, bug: &Bug) -> Result<PlantedVerdict> {
    copy.refresh()?;
    if let Err(why) = apply(&copy.tree, &bug.patch, &[])? {
        return Ok(PlantedVerdict::DoesNotApply(why));
    }
    examine(copy, &bug.check)
}

/// Builds what is in the copy and looks whether the check sees anything.
fn examine(copy: &Copy, check: &Check) -> Result<PlantedVerdict> {
    if matches!(check, Check::Tests(_)) {
        return Ok(match copy.test(check)? {
            Ok(Some(failure)) => PlantedVerdict::CaughtByTest(failure),
            Ok(None) => PlantedVerdict::Survived(check.clone()),
            Err(why) => PlantedVerdict::DoesNotBuild(why),
        });
    }
    if let Err(why) = copy.build()? {
        return Ok(PlantedVerdict::DoesNotBuild(why));
    }
    let Some(by) = copy.simulate(false)? else { return Ok(PlantedVerdict::Survived(check.clone())) };
    let blind = if by.is_from_outside() { None } else { Some(copy.simulate(true)?) };
    Ok(PlantedVerdict::Caught { by, blind })
}

/// The patches of the tree, by name.
fn bugs(root: &Path) -> Result<Vec<Bug>> {
    let folder = root.join(FOLDER);
    let mut bugs = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let patch = entry.with_context(|| format!("reading {}", folder.display()))?.path();
        if let (Some(name), Some("patch")) = (patch.file_stem(), patch.extension().and_then(|found| found.to_str())) {
            let name = name.to_string_lossy().into_owned();
            let text = fs::read_to_string(&patch).with_context(|| format!("reading {}", patch.display()))?;
            bugs.push(Bug { name, check: Check::parse(&text), patch });
        }
    }
    bugs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(bugs)
}

/// The bugs with these names or numbers, or all if there are none.
fn select(bugs: Vec<Bug>, wanted: &[String]) -> Result<Vec<Bug>> {
    let is_called = |bug: &Bug, word: &str| bug.name == word || bug.name.split('-').next() == Some(word);
    if let Some(unknown) = wanted.iter().find(|word| !bugs.iter().any(|bug| is_called(bug, word))) {
        let names: Vec<&str> = bugs.iter().map(|bug| bug.name.as_str()).collect();
        bail!("no planted bug is called `{unknown}`; there are {}", names.join(", "));
    }
    let is_wanted = |bug: &Bug| wanted.is_empty() || wanted.iter().any(|word| is_called(bug, word));
    Ok(bugs.into_iter().filter(is_wanted).collect())
}

/// Applies a patch to a folder with git, or says why it does not fit.
fn apply(folder: &Path, patch: &Path, flags: &[&str]) -> Result<Result<(), String>> {
    let mut command = Command::new("git");
    // Paths in a patch count from a repository's root. The copy lies inside of one, but is not of it.
    if let Some(above) = folder.parent() {
        command.env("GIT_CEILING_DIRECTORIES", above);
    }
    command.arg("apply").args(flags).arg(patch).current_dir(folder).stdin(Stdio::null());
    let output = command.output().context("git does not start")?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(if output.status.success() { Ok(()) } else { Err(first_line_with("error", &error)) })
}

/// The first line that says what is wrong, or whatever there is.
fn first_line_with(word: &str, text: &str) -> String {
    let found = text.lines().find(|line| line.starts_with(word)).or_else(|| text.lines().next());
    found.unwrap_or("no reason given").to_owned()
}

fn line(name: &str, width: usize, verdict: &PlantedVerdict) -> String {
    let (word, what): (&str, &dyn fmt::Display) = match verdict {
        PlantedVerdict::Caught { by, blind: None } => ("caught", by),
        PlantedVerdict::Caught { by, blind: Some(None) } => ("caught", &format!("{by}; blind: not seen")),
        PlantedVerdict::Caught { by, blind: Some(Some(blind)) } => ("caught", &format!("{by}; blind: {blind}")),
        PlantedVerdict::CaughtByTest(failure) => ("caught", failure),
        PlantedVerdict::Survived(check) => ("SURVIVED", &format!("{check} without a violation")),
        PlantedVerdict::DoesNotApply(why) => ("DOES NOT APPLY", why),
        PlantedVerdict::DoesNotBuild(why) => ("DOES NOT BUILD", why),
    };
    format!("{word:<8} {name:<width$}   {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
    }

    fn names(bugs: &[Bug]) -> Vec<&str> {
        bugs.iter().map(|bug| bug.name.as_str()).collect()
    }

    /// A patch that no longer fits plants nothing, and nobody would know before the next long run.
    #[test]
    fn every_patch_fits_the_tree() {
        let bugs = bugs(&root()).unwrap();
        assert!(bugs.len() >= 10, "{:?}", names(&bugs));
        for bug in &bugs {
            assert_eq!(apply(&root(), &bug.patch, &["--check"]).unwrap(), Ok(()), "{}", bug.name);
        }
    }

    #[test]
    fn every_patch_has_a_number_and_says_what_is_wrong() {
        for (number, bug) in (1..).zip(bugs(&root()).unwrap()) {
            assert!(bug.name.starts_with(&format!("{number:02}-")), "{} comes as number {number}", bug.name);
            let text = fs::read_to_string(&bug.patch).unwrap();
            let (words, _) = text.split_once("\ndiff --git ").expect("a patch made by git");
            assert!(words.contains("\nCaught by "), "{} does not say what should see it", bug.name);
        }
    }

    #[test]
    fn a_patch_that_does_not_fit_is_told() {
        let patch = root().join(FOLDER).join("01-slot-returned-twice.patch");
        let why = apply(&root().join("xtask"), &patch, &["--check"]).unwrap().unwrap_err();
        assert!(why.starts_with("error: "), "{why}");
    }

    #[test]
    fn bugs_are_chosen_by_name_or_number() {
        let bug = |name: &str| Bug { name: name.to_owned(), patch: PathBuf::new(), check: Check::Simulator };
        let all = || vec![bug("01-one"), bug("02-two"), bug("03-three")];
        let choose = |words: &[&str]| select(all(), &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&choose(&[]).unwrap()), ["01-one", "02-two", "03-three"]);
        assert_eq!(names(&choose(&["03", "01-one"]).unwrap()), ["01-one", "03-three"]);
        let error = choose(&["01", "04"]).unwrap_err().to_string();
        assert_eq!(error, "no planted bug is called `04`; there are 01-one, 02-two, 03-three");
        assert!(choose(&["0"]).is_err());
    }

    #[test]
    fn each_bug_has_one_line() {
        let finding = |seed, what: &str| SimFinding { seed, what: what.to_owned() };
        let caught = |blind| PlantedVerdict::Caught { by: finding(3, "slots agree"), blind };
        for (verdict, expected) in [
            (caught(None), "caught   01-x   seed 3: slots agree"),
            (caught(Some(None)), "caught   01-x   seed 3: slots agree; blind: not seen"),
            (caught(Some(Some(finding(9, "I9: y")))), "caught   01-x   seed 3: slots agree; blind: seed 9: I9: y"),
            (PlantedVerdict::Survived(Check::Simulator), "SURVIVED 01-x   2000 seeds without a violation"),
            (PlantedVerdict::DoesNotApply("error: z".to_owned()), "DOES NOT APPLY 01-x   error: z"),
            (PlantedVerdict::DoesNotBuild("error[E1]".to_owned()), "DOES NOT BUILD 01-x   error[E1]"),
        ] {
            assert_eq!(line("01-x", 4, &verdict), expected);
        }
    }

    #[test]
    fn the_first_error_is_the_reason() {
        assert_eq!(first_line_with("error", "warning: a\nerror: b\nerror: c\n"), "error: b");
        assert_eq!(first_line_with("error", "fatal: d\n"), "fatal: d");
        assert_eq!(first_line_with("error", ""), "no reason given");
    }
}
