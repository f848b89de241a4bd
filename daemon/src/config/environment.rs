//! Environment variables: a closed list of names.
//!
//! Kubernetes sets `IPAMD_PORT=tcp://…`, `IPAMD_SERVICE_HOST` and the like for a Service named `ipamd`. These
//! and other unknown names with the prefix are ignored with a warning. So no setting has a name that ends in
//! `_PORT` or `_SERVICE_HOST`.

use std::path::Path;

use ipam_api::brand::DAEMON_ENV_PREFIX;
use ipam_api::name::shown;
use toml::{Table, Value};

use super::error::{ConfigError, wrong};
use super::raft;

/// Every variable with the configuration key that it sets.
pub const NAMES: &[(&str, &str)] = &[
    ("IPAMD_CONFIG", OF_THE_FILE),
    ("IPAMD_NAME", "name"),
    ("IPAMD_DATA_DIR", "data_dir"),
    ("IPAMD_CLIENT_LISTEN", "client_listen"),
    ("IPAMD_PEER_LISTEN", "peer_listen"),
    ("IPAMD_CLIENT_SOCKET", "client_socket"),
    ("IPAMD_CLIENT_URL", "client_url"),
    ("IPAMD_INSECURE", "insecure"),
    ("IPAMD_LOG", "log"),
    ("IPAMD_TLS_CERTIFICATE", "tls.certificate"),
    ("IPAMD_TLS_KEY", "tls.key"),
    ("IPAMD_TLS_CLIENT_CA", "tls.client_ca"),
    ("IPAMD_PEER_TLS_CERTIFICATE", "peer_tls.certificate"),
    ("IPAMD_PEER_TLS_KEY", "peer_tls.key"),
    ("IPAMD_PEER_TLS_CA", "peer_tls.ca"),
    ("IPAMD_PEER_ADDRESS", "cluster.peer_address"),
    ("IPAMD_JOIN", "cluster.join"),
    ("IPAMD_JOIN_TOKEN_FILE", "cluster.join_token_file"),
    ("IPAMD_JOIN_CA", "cluster.join_ca"),
    ("IPAMD_ACCESS_REQUIRE_TOKENS", "access.require_tokens"),
    ("IPAMD_ACCESS_TOKENS_FILE", "access.tokens_file"),
    ("IPAMD_RAFT_SNAPSHOT_EVERY_ENTRIES", "raft.snapshot_every_entries"),
    ("IPAMD_RAFT_SNAPSHOT_EVERY_MIB", "raft.snapshot_every_mib"),
    ("IPAMD_RAFT_KEEP_ENTRIES_BEHIND_SNAPSHOT", "raft.keep_entries_behind_snapshot"),
    ("IPAMD_RAFT_KEEP_MIB_BEHIND_SNAPSHOT", "raft.keep_mib_behind_snapshot"),
    ("IPAMD_RAFT_SNAPSHOT_MIB_PER_SECOND", "raft.snapshot_mib_per_second"),
];

/// Pseudo-key in [`NAMES`] for the path of the configuration file, which the file itself can't set.
const OF_THE_FILE: &str = "path of the file";

/// Settings from environment variables.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// Variables, each with its configuration key and its value.
    pub(super) given: Vec<(&'static str, &'static str, String)>,
    pub(super) warnings: Vec<String>,
}

impl Environment {
    pub(super) fn read(variables: impl Iterator<Item = (String, String)>) -> Self {
        let mut environment = Self::default();
        for (key, value) in variables.filter(|(key, _)| key.starts_with(DAEMON_ENV_PREFIX)) {
            match NAMES.iter().find(|(name, _)| *name == key) {
                None => environment
                    .warnings
                    .push(format!("{} in the environment is not an ipamd setting; ignored", shown(&key))),
                // An empty variable counts as unset: units and manifests can't always leave one out.
                Some(_) if value.is_empty() => {}
                Some((name, key)) => environment.given.push((*name, *key, value)),
            }
        }
        environment
    }

    /// Returns the configuration file that the environment names.
    pub(super) fn config(&self) -> Option<&Path> {
        self.given.iter().find(|(_, key, _)| *key == OF_THE_FILE).map(|(_, _, path)| Path::new(path))
    }

    /// Returns the settings as a table by configuration key.
    pub(super) fn table(&self) -> Result<Table, ConfigError> {
        let mut table = Table::new();
        for (name, key, text) in self.given.iter().filter(|(_, key, _)| *key != OF_THE_FILE) {
            let value = match *key {
                "insecure" | "access.require_tokens" => Value::Boolean(switch(name, text)?),
                "cluster.join" => {
                    let all = text.split(',').map(str::trim).filter(|one| !one.is_empty());
                    Value::Array(all.map(Value::from).collect())
                }
                key if key.starts_with("raft.") => Value::Integer(number(key, text)?),
                _ => Value::from(text.as_str()),
            };
            match key.split_once('.') {
                None => table.insert((*key).to_owned(), value),
                Some((section, key)) => {
                    let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
                    section.as_table_mut().and_then(|section| section.insert(key.to_owned(), value))
                }
            };
        }
        Ok(table)
    }
}

/// Reads a boolean.
fn switch(name: &str, text: &str) -> Result<bool, ConfigError> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(wrong(name, &format!("{} is neither true nor false", shown(other)))),
    }
}

/// Reads a whole number. TOML integers end at `i64::MAX`, so larger numbers are clamped to it.
fn number(key: &str, text: &str) -> Result<i64, ConfigError> {
    let number: u64 = text.parse().map_err(|_| {
        let (text, example) = (shown(text), raft::default_of(key));
        wrong(key, &format!("{text} in the environment is not a whole number; write {example}, for example"))
    })?;
    Ok(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_none_looks_like_a_link_to_a_service() {
        for (name, _) in NAMES {
            let read = Environment::read(std::iter::once(((*name).to_owned(), "x".to_owned())));
            assert_eq!((read.warnings.len(), read.given.len()), (0, 1), "{name}");
            assert!(!name.ends_with("_PORT") && !name.ends_with("_SERVICE_HOST"), "{name}");
            assert_eq!(NAMES.iter().filter(|(other, _)| other == name).count(), 1, "{name}");
        }
    }

    #[test]
    fn links_to_services_are_ignored_and_said_to_be() {
        let links = ["IPAMD_PORT", "IPAMD_SERVICE_HOST", "IPAMD_SERVICE_PORT", "IPAMD_PORT_7440_TCP_ADDR"];
        let read =
            Environment::read(links.iter().map(|name| ((*name).to_owned(), "tcp://10.0.0.1".to_owned())));
        assert_eq!(read.warnings.len(), links.len());
    }
}
