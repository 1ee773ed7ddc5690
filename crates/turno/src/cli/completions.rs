//! `turno completions`: scripts with which a shell completes what is typed.

use clap::Args;
use clap_complete::{Shell, generate};

use super::Invocation;
use super::error::Failure;
use super::global::Format;
use super::help;
use super::schema::meta::TextDocument;
use super::tree;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno completions bash > ~/.local/share/bash-completion/completions/turno", "source <(turno completions zsh)"],
    &[],
))]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut tree::command(), "turno", &mut script);
    match invocation.output.format() {
        Format::Json | Format::Jsonl => {
            let text = String::from_utf8_lossy(&script).into_owned();
            invocation.output.document(&TextDocument { name: format!("turno.{}", args.shell), text })?;
        }
        _ => invocation.output.raw(&script)?,
    }
    Ok(0)
}
