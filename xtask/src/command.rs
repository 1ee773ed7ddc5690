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
            Topic::Check => refuse_all(own, topic).map(|()| Self::Check),
            Topic::Tidy | Topic::Xtask => refuse_all(own, topic).map(|()| Self::Tidy),
        }
    }
}

impl Topic {
    pub(crate) fn usage(self) -> &'static str {
        match self {
            Self::Xtask => XTASK_USAGE,
            Self::Test => TEST_USAGE,
            Self::Check => CHECK_USAGE,
            Self::Tidy => TIDY_USAGE,
            Self::Ledger => LEDGER_USAGE,
            Self::Sim => SIM_USAGE,
            Self::Bench => BENCH_USAGE,
            Self::Steps => STEPS_USAGE,
            Self::Planted => PLANTED_USAGE,
            Self::Fuzz => FUZZ_USAGE,
        }
    }

    fn misuse(self, word: &str) -> Misuse {
        Misuse { what: format!("unexpected argument {word}"), topic: self }
    }
}

const XTASK_USAGE: &str = "\
Usage: cargo xtask <command> [options]

Commands:
  test     everything: set-up, fmt, clippy, tidy, ledger, build, all tests
  check    the quick half: fmt, clippy, tidy, ledger
  tidy     the house rules that the compiler does not know
  ledger   which requirements have a test that proves them
  sim      many brokers, clients and workers in bad weather
  bench    Turno beside the limit, as ratios in one run
  steps    instructions of the hot path beside the committed figures
  planted  whether simulator and tests find bugs planted on purpose
  fuzz     any bytes into codec, session, engine, store, configuration and names

`cargo xtask <command> --help` says more.";

const TEST_USAGE: &str = "\
Usage: cargo xtask test [--fast] [-- <nextest arguments>]

Sets up what it needs, runs every check and every test, and names at the end
what failed and what could not run.

Options:
  --fast      leave out clippy, the simulator, the steps and the doc tests
  -h, --help  show this";

const CHECK_USAGE: &str = "\
Usage: cargo xtask check

Runs fmt, clippy, tidy and ledger.";

const TIDY_USAGE: &str = "\
Usage: cargo xtask tidy

Reports each breach of the house rules as `file:line: rule: what to do instead`,
in tracked files and in new ones that are not ignored.";

const LEDGER_USAGE: &str = "\
Usage: cargo xtask ledger [--all] [--group <group>] [--json]

Compares docs/requirements.md with the numbers named in the doc comments of
tests. Fails when a test names a number that does not exist, or a range.

Options:
  --all            list the proven ones too, with their tests
  --group <group>  only S0, S1, ..., I or W
  --json           for programs
  -h, --help       show this";

const SIM_USAGE: &str = "\
Usage: cargo xtask sim [--seeds <n>] [--from <seed>] [--steps <n>] [--seed <seed>] [--twice <n>] [--rings <n>] [--links] [--blind]

Runs the simulator: the real engine, codec and client core on one seeded clock
and a network that breaks, with an oracle beside it. Stops at the first
violation and says how to see it again.

Options:
  --seeds <n>    how many seeds (2000)
  --from <seed>  the first of them (1)
  --steps <n>    events of the storm (2000)
  --seed <seed>  replay one seed with a readable trace
  --twice <n>    first run n seeds twice and compare their traces
  --rings <n>    how many seeds of rings as well, from 2000000000 on (1000)
  --links        only worlds in which brokers are linked (else every tenth)
  --blind        leave out the brokers' own checks: only the oracle judges
  -h, --help     show this";

const BENCH_USAGE: &str = "\
Usage: cargo xtask bench [W1 W2 W3 W4 W5 W6 W7] [--peers] [--runs <n>] [--pending <n>] [--seed <n>] [--routers <n>] [--json <file>]
       cargo xtask bench growth [workers queues waiting bodies] [--rounds <n>] [--seed <n>] [--routers <n>] [--json <file>]
       cargo xtask bench overload [refused expired reader] [--seconds <n>] [--routers <n>] [--json <file>]
       cargo xtask bench broadcast|takeover|crossing|matching [--rounds <n>] [--seed <n>] [--routers <n>] [--json <file>]
       cargo xtask bench ring [cost healing healing-fast hops] [--rounds <n>] [--seed <n>] [--routers <n>] [--json <file>]
       cargo xtask bench cancel [ids purge caller gone] [--rounds <n>] [--seed <n>] [--routers <n>] [--json <file>]
       cargo xtask bench W9 [rate submit restart] [--rounds <n>] [--array <n>] [--jobs <n>] [--tasks <n>] [--full] [--routers <n>] [--json <file>]
       cargo xtask bench log [--rounds <n>] [--seed <n>] [--folder <dir>]
       cargo xtask bench chart --from <file>... [--docs <dir>]

