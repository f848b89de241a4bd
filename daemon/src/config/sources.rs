//! Layers of settings: file, then environment, then flags, each a table by the keys of the file.

use std::path::Path;

use ipam_api::brand::CONFIG_FILE;
use toml::{Table, Value};

use super::environment::Environment;
use super::error::ConfigError;
use super::file::File;
use super::flags::Flags;

/// The layers of a configuration; the later one wins.
pub(super) struct Sources {
    file: Table,
    environment: Table,
    flags: Table,
    /// Odd things in the environment.
    pub(super) warnings: Vec<String>,
}

impl Sources {
    pub(super) fn read(flags: &Flags) -> Result<Self, ConfigError> {
        let environment = Environment::read(std::env::vars());
        let file = match flags.config.as_deref().or(environment.config()) {
            Some(path) => File::read(path)?,
            None if Path::new(CONFIG_FILE).exists() => File::read(Path::new(CONFIG_FILE))?,
            None => Table::new(),
        };
        Self::new(flags, environment, file)
    }

    pub(super) fn new(flags: &Flags, environment: Environment, file: Table) -> Result<Self, ConfigError> {
        let (flags, warnings) = (flags.table()?, environment.warnings.clone());
        Ok(Self { file, environment: environment.table()?, flags, warnings })
    }

    /// Names the source of a setting: the last layer that has it.
    pub(super) fn source(&self, key: &str) -> &'static str {
        let layers = [(&self.flags, "flag"), (&self.environment, "environment"), (&self.file, "file")];
        let given = |table: &Table| match key.split_once('.') {
            Some((section, key)) => table.get(section).and_then(|section| section.get(key)).is_some(),
            None => table.contains_key(key),
        };
        layers.iter().find(|(table, _)| given(table)).map_or("default", |(_, source)| source)
    }

    /// Merges the layers. Founding members in flags have a form of their own and are read elsewhere.
    pub(super) fn merged(&self) -> Result<File, ConfigError> {
        let mut merged = self.file.clone();
        lay(&mut merged, self.environment.clone());
        lay(
            &mut merged,
            self.flags.clone().into_iter().filter(|(key, _)| key != "initial_members").collect(),
        );
        merged.try_into().map_err(|error| ConfigError(error.to_string()))
    }
}

/// Lays one table over another, section by section.
fn lay(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => lay(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}
