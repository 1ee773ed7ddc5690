//! Rule about the compiler's version: the toolchain file, the workspace and the README agree.

use super::Breach;
use crate::manifest::Manifest;
use crate::tree::Tree;

const TOOLCHAIN_FILE: &str = "rust-toolchain.toml";
const README: &str = "README.md";

pub(super) fn toolchain_facts(tree: &Tree) -> Vec<Breach> {
    let toolchain = tree.file(TOOLCHAIN_FILE).map(|file| Manifest::read(&file.text));
    let channel = toolchain.as_ref().and_then(|toml| toml.string("toolchain.channel"));
    let Some(channel) = channel else {
        let advice = "name the compiler: [toolchain] channel = \"…\"";
        return vec![Breach::new(TOOLCHAIN_FILE, 1, advice)];
    };
    workspace_breach(tree, channel).into_iter().chain(readme_breach(tree, channel)).collect()
}

fn workspace_breach(tree: &Tree, channel: &str) -> Option<Breach> {
    let toml = tree.file("Cargo.toml").map(|file| Manifest::read(&file.text));
    let found = toml.as_ref().and_then(|toml| toml.value("workspace.package.rust-version"));
    let (version, line) = found.map_or((None, 1), |(version, line)| (version.as_str(), line));
    if version.is_some_and(|version| whole(version) == whole(channel)) {
        return None;
    }
    let advice = format!("rust-version is not {channel}, which {TOOLCHAIN_FILE} names: make them equal");
    Some(Breach::new("Cargo.toml", line, advice))
}

fn readme_breach(tree: &Tree, channel: &str) -> Option<Breach> {
    let advice = match tree.file(README) {
        None => format!("the file is missing: write it, and name Rust {channel} as what it needs"),
        Some(file) => {
            let is_digit_or_dot = |c: char| c.is_ascii_digit() || c == '.';
            let mut versions = file.text.split(|c| !is_digit_or_dot(c));
            // A version at the end of a sentence has the full stop behind it.
            if versions.any(|word| whole(word.trim_end_matches('.')) == whole(channel)) {
                return None;
            }
            format!("name the toolchain: Rust {channel}")
        }
    };
    Some(Breach::new(README, 1, advice))
}

/// A version with all three parts: 1.95 is 1.95.0.
fn whole(version: &str) -> String {
    let given = version.matches('.').count();
    format!("{version}{}", ".0".repeat(2_usize.saturating_sub(given)))
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    fn faults(channel: &str, rust_version: &str, readme: &str) -> Vec<String> {
        let toolchain = format!("[toolchain]\nchannel = \"{channel}\"\n");
        let workspace = format!("[workspace.package]\nrust-version = \"{rust_version}\"\n");
        let files = [(TOOLCHAIN_FILE, toolchain.as_str()), ("Cargo.toml", &workspace), (README, readme)];
        places(toolchain_facts, &files)
    }

    #[test]
    fn versions_that_differ_are_found() {
        assert_eq!(faults("1.95.0", "1.94", "Rust 1.95."), ["Cargo.toml:2"]);
        assert_eq!(faults("1.95.1", "1.95", "Rust 1.95.1"), ["Cargo.toml:2"]);
        assert_eq!(faults("1.95.0", "1.95", "Rust 1.9 or 11.95"), ["README.md:1"]);
    }

    #[test]
    fn missing_files_are_findings() {
        assert_eq!(places(toolchain_facts, &[]), ["rust-toolchain.toml:1"]);
        let toolchain = (TOOLCHAIN_FILE, "[toolchain]\nchannel = \"1.95.0\"\n");
        assert_eq!(places(toolchain_facts, &[toolchain]), ["Cargo.toml:1", "README.md:1"]);
    }

    #[test]
    fn versions_that_agree_are_left() {
        assert!(faults("1.95.0", "1.95", "Needs Rust 1.95.").is_empty());
        assert!(faults("1.95.0", "1.95.0", "Needs Rust 1.95.0, no other.").is_empty());
    }
}
