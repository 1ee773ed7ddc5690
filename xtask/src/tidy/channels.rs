//! Rule about channels: every queue has a limit and a policy for when it is hit.

use super::{Breach, may_be_searched};
use crate::source::Source;
use crate::tree::Tree;
use crate::word::{find_word, find_words};

pub(super) fn unbounded_channel(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (file, source) in tree.sources().filter(|(file, _)| may_be_searched(file)) {
        let imported = imports_std_channel(source);
        for (number, line) in source.numbered() {
            if is_unbounded(&line.code, imported) {
                let advice = "an unbounded channel: use `mpsc::channel(limit)` of tokio or \
                              `sync_channel(limit)` of std, with a limit that has a name";
                breaches.push(Breach::new(&file.path, number, advice));
            }
        }
    }
    breaches
}

fn imports_std_channel(source: &Source) -> bool {
    let mut paths = source.imports().iter().map(|import| import.path.as_str());
    paths.any(|path| path == "std::sync::mpsc::channel")
}

fn is_unbounded(code: &str, imported: bool) -> bool {
    let is_bare = |at: usize| !code[..at].ends_with([':', '.']);
    let mut bare = find_words(code, "channel").filter(|&at| is_bare(at));
    find_word(code, "unbounded_channel").is_some()
        || find_words(code, "mpsc::channel").any(|at| takes_nothing(&code[at + "mpsc::".len()..]))
        || (imported && bare.any(|at| takes_nothing(&code[at..])))
}

/// Whether `channel` is called without an argument: tokio's bounded channel has the same name as
/// std's unbounded one, but takes a limit.
fn takes_nothing(call: &str) -> bool {
    let rest = call.trim_start_matches("channel");
    let arguments = match rest.strip_prefix("::<") {
        Some(generic) => generic.find(">(").map_or("", |end| &generic[end + 1..]),
        None => rest,
    };
    arguments.starts_with("()")
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn unbounded_channels_are_found() {
        for bad in [
            "let (a, b) = tokio::sync::mpsc::unbounded_channel();",
            "use tokio::sync::mpsc::unbounded_channel;",
            "let (a, b) = mpsc::channel();",
            "let (a, b) = std::sync::mpsc::channel::<Vec<u8>>();",
            "use std::sync::mpsc::{Receiver, channel}; fn f() { channel(); }",
        ] {
            assert_eq!(places(unbounded_channel, &[("a.rs", bad)]), ["a.rs:1"], "{bad}");
        }
    }

    #[test]
    fn bounded_channels_are_left() {
        for good in [
            "let (a, b) = mpsc::channel(LIMIT);",
            "let (a, b) = mpsc::channel::<u8>(LIMIT);",
            "let (a, b) = mpsc::sync_channel(8);",
            "let (a, b) = oneshot::channel();",
            "use std::sync::mpsc::channel; fn f() { oneshot::channel(); }",
            "// mpsc::channel()",
        ] {
            assert!(places(unbounded_channel, &[("a.rs", good)]).is_empty(), "{good}");
        }
    }
}
