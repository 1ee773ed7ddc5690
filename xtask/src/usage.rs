//! What each command says about itself.

use crate::command::Topic;

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
            Self::Trust => TRUST_USAGE,
        }
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
  trust    runs more of these on fresh input and adds them up in docs/trust.md

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
Usage: cargo xtask sim [--fresh] [--seeds <n>] [--rings <n>] [--linked <n>] [--from <seed>] [--steps <n>] [--twice <n>] [--blind]
       cargo xtask sim --seed <seed> [--steps <n>] [--blind]

Runs the simulator: the real engine, codec and client core on one seeded clock
and a network that breaks, with an oracle beside it. Stops at the first
violation and says how to see it again.

Options:
  --seeds <n>    how many worlds (2000)
  --rings <n>    how many rings as well, seeds from 2000000000 on (1000)
  --linked <n>   how many worlds in which brokers are linked as well, seeds from
                 1000000000 on (0; every tenth ordinary world is one, too)
  --links        only linked worlds, as many as --seeds says
  --from <seed>  the first seed of each kind (1)
  --fresh        choose the first seed from the commit and the time, and print it
  --steps <n>    events of the storm (2000)
  --seed <seed>  replay one seed with a readable trace
  --twice <n>    first run n seeds twice and compare their traces
  --failed       run the seeds of crates/sim/seeds.txt, which once failed
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

const TRUST_USAGE: &str = "\
Usage: cargo xtask trust [sim [<simulator arguments>] | kills <n> | fuzz [<fuzz arguments>] | test]

Runs one of these on fresh input and, if it passes, adds what ran to the row of
this version and commit in docs/trust.md. Without an argument it shows the file.

  sim        the simulator with --fresh; counts worlds, rings and linked worlds
  kills <n>  n rounds of the crash loop with a fresh seed; counts the kills
  fuzz       the fuzzer; counts hours over all targets
  test       the whole test command; counts one round

Options:
  -h, --help  show this";
