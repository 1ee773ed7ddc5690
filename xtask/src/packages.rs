//! Installs Debian packages, without a question and without failing because somebody else is installing something.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// apt waits this many seconds for dpkg's lock by itself. It does not wait for the locks of the package lists and of
/// downloaded packages; [`run_unlocked`] waits for all of them, and says so.
const DPKG_LOCK_TIMEOUT: &str = "DPkg::Lock::Timeout=10";

/// How long one command may wait for locks in all.
const LOCKED_MAX: Duration = Duration::from_secs(15 * 60);

/// The time between two attempts.
const PAUSE: Duration = Duration::from_secs(5);

/// The parts of apt's and dpkg's messages that name a lock which another process holds.
const LOCKED: [&str; 3] = ["Could not get lock", "is another process using it?", "locked by another process"];

/// Tries a command as root by `sudo`, if that asks for no password.
const SUDO: [&str; 3] = ["sudo", "--non-interactive", "DEBIAN_FRONTEND=noninteractive"];

/// Installs a package. If that fails, renews the package lists and tries once more.
///
/// # Errors
///
/// Installs a package; an error is the last line of apt-get or sudo.
pub fn install(package: &str) -> Result<(), String> {
    install_by(package, &mut Shell { begun: Instant::now() })
}

/// The machine, so that tests need none.
trait System {
    /// Runs a program; what it wrote to standard error if it failed.
    fn run(&mut self, words: &[&str]) -> Result<(), String>;
    /// The time since the start.
    fn now(&self) -> Duration;
    fn pause(&mut self, time: Duration);
}

fn install_by(package: &str, system: &mut dyn System) -> Result<(), String> {
    let install = ["install", "--no-install-recommends", package];
    if apt_get(&install, system).is_ok() {
        return Ok(());
    }
    // A fresh machine has no package lists, and old ones name files that are gone.
    apt_get(&["update"], system)?;
    apt_get(&install, system)
}

fn apt_get(words: &[&str], system: &mut dyn System) -> Result<(), String> {
    let words = [&["apt-get", "--yes", "--quiet", "-o", DPKG_LOCK_TIMEOUT], words].concat();
    run_unlocked(&words, system).or_else(|own| {
        run_unlocked(&[&SUDO, &words[..]].concat(), system).map_err(|by_sudo| format!("{own}; {by_sudo}"))
    })
}

/// Runs a command again until no lock keeps it from its work.
fn run_unlocked(words: &[&str], system: &mut dyn System) -> Result<(), String> {
    let begun = system.now();
    let mut announced = String::new();
    loop {
        let Err(errors) = system.run(words) else { return Ok(()) };
        let Some(lock) = errors.lines().find(|line| LOCKED.iter().any(|text| line.contains(text))) else {
            return Err(errors.trim().lines().last().unwrap_or("it failed without a message").to_owned());
        };
        if system.now() - begun >= LOCKED_MAX {
            return Err(format!("still locked after {} min: {lock}", LOCKED_MAX.as_secs() / 60));
        }
        if lock != announced {
            println!("waiting up to {} min for a package lock: {lock}", LOCKED_MAX.as_secs() / 60);
            lock.clone_into(&mut announced);
        }
        system.pause(PAUSE);
    }
}

struct Shell {
    begun: Instant,
}

