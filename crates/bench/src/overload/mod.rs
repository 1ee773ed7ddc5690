//! `cargo xtask bench overload`: three times what can be done, and peers that stop reading.

pub(crate) mod crowd;
pub(crate) mod figures;
pub(crate) mod hands;
mod reader;
mod storm;

use anyhow::{Result, bail};

use self::figures::Overload;
use crate::options::{all_if_none, count, name, routers, text};
use crate::report::{self, Head};

const SECONDS: usize = 60;

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Refused,
    Expired,
    Reader,
}

impl Part {
    const ALL: [Self; 3] = [Self::Refused, Self::Expired, Self::Reader];

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == word)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Expired => "expired",
            Self::Reader => "reader",
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    parts: Vec<Part>,
    seconds: usize,
    routers: usize,
    json: Option<String>,
}

impl Options {
    /// What is wrong is told in a sentence.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self { parts: Vec::new(), seconds: SECONDS, routers: 1, json: None };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--seconds" => options.seconds = count(word, words.next())?,
                "--routers" => options.routers = routers(word, words.next())?,
                "--json" => options.json = Some(text(word, words.next())?),
                other => name(&mut options.parts, Part::parse(other), other)?,
            }
        }
        Ok(Self { parts: all_if_none(options.parts, &Part::ALL), ..options })
    }
}

/// Runs it; an error names the bars that were missed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { parts, seconds, routers, json } = options;
    let head = Head::now(*routers)?;
    println!("{head}; each storm lasts {seconds} s");
    let mut overload = Overload { head, seconds: *seconds, storms: Vec::new(), readers: Vec::new() };
    for part in parts {
        match part {
            Part::Refused => overload.storms.push(storm::REFUSED.run(*seconds, *routers)?),
            Part::Expired => overload.storms.push(storm::EXPIRED.run(*seconds, *routers)?),
            Part::Reader => overload.readers = reader::run(*routers)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().collect::<Vec<&str>>())
    }

    #[test]
    fn options_are_taken_in_any_order() {
        assert_eq!(parse(""), Ok(Options { parts: Part::ALL.to_vec(), seconds: 60, routers: 1, json: None }));
        let json = Some("o.json".to_owned());
        let some = Options { parts: vec![Part::Reader], seconds: 5, routers: 2, json };
        assert_eq!(parse("--seconds 5 reader --json o.json --routers 2"), Ok(some));
        for line in ["instant", "--seconds", "--seconds 0", "--json"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
