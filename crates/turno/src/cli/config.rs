//! `turno config`: what is set, by whom, and whether it makes sense.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use turno_broker::config::{Config, Environment};
use turno_proto::model::Code;

use super::Invocation;
use super::error::Failure;
use super::help;
use super::schema::config::{CheckDocument, ConfigDocument, SettingRow};
use super::shown::Page;

/// Show and check the configuration
#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Subcommand, Debug)]
enum ConfigCommand {
    #[command(visible_aliases = ["info", "get"])]
    Show(ConfigShowArgs),
    Check(CheckArgs),
}

/// Show every key and its value
///
/// A flag takes precedence over the environment, the environment over a file, and a file over the default.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno config show", "turno config show --origin", "turno config show -o jsonl --columns key,value"],
    &[78],
))]
struct ConfigShowArgs {
    /// Show the origin of each value: default, file and line, environment or flag
    #[arg(long)]
    origin: bool,
}

/// Check the configuration, or one file
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno config check", "turno config check /etc/turno/turno.toml"],
    &[78],
))]
struct CheckArgs {
    /// File to check [default: the files that `turno serve` would read]
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &ConfigArgs, invocation: &Invocation) -> Result<u8, Failure> {
    match &args.command {
        ConfigCommand::Show(args) => show(args, invocation),
        ConfigCommand::Check(args) => check(args, invocation),
    }
}

fn show(args: &ConfigShowArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let config = invocation.config(&[])?;
    let rows: Vec<SettingRow> = config.settings().iter().map(SettingRow::from).collect();
    let document = ConfigDocument { files: names(&config), settings: &rows };
    if args.origin {
        invocation.output.rows_with(&document, &rows, &["key", "value", "origin"])?;
    } else {
        invocation.output.rows(&document, &rows)?;
    }
    Ok(0)
}

fn check(args: &CheckArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let named = args.file.as_deref().or(invocation.global.config.as_deref());
    let config = Config::load(&Environment::here(), named, &[]).map_err(|problems| match problems.as_slice() {
        [one] if one.unreadable.is_some() => problems.into(),
        [one] if one.place.is_some() => Failure::new(Code::BadConfig, one.to_string()).fix("correct that line"),
        [_] => problems.into(),
        many => Failure::new(Code::BadConfig, format!("{} problems in the configuration", many.len()))
            .fix("correct each of them")
            .detail(&many.iter().map(|problem| format!("{problem}\n")).collect::<String>()),
    })?;
    let files = names(&config);
    let text = match files.as_slice() {
        [] => Page::from("ok: no configuration file; using defaults"),
        files => files.iter().map(|file| format!("ok: {file}")).collect(),
    };
    let names: Page = files.iter().collect();
    invocation.output.several(&CheckDocument { files, valid: true }, names, || text)?;
    Ok(0)
}

fn names(config: &Config) -> Vec<String> {
    config.files().iter().map(|path| path.display().to_string()).collect()
}
