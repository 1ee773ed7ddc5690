//! The states of a node, as docs/how-to/ring.md draws them.

use turno_engine::ring::TRANSITIONS;

/// Proves S3.52: the document has every way from one state to another that there is, and no other.
#[test]
fn the_document_has_every_way() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/ring.md");
    let text = std::fs::read_to_string(path).expect("docs/how-to/ring.md can be read");
    let written: Vec<&str> = text.lines().filter(|line| line.contains(" -> ") && line.contains(": ")).collect();
    let ways = TRANSITIONS.iter().map(|(from, to, why)| format!("{} -> {}: {why}", from.name(), to.name()));
    assert_eq!(written, ways.collect::<Vec<_>>(), "docs/how-to/ring.md, left, and TRANSITIONS");
}
