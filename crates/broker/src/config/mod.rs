//! Configuration from file, environment and flags, checked once and turned into one set of settings.
//!
//! [`KEYS`] is the only list of what can be set: parsing, `turno config show` and the documents follow it.
//! Nothing here starts a thread or opens a connection; facts of the machine come from [`Environment`].

mod file;
mod keys;
mod kind;
mod nearest;
mod origin;
mod ring;
mod settings;
mod value;
mod world;
mod zmq;

pub use keys::{KEYS, Key, Preset};
pub use kind::ValueKind;
pub use nearest::nearest;
pub use origin::Origin;
pub use ring::{Next, RingKeys, SidWanted, usual_port};
pub use settings::{AllSettings, LogFormat};
pub use value::{RawValue, Value};
pub use world::Environment;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::zmq::ZmqEndpoint;

/// The file name of the broker's socket inside its data directory.
pub const SOCKET_NAME: &str = "turno.sock";

/// Every key with its value and where the value comes from, in the order of [`KEYS`].
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    settings: Vec<Setting>,
    files: Vec<PathBuf>,
    endpoints: Vec<ZmqEndpoint>,
}

/// One key's value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key that is set.
    pub key: &'static Key,
    /// The value of the key.
    pub value: Value,
    /// The origin of the value.
    pub origin: Origin,
}

/// A value given by a flag of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag as typed, with its dashes.
    pub flag: &'static str,
    /// The key it sets.
    pub key: &'static str,
    /// The text as it was typed.
    pub raw: RawValue,
}

/// One thing wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File and line, variable or flag; `None` if the place is the whole.
    pub place: Option<String>,
    /// The mistake and the expected form.
    pub text: String,
    /// It was typed just now, so that it is wrong usage rather than wrong configuration.
    pub typed: bool,
    /// The file is there, and the system does not let it be read.
    pub unreadable: Option<io::ErrorKind>,
}

impl Problem {
    fn at(place: impl fmt::Display, text: impl Into<String>) -> Self {
        Self { place: Some(place.to_string()), text: text.into(), typed: false, unreadable: None }
    }

    fn unreadable(path: &Path, error: &io::Error) -> Self {
        let text = format!("cannot be read: {error}");
        Self { unreadable: Some(error.kind()), ..Self::at(path.display(), text) }
    }

    fn of(origin: &Origin, text: impl Into<String>) -> Self {
        Self { typed: matches!(origin, Origin::Flag(_)), ..Self::at(origin, text) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl Config {
    /// Reads everything: flag beats environment beats file beats default. `named` is the file the user asked
    /// for; it must exist. All problems are reported, not only the first.
    pub fn load(world: &Environment, named: Option<&Path>, flags: &[Flag]) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let files = file::find(world, named).unwrap_or_else(|problem| {
            problems.push(problem);
            Vec::new()
        });
        let mut settings: Vec<Setting> = Vec::with_capacity(KEYS.len());
        for key in KEYS {
            match world.default_of(key) {
                Ok(value) => settings.push(Setting { key, value, origin: Origin::Default }),
                // Kept as an empty value; a problem only if nobody sets the key (see below).
                Err(_) => settings.push(Setting { key, value: Value::None, origin: Origin::Default }),
            }
        }
        let mut config = Self { settings, files, endpoints: Vec::new() };
        for path in config.files.clone() {
            let (found, endpoints) = file::read(&path, &mut problems);
            for found in found {
                config.put(found.key, &found.raw, found.origin, &mut problems);
            }
            config.endpoints.extend(endpoints);
        }
        config.put_environment(world, &mut problems);
        for flag in flags {
            let origin = Origin::Flag(flag.flag);
            match keys::find(flag.key) {
                Some(key) => config.put(key, &flag.raw, origin, &mut problems),
                None => problems.push(Problem::of(&origin, format!("sets an unknown key {}", flag.key))),
            }
        }
        zmq::check(&config.endpoints, &mut problems);
        config.follow_sid(world);
        for setting in &config.settings {
            if setting.origin == Origin::Default
                && let Err(text) = world.default_of(setting.key)
            {
                problems.push(Problem { place: None, text, typed: false, unreadable: None });
            }
        }
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// Every key with its value.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The files that were read, in order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The values with their types.
    pub fn typed(&self) -> AllSettings {
        AllSettings::of(self)
    }

    fn value(&self, name: &str) -> &Value {
        let place = KEYS.iter().position(|key| key.name == name).expect("only names of KEYS are asked for");
        &self.settings[place].value
    }

    fn put(&mut self, key: &'static Key, raw: &RawValue, origin: Origin, problems: &mut Vec<Problem>) {
        match key.kind.read(raw) {
            Ok(value) => {
                if let Some(setting) = self.settings.iter_mut().find(|setting| setting.key.name == key.name) {
                    setting.value = value;
                    setting.origin = origin;
                }
            }
            Err(expected) => {
                // Not even a wrong secret is shown: it may be right but for its end.
                let text = match key.kind {
                    ValueKind::Secret => format!("{}: expected {expected}", key.name),
                    _ => format!("{} = {raw}: expected {expected}", key.name),
                };
                problems.push(Problem::of(&origin, text));
            }
        }
    }

    /// Variables that no key is named like are somebody else's (`TURNO_QUEUE` is set for the programs that
    /// `work` starts), unless they hold the double underscore that only keys have.
    fn put_environment(&mut self, world: &Environment, problems: &mut Vec<Problem>) {
        for (variable, text) in world.variables() {
            if text.is_empty() {
                continue;
            }
            let origin = Origin::Environment(variable.clone());
            match KEYS.iter().find(|key| key.variable() == *variable) {
                Some(key) => self.put(key, &RawValue::Text(text.clone()), origin, problems),
                None if variable.contains("__") => {
                    let names: Vec<String> = KEYS.iter().map(Key::variable).collect();
                    let near = nearest(variable, names.iter().map(String::as_str));
                    problems.push(Problem::at(origin, unknown("variable", variable, near)));
                }
                None => {}
            }
        }
    }
}

/// "unknown key listen.nativ; did you mean listen.native?"
fn unknown(what: &str, name: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("unknown {what} {name}; did you mean {near}?"),
        None => format!("unknown {what} {name}; `turno config show` lists every key"),
    }
}

#[cfg(test)]
mod tests;
