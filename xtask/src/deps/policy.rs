//! The lists of deny.toml that are ours to check, in cargo-deny's own form.

use anyhow::{Context as _, Result};
use toml::Table;

use super::packages::Package;

#[derive(Debug)]
pub(super) struct Policy {
    /// Licences.
    pub(super) allow: Vec<String>,
    /// Crates that may be there beside another version: name and the beginning of the version.
    skip: Vec<(String, String)>,
}

impl Policy {
    pub(super) fn read(text: &str) -> Result<Self> {
        let table: Table = text.parse().context("deny.toml is no TOML")?;
        let list = |section: &str, key: &str| {
            let value = table.get(section).and_then(|section| section.get(key));
            value.and_then(|value| value.as_array()).with_context(|| format!("deny.toml has no {section}.{key}"))
        };
        let allow = list("licenses", "allow")?.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
        let skip = list("bans", "skip")?
            .iter()
            .map(|entry| {
                let text = entry.get("crate").and_then(|name| name.as_str()).context("a skip without `crate`")?;
                let (name, version) = text.split_once('@').context("a skip without a version: write name@version")?;
                Ok((name.to_owned(), version.to_owned()))
            })
            .collect::<Result<_>>()?;
        Ok(Self { allow, skip })
    }

    pub(super) fn skips(&self, name: &str, version: &str) -> bool {
        self.skip.iter().any(|skip| is_meant(skip, name, version))
    }

    /// Skips that no dependency needs.
    pub(super) fn unused(&self, packages: &[Package]) -> Vec<String> {
        let is_used =
            |skip: &&(String, String)| packages.iter().any(|found| is_meant(skip, &found.name, &found.version));
        self.skip.iter().filter(|skip| !is_used(skip)).map(|(name, version)| format!("{name}@{version}")).collect()
    }
}

fn is_meant((name, begins): &(String, String), found: &str, version: &str) -> bool {
    name == found && version.strip_prefix(begins.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