impl System for Shell {
    fn run(&mut self, words: &[&str]) -> Result<(), String> {
        let (program, arguments) = words.split_first().unwrap_or((&"", &[]));
        let mut command = Command::new(program);
        // Messages in English, which is what LOCKED is compared with; sudo keeps LC_ALL.
        command.args(arguments).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("{program} does not start: {error}"))?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn pause(&mut self, time: Duration) {
        thread::sleep(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSTALL: &str = "apt-get --yes --quiet -o DPkg::Lock::Timeout=10 install --no-install-recommends valgrind";
    const UPDATE: &str = "apt-get --yes --quiet -o DPkg::Lock::Timeout=10 update";
    const AS_ROOT: &str = "sudo --non-interactive DEBIAN_FRONTEND=noninteractive ";
    const LISTS: &str = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 712 (apt-get)\n\
                         E: Unable to lock directory /var/lib/apt/lists/\n";
    const FRONTEND: &str =
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?\n";
    const DPKG: &str = "dpkg: error: dpkg frontend lock was locked by another process with pid 9\n";

    /// A machine whose programs end as the test says, on a clock that only pauses move.
    struct Scripted<F> {
        run: F,
        ran: Vec<String>,
        now: Duration,
    }

    impl<F: FnMut(&str, usize) -> Result<(), String>> Scripted<F> {
        fn install(run: F) -> (Result<(), String>, Vec<String>, Duration) {
            let mut system = Self { run, ran: Vec::new(), now: Duration::ZERO };
            let result = install_by("valgrind", &mut system);
            (result, system.ran, system.now)
        }
    }

    impl<F: FnMut(&str, usize) -> Result<(), String>> System for Scripted<F> {
        fn run(&mut self, words: &[&str]) -> Result<(), String> {
            let line = words.join(" ");
            self.ran.push(line.clone());
            (self.run)(&line, self.ran.len())
        }

        fn now(&self) -> Duration {
            self.now
        }

        fn pause(&mut self, time: Duration) {
            self.now += time;
        }
    }

    #[test]
    fn a_package_is_installed_by_one_command_that_waits_for_dpkg() {
        let (result, ran, waited) = Scripted::install(|_, _| Ok(()));
        assert_eq!((result, ran, waited), (Ok(()), vec![INSTALL.to_owned()], Duration::ZERO));
    }

    #[test]
    fn a_lock_is_waited_for() {
        for lock in [LISTS, FRONTEND, DPKG] {
            let (result, ran, waited) = Scripted::install(|_, run| if run < 4 { Err(lock.to_owned()) } else { Ok(()) });
            assert_eq!((result, ran, waited), (Ok(()), vec![INSTALL.to_owned(); 4], 3 * PAUSE));
        }
    }

    #[test]
    fn the_wait_ends_and_names_the_lock() {
        let (result, ran, waited) = Scripted::install(|_, _| Err(LISTS.to_owned()));
        let why = result.expect_err("it is locked for ever");
        assert!(why.contains("still locked after 15 min") && why.contains("held by process 712"), "{why}");
        // Install and update, each also by sudo.
        assert_eq!(waited, LOCKED_MAX * 4);
        assert_eq!(ran.len(), usize::try_from(waited.as_secs() / PAUSE.as_secs()).unwrap() + 4);
    }

    #[test]
    fn the_lists_are_renewed_when_a_package_is_not_found_and_their_lock_is_waited_for() {
        let (result, ran, waited) = Scripted::install(|line, run| match run {
            1 | 2 => Err("E: Unable to locate package valgrind\n".to_owned()),
            3 => Err(LISTS.to_owned()),
            _ if line == UPDATE || line == INSTALL => Ok(()),
            _ => panic!("{line}"),
        });
        let expected =
            [INSTALL.to_owned(), format!("{AS_ROOT}{INSTALL}"), UPDATE.into(), UPDATE.into(), INSTALL.into()];
        assert_eq!((result, waited), (Ok(()), PAUSE));
        assert_eq!(ran, expected);
    }

    /// Without permission apt names a lock as well. That one never opens, so it is not waited for.
    #[test]
    fn without_permission_sudo_is_tried_at_once() {
        let denied = "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n\
                      E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?\n";
        let (result, ran, waited) =
            Scripted::install(|line, _| if line.starts_with("sudo") { Ok(()) } else { Err(denied.to_owned()) });
        assert_eq!((result, waited), (Ok(()), Duration::ZERO));
        assert_eq!(ran, [INSTALL.to_owned(), format!("{AS_ROOT}{INSTALL}")]);
        let (result, ..) = Scripted::install(|line, _| {
            Err(if line.starts_with("sudo") { "sudo: a password is required".to_owned() } else { denied.to_owned() })
        });
        let why = result.expect_err("nobody may");
        assert!(why.contains("are you root?") && why.contains("a password is required"), "{why}");
    }

    #[test]
    fn programs_run_or_say_why_not() {
        let mut shell = Shell { begun: Instant::now() };
        assert_eq!(shell.run(&["true"]), Ok(()));
        assert_eq!(shell.run(&["sh", "-c", "echo why >&2; exit 3"]), Err("why\n".to_owned()));
        assert!(shell.run(&["no-such-program-at-all"]).unwrap_err().starts_with("no-such-program-at-all does not"));
    }
}
