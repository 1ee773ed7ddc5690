//! Words and turns of phrase that the project does not use, with the ones to write instead.

use super::{Breach, may_be_searched};
use crate::tree::{File, Tree};
use crate::word::find_words;

/// In lower case: terms that the glossary's own have replaced, and phrases that are hard to read.
const REPLACED: &[(&str, &str)] = &[
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("mending", "fixing"),
    ("whoever", "name who: a caller, a worker, a reader"),
    ("parted by", "separated by"),
    ("belongs into", "belongs in"),
    ("for want of", "for lack of"),
    ("switchboard", "connections"),
    ("upkeep", "queue settings"),
    ("chore", "deferred work"),
    ("chores", "deferred work"),
    ("crew", "shared rota"),
    ("crews", "shared rotas"),
    ("twin", "paired connection"),
    ("twins", "paired connections"),
    ("rear", "draining connection"),
    ("is no number", "is not a number"),
];

/// Kinds of files that people read.
const READ_FILES: [&str; 4] = ["rs", "md", "toml", "py"];

/// Words of the five documents that the requirements are taken from.
const QUOTES_OTHERS: &str = "docs/reference/requirements.md";

pub(super) fn plain_words(tree: &Tree) -> Vec<Breach> {
    let read = |file: &&File| may_be_searched(file) && file.has_extension(&READ_FILES) && file.path != QUOTES_OTHERS;
    let mut breaches = Vec::new();
    for file in tree.files().filter(read) {
        for (number, line) in (1..).zip(file.text.lines()) {
            let line = line.to_lowercase();
            for (word, instead) in REPLACED {
                if find_words(&line, word).next().is_some() {
                    breaches.push(Breach::new(&file.path, number, format!("\"{word}\": write \"{instead}\"")));
                }
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn replaced_words_are_found_in_code_comments_texts_and_documents() {
        for bad in ["// Mends it.\n", "fn f() { switchboard.g(); }\n", "const A: &str = \"parted by dots\";\n"] {
            assert_eq!(places(plain_words, &[("crates/turno/src/a.rs", bad)]), ["crates/turno/src/a.rs:1"], "{bad}");
        }
        assert_eq!(places(plain_words, &[("docs/a.md", "Good.\n\nFor whoever reads.\n")]), ["docs/a.md:3"]);
    }

    #[test]
    fn other_words_are_left() {
        let good = "// It amends the rearrangement of a screw.\nfn f() {}\n";
        assert!(places(plain_words, &[("crates/turno/src/a.rs", good)]).is_empty());
        assert!(places(plain_words, &[(QUOTES_OTHERS, "The rear.\n")]).is_empty());
    }
}
