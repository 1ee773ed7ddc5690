//! What the user typed, turned into one command. Nothing here runs anything.

use crate::ledger::number::Group;

/// A command line that makes sense.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help(Topic),
    Test(TestOptions),
    Check,
    Tidy,
    Ledger(LedgerOptions),
    /// Arguments of the simulator, handed on untouched.
    Sim(Vec<String>),
    /// Arguments of the benchmark, handed on untouched.
    Bench(Vec<String>),
    /// `bless`: write the committed figures anew.
    Steps {
        bless: bool,
    },
    /// Names of planted bugs; none means all.
    Planted(Vec<String>),
    Fuzz(FuzzOptions),
    Trust(Trial),
}

/// Options of `test`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestOptions {
    pub(crate) fast: bool,
    /// What stood after `--`: handed to nextest untouched.
    pub(crate) nextest_args: Vec<String>,
}

/// Options of `ledger`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LedgerOptions {
    pub(crate) all: bool,
    pub(crate) group: Option<Group>,
    pub(crate) json: bool,
}

/// Options of `fuzz`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FuzzOptions {
    /// How long each target runs.
    pub(crate) seconds: u32,
    /// None named: all.
    pub(crate) targets: Vec<String>,
}

/// What `trust` runs before it records it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Nothing: the ledger is shown.
    Show,
    /// Fresh seeds, with these arguments of the simulator.
    Sim(Vec<String>),
    /// So many rounds of the crash loop.
    Kills(u32),
    Fuzz(FuzzOptions),
    /// The whole test command.
    Test,
}

/// A command line that makes no sense, and the usage that would help.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misuse {
    pub(crate) what: String,
    pub(crate) topic: Topic,
}

/// What a usage text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Xtask,
    Test,
    Check,
    Tidy,
    Ledger,
    Sim,
    Bench,
    Steps,
    Planted,
    Fuzz,
    Trust,
}

impl Command {
    pub(crate) fn parse(words: &[String]) -> Result<Self, Misuse> {
        let misuse = |what: &str| Misuse { what: what.to_owned(), topic: Topic::Xtask };
        let Some((name, rest)) = words.split_first() else {
            return Err(misuse("no command given"));
        };
        let topic = match name.as_str() {
            "--help" | "-h" | "help" => return Ok(Self::Help(Topic::Xtask)),
            "test" => Topic::Test,
            "check" => Topic::Check,
            "tidy" => Topic::Tidy,
            "ledger" => Topic::Ledger,
            "sim" => Topic::Sim,
            "bench" => Topic::Bench,
            "steps" => Topic::Steps,
            "planted" => Topic::Planted,
            "fuzz" => Topic::Fuzz,
            "trust" => Topic::Trust,
            other => return Err(misuse(&format!("unknown command `{other}`"))),
        };
        // What stands after `--` is not ours, so a `--help` there is not ours either.
        let (own, passed_on) = match rest.iter().position(|word| word == "--") {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        if own.iter().any(|word| word == "--help" || word == "-h") {
            return Ok(Self::Help(topic));
        }
        if passed_on.is_some() && topic != Topic::Test {
            return Err(topic.misuse("`--`"));
        }
        match topic {
            Topic::Test => parse_test(own, passed_on.unwrap_or_default()).map(Self::Test),
            Topic::Ledger => parse_ledger(own).map(Self::Ledger),
            Topic::Sim => Ok(Self::Sim(own.to_vec())),
            Topic::Bench => Ok(Self::Bench(own.to_vec())),
            Topic::Steps => parse_steps(own),
            Topic::Planted => parse_planted(own).map(Self::Planted),
            Topic::Fuzz => parse_fuzz(own).map(Self::Fuzz),
            Topic::Trust => parse_trust(own).map(Self::Trust),
            Topic::Check => refuse_all(own, topic).map(|()| Self::Check),
            Topic::Tidy | Topic::Xtask => refuse_all(own, topic).map(|()| Self::Tidy),
        }
    }
}

impl Topic {
    fn misuse(self, word: &str) -> Misuse {
        Misuse { what: format!("unexpected argument {word}"), topic: self }
    }
}

/// Seconds a target is fuzzed if nobody says otherwise.
const FUZZ_SECONDS: u32 = 30;

fn parse_test(words: &[String], passed_on: &[String]) -> Result<TestOptions, Misuse> {
    let mut options = TestOptions { nextest_args: passed_on.to_vec(), ..TestOptions::default() };
    for word in words {
        match word.as_str() {
            "--fast" => options.fast = true,
            other => return Err(Topic::Test.misuse(&format!("`{other}`"))),
        }
    }
    Ok(options)
}

fn parse_ledger(words: &[String]) -> Result<LedgerOptions, Misuse> {
    let mut options = LedgerOptions::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--all" => options.all = true,
            "--json" => options.json = true,
            "--group" => options.group = Some(parse_group(words.next().map(String::as_str))?),
            other => match other.strip_prefix("--group=") {
                Some(name) => options.group = Some(parse_group(Some(name))?),
                None => return Err(Topic::Ledger.misuse(&format!("`{other}`"))),
            },
        }
    }
    Ok(options)
}

