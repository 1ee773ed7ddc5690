//! Any bytes as a configuration file.

use std::io::Write as _;
use std::path::PathBuf;

use turno_broker::config::{Config, Environment, Preset, RawValue, Setting, Value};

/// Loads the bytes as the file that the user named. What is refused has a place and a reason; what is taken can be
/// typed, shown, and read back as it is shown.
pub fn config_file(data: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(data).expect("a temporary file can be written");
    let world = Environment {
        data_dir: Some(PathBuf::from("share")),
        system_dir: PathBuf::from("no-such-directory"),
        host: "rb-1".to_owned(),
        memory: 8 << 30,
        ..Environment::default()
    };
    match Config::load(&world, Some(file.path()), &[]) {
        Ok(config) => {
            let _ = config.typed();
            for setting in config.settings() {
                is_read_back(setting);
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "what is refused has a reason");
            for problem in problems {
                assert!(problem.place.is_some() && !problem.typed, "{problem}");
            }
        }
    }
}

fn is_read_back(Setting { key, value, .. }: &Setting) {
    if matches!(value, Value::Secret(_)) || key.default == Preset::Nothing && *value == Value::None {
        // Not shown, or not there.
        return;
    }
    // An empty list is shown as nothing, and nothing is also the result of a typing error: it is not read.
    if *value != Value::List(Vec::new()) {
        assert_eq!(key.kind.read(&RawValue::Text(value.to_string())).as_ref(), Ok(value), "{} is read back", key.name);
    }
}
