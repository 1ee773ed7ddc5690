//! What the user typed, turned into options. Nothing here runs anything.

use std::str::FromStr;

use turno_proto::model::limits::ROUTERS_MAX;

use crate::works::Work;

pub(crate) const USAGE: &str = "\
usage: turno-bench [W1 W2 W3 W4 W5 W6 W7] [--peers] [--runs <n>] [--pending <n>] [--seed <n>] [--routers <n>]
                   [--json <file>]
       turno-bench growth [workers queues waiting bodies] [--rounds <n>] [--seed <n>] [--routers <n>] [--json <file>]
       turno-bench overload [refused expired reader] [--seconds <n>] [--routers <n>] [--json <file>]
       turno-bench broadcast|takeover|crossing|matching [--rounds <n>] [--seed <n>] [--routers <n>] [--json <file>]
       turno-bench ring [cost healing healing-fast hops] [--rounds <n>] [--seed <n>] [--routers <n>] [--json <file>]
       turno-bench cancel [ids purge caller gone] [--rounds <n>] [--seed <n>] [--routers <n>] [--json <file>]
       turno-bench W9 [rate submit restart] [--rounds <n>] [--array <n>] [--jobs <n>] [--tasks <n>] [--full]
                   [--routers <n>] [--json <file>]
       turno-bench log [--rounds <n>] [--seed <n>] [--folder <dir>]
       turno-bench chart --from <file>... [--docs <dir>]";

const RUNS: usize = 7;
const PENDING: u32 = 1_000_000;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// None named: all.
    pub(crate) works: Vec<Work>,
    /// Beside the peers too, which are installed if they are missing.
    pub(crate) peers: bool,
    pub(crate) runs: usize,
    /// Durable messages of W6.
    pub(crate) pending: u32,
    /// Of the order of systems; without it one is made up.
    pub(crate) seed: Option<u64>,
    /// Of the Turno server.
    pub(crate) routers: usize,
    pub(crate) json: Option<String>,
}

impl Options {
    /// What is wrong is told in a sentence.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options =
            Self { works: Vec::new(), peers: false, runs: RUNS, pending: PENDING, seed: None, routers: 1, json: None };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--peers" => options.peers = true,
                "--runs" => options.runs = count(word, words.next())?,
                "--pending" => options.pending = pending(word, words.next())?,
                "--seed" => options.seed = Some(number(word, words.next())?),
                "--routers" => options.routers = routers(word, words.next())?,
                "--json" => options.json = Some(text(word, words.next())?),
                other => name(&mut options.works, Work::parse(other), other)?,
            }
        }
        Ok(Self { works: all_if_none(options.works, &Work::ALL), ..options })
    }
}

/// A word that names one of several things, each of which is done once.
pub(crate) fn name<T: PartialEq>(named: &mut Vec<T>, one: Option<T>, word: &str) -> Result<(), String> {
    let one = one.ok_or_else(|| format!("unexpected argument `{word}`"))?;
    if !named.contains(&one) {
        named.push(one);
    }
    Ok(())
}

pub(crate) fn all_if_none<T: Clone>(named: Vec<T>, all: &[T]) -> Vec<T> {
    if named.is_empty() { all.to_vec() } else { named }
}

pub(crate) fn text(option: &str, word: Option<&str>) -> Result<String, String> {
    word.map(str::to_owned).ok_or_else(|| format!("{option} wants a path"))
}

pub(crate) fn number<T: FromStr>(option: &str, word: Option<&str>) -> Result<T, String> {
    word.and_then(|word| word.parse().ok()).ok_or_else(|| format!("{option} wants a whole number"))
}

/// At least one.
pub(crate) fn count(option: &str, word: Option<&str>) -> Result<usize, String> {
    match number(option, word) {
        Ok(count @ 1..) => Ok(count),
        _ => Err(format!("{option} wants a whole number from 1")),
    }
}

/// Enough for a figure per message to say something.
fn pending(option: &str, word: Option<&str>) -> Result<u32, String> {
    match number(option, word) {
        Ok(pending @ 1_000..) => Ok(pending),
        _ => Err(format!("{option} wants a whole number from 1000")),
    }
}

pub(crate) fn routers(option: &str, word: Option<&str>) -> Result<usize, String> {
    match count(option, word) {
        Ok(routers @ ..=ROUTERS_MAX) => Ok(routers),
        _ => Err(format!("{option} wants a whole number from 1 to {ROUTERS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().collect::<Vec<&str>>())
    }

    #[test]
    fn nothing_means_all_works_seven_times() {
        let all = Options {
            works: Work::ALL.to_vec(),
            peers: false,
            runs: 7,
            pending: 1_000_000,
            seed: None,
            routers: 1,
            json: None,
        };
        assert_eq!(parse(""), Ok(all));
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let wanted = Options {
            works: vec![Work::W2, Work::W7],
            peers: true,
            runs: 1,
            pending: 10_000_000,
            seed: Some(9),
            routers: 2,
            json: Some("out.json".to_owned()),
        };
        assert_eq!(
            parse("--json out.json W2 --peers W7 --pending 10000000 --runs 1 --routers 2 --seed 9 W2"),
            Ok(wanted)
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "W8",
            "w1",
            "--runs",
            "--runs 0",
            "--runs x",
            "--pending",
            "--pending 999",
            "--json",
            "--seed -1",
            "--routers 0",
            "--routers 65",
            "--all",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
