//! The graph of brokers for graphviz.
//!
//! A broker's name may hold anything: inside quotes only the quote and the backslash mean something to graphviz, and what
//! would steer a terminal is escaped, as everywhere.

use std::collections::BTreeSet;

use turno_proto::model::link::view::BrokerNode;

use crate::cli::shown::{Page, escaped};

/// The graph, each link once.
pub(super) fn dot(brokers: &[BrokerNode]) -> Page {
    let mut page: Page = ["graph links {", "    node [shape=box];"].into_iter().collect();
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut links: BTreeSet<(&str, &str)> = BTreeSet::new();
    for broker in brokers {
        let style = if broker.hops == 0 { ", style=bold" } else { "" };
        page.line(&format!("    {} [label={}{style}];", quoted(&broker.broker), quoted(&broker.name)));
        ids.insert(&broker.broker);
        for other in &broker.neighbour_ids {
            let (one, other) = (broker.broker.as_str(), other.as_str());
            links.insert((one.min(other), one.max(other)));
        }
    }
    let unknown: BTreeSet<&str> = links.iter().flat_map(|(one, other)| [*one, *other]).collect();
    for id in unknown.difference(&ids) {
        page.line(&format!("    {} [style=dashed];", quoted(id)));
    }
    for (one, other) in links {
        page.line(&format!("    {} -- {};", quoted(one), quoted(other)));
    }
    page.line("}");
    page
}

/// A quoted string of the DOT language that shows exactly this text in one line.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text).replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(broker: &str, name: &str, hops: u64, neighbours: &[&str]) -> BrokerNode {
        let neighbour_ids = neighbours.iter().map(ToString::to_string).collect();
        BrokerNode { broker: broker.to_owned(), name: name.to_owned(), hops, neighbour_ids, ..BrokerNode::default() }
    }

    /// A chain of three, of which the last has a link to somebody who is out of reach.
    #[test]
    fn each_broker_and_each_link_once() {
        let nodes =
            [node("b1", "one", 0, &["b2"]), node("b3", "three", 2, &["b2", "b9"]), node("b2", "two", 1, &["b1", "b3"])];
        let expected = "graph links {\n    node [shape=box];\n    \"b1\" [label=\"one\", style=bold];\n    \
                        \"b3\" [label=\"three\"];\n    \"b2\" [label=\"two\"];\n    \"b9\" [style=dashed];\n    \
                        \"b1\" -- \"b2\";\n    \"b2\" -- \"b3\";\n    \"b3\" -- \"b9\";\n}\n";
        assert_eq!(dot(&nodes), expected);
    }

    /// A stranger's name ends neither its quotes nor its line, and is no escape of graphviz (`\N`, `\l`).
    #[test]
    fn names_are_only_names() {
        let table = [
            ("plain name", r#""plain name""#),
            (r#"a"]; "x" -- "y"#, r#""a\"]; \"x\" -- \"y""#),
            (r"\N\l", r#""\\N\\l""#),
            (r"ends with \", r#""ends with \\""#),
            (r#"\""#, r#""\\\"""#),
            ("two\nlines\x1b[2J", r#""two\\nlines\\x1b[2J""#),
            ("", r#""""#),
        ];
        for (name, expected) in table {
            assert_eq!(quoted(name), expected);
        }
    }
}