fn parse_steps(words: &[String]) -> Result<Command, Misuse> {
    match words.iter().find(|word| *word != "--bless") {
        Some(word) => Err(Topic::Steps.misuse(&format!("`{word}`"))),
        None => Ok(Command::Steps { bless: !words.is_empty() }),
    }
}

fn parse_planted(words: &[String]) -> Result<Vec<String>, Misuse> {
    match words.iter().find(|word| word.starts_with('-')) {
        Some(flag) => Err(Topic::Planted.misuse(&format!("`{flag}`"))),
        None => Ok(words.to_vec()),
    }
}

fn parse_group(name: Option<&str>) -> Result<Group, Misuse> {
    name.and_then(Group::parse).ok_or_else(|| Misuse {
        what: format!("`--group` wants S0, S1, ..., I or W, not `{}`", name.unwrap_or_default()),
        topic: Topic::Ledger,
    })
}

fn parse_fuzz(words: &[String]) -> Result<FuzzOptions, Misuse> {
    let mut options = FuzzOptions { seconds: FUZZ_SECONDS, targets: Vec::new() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => options.seconds = parse_seconds(words.next().map(String::as_str))?,
            other => match other.strip_prefix("--seconds=") {
                Some(number) => options.seconds = parse_seconds(Some(number))?,
                None if other.starts_with('-') => return Err(Topic::Fuzz.misuse(&format!("`{other}`"))),
                None => options.targets.push(other.to_owned()),
            },
        }
    }
    Ok(options)
}

/// Zero would mean "for ever" to libFuzzer.
fn parse_seconds(number: Option<&str>) -> Result<u32, Misuse> {
    number.and_then(|number| number.parse().ok()).filter(|seconds| *seconds > 0).ok_or_else(|| Misuse {
        what: format!("`--seconds` wants a whole number from 1, not `{}`", number.unwrap_or_default()),
        topic: Topic::Fuzz,
    })
}

fn parse_trust(words: &[String]) -> Result<Trial, Misuse> {
    let Some((kind, rest)) = words.split_first() else { return Ok(Trial::Show) };
    match kind.as_str() {
        "sim" => Ok(Trial::Sim(rest.to_vec())),
        "fuzz" => parse_fuzz(rest).map(Trial::Fuzz),
        "test" => refuse_all(rest, Topic::Trust).map(|()| Trial::Test),
        "kills" => match rest {
            [number] => number.parse().ok().filter(|rounds| *rounds > 0).map(Trial::Kills),
            _ => None,
        }
        .ok_or_else(|| Misuse { what: "`kills` wants one whole number from 1".to_owned(), topic: Topic::Trust }),
        other => Err(Topic::Trust.misuse(&format!("`{other}`"))),
    }
}

