//! `ipamctl`'s configuration file: the known clusters, and the current one.
//!
//! **Invariant:** the file contains paths and names, and never a secret.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use ipam_api::brand::CTL_CONFIG_FILE;
use ipam_api::{Name, ObjectName, strict};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::output::error::Failure;
use crate::output::file;
use crate::settings::environment::Environment;

/// The whole file.
#[skip_serializing_none]
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Context that is used if none is specified.
    pub(crate) current: Option<Name>,
    /// The contexts by their names.
    #[serde(default, rename = "context", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) contexts: BTreeMap<Name, Place>,
}

/// Servers and credentials of a context.
#[skip_serializing_none]
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) servers: Vec<String>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) cert_file: Option<PathBuf>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) network: Option<Name>,
    pub(crate) realm: Option<Name>,
    pub(crate) namespace: Option<ObjectName>,
    /// True if prompts mark the cluster as production.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) production: bool,
}

/// Path of the file; none without a home or configuration directory.
pub(crate) fn path(environment: &Environment) -> Option<PathBuf> {
    let folder = environment.variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = folder.or_else(|| environment.variable("HOME").map(|home| Path::new(home).join(".config")));
    folder.map(|folder| folder.join(CTL_CONFIG_FILE))
}

/// Reads the file. A missing file is an empty configuration.
pub(crate) fn read(path: &Path) -> Result<Config, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => {
            let help = "Make it readable, or set another directory with XDG_CONFIG_HOME.";
            return Err(Failure::file(path, "read", error, help));
        }
    };
    toml::from_str(&text).map_err(|error| {
        Failure::usage(
            format!("{} is invalid: {}", path.display(), error.to_string().trim_end()),
            "Correct the file, or write it with `ipamctl context set NAME …`.",
        )
    })
}

/// Writes the file atomically.
pub(crate) fn write(path: &Path, config: &Config) -> Result<(), Failure> {
    let text = toml::to_string(config)
        .map_err(|error| Failure::file(path, "written", error, "Nothing was changed."))?;
    let save = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        file::replace(path, &text, file::PRIVATE)
    };
    save().map_err(|error| Failure::file(path, "written", error, "Nothing was changed."))
}

impl Config {
    /// A context by its name.
    pub(crate) fn context(&self, name: &Name, path: &Path) -> Result<&Place, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            let meant = strict::nearest(name.as_str(), self.contexts.keys().map(Name::as_str));
            let meant = meant.map(|meant| format!("  Did you mean {meant}?")).unwrap_or_default();
            Failure::usage(
                format!("context {name} does not exist in {}.{meant}", path.display()),
                "List the contexts with `ipamctl context list`, or create one with `ipamctl context set`.",
            )
        })
    }
}

impl Place {
    /// Resolves files relative to the configuration's folder, and `~` to the home directory.
    pub(crate) fn located(&self, config: &Path, environment: &Environment) -> Self {
        let folder = config.parent().unwrap_or(Path::new(""));
        let locate = |file: &Option<PathBuf>| {
            file.as_ref().map(|file| match (file.strip_prefix("~"), environment.variable("HOME")) {
                (Ok(below), Some(home)) => Path::new(home).join(below),
                _ => folder.join(file),
            })
        };
        Self {
            ca_file: locate(&self.ca_file),
            token_file: locate(&self.token_file),
            cert_file: locate(&self.cert_file),
            key_file: locate(&self.key_file),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_configuration_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/config.toml");
        assert_eq!(read(&path).unwrap(), Config::default());
        let place = Place {
            servers: vec!["https://n1:7440".to_owned()],
            token_file: Some("~/token".into()),
            ca_file: Some("ca.pem".into()),
            production: true,
            ..Place::default()
        };
        let name: Name = "prod".parse().unwrap();
        let config =
            Config { current: Some(name.clone()), contexts: BTreeMap::from([(name.clone(), place)]) };
        write(&path, &config).unwrap();
        assert_eq!(read(&path).unwrap(), config);
        let environment = Environment::of([("HOME", "/home/me")]);
        let located = config.context(&name, &path).unwrap().located(&path, &environment);
        assert_eq!(located.token_file.unwrap(), Path::new("/home/me/token"));
        assert_eq!(located.ca_file.unwrap(), folder.path().join("below/ca.pem"));
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn an_unknown_field_is_said_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "[context.prod]\nserver = \"http://n1\"\n").unwrap();
        let said = read(&path).unwrap_err().text(false).unwrap();
        assert!(said.contains("config.toml") && said.contains("line 2") && said.contains("server"), "{said}");
    }

    #[test]
    fn the_file_is_where_xdg_says() {
        let of = |variables: &[(&str, &str)]| path(&Environment::of(variables.iter().copied()));
        assert_eq!(of(&[("HOME", "/h")]).unwrap(), Path::new("/h/.config/ipamctl/config.toml"));
        let both = [("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")];
        assert_eq!(of(&both).unwrap(), Path::new("/x/ipamctl/config.toml"));
        assert_eq!(of(&[]), None);
    }
}
