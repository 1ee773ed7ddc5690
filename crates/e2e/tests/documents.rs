//! Everything in the documents that looks like a terminal is typed into one, and prints what they say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use turno_e2e::transcript::{Step, difference, steps_of};
use turno_e2e::{Background, Place, Run, tree, wait};

/// The ports the documents speak of. The test's brokers take free ones.
const DOCUMENTED: &str = "7460";
const DOCUMENTED_FOREMAN: &str = "5429";
const DOCUMENTED_ZMQ: &str = "7461";
const DOCUMENTED_LMQ: &str = "6714";
/// How lines begin that name the second and the third.
const FOREMAN_LINE: &str = "job workers";
const ZMQ_LINE: &str = "ZeroMQ";
const LMQ_LINE: &str = "LMQ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/e2e is two levels down").to_owned()
}

fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "crates/sim/README.md"]
            .iter()
            .map(|name| root().join(name))
            .collect();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("docs/ can be read") {
            let path = entry.expect("docs/ can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The terminals of one document: a place, and what runs in it beside the shell.
struct Session {
    place: Place,
    running: Vec<Background>,
    /// Those that print more when later commands have done their part, each with what the document says in the end.
    listening: Vec<(Background, Step)>,
    ports: Ports,
}

/// Ports of the brokers beside the first: what the document calls them, and what they really are.
#[derive(Clone, Debug, Default)]
struct Ports(Vec<(String, String)>);

impl Ports {
    /// What is typed, with real ports. A broker takes free ones, also for other members of its ring.
    fn typed(&self, command: &str) -> String {
        let command = self.0.iter().fold(command.to_owned(), |text, (documented, real)| {
            // A member is reached at 8000 plus its sid unless a port is named.
            let member = documented.parse().ok().and_then(|port: u16| port.checked_sub(8_000)).filter(|sid| *sid < 100);
            match member.map(|sid| format!(" {sid}@localhost")) {
                Some(member) => text.replace(&member, &format!("{member}:{real}")),
                None => text,
            }
        });
        let command = match command.contains("turno serve --sid ") {
            true => command + " --ring-port 0 --listen 127.0.0.1:0",
            false => command,
        };
        let command = self.0.iter().fold(command, |text, (documented, real)| {
            text.replace(&format!("127.0.0.1:{documented}"), &format!("127.0.0.1:{real}"))
        });
        match Self::listens_at(&command) {
            Some(port) => command.replace(&format!("--listen 127.0.0.1:{port}"), "--listen 127.0.0.1:0"),
            None => command,
        }
    }

    /// The port that a broker is told to listen on.
    fn listens_at(command: &str) -> Option<&str> {
        let (_, rest) =
            command.trim_start_matches("exec ").strip_prefix("turno serve")?.split_once("--listen 127.0.0.1:")?;
        rest.split(' ').next()
    }

    /// A broker that was told to take the documented port says which one it took.
    fn learn(&mut self, command: &str, printed: &[String]) {
        let native =
            printed.iter().find_map(|line| line.strip_prefix("native")?.trim().strip_prefix("turno://127.0.0.1:"));
        // "ring  sid 3 at 127.0.0.1:8003, joins at …"
        let ring =
            printed.iter().find_map(|line| line.strip_prefix("ring")?.trim().strip_prefix("sid ")?.split_once(" at "));
        let place = |text: &str| Some(text.strip_prefix("127.0.0.1:")?.split(',').next()?.to_owned());
        let member = ring.and_then(|(sid, address)| Some((sid.parse::<u16>().ok()?, place(address)?)));
        if let (Some((sid, ring)), Some(native)) = (member, native) {
            self.0.push(((8_000 + sid).to_string(), ring));
            self.0.push(((8_100 + sid).to_string(), native.to_owned()));
        } else if let (Some(documented), Some(real)) = (Self::listens_at(command), native) {
            self.0.push((documented.to_owned(), real.to_owned()));
        }
    }

    /// What was printed, with the documents' ports where the free ones stand. No broker takes one below 1024.
    fn printed(&self, printed: &str) -> String {
        let mut text = String::new();
        for line in printed.split_inclusive('\n') {
            let other = match line {
                _ if line.starts_with(FOREMAN_LINE) => DOCUMENTED_FOREMAN,
                _ if line.starts_with(ZMQ_LINE) => DOCUMENTED_ZMQ,
                _ if line.starts_with(LMQ_LINE) => DOCUMENTED_LMQ,
                _ => DOCUMENTED,
            };
            let mut parts = line.split("127.0.0.1:");
            text.push_str(parts.next().unwrap_or_default());
            for part in parts {
                let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
                let port = &part[..part.len() - rest.len()];
                let known = self.0.iter().find(|(_, real)| real == port).map(|(documented, _)| documented.as_str());
                let free = port.parse::<u16>().is_ok_and(|port| port >= 1_024);
                text.push_str("127.0.0.1:");
                text.push_str(known.unwrap_or(if free { other } else { port }));
                text.push_str(rest);
            }
        }
        text
    }
}

/// Says how what was printed so far differs from the document, once it does no more or the time is over.
fn difference_in_time(process: &Background, expected: &[String], ports: &Ports) -> Option<String> {
    let mut last = None;
    wait::find(wait::PATIENCE, || {
        last = difference(expected, &ports.printed(&process.stdout().join("\n")));
        last.is_none().then_some(())
    });
    last
}

impl Session {
    /// Types a command; says how what it prints differs from the document.
    fn run(&mut self, step: &Step) -> Option<String> {
        let command = &step.command;
        let goes_on = ["turno serve", "turno work ", "turno worker start", "turno worker deploy"];
        if goes_on.iter().any(|start| command.starts_with(start)) {
            return self.run_on(command, step);
        }
        if command.starts_with("turno sub ") {
            return self.listen(command, step);
        }
        let run = Run::finish(self.shell(command), b"", wait::PATIENCE);
        difference(&step.expected, &self.ports.printed(&run.text()))
    }

    /// A command that goes on: it is given time to print what the document says.
    fn run_on(&mut self, command: &str, step: &Step) -> Option<String> {
        let process = Background::start(self.shell(&format!("exec {command}")));
        let mut difference = None;
        // What it prints first may be the ports that it took.
        wait::find(wait::PATIENCE, || {
            let (mut ports, mut printed) = (self.ports.clone(), process.stdout());
            ports.learn(command, &printed);
            printed.retain(|line| !is_logged(line));
            difference = self::difference(&step.expected, &ports.printed(&printed.join("\n")));
            difference.is_none().then_some(())
        });
        self.ports.learn(command, &process.stdout());
        self.running.push(process);
        difference
    }

    /// A command that listens: its first line comes at once unless it is an event, the others with what is published below.
    fn listen(&mut self, command: &str, step: &Step) -> Option<String> {
        let process = Background::start(self.shell(&format!("exec {command}")));
        let begins = step.expected.first().filter(|line| line.starts_with("subscribed to"));
        let difference = begins.and_then(|line| difference_in_time(&process, std::slice::from_ref(line), &self.ports));
        self.listening.push((process, step.clone()));
        difference
    }

    /// What those that listen printed in the end.
    fn heard(&self) -> impl Iterator<Item = (&Step, String)> {
        self.listening.iter().filter_map(|(process, step)| {
            difference_in_time(process, &step.expected, &self.ports).map(|report| (step, report))
        })
    }

    /// One shell with both streams in one, as a terminal shows them.
    fn shell(&self, command: &str) -> Command {
        let mut shell = self.place.command("bash");
        let command = self.ports.typed(command);
        shell.args(["-c", &format!("exec 2>&1\n{command}")]).env("TURNO_LISTEN__NATIVE", "127.0.0.1:0");
        shell.stdin(Stdio::null());
        shell
    }
}

/// Whether a broker's log has the line: documents show what it prints for people.
fn is_logged(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_moment = words.next().is_some_and(|word| word.ends_with('Z') && word.contains('T') && word.len() > 20);
    is_moment && matches!(words.next(), Some("INFO" | "WARN" | "ERROR"))
}

/// Every terminal block of every document prints what the document says.
#[test]
fn terminal_blocks_print_what_they_say() {
    let mut failures = Vec::new();
    let mut typed = 0;
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a document can be read");
        let (running, listening) = (Vec::new(), Vec::new());
        let mut session = Session { place: Place::new(), running, listening, ports: Ports::default() };
        for step in steps_of(&text) {
            typed += 1;
            if let Some(report) = session.run(&step) {
                failures.push(format!("{}:{}: $ {}\n{report}", path.display(), step.line, step.command));
            }
        }
        for (step, report) in session.heard() {
            failures.push(format!("{}:{}: $ {}\n{report}", path.display(), step.line, step.command));
        }
    }
    assert!(typed >= 10, "the README alone has more commands than {typed}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The README begins with the two commands, and CI runs the second.
#[test]
fn the_two_commands_are_where_they_should_be() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md can be read");
    let block = readme.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block of commands");
    assert_eq!(block.lines().collect::<Vec<_>>(), ["cargo run --release -- serve", "cargo xtask test"]);
    let ci = std::fs::read_to_string(root().join(".ci/run")).expect(".ci/run can be read");
    assert!(ci.lines().any(|line| line.trim().trim_start_matches("exec ") == "cargo xtask test"), "{ci}");
}

/// Words of the documents that have another name here.
const OTHER_WORDS: &[&str] = &[
    "front end",
    "frontend",
    "front-end",
    "back end",
    "backend",
    "back-end",
    "free_slots",
    "worker table",
    "wait queue",
];

/// Proves S1.1: one vocabulary, written down in one place, and no other words beside it.
#[test]
fn one_word_for_one_thing() {
    let path = root().join("docs/reference/glossary.md");
    let glossary = std::fs::read_to_string(path).expect("docs/reference/glossary.md can be read");
    for word in [
        "topic",
        "event",
        "filter",
        "subscriber",
        "broker",
        "client",
        "worker",
        "slot",
        "queue",
        "message",
        "settle",
        "rota",
        "backlog",
        "handle",
    ] {
        assert!(glossary.contains(&format!("| {word} |")), "the glossary has no entry for {word}");
    }
    let place = Place::new();
    let help: String = tree::leaves(&place)
        .into_iter()
        .map(|leaf| place.run(leaf.into_iter().chain(["--help".to_owned()])).expect(0).text())
        .collect();
    // The ledger speaks of the five documents, and so of their words.
    let ours = documents().into_iter().filter(|path| !path.ends_with("docs/reference/requirements.md"));
    let texts = ours.map(|path| std::fs::read_to_string(path).expect("a document can be read")).chain([help]);
    for text in texts {
        let text = text.to_lowercase();
        for word in OTHER_WORDS {
            assert!(!text.contains(word), "another word for one of ours: {word}");
        }
    }
}

/// The lines of a page that are not in a block of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_block = false;
    text.lines().filter(move |line| {
        in_block ^= line.trim_start().starts_with("```");
        !in_block
    })
}

/// Anchors of a page, as code hosts and mdBook derive them from headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let anchor = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// Targets of the links on a page, those of reference definitions (`[name]: target`) too.
fn link_targets(text: &str) -> Vec<&str> {
    let targets = prose(text).flat_map(|line| {
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        inline.chain(definition.map(|(_, target)| target))
    });
    targets.collect()
}

/// A link inside the project leads to a file and, if it names one, to a heading of that file.
#[test]
fn links_lead_somewhere() {
    let mut dead = Vec::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a document can be read");
        let here = path.parent().expect("a document is in a folder");
        for target in link_targets(&text).into_iter().filter(|target| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
            let file = if file.is_empty() { path.clone() } else { here.join(file) };
            let has_anchor = |anchor: &str| {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                anchors(&text).contains(anchor)
            };
            if !file.exists() || anchor.is_some_and(|anchor| !has_anchor(anchor)) {
                dead.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links: {dead:#?}");
}

/// Pages that live elsewhere are in the book too, with the same links seen from another folder.
#[test]
fn the_book_has_the_pages_that_live_elsewhere() {
    for (page, book) in [("ARCHITECTURE.md", "architecture.md"), ("crates/sim/README.md", "simulator.md")] {
        let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a page can be read");
        let (text, included) = (read(page), read(&format!("docs/explanation/{book}")));
        assert!(included.starts_with(&format!("{{{{#include ../../{page}:book}}}}\n")), "{included}");
        let names = |text: &str| -> Vec<String> {
            let definitions = text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
            definitions.map(|(name, _)| name.to_owned()).collect()
        };
        assert_eq!(names(&text), names(&included), "the definitions of links, left in {page}");
    }
}

/// The table of contents of the book lists every page below docs/ once, and its links lead inside the book.
#[test]
fn the_book_lists_every_page_once() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("docs/SUMMARY.md can be read");
    let mut listed: Vec<PathBuf> = link_targets(&summary).into_iter().map(|target| docs.join(target)).collect();
    listed.sort();
    let is_page = |path: &PathBuf| path.starts_with(&docs) && !path.ends_with("SUMMARY.md");
    assert_eq!(listed, documents().into_iter().filter(is_page).collect::<Vec<_>>(), "docs/SUMMARY.md, left, and docs/");
    for page in &listed {
        let text = std::fs::read_to_string(page).expect("a page can be read");
        let here = page.parent().expect("a page is in a folder");
        for target in link_targets(&text).into_iter().filter(|target| !target.contains("://")) {
            let file = here.join(target.split('#').next().unwrap_or_default());
            let inside = file.canonicalize().is_ok_and(|file| file.starts_with(&docs));
            assert!(inside, "{}: {target} leads out of the book, where no reader of it can follow", page.display());
        }
    }
}
