//! `turno version`: which program this is.

use clap::Args;
use turno_proto::native;

use super::Invocation;
use super::error::Failure;
use super::help;
use super::schema::meta::VersionDocument;

/// The program's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Print the version
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(&["turno version", "turno version --json"], &[]))]
pub(crate) struct VersionArgs {}

pub(crate) fn run(invocation: &Invocation) -> Result<u8, Failure> {
    let document = VersionDocument { version: VERSION.to_owned(), protocol: native::VERSION };
    invocation.output.one(&document, VERSION, || format!("turno {VERSION} (protocol {})\n", native::VERSION))?;
    Ok(0)
}
