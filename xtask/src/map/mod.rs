//! Draws the generated parts of docs/reference/modules.md: the purpose of every module, and where a rule is.
//!
//! The page names what it wants between two comments; everything else on it is written by hand.
//!
//! - `<!-- modules of crates/engine/src -->`: a row for every file and folder there, from the first sentence of each module's
//!   head.
//! - `<!-- places -->`: a table whose second column names an item; the third, the file that defines it, is generated.

mod modules;
mod places;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::tree::Tree;

pub(crate) const MAP: &str = "docs/reference/modules.md";

const MODULES: &str = "<!-- modules of ";
const PLACES: &str = "<!-- places";
const END: &str = "<!-- end -->";

/// The page as it should be.
pub(crate) struct Drawn {
    pub(crate) text: String,
    /// Folders whose modules are on it.
    pub(crate) folders: Vec<String>,
    pub(crate) faults: Vec<Fault>,
}

/// A mistake that keeps the page from being drawn.
pub(crate) struct Fault {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) advice: String,
}

/// Tells whether the page is as it should be, or makes it so.
pub(crate) fn run(root: &Path, write: bool) -> Result<bool> {
    let tree = Tree::load(root)?;
    let page = tree.file(MAP).with_context(|| format!("{MAP} is missing"))?;
    let drawn = draw(&tree, &page.text);
    for fault in &drawn.faults {
        println!("{}:{}: {}", fault.path, fault.line, fault.advice);
    }
    let is_current = drawn.text == page.text;
    match (is_current, write) {
        (true, _) => println!("{MAP} is current"),
        (false, true) => {
            fs::write(root.join(MAP), &drawn.text).with_context(|| format!("writing {MAP}"))?;
            println!("{MAP} is written");
        }
        (false, false) => println!("{MAP} is not current: `cargo xtask map --write`"),
    }
    Ok(drawn.faults.is_empty() && (is_current || write))
}

/// The page with its generated parts anew.
pub(crate) fn draw(tree: &Tree, page: &str) -> Drawn {
    let mut drawn = Drawn { text: String::new(), folders: Vec::new(), faults: Vec::new() };
    let mut lines = (1..).zip(page.lines());
    while let Some((number, line)) = lines.next() {
        drawn.push(line);
        let folder = line.strip_prefix(MODULES).and_then(|rest| rest.split_whitespace().next());
        if folder.is_none() && !line.starts_with(PLACES) {
            continue;
        }
        if !lines.clone().any(|(_, line)| line == END) {
            drawn.fault(MAP, number, format!("this part has no `{END}`"));
            continue;
        }
        let old = lines.by_ref().take_while(|(_, line)| *line != END);
        if let Some(folder) = folder {
            old.for_each(drop);
            modules::draw(tree, folder, &mut drawn);
            drawn.folders.push(folder.to_owned());
        } else {
            old.for_each(|(number, row)| places::draw(tree, number, row, &mut drawn));
        }
        drawn.push(END);
    }
    drawn
}

impl Drawn {
    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn fault(&mut self, path: &str, line: usize, advice: impl Into<String>) {
        self.faults.push(Fault { path: path.to_owned(), line, advice: advice.into() });
    }
}
