//! Layers of settings: file, then environment, then flags, each a table by the keys of the file.
//!
//! Variables of Meridio's server override the file. The data directory that they imply overrides nothing.

use std::ffi::OsString;
use std::path::Path;

use ipam_api::brand::CONFIG_FILE;
use toml::{Table, Value};

use super::environment::Environment;
use super::error::ConfigError;
use super::file::File;
use super::flags::Flags;
use super::meridio::MeridioEnvironment;

/// The layers of a configuration; the later one wins.
pub(super) struct Sources {
    /// Settings from Meridio's environment that every other layer overrides.
    meridio_defaults: Table,
    file: Table,
    meridio: Table,
    environment: Table,
    flags: Table,
    /// Warnings about the environment.
    pub(super) warnings: Vec<String>,
}

impl Sources {
    pub(super) fn read(flags: &Flags) -> Result<Self, ConfigError> {
        let text = |text: OsString| text.to_string_lossy().into_owned();
        let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        let variables: Vec<_> = variables.collect();
        let environment = Environment::read(variables.iter().cloned());
        let meridio = match cfg!(feature = "meridio") {
            true => MeridioEnvironment::read(variables.into_iter())?,
            false => MeridioEnvironment::default(),
        };
        let file = match flags.config.as_deref().or(environment.config()) {
            Some(path) => File::read(path)?,
            None if Path::new(CONFIG_FILE).exists() => File::read(Path::new(CONFIG_FILE))?,
            None => Table::new(),
        };
        Self::new(flags, environment, meridio, file)
    }

    pub(super) fn new(
        flags: &Flags,
        environment: Environment,
        meridio: MeridioEnvironment,
        file: Table,
    ) -> Result<Self, ConfigError> {
        let MeridioEnvironment { settings: meridio, defaults: meridio_defaults, warnings: more } = meridio;
        let (flags, mut warnings) = (flags.table()?, environment.warnings.clone());
        warnings.extend(more);
        Ok(Self { meridio_defaults, file, meridio, environment: environment.table()?, flags, warnings })
    }

    /// Names the source of a setting: the last layer that has it.
    pub(super) fn source(&self, key: &str) -> &'static str {
        let layers = [
            (&self.flags, "flag"),
            (&self.environment, "environment"),
            (&self.meridio, "environment"),
            (&self.file, "file"),
            (&self.meridio_defaults, "environment"),
        ];
        layers.iter().find(|(table, _)| has(table, key)).map_or("default", |(_, source)| source)
    }

    /// Merges the layers. Founding members in flags have a form of their own and are read elsewhere.
    pub(super) fn merged(&self) -> Result<File, ConfigError> {
        let mut merged = self.meridio_defaults.clone();
        lay(&mut merged, self.file.clone());
        lay(&mut merged, self.meridio.clone());
        lay(&mut merged, self.environment.clone());
        lay(
            &mut merged,
            self.flags.clone().into_iter().filter(|(key, _)| key != "initial_members").collect(),
        );
        merged.try_into().map_err(|error| ConfigError(error.to_string()))
    }
}

/// True if a table has a key, such as `tls.key`.
fn has(table: &Table, key: &str) -> bool {
    match key.split_once('.') {
        Some((section, key)) => {
            table.get(section).and_then(Value::as_table).is_some_and(|table| has(table, key))
        }
        None => table.contains_key(key),
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
