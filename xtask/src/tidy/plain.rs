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
    ("is no queue", "is not a queue"),
    ("desk", "engine handle; of tests, harness"),
    ("some hand", "some job worker"),
    ("each hand", "each job worker"),
    ("worker-over", "hand-over"),
    ("debt", "pending write"),
    ("debts", "pending writes"),
    ("last word", "last message, frame or report"),
    ("last words", "last messages, frames or reports"),
    ("without a word", "silently"),
    ("knock", "dial"),
    ("knocks", "dials"),
    ("leave … away", "omit"),
    ("leaves … away", "omits"),
    ("nobody tells", "is not reported"),
    ("stays had", "stays marked as received"),
    ("to be had", "available"),
    ("told together", "listed together"),
    ("anyone who else", "others"),
    ("whomever", "name who: a caller, a worker, a reader"),
    ("that which", "name the thing"),
    ("nought", "zero"),
    ("keeper", "storage"),
    ("librarian", "archive worker"),
    ("archivist", "archive handle"),
    ("parcel", "accepted stream"),
    ("workplace", "router context"),
    ("boss", "submitter"),
    ("mischief", "misbehaviour"),
    ("crowd", "list; of peers, clients"),
    ("crowds", "lists"),
    ("teller", "reporter"),
    ("has fallen", "is lost"),
    ("the fallen", "the lost member"),
    ("the door", "the listener; of a message, admission"),
    ("all rooms agree", "all invariants hold"),
    ("this room", "this module"),
    ("no longer had", "no longer marked as received"),
    ("has had its time", "has reached its time limit"),
];

/// Between the two parts of a phrase with a gap, at most.
const GAP_BYTES_MAX: usize = 30;

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
                if has_phrase(&line, word) {
                    breaches.push(Breach::new(&file.path, number, format!("\"{word}\": write \"{instead}\"")));
                }
            }
        }
    }
    breaches
}

/// A doc comment that begins so names no thing: "What a worker gets" is "Deliveries of a worker".
const NAMELESS: [&str; 4] = ["What", "Who", "Whom", "Whose"];

/// Sources of libraries and programs. Comments of tests say what they prove, as sentences.
pub(super) fn comment_subject(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (file, source) in tree.sources().filter(|(file, _)| may_be_searched(file) && file.path.contains("/src/")) {
        let mut goes_on = false;
        for (number, line) in source.numbered() {
            let doc = line.outer_doc().or_else(|| line.inner_doc());
            let first =
                doc.filter(|_| !goes_on).and_then(|doc| doc.trim_start().split(|c: char| !c.is_alphanumeric()).next());
            goes_on = doc.is_some();
            if let Some(word) = first.filter(|word| NAMELESS.contains(word)) {
                let advice = format!("a doc comment that begins with \"{word}\": begin with the thing, or with a verb");
                breaches.push(Breach::new(&file.path, number, advice));
            }
        }
    }
    breaches
}

/// Whether a line has the words of a phrase. ` … ` in the phrase stands for a few other words.
fn has_phrase(line: &str, phrase: &str) -> bool {
    let Some((first, second)) = phrase.split_once(" … ") else {
        return find_words(line, phrase).next().is_some();
    };
    find_words(line, first).any(|at| {
        let after = at + first.len();
        find_words(line, second).any(|at| (after..=after + GAP_BYTES_MAX).contains(&at))
    })
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
        for bad in ["/// The keeper of records.\n", "// The door is open.\n", "// A task has had its time.\n"] {
            assert_eq!(places(plain_words, &[("crates/broker/src/a.rs", bad)]), ["crates/broker/src/a.rs:1"], "{bad}");
        }
        assert_eq!(places(plain_words, &[("docs/a.md", "Good.\n\nFor whoever reads.\n")]), ["docs/a.md:3"]);
        assert_eq!(places(plain_words, &[("docs/a.md", "Leave --fail-fast away.\n")]), ["docs/a.md:1"]);
    }

    #[test]
    fn doc_comments_begin_with_their_subject() {
        let path = "crates/turno/src/a.rs";
        for bad in ["/// What it does.\nfn f() {}\n", "//! Who gets it.\n", "    /// Whose.\n    a: u32,\n"] {
            assert_eq!(places(comment_subject, &[(path, bad)]), [format!("{path}:1")], "{bad}");
        }
        let good = "/// Says who gets it, and\n/// What follows.\n// What a surprise.\n/// Whatever comes.\n";
        assert!(places(comment_subject, &[(path, good)]).is_empty());
        assert!(places(comment_subject, &[("crates/turno/tests/a.rs", "/// What is sent is kept.\n")]).is_empty());
    }

    #[test]
    fn other_words_are_left() {
        let good = "// It amends the rearrangement of a screw.\nfn f() {}\n";
        assert!(places(plain_words, &[("crates/turno/src/a.rs", good)]).is_empty());
        assert!(
            places(plain_words, &[("docs/a.md", "Leave. Nothing of it is ever put or taken far away.\n")]).is_empty()
        );
        assert!(places(plain_words, &[("docs/a.md", "By hand; a worker hands it over, word by word.\n")]).is_empty());
        assert!(places(plain_words, &[(QUOTES_OTHERS, "The rear.\n")]).is_empty());
    }
}
