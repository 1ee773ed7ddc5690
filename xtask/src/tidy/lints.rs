//! Rules about lint tables: one list for the whole workspace, and no crate outside it.

use super::Breach;
use crate::manifest::Manifest;
use crate::tree::{File, Tree};

const ROOT_MANIFEST: &str = "Cargo.toml";

pub(super) fn unsafe_code(tree: &Tree) -> Vec<Breach> {
    let Some(file) = tree.file(ROOT_MANIFEST) else {
        return vec![Breach::new(ROOT_MANIFEST, 1, "the workspace manifest is missing")];
    };
    let toml = Manifest::read(&file.text);
    let lint = "workspace.lints.rust.unsafe_code";
    if [lint, &format!("{lint}.level")].iter().any(|level| toml.string(level) == Some("forbid")) {
        return Vec::new();
    }
    let line = toml.value(lint).map_or(1, |(_, line)| line);
    vec![Breach::new(&file.path, line, "write unsafe_code = \"forbid\" in [workspace.lints.rust]")]
}

pub(super) fn workspace_lints(tree: &Tree) -> Vec<Breach> {
    let takes_lints = |file: &File| {
        let toml = Manifest::read(&file.text);
        toml.value("lints.workspace").and_then(|(takes, _)| takes.as_bool()) == Some(true)
    };
    let advice = "write [lints] workspace = true";
    member_manifests(tree)
        .into_iter()
        .filter(|file| !takes_lints(file))
        .map(|file| Breach::new(&file.path, 1, advice))
        .collect()
}

/// The manifests of the workspace's members. A crate outside the workspace cannot take its lints.
pub(super) fn member_manifests(tree: &Tree) -> Vec<&File> {
    let Some(root) = tree.file(ROOT_MANIFEST) else {
        return Vec::new();
    };
    let toml = Manifest::read(&root.text);
    let members = toml.value("workspace.members").and_then(|(members, _)| members.as_array());
    let members: Vec<&str> = members.into_iter().flatten().filter_map(|member| member.get_ref().as_str()).collect();
    let is_member = |folder: &str| {
        members.iter().any(|member| match member.strip_suffix("/*") {
            Some(parent) => folder.rsplit_once('/').is_some_and(|(above, _)| above == parent),
            None => *member == folder,
        })
    };
    tree.files().filter(|file| file.path.strip_suffix("/Cargo.toml").is_some_and(is_member)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn unsafe_code_must_be_forbidden() {
        for (bad, line) in [
            ("[workspace.lints.rust]\nunsafe_code = \"deny\"\n", 2),
            ("[lints.rust]\nunsafe_code = \"forbid\"\n", 1),
            ("", 1),
        ] {
            assert_eq!(places(unsafe_code, &[("Cargo.toml", bad)]), [format!("Cargo.toml:{line}")]);
        }
        for good in [
            "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n",
            "[workspace.lints.rust]\nunsafe_code = { level = \"forbid\", priority = 1 }\n",
        ] {
            assert!(places(unsafe_code, &[("Cargo.toml", good)]).is_empty(), "{good}");
        }
    }

    #[test]
    fn members_must_take_the_lints() {
        let root = ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\", \"xtask\"]\n");
        let good = "[lints]\nworkspace = true\n";
        let files = [
            root,
            ("crates/a/Cargo.toml", good),
            ("crates/b/Cargo.toml", "[lints.rust]\nx = \"warn\"\n"),
            ("fuzz/Cargo.toml", ""),
            ("xtask/Cargo.toml", "[lints]\nworkspace = false\n"),
        ];
        assert_eq!(places(workspace_lints, &files), ["crates/b/Cargo.toml:1", "xtask/Cargo.toml:1"]);
        assert!(places(workspace_lints, &[root, ("xtask/Cargo.toml", good)]).is_empty());
    }
}
