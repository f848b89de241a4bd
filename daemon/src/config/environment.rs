//! What the environment may say: a closed list of names.
//!
//! Kubernetes sets `IPAMD_PORT=tcp://…`, `IPAMD_SERVICE_HOST` and the like for a Service that is called `ipamd`.
//! They and all else that only begins like ours are ignored with a warning, never fatal; so none of ours ends like
//! them.

use std::path::PathBuf;

use ipam_api::brand::DAEMON_ENV_PREFIX;
use ipam_api::name::shown;

use super::error::{ConfigError, wrong};
use super::{cluster, raft, tls};

/// Every name, with the key of the file that it stands for.
pub const NAMES: &[(&str, &str)] = &[
    ("IPAMD_CONFIG", "the file itself"),
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

/// What it says.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) name: Option<String>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) client_listen: Option<String>,
    pub(super) peer_listen: Option<String>,
    pub(super) client_socket: Option<PathBuf>,
    pub(super) client_url: Option<String>,
    pub(super) insecure: Option<String>,
    pub(super) log: Option<String>,
    pub(super) config: Option<PathBuf>,
    pub(super) tls: tls::EnvironmentTls,
    pub(super) cluster: cluster::EnvironmentCluster,
    pub(super) require_tokens: Option<String>,
    pub(super) tokens_file: Option<PathBuf>,
    pub(super) raft: raft::EnvironmentRaft,
    pub(super) warnings: Vec<String>,
    /// The keys of the file that it says something for.
    pub(super) said: Vec<&'static str>,
}

impl Environment {
    pub(super) fn read(variables: impl Iterator<Item = (String, String)>) -> Self {
        let mut environment = Self::default();
        for (key, value) in variables {
            let Some(setting) = key.strip_prefix(DAEMON_ENV_PREFIX) else { continue };
            let Some((_, meant)) = NAMES.iter().find(|(name, _)| *name == key) else {
                environment
                    .warnings
                    .push(format!("{} in the environment is none of ours; ignored", shown(&key)));
                continue;
            };
            // An empty one says nothing: units and manifests can't always leave one out.
            if !value.is_empty() && environment.take(setting, value) {
                environment.said.push(meant);
            }
        }
        environment
    }

    fn take(&mut self, setting: &str, value: String) -> bool {
        match setting {
            "CONFIG" => self.config = Some(value.into()),
            "NAME" => self.name = Some(value),
            "DATA_DIR" => self.data_dir = Some(value.into()),
            "CLIENT_LISTEN" => self.client_listen = Some(value),
            "PEER_LISTEN" => self.peer_listen = Some(value),
            "CLIENT_SOCKET" => self.client_socket = Some(value.into()),
            "CLIENT_URL" => self.client_url = Some(value),
            "INSECURE" => self.insecure = Some(value),
            "LOG" => self.log = Some(value),
            "ACCESS_REQUIRE_TOKENS" => self.require_tokens = Some(value),
            "ACCESS_TOKENS_FILE" => self.tokens_file = Some(value.into()),
            setting => {
                return self.tls.take(setting, &value)
                    || self.cluster.take(setting, &value)
                    || self.raft.take(setting, &value);
            }
        }
        true
    }
}

/// Reads a switch; nothing where nothing is said.
pub(super) fn switch(name: &str, value: Option<&str>) -> Result<Option<bool>, ConfigError> {
    match value {
        None | Some("") => Ok(None),
        Some("true" | "1") => Ok(Some(true)),
        Some("false" | "0") => Ok(Some(false)),
        Some(other) => Err(wrong(name, &format!("{} is neither true nor false", shown(other)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_none_looks_like_a_link_to_a_service() {
        for (name, _) in NAMES {
            let read = Environment::read(std::iter::once(((*name).to_owned(), "x".to_owned())));
            assert_eq!((read.warnings.len(), read.said.len()), (0, 1), "{name}");
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