fn refuse_all(words: &[String], topic: Topic) -> Result<(), Misuse> {
    match words.first() {
        Some(word) => Err(topic.misuse(&format!("`{word}`"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, Misuse> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Command::parse(&words)
    }

    #[test]
    fn plain_commands() {
        assert_eq!(parse("check"), Ok(Command::Check));
        assert_eq!(parse("tidy"), Ok(Command::Tidy));
        assert_eq!(parse("sim --seed 7"), Ok(Command::Sim(vec!["--seed".to_owned(), "7".to_owned()])));
        assert_eq!(parse("steps"), Ok(Command::Steps { bless: false }));
        assert_eq!(parse("steps --bless"), Ok(Command::Steps { bless: true }));
        assert_eq!(parse("planted"), Ok(Command::Planted(Vec::new())));
        assert_eq!(parse("planted 03"), Ok(Command::Planted(vec!["03".to_owned()])));
        assert_eq!(parse("test"), Ok(Command::Test(TestOptions::default())));
        assert_eq!(parse("ledger"), Ok(Command::Ledger(LedgerOptions::default())));
    }

    #[test]
    fn options_are_taken() {
        assert_eq!(
            parse("test --fast -- -E all() --help"),
            Ok(Command::Test(TestOptions {
                fast: true,
                nextest_args: vec!["-E".into(), "all()".into(), "--help".into()],
            }))
        );
        let ledger = Command::Ledger(LedgerOptions { all: true, group: Group::parse("S0"), json: true });
        assert_eq!(parse("ledger --all --group S0 --json"), Ok(ledger));
        assert!(parse("ledger --group=I").is_ok());
        let fuzz = |seconds, targets: &[&str]| {
            let targets = targets.iter().map(|target| (*target).to_owned()).collect();
            Ok(Command::Fuzz(FuzzOptions { seconds, targets }))
        };
        assert_eq!(parse("fuzz"), fuzz(30, &[]));
        assert_eq!(parse("fuzz session --seconds 5 names"), fuzz(5, &["session", "names"]));
        assert_eq!(parse("fuzz --seconds=1200"), fuzz(1200, &[]));
        assert_eq!(parse("trust"), Ok(Command::Trust(Trial::Show)));
        assert_eq!(parse("trust sim --seeds 9"), Ok(Command::Trust(Trial::Sim(vec!["--seeds".into(), "9".into()]))));
        assert_eq!(parse("trust kills 2000"), Ok(Command::Trust(Trial::Kills(2_000))));
        assert_eq!(parse("trust test"), Ok(Command::Trust(Trial::Test)));
        assert!(parse("trust fuzz --seconds 5 names").is_ok());
        for line in ["trust kills", "trust kills 0", "trust kills many", "trust test now", "trust me"] {
            assert_eq!(parse(line).unwrap_err().topic, Topic::Trust, "{line}");
        }
    }

    #[test]
    fn every_command_has_help() {
        for (line, topic) in [
            ("--help", Topic::Xtask),
            ("test --fast --help", Topic::Test),
            ("check -h", Topic::Check),
            ("tidy --help", Topic::Tidy),
            ("ledger --help", Topic::Ledger),
            ("sim --help", Topic::Sim),
            ("bench W1 --help", Topic::Bench),
            ("steps --help", Topic::Steps),
            ("planted 01 --help", Topic::Planted),
            ("fuzz names --help", Topic::Fuzz),
            ("trust sim --help", Topic::Trust),
        ] {
            assert_eq!(parse(line), Ok(Command::Help(topic)), "{line}");
            assert!(topic.usage().starts_with("Usage: cargo xtask"), "{line}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_matching_usage() {
        for (line, topic) in [
            ("", Topic::Xtask),
            ("frobnicate", Topic::Xtask),
            ("test --slow", Topic::Test),
            ("test queue", Topic::Test),
            ("check --fast", Topic::Check),
            ("check -- x", Topic::Check),
            ("tidy now", Topic::Tidy),
            ("ledger --group", Topic::Ledger),
            ("ledger --group Q", Topic::Ledger),
            ("ledger --none", Topic::Ledger),
            ("steps decode-ack", Topic::Steps),
            ("planted --all", Topic::Planted),
            ("planted -- 01", Topic::Planted),
            ("fuzz --seconds", Topic::Fuzz),
            ("fuzz --seconds 0", Topic::Fuzz),
            ("fuzz --seconds=soon", Topic::Fuzz),
            ("fuzz --minutes 1", Topic::Fuzz),
            ("fuzz -- -runs=1", Topic::Fuzz),
        ] {
            assert_eq!(parse(line).map_err(|misuse| misuse.topic), Err(topic), "{line}");
        }
    }
}
