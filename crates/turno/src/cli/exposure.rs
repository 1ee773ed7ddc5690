//! Access of other users of this machine: by TCP listeners, and by files that they can read.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tracing::warn;
use turno_broker::config::{Config, Origin};
use turno_broker::{Settings, ZmqAddress, ZmqEndpoint};
use turno_proto::model::Code;

use super::error::Failure;

/// The users of the broker, in one line. There is no authentication: anyone who can connect may do everything.
pub(crate) fn access<'a>(tcp: impl Iterator<Item = &'a SocketAddr> + Clone) -> &'static str {
    if tcp.clone().any(|address| !address.ip().is_loopback()) {
        "OPEN TO THE NETWORK, no authentication (--insecure)"
    } else if tcp.clone().next().is_some() {
        "loopback only, no authentication: every local user may submit jobs, which run commands"
    } else {
        "Unix socket only: accessible to this user and root"
    }
}

/// The TCP addresses of endpoints that ask nobody who they are.
pub(crate) fn open_to_all(endpoints: &[ZmqEndpoint]) -> Vec<SocketAddr> {
    let listen: Vec<ZmqAddress> = endpoints.iter().filter_map(|endpoint| endpoint.place.listen().cloned()).collect();
    open_now(endpoints, &listen)
}

/// The same with the addresses that they really have.
pub(crate) fn open_now(endpoints: &[ZmqEndpoint], bound: &[ZmqAddress]) -> Vec<SocketAddr> {
    let listens = endpoints.iter().filter(|endpoint| endpoint.place.listen().is_some());
    let open = listens.zip(bound).filter(|(endpoint, _)| endpoint.access.is_open());
    let tcp = open.filter_map(|(_, address)| match address {
        ZmqAddress::Tcp(address) => Some(*address),
        ZmqAddress::Ipc(_) => None,
    });
    tcp.collect()
}

/// Somebody must be able to connect.
pub(crate) fn refuse_to_be_unreachable(settings: &Settings) -> Result<(), Failure> {
    if !(settings.listen.is_empty() && settings.data.is_none()) {
        return Ok(());
    }
    Err(Failure::new(Code::BadConfig, "the broker would be unreachable: it has no listener")
        .why("listen.native is empty, and a broker with --memory has no Unix socket")
        .fix("set an address with --listen, or a directory with --data"))
}

/// A file or directory that other users can get at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExposedPath {
    pub(crate) path: PathBuf,
    /// The kind of file.
    pub(crate) what: &'static str,
    /// Its permissions.
    pub(crate) mode: u32,
    /// The command that makes them tight.
    pub(crate) fix: String,
}

impl ExposedPath {
    fn of(path: &Path, what: &'static str, tight: &str) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let is_ours = found.uid() == rustix::process::geteuid().as_raw();
        // A file of root's is readable to the broker by its group.
        let bits = if is_ours || found.is_dir() { 0o077 } else { 0o037 };
        let mode = found.mode() & 0o7777;
        let fix = format!("chmod {tight} {}", super::shell::quoted(&path.display().to_string()));
        (mode & bits != 0).then(|| Self { path: path.to_owned(), what, mode, fix })
    }
}

/// Logs what other users can get at.
pub(crate) fn warn_of_loose(config: &Config) {
    for ExposedPath { path, what, mode, fix } in loose(config) {
        let mode = format!("{mode:o}");
        warn!(path = %path.display(), what, mode, fix, "other users of this machine can access this");
    }
}

/// Files with secrets and directories with data that other users can get at. What is not there is not open.
pub(crate) fn loose(config: &Config) -> Vec<ExposedPath> {
    let settings = config.typed();
    let files = [&settings.link_secret_file, &settings.ring.secret_file];
    let mut secrets: Vec<PathBuf> = files.into_iter().flatten().cloned().collect();
    for key in ["link.secret", "ring.secret"] {
        if let Origin::File { path, .. } = config.origin(key)
            && !secrets.contains(path)
        {
            secrets.push(path.clone());
        }
    }
    // A path that is no directory is refused later, with its own reason.
    let directory = |path: &Path| ExposedPath::of(path, "a data directory", "700").filter(|_| path.is_dir());
    let mut data = Vec::new();
    // Below a directory that is closed nothing is open.
    if settings.broker.data.is_some() && directory(&settings.data).is_some() {
        data = vec![settings.data.clone(), settings.data.join("store"), settings.data.join("archive")];
    }
    let secrets = secrets.iter().filter_map(|path| ExposedPath::of(path, "a file with a secret", "600"));
    secrets.chain(data.iter().filter_map(|path| directory(path))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use turno_broker::config::{Environment, Flag, RawValue};

    use super::*;

    #[test]
    fn who_may_use_a_broker() {
        let table: [(&[&str], &str); 5] = [
            (&[], "Unix socket only"),
            (&["127.0.0.1:7460"], "every local user may submit jobs"),
            (&["127.0.0.1:7460", "[::1]:0"], "every local user may submit jobs"),
            (&["127.0.0.1:7460", "10.0.0.7:1"], "OPEN TO THE NETWORK"),
            (&["0.0.0.0:7460"], "OPEN TO THE NETWORK"),
        ];
        for (tcp, expected) in table {
            let tcp: Vec<SocketAddr> = tcp.iter().map(|address| address.parse().unwrap()).collect();
            assert!(access(tcp.iter()).contains(expected), "{tcp:?}");
        }
    }

    #[test]
    fn what_other_users_get_at_is_loose() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let open = |name: &str, mode| fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        for directory in ["data", "data/store"] {
            fs::create_dir(path(directory)).unwrap();
            open(directory, 0o700);
        }
        let secret = "correct horse battery staple";
        fs::write(path("secret"), secret).unwrap();
        fs::write(path("turno.toml"), format!("ring.secret = \"{secret}\"\n")).unwrap();
        for file in ["secret", "turno.toml"] {
            open(file, 0o600);
        }
        let flag = |key, path: PathBuf| Flag { flag: "--flag", key, raw: RawValue::Text(path.display().to_string()) };
        let flags = [flag("data", path("data")), flag("link.secret-file", path("secret"))];
        let world = Environment { host: "rb".to_owned(), memory: 1 << 30, ..Default::default() };
        let look = || {
            let config = Config::load(&world, Some(&path("turno.toml")), &flags).unwrap();
            let names = loose(&config).into_iter().map(|loose| {
                assert!(loose.fix.starts_with("chmod "), "{loose:?}");
                (loose.path.strip_prefix(place.path()).unwrap().display().to_string(), loose.mode)
            });
            names.collect::<Vec<_>>()
        };
        let named = |name: &str, mode| (name.to_owned(), mode);
        assert_eq!(look(), []);
        open("data/store", 0o755);
        assert_eq!(look(), [], "nobody comes so far");
        open("data", 0o711);
        assert_eq!(look(), [named("data", 0o711), named("data/store", 0o755)]);
        open("data/store", 0o700);
        assert_eq!(look(), [named("data", 0o711)]);
        open("secret", 0o640);
        open("turno.toml", 0o644);
        open("data", 0o700);
        assert_eq!(look(), [named("secret", 0o640), named("turno.toml", 0o644)]);
    }
}
