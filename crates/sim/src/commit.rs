//! The commit that a report names.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

/// Digits of a short name.
const SHORT: usize = 9;

/// The commit of the tree that this was built from, with a `+` if files differ from it.
pub(crate) fn commit() -> String {
    static COMMIT: OnceLock<String> = OnceLock::new();
    COMMIT.get_or_init(find).clone()
}

fn find() -> String {
    // The tree may have been moved since: then it is the one we are in.
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let here = env::current_dir().unwrap_or_default();
    let place = if built.is_dir() { built } else { here };
    match git(&place, &["rev-parse", "HEAD"]) {
        Some(commit) => {
            let changes = git(&place, &["status", "--porcelain", "--", ":/", ":(top,exclude)docs/reference/trust.md"]);
            let mark = if changes.is_none() { "" } else { "+" };
            format!("{}{mark}", short(&commit))
        }
        // Git is missing, or mistrusts the folder's owner: its files say the same.
        None => read_head(&place).map_or_else(
            || format!("none (version {})", env!("CARGO_PKG_VERSION")),
            |commit| short(&commit).to_owned(),
        ),
    }
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}

/// The output of git, if there is any.
fn git(place: &Path, words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(place).args(words).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|text| !text.is_empty())
}

/// HEAD as the files of the repository around `place` have it.
fn read_head(place: &Path) -> Option<String> {
    let dot = place.ancestors().map(|folder| folder.join(".git")).find(|dot| dot.exists())?;
    // In a worktree it is a file that says where the rest is.
    let own = match fs::read_to_string(&dot) {
        Ok(text) => dot.parent()?.join(text.trim().strip_prefix("gitdir: ")?),
        Err(_) => dot,
    };
    let common = fs::read_to_string(own.join("commondir")).map_or_else(|_| own.clone(), |text| own.join(text.trim()));
    let head = fs::read_to_string(own.join("HEAD")).ok()?;
    let Some(name) = head.trim().strip_prefix("ref: ") else { return Some(head.trim().to_owned()) };
    let loose = fs::read_to_string(common.join(name)).ok().map(|text| text.trim().to_owned());
    loose.or_else(|| {
        let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
        let line = packed.lines().find(|line| line.ends_with(&format!(" {name}")))?;
        line.split(' ').next().map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_repository_say_what_git_says() {
        let place = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (Some(said), Some(read)) = (git(place, &["rev-parse", "HEAD"]), read_head(place)) else { return };
        assert_eq!(said, read);
        assert!(commit().starts_with(short(&said)), "{}", commit());
    }
}
