//! Manifests and other TOML files, whose values know the line they stand in.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file as a tree of values. One that is no TOML has none: cargo says so louder.
pub(crate) struct Manifest<'a> {
    text: &'a str,
    root: DeValue<'a>,
}

/// One dependency of a manifest, by its real name.
pub(crate) struct Dependency<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: usize,
    /// Part of what is shipped; tests may take more.
    pub(crate) is_shipped: bool,
}

impl<'a> Manifest<'a> {
    pub(crate) fn read(text: &'a str) -> Self {
        Self { text, root: DeValue::Table(DeTable::parse(text).map(Spanned::into_inner).unwrap_or_default()) }
    }

    /// The value at a path such as `workspace.members`, with its line.
    pub(crate) fn value(&self, path: &str) -> Option<(&DeValue<'a>, usize)> {
        let mut found = (&self.root, 1);
        for key in path.split('.') {
            let value = found.0.get(key)?;
            found = (value.get_ref(), self.line_of(value.span().start));
        }
        Some(found)
    }

    pub(crate) fn string(&self, path: &str) -> Option<&str> {
        self.value(path)?.0.as_str()
    }

    /// All dependencies, for every target, in whatever form they are written.
    pub(crate) fn dependencies(&self) -> Vec<Dependency<'_>> {
        let targets = self.value("target").and_then(|(targets, _)| targets.as_table());
        let targets = targets.into_iter().flat_map(|targets| targets.values().map(Spanned::get_ref));
        let mut found = Vec::new();
        for place in [&self.root].into_iter().chain(targets) {
            for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
                let table = place.get(section).and_then(|table| table.get_ref().as_table());
                for (key, value) in table.into_iter().flatten() {
                    let renamed = value.get_ref().get("package").and_then(|package| package.get_ref().as_str());
                    let name = renamed.unwrap_or(key.get_ref());
                    let line = self.line_of(key.span().start);
                    found.push(Dependency { name, line, is_shipped: section != "dev-dependencies" });
                }
            }
        }
        found
    }

    fn line_of(&self, offset: usize) -> usize {
        1 + self.text[..offset].matches('\n').count()
    }
}
