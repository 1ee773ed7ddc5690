//! The check that must find a planted bug. The patch names it: the simulator, unless a line `Check: …` names tests to run with cargo.

use std::fmt;

/// How the line with the tests begins.
const LINE: &str = "Check: ";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Simulator,
    /// The arguments of cargo.
    Tests(String),
}

impl Check {
    /// Reads the words above a patch.
    pub(super) fn parse(patch: &str) -> Self {
        let words = patch.lines().take_while(|line| !line.starts_with("diff --git "));
        let line = words.filter_map(|line| line.strip_prefix(LINE)).next();
        line.map_or(Self::Simulator, |tests| Self::Tests(tests.trim().to_owned()))
    }

    /// The tests as words of a command; none for the simulator.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let tests = match self {
            Self::Simulator => None,
            Self::Tests(tests) => Some(tests),
        };
        tests.into_iter().flat_map(|tests| ["cargo"].into_iter().chain(tests.split_whitespace()))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulator => write!(f, "{} seeds", super::copy::SEEDS),
            Self::Tests(tests) => write!(f, "`cargo {tests}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_may_name_its_tests() {
        let check = Check::parse("Why.\nCheck: nextest run a::b\n\ndiff --git a/x b/x\n");
        assert_eq!(check, Check::Tests("nextest run a::b".to_owned()));
        assert_eq!(check.words().collect::<Vec<_>>(), ["cargo", "nextest", "run", "a::b"]);
        assert_eq!(check.to_string(), "`cargo nextest run a::b`");
    }

    #[test]
    fn without_a_word_the_simulator_must_see_it() {
        for patch in ["Why.\n\ndiff --git a/x b/x\n", "Why.\ndiff --git a/x b/x\nCheck: nextest run\n"] {
            let check = Check::parse(patch);
            assert_eq!((&check, check.words().count()), (&Check::Simulator, 0));
        }
        assert_eq!(Check::Simulator.to_string(), "2000 seeds");
    }
}
