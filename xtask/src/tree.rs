//! The project's files as they lie in the working tree: tracked ones and new ones that are not
//! ignored. Read once, then everything works on this value, so that tests can make up a tree.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::source::Source;

/// All text files, by path from the root with `/` between the parts.
pub(crate) struct Tree {
    files: BTreeMap<String, File>,
}

/// One text file.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Present for Rust files only.
    pub(crate) source: Option<Source>,
}

impl Tree {
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let mut texts = Vec::new();
        for path in list(root)? {
            if let Some(text) = read_text(&root.join(&path))? {
                texts.push((path, text));
            }
        }
        Ok(Self::new(texts))
    }

    pub(crate) fn new(texts: Vec<(String, String)>) -> Self {
        let mut files: BTreeMap<String, File> = texts
            .into_iter()
            .map(|(path, text)| {
                let source = path.ends_with(".rs").then(|| Source::read(&text));
                let file = File { path, text, source };
                (file.path.clone(), file)
            })
            .collect();
        mark_test_files(&mut files);
        Self { files }
    }

    #[cfg(test)]
    pub(crate) fn of(texts: &[(&str, &str)]) -> Self {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self::new(texts.iter().map(owned).collect())
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values()
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// The Rust files with their sources.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files().filter_map(|file| Some((file, file.source.as_ref()?)))
    }
}

impl File {
    pub(crate) fn has_extension(&self, wanted: &[&str]) -> bool {
        let extension = Path::new(&self.path).extension();
        extension.is_some_and(|found| wanted.iter().any(|one| found == *one))
    }

    /// The last part of the path without its extension.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }
}

/// The project's root: the nearest folder above the current one that holds this crate.
pub(crate) fn find_root() -> Result<PathBuf> {
    let start = env::current_dir().context("the current folder cannot be read")?;
    let is_root = |folder: &Path| folder.join("xtask/Cargo.toml").is_file() && folder.join("Cargo.toml").is_file();
    match start.ancestors().find(|folder| is_root(folder)) {
        Some(root) => Ok(root.to_owned()),
        None => bail!("{} is not inside the project", start.display()),
    }
}

/// Paths of all files that belong to the project, from git if it answers. An exported archive has
/// no git, and git refuses a checkout of another owner: then the folder itself is walked.
pub(crate) fn list(root: &Path) -> Result<Vec<String>> {
    let answer = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard", "-z"])
        .current_dir(root)
        .stderr(Stdio::null())
        .output();
    match answer {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
            Ok(names.split_terminator('\0').map(str::to_owned).collect::<Vec<_>>())
        }
        _ => {
            eprintln!("git does not answer here: reading every file outside `target`");
            let mut paths = Vec::new();
            walk(root, "", &mut paths)?;
            Ok(paths)
        }
    }
}

/// Adds the paths of all files below a folder that belong to no build and no repository.
pub(crate) fn walk(folder: &Path, prefix: &str, paths: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().with_context(|| format!("reading {}", entry.path().display()))?;
        if kind.is_dir() && name != "target" && name != ".git" {
            walk(&entry.path(), &format!("{prefix}{name}/"), paths)?;
        } else if kind.is_file() {
            paths.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

/// The file's text, or nothing if it is binary, a folder, or deleted but still tracked.
fn read_text(path: &Path) -> Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) if bytes.contains(&0) => Ok(None),
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// Marks files that are compiled for tests only: integration tests, the e2e crate, and modules that
/// another file declares as `#[cfg(test)] mod name;`.
fn mark_test_files(files: &mut BTreeMap<String, File>) {
    let mut test_places = Vec::new();
    for file in files.values() {
        let Some(source) = &file.source else { continue };
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let home = match file.stem() {
            "lib" | "main" | "mod" => folder.to_owned(),
            stem => format!("{folder}/{stem}"),
        };
        for module in source.test_modules() {
            test_places.push(format!("{home}/{module}.rs"));
            test_places.push(format!("{home}/{module}/"));
        }
    }
    for file in files.values_mut() {
        let declared = test_places
            .iter()
            .any(|place| file.path == *place || (place.ends_with('/') && file.path.starts_with(place)));
        if (declared || is_test_path(&file.path))
            && let Some(source) = &mut file.source
        {
            source.mark_as_test();
        }
    }
}

fn is_test_path(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts.as_slice(), ["crates", "e2e", ..] | ["crates", _, "tests", ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_test(tree: &Tree, path: &str) -> bool {
        let source = tree.file(path).and_then(|file| file.source.as_ref());
        source.unwrap().lines().iter().all(|line| line.is_test)
    }

    #[test]
    fn test_files_are_marked() {
        let tree = Tree::of(&[
            ("crates/engine/src/lib.rs", "mod queue;\n"),
            ("crates/engine/src/queue.rs", "#[cfg(test)]\nmod order;\nfn f() {}\n"),
            ("crates/engine/src/queue/order.rs", "fn f() {}\n"),
            ("crates/engine/src/queue/order/deep.rs", "fn f() {}\n"),
            ("crates/engine/src/queue/other.rs", "fn f() {}\n"),
            ("crates/engine/tests/rota.rs", "fn f() {}\n"),
            ("crates/e2e/src/lib.rs", "fn f() {}\n"),
        ]);
        assert!(!is_test(&tree, "crates/engine/src/queue.rs"));
        assert!(is_test(&tree, "crates/engine/src/queue/order.rs"));
        assert!(is_test(&tree, "crates/engine/src/queue/order/deep.rs"));
        assert!(!is_test(&tree, "crates/engine/src/queue/other.rs"));
        assert!(is_test(&tree, "crates/engine/tests/rota.rs"));
        assert!(is_test(&tree, "crates/e2e/src/lib.rs"));
    }

    #[test]
    fn stem_and_extension() {
        let tree = Tree::of(&[("a/b.c.rs", ""), ("x/.ci/run", "")]);
        assert_eq!(tree.file("a/b.c.rs").unwrap().stem(), "b.c");
        assert!(tree.file("a/b.c.rs").unwrap().has_extension(&["md", "rs"]));
        assert_eq!(tree.file("x/.ci/run").unwrap().stem(), "run");
        assert!(!tree.file("x/.ci/run").unwrap().has_extension(&["rs"]));
    }
}
