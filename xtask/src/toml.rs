//! The little TOML that manifests need: sections, keys, values on one or several lines. No dates,
//! no strings of several lines, no values in quotes that hold brackets of their own meaning.

/// A file as a flat list of entries.
pub(crate) struct Toml {
    entries: Vec<Entry>,
}

/// `key = value` in a section.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// As written between the brackets; empty at the top.
    pub(crate) section: String,
    pub(crate) key: String,
    /// As written, with line breaks turned into spaces.
    pub(crate) value: String,
    pub(crate) line: usize,
}

impl Toml {
    pub(crate) fn read(text: &str) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        let mut section = String::new();
        let mut is_open = false;
        for (line, raw) in (1..).zip(text.lines()) {
            let content = without_comment(raw).trim();
            if is_open {
                if let Some(entry) = entries.last_mut() {
                    entry.value.push(' ');
                    entry.value.push_str(content);
                    is_open = depth(&entry.value) > 0;
                }
            } else if let Some(header) = content.strip_prefix('[') {
                section = header.trim_start_matches('[').trim_end_matches(']').trim().to_owned();
            } else if let Some((key, value)) = content.split_once('=') {
                let value = value.trim().to_owned();
                is_open = depth(&value) > 0;
                entries.push(Entry { section: section.clone(), key: key.trim().to_owned(), value, line });
            }
        }
        Self { entries }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry for a key, also when it is written dotted one level higher.
    pub(crate) fn entry(&self, section: &str, key: &str) -> Option<&Entry> {
        let full = format!("{section}.{key}");
        self.entries.iter().find(|entry| {
            let written = match entry.section.as_str() {
                "" => entry.key.clone(),
                section => format!("{section}.{}", entry.key),
            };
            written == full
        })
    }

    /// The string at a key, without its quotes.
    pub(crate) fn string(&self, section: &str, key: &str) -> Option<&str> {
        self.entry(section, key).and_then(|entry| entry.strings().next())
    }
}

impl Entry {
    /// Every quoted string of the value.
    pub(crate) fn strings(&self) -> impl Iterator<Item = &str> {
        self.value.split('"').skip(1).step_by(2)
    }
}

/// The line up to a `#` that does not stand in a string.
fn without_comment(line: &str) -> &str {
    let mut is_quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '#' if !is_quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

/// How many brackets are open at the end of a value.
fn depth(value: &str) -> usize {
    let outside = value.split('"').step_by(2);
    outside.flat_map(str::chars).fold(0, |depth, c| match c {
        '[' | '{' => depth + 1,
        ']' | '}' => depth.saturating_sub(1),
        _ => depth,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keys_and_comments() {
        let toml = Toml::read("# head\n[package]\nname = \"a#b\" # tail\n\n[lints]\nworkspace = true\n");
        assert_eq!(toml.string("package", "name"), Some("a#b"));
        let lints = toml.entry("lints", "workspace").unwrap();
        assert_eq!((lints.value.as_str(), lints.line), ("true", 6));
        assert!(toml.entry("package", "version").is_none());
    }

    #[test]
    fn values_of_several_lines() {
        let toml = Toml::read("[w]\nmembers = [\n  \"a\", # one\n  \"b[\",\n]\nnext = 1\n");
        let members = toml.entry("w", "members").unwrap();
        assert_eq!(members.strings().collect::<Vec<_>>(), ["a", "b["]);
        assert_eq!(toml.entry("w", "next").unwrap().line, 6);
    }

    #[test]
    fn dotted_keys_are_the_same_as_sections() {
        let toml = Toml::read("lints.workspace = true\n[a]\nb.c = \"d\"\n");
        assert!(toml.entry("lints", "workspace").is_some());
        assert_eq!(toml.string("a.b", "c"), Some("d"));
    }
}
