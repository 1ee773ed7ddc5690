//! The command line for the user's own ssh.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::RangeInclusive;

use super::hosts::Host;
use crate::cli::shell::quoted;

/// Ports at the host that the tunnel may begin at: free for everyone, and below those that systems give out themselves.
const PORTS: RangeInclusive<u16> = 20_000..=31_999;

/// Where the tunnels go, as seen from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broker {
    /// Where clients connect.
    pub(super) native: String,
    /// Where job workers do.
    pub(super) foreman: String,
}

/// Two ports at the host, side by side.
pub(super) fn ports() -> (u16, u16) {
    let chance = RandomState::new().build_hasher().finish();
    let places = u64::from(PORTS.end() - PORTS.start()) / 2;
    let first = PORTS.start() + u16::try_from(chance % places).expect("below the number of ports") * 2;
    (first, first + 1)
}

/// The words that start a worker at the host, with both its connections going back through ssh. It ends when its
/// standard input does: with us, or with ssh.
pub(super) fn words(ssh: &[String], host: &Host, broker: &Broker, (native, foreman): (u16, u16)) -> Vec<String> {
    let mut words = ssh.to_vec();
    let options = ["BatchMode=yes", "ExitOnForwardFailure=yes", "ServerAliveInterval=10", "ServerAliveCountMax=3"];
    words.extend(options.into_iter().flat_map(|option| ["-o".to_owned(), option.to_owned()]));
    for (port, target) in [(native, &broker.native), (foreman, &broker.foreman)] {
        words.extend(["-R".to_owned(), format!("127.0.0.1:{port}:{target}")]);
    }
    words.push(host.address.clone());
    let mut there = vec![host.turno.clone().unwrap_or_else(|| "turno".to_owned())];
    there.extend(["worker", "start", "--json", "--until-eof"].map(ToOwned::to_owned));
    there.extend(["--url".to_owned(), format!("turno://127.0.0.1:{native}")]);
    there.extend(["--foreman".to_owned(), format!("127.0.0.1:{foreman}")]);
    there.extend(["--name".to_owned(), host.name.clone()]);
    there.extend(host.options.iter().cloned());
    // The shell at the host reads this once more.
    words.push(there.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_connections_go_back_through_ssh() {
        let host = Host {
            address: "me@node2".into(),
            name: "big one".into(),
            options: vec!["--slots".into(), "8".into()],
            turno: None,
        };
        let broker = Broker { native: "127.0.0.1:7460".into(), foreman: "127.0.0.1:5429".into() };
        let typed = words(&["ssh".to_owned()], &host, &broker, (20_000, 20_001));
        let expected = [
            "ssh",
            "-o",
            "BatchMode=yes",
            "-o",
            "ExitOnForwardFailure=yes",
            "-o",
            "ServerAliveInterval=10",
            "-o",
            "ServerAliveCountMax=3",
            "-R",
            "127.0.0.1:20000:127.0.0.1:7460",
            "-R",
            "127.0.0.1:20001:127.0.0.1:5429",
            "me@node2",
            "turno worker start --json --until-eof --url turno://127.0.0.1:20000 --foreman 127.0.0.1:20001 \
             --name 'big one' --slots 8",
        ];
        assert_eq!(typed, expected);
    }

    #[test]
    fn ports_are_two_of_those_that_may_be_taken() {
        for _ in 0..1_000 {
            let (first, second) = ports();
            assert!(PORTS.contains(&first) && PORTS.contains(&second) && second == first + 1);
        }
    }
}
