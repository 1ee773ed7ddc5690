//! Secrets in the environment of this process, which child processes do not inherit. Files and sockets of ours are
//! closed when a program starts, as the standard library opens all of them with `O_CLOEXEC`.

use tokio::process::Command;

use turno_broker::config::{KEYS, Key, ValueKind};

/// Takes the variables out of the command's environment that hold a secret, or the name of a file with one. Variables that are
/// set for the command afterwards stay.
pub(crate) fn without_secrets(command: &mut Command) -> &mut Command {
    for key in KEYS.iter().filter(|key| is_secret(key)) {
        command.env_remove(key.variable());
    }
    command
}

fn is_secret(key: &Key) -> bool {
    key.kind == ValueKind::Secret || key.name.ends_with("secret-file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_with_a_secret_is_taken_out() {
        let mut command = Command::new("true");
        command.env("KEPT", "yes");
        without_secrets(&mut command);
        let removed: Vec<_> =
            command.as_std().get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for name in ["TURNO_LINK__SECRET", "TURNO_LINK__SECRET_FILE", "TURNO_RING__SECRET", "TURNO_RING__SECRET_FILE"] {
            assert!(removed.iter().any(|one| *one == name), "{name}: {removed:?}");
        }
        assert_eq!(removed.len(), 4, "{removed:?}");
        let suspicious = |key: &&Key| ["secret", "token", "password"].iter().any(|word| key.name.contains(word));
        for key in KEYS.iter().filter(suspicious) {
            assert!(is_secret(key), "{} may hold a secret", key.name);
        }
    }
}