Measures works of docs/requirements.md: Turno beside a raw two-hop relay of our
own, each in its own process, and prints the ratios with their spread and what
the budget says. Each round takes the systems in another order, each with the
relay right beside it. Timings belong here and never into tests.

  W1  request and reply, one in flight, everything on one core
  W2  request and reply, ten workers of ten slots, a hundred in flight; and the
      same beside 10,000 durable sends a second
  W3  volatile queue: send, take, ack; four producers, four consumers
  W4  durable queue: the same, synced before each answer; beside a plain log
      on the same disk, and Redis if that is installed
  W5  events of one publisher to 1, 10 and 100 subscribers, beside Redis, which
      is installed if it is missing
  W6  memory per idle connection and per queued message, restart with durable
      ones, disk after a drain; one round
  W7  a worker is killed: until its ten messages are at another; beside
      beanstalkd if that is installed
  W9  no-op tasks of job arrays, durable, by 64 protocol workers without
      processes: an array is worked off (rate), one of 1,000,000 tasks is
      submitted (submit), the broker starts again with finished jobs (restart);
      only when it is named; fails at a missed bar

  growth    CPU per request when workers, queues, waiting requests or bodies
            become many times more; fails if one grows by more than a quarter
  overload  three times the sustainable rate, and peers that stop reading;
            fails at a missed bar
  broadcast deliveries a second of no-reply broadcasts to 1,000 consumers,
            beside the relay's W2 requests; fails at a missed bar
  takeover  the holder of an exclusive queue is killed: until the standby's
            program runs, beside a start of that program alone; fails too
  crossing  CPU of two brokers for requests that cross the link between them,
            beside one broker's; fails too
  ring      CPU of three members for a publication, beside one broker's; until
            a circle of five is whole after one is killed; to the farthest of
            seven beside one hop; fails too
  cancel    W2's p99 while 100,000 waiting messages are cancelled, beside that
            right before: by id, by purge, by their caller, by its going;
            fails too
  log       the store and its group committer beside a plain loop of write and
            fdatasync with the same bytes; --folder says on which disk
  chart     writes drawings and tables of docs/performance.md from reports

Options:
  --peers        beside NATS, libzmq, Redis, Gearman, beanstalkd and RabbitMQ
                 too; installs their Debian packages if they are missing
  --runs <n>     rounds of each work (7)
  --pending <n>  durable messages of W6 (1000000); each takes about 300 bytes of disk
  --rounds <n>   rounds of each curve of growth (5), of each size of log (7), of
                 broadcast, takeover, crossing, ring and each way of cancel (7), of
                 W9 (3)
  --array <n>    tasks of W9's array (200000)
  --jobs <n>     finished jobs at the restart of W9 (10)
  --tasks <n>    tasks of each of those (100000); what fewer than 10,000,000 take is
                 taken times as much
  --full         100 jobs of 100,000 tasks, as the bar has it: takes minutes
  --seconds <n>  how long an overload lasts (60)
  --seed <n>     of the order of systems or sizes (the clock)
  --routers <n>  of the Turno server (1)
  --json <file>  write the report there too
  --folder <dir> somewhere on the disk to measure (target)
  --from <file>  a report to draw; repeat for more
  --docs <dir>   where performance.md is (docs)
  -h, --help     show this";

const STEPS_USAGE: &str = "\
Usage: cargo xtask steps [--bless]

Counts with valgrind how many instructions one step of the codec and of the
engine takes, and compares with crates/bench/steps.txt. Fails when a step takes
over 10 % more, and asks for a lower figure when it takes over 10 % less.

Options:
  --bless     write the figures: every fall, and each rise beyond 10 %
  -h, --help  show this";

const PLANTED_USAGE: &str = "\
Usage: cargo xtask planted [<name>...]

Applies each patch of planted/ to a copy of the tree in target/planted, builds
the simulator there and runs 2000 seeds, or runs the tests that the patch names
(`Check: nextest run …`). Says which check caught the bug, and what shows
without the broker's own checks (blind). Fails when a bug survives, or when a
patch does not apply or does not build.

Arguments:
  <name>      only these, by file name without extension, or by number

Options:
  -h, --help  show this";

const FUZZ_USAGE: &str = "\
Usage: cargo xtask fuzz [--seconds <n>] [<target>...]

Runs each target for a while with libFuzzer, which needs a nightly toolchain,
and says how many inputs it tried and what they reached that was new. Fails at
a crash and says how to see it again. `cargo xtask test` needs none of this: it
replays the committed corpora in fuzz/corpus.

Targets: config_file, engine_ops, foreman_end, foreman_frame, names,
native_frame, session, store_ops, store_record, store_recovery, worker_end (all)

Options:
  --seconds <n>  for each target (30)
  -h, --help     show this";

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
