//! The references in docs/ that are written from the program's own tables. `TURNO_BLESS=1` writes them anew.

mod limits;

use std::fmt::Write as _;
use std::path::Path;

use turno_broker::config::{KEYS, Preset};
use turno_proto::model::{Code, CodeText};

fn same_as_published(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("TURNO_BLESS").is_some() {
        std::fs::write(&path, text).expect("docs/ can be written");
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(published, text, "docs/reference/{name} is out of date: run the tests with TURNO_BLESS=1");
}

/// Every key with its variable, default and meaning.
#[test]
fn the_configuration_reference_is_true() {
    let mut text = String::from(
        "# Configuration\n\n\
         Every key a broker and the command line know, written from the program's own table. A value comes from the first of\n\
         these that names it: a flag, the environment, a file, the built-in default. `turno config show --origin` shows every\n\
         value with where it comes from; `turno config check FILE` names every mistake of a file with its line.\n\n\
         Files, in the order they are looked for: `--config FILE`, `$TURNO_CONFIG`, `$XDG_CONFIG_HOME/turno/turno.toml`,\n\
         `/etc/turno/turno.toml` with `/etc/turno/turno.d/*.toml` after it. A key with dots stands in a TOML table:\n\n\
         ```toml\n[limits]\nmessage = \"16MiB\"\nconnections = 10_000\n```\n\n\
         | key | takes | default | meaning |\n|---|---|---|---|\n",
    );
    for key in KEYS {
        let default = match key.default {
            Preset::Text(text) => format!("`{text}`"),
            Preset::Empty | Preset::Nothing => "none".to_owned(),
            Preset::HostName => "the machine's name".to_owned(),
            Preset::DataDirectory => "`turno` in the user's data directory".to_owned(),
            Preset::HalfOfMemory => "half of the memory".to_owned(),
        };
        let (name, variable, takes, doc) = (key.name, key.variable(), key.kind.expected(), key.doc);
        writeln!(text, "| `{name}`<br>`{variable}` | {takes} | {default} | {doc} |")
            .expect("a String takes everything");
    }
    same_as_published("configuration.md", &text);
}

/// Every code with its number, exit status, and what `turno explain` says.
#[test]
fn the_reference_of_codes_is_true() {
    let mut text = String::from(
        "# Codes\n\n\
         Every outcome that can go wrong has one code: on the wire, in the client, on the command line and in its JSON.\n\
         `turno explain CODE` shows the same in a terminal. Written from the program's own table.\n\n\
         | code | number | exit status | what | why | what to do |\n|---|---|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let CodeText { what, why, fix } = code.text();
        let (number, exit) = (code.number(), code.exit());
        writeln!(text, "| `{code}` | {number} | {exit} | {what} | {why} | {fix} |").expect("a String takes everything");
    }
    same_as_published("codes.md", &text);
}
