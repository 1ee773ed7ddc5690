//! `cargo xtask bench overload`: three times what can be done, and peers that stop reading.

pub(crate) mod clients;
pub(crate) mod figures;
mod reader;
mod storm;
pub(crate) mod workers;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use self::figures::Overload;
use crate::options::{ServerOptions, count};
use crate::report::{self, Head};

/// One kind of trouble.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverloadPart {
    Refused,
    Expired,
    Reader,
}

#[derive(Args, Debug)]
pub(crate) struct OverloadOptions {
    #[arg(value_enum, default_values_t = [OverloadPart::Refused, OverloadPart::Expired, OverloadPart::Reader])]
    parts: Vec<OverloadPart>,
    /// How long each lasts
    #[arg(long, default_value_t = 60, value_parser = count)]
    seconds: usize,
    #[command(flatten)]
    server: ServerOptions,
}

/// Runs it; an error names the bars that were missed.
pub(crate) fn run(options: &OverloadOptions) -> Result<()> {
    let OverloadOptions { parts, seconds, server: ServerOptions { routers, json } } = options;
    let head = Head::now(*routers)?;
    println!("{head}; each storm lasts {seconds} s");
    let mut overload = Overload { head, seconds: *seconds, storms: Vec::new(), readers: Vec::new() };
    for part in parts {
        match part {
            OverloadPart::Refused => overload.storms.push(storm::REFUSED.run(*seconds, *routers)?),
            OverloadPart::Expired => overload.storms.push(storm::EXPIRED.run(*seconds, *routers)?),
            OverloadPart::Reader => overload.readers = reader::run(*routers)?,
        }
        // Written after each part, so that a run that is cut short is not lost.
        report::write(json.as_deref(), &overload)?;
    }
    let missed = overload.missed();
    if !missed.is_empty() {
        bail!("{} bars missed:\n  {}", missed.len(), missed.join("\n  "));
    }
    Ok(())
}
