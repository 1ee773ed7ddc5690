//! `turno man`: the manual, made from the same definitions as the help.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use turno_broker::config::nearest;
use turno_proto::model::Code;

use super::Invocation;
use super::error::Failure;
use super::global::Format;
use super::help;
use super::schema::meta::{PagesDocument, TextDocument};
use super::shown::Page;
use super::tree;
use super::version::VERSION;

/// Print a manual page, or write all of them to a directory
///
/// Words that name a command select its page; anything else is a directory.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno man | man -l -", "turno man queue ls | man -l -", "turno man /usr/local/share/man/man1"],
    &[1, 4],
))]
pub(crate) struct ManArgs {
    /// Command, or an existing directory
    #[arg(value_name = "COMMAND|DIR")]
    what: Vec<String>,
}

pub(crate) fn run(args: &ManArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let root = built();
    if let [only] = args.what.as_slice()
        && root.find_subcommand(only).is_none()
        && (only.contains('/') || Path::new(only).is_dir())
    {
        return write_all(&root, Path::new(only), invocation);
    }
    let mut command = &root;
    for word in &args.what {
        command = command.find_subcommand(word).ok_or_else(|| unknown(word, command))?;
    }
    let page = render(command)?;
    match invocation.output.format() {
        Format::Json | Format::Jsonl => {
            let text = String::from_utf8_lossy(&page).into_owned();
            invocation.output.document(&TextDocument { name: file_name(command), text })?;
        }
        _ => invocation.output.raw(&page)?,
    }
    Ok(0)
}

/// The tree with every command's full name filled in.
fn built() -> Command {
    let mut root = tree::command().disable_help_subcommand(true);
    root.build();
    root
}

fn render(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    page_of(command).render(&mut page)?;
    Ok(page)
}

/// The page with the title and the foot that all pages have.
fn page_of(command: &Command) -> Man {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_uppercase();
    Man::new(command.clone()).title(name).source(format!("turno {VERSION}")).manual("Turno")
}

fn file_name(command: &Command) -> String {
    format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name()))
}

fn write_all(root: &Command, dir: &Path, invocation: &Invocation) -> Result<u8, Failure> {
    let mut files = Vec::new();
    write_tree(root, dir, &mut files)
        .map_err(|(path, error)| Failure::system(format!("cannot write {}", path.display()), &error))?;
    let document = PagesDocument { files: files.iter().map(|path| path.display().to_string()).collect() };
    let list: Page = document.files.iter().collect();
    invocation.output.several(&document, list.clone(), || list)?;
    Ok(0)
}

fn write_tree(command: &Command, dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), (PathBuf, std::io::Error)> {
    let path = dir.join(file_name(command));
    let mut page = Vec::new();
    page_of(command).render(&mut page).and_then(|()| fs::write(&path, &page)).map_err(|error| (path.clone(), error))?;
    files.push(path);
    for sub in command.get_subcommands() {
        write_tree(sub, dir, files)?;
    }
    Ok(())
}

fn unknown(word: &str, command: &Command) -> Failure {
    let what = format!("{word:?} is neither a command of {} nor a directory", command.get_name());
    let failure = Failure::new(Code::NotFound, what).why("`turno man` takes a command or one directory");
    match nearest(word, command.get_subcommands().map(Command::get_name)) {
        Some(near) => failure.fix(format!("did you mean {near}?")),
        None => failure.fix("`turno help` lists the commands; create the directory first"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_examples() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        write_tree(&built(), dir.path(), &mut files).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let names: Vec<String> = files.iter().map(name).collect();
        for expected in ["turno.1", "turno-serve.1", "turno-queue-ls.1", "turno-worker-resize.1"] {
            assert!(names.iter().any(|name| name == expected), "{expected} is not among {names:?}");
        }
        let page = fs::read_to_string(dir.path().join("turno-queue-ls.1")).unwrap();
        assert!(page.contains("turno queue ls") && page.contains("Examples"), "{page}");
    }
}
