//! What the user typed, turned into options. Nothing here runs anything.

use crate::works::Work;

pub(crate) const USAGE: &str =
    "usage: turno-bench [W1 W2 W3 W6 W7] [--peers] [--runs <n>] [--seed <n>] [--json <file>]";

const RUNS: usize = 7;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// None named: all.
    pub(crate) works: Vec<Work>,
    /// Beside the peers too, which are installed if they are missing.
    pub(crate) peers: bool,
    pub(crate) runs: usize,
    /// Of the order of systems; without it one is made up.
    pub(crate) seed: Option<u64>,
    pub(crate) json: Option<String>,
}

impl Options {
    /// What is wrong is told in a sentence.
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let mut options = Self { works: Vec::new(), peers: false, runs: RUNS, seed: None, json: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--peers" => options.peers = true,
                "--runs" => options.runs = number(word, words.next())?,
                "--seed" => options.seed = Some(number(word, words.next())?),
                "--json" => options.json = Some(words.next().ok_or("--json wants a file")?.clone()),
                other => {
                    let work = Work::parse(other).ok_or_else(|| format!("unexpected argument `{other}`"))?;
                    if !options.works.contains(&work) {
                        options.works.push(work);
                    }
                }
            }
        }
        if options.runs == 0 {
            return Err("--runs wants a whole number from 1".to_owned());
        }
        if options.works.is_empty() {
            options.works = Work::ALL.to_vec();
        }
        Ok(options)
    }
}

fn number<T: std::str::FromStr>(option: &str, word: Option<&String>) -> Result<T, String> {
    word.and_then(|word| word.parse().ok()).ok_or_else(|| format!("{option} wants a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<String>>())
    }

    #[test]
    fn nothing_means_all_works_seven_times() {
        let all = Options { works: Work::ALL.to_vec(), peers: false, runs: 7, seed: None, json: None };
        assert_eq!(parse(""), Ok(all));
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let wanted = Options {
            works: vec![Work::W2, Work::W7],
            peers: true,
            runs: 1,
            seed: Some(9),
            json: Some("out.json".to_owned()),
        };
        assert_eq!(parse("--json out.json W2 --peers W7 --runs 1 --seed 9 W2"), Ok(wanted));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["W8", "w1", "--runs", "--runs 0", "--runs x", "--json", "--seed -1", "--all"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
