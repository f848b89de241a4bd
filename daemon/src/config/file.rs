//! Format of the configuration file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Table;

use super::error::ConfigError;
use super::members::FileMember;
#[cfg(feature = "meridio")]
use super::meridio::FileMeridio;
use super::{access, cluster, cluster_api, disk, gc, journal, kubernetes, metrics, raft, tls};

/// The configuration file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Option<String>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) client_listen: Option<String>,
    pub(super) peer_listen: Option<String>,
    pub(super) client_socket: Option<PathBuf>,
    pub(super) client_url: Option<String>,
    #[serde(default)]
    pub(super) insecure: bool,
    pub(super) log: Option<String>,
    #[serde(default)]
    pub(super) initial_members: Vec<FileMember>,
    #[serde(default)]
    pub(super) cluster: cluster::FileCluster,
    #[serde(default)]
    pub(super) raft: raft::FileRaft,
    #[serde(default)]
    pub(super) tls: tls::FileTls,
    #[serde(default)]
    pub(super) peer_tls: tls::FilePeerTls,
    #[serde(default)]
    pub(super) access: access::FileAccess,
    #[serde(default)]
    pub(super) journal: journal::FileJournal,
    #[serde(default)]
    pub(super) gc: gc::FileGc,
    #[serde(default)]
    pub(super) kubernetes: Vec<kubernetes::FileKubernetes>,
    #[serde(default)]
    pub(super) cluster_api: Vec<cluster_api::FileClusterApi>,
    #[cfg(feature = "meridio")]
    pub(super) meridio: Option<FileMeridio>,
    #[serde(default)]
    pub(super) metrics: metrics::FileMetrics,
    #[serde(default)]
    pub(super) disk: disk::FileDisk,
}

impl File {
    /// Reads a file, and refuses unknown keys.
    pub(super) fn read(path: &Path) -> Result<Table, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError(format!("{} can't be read: {error}", path.display())))?;
        Self::parse(&text).map_err(|error| ConfigError(format!("{}: {error}", path.display())))
    }

    pub(super) fn parse(text: &str) -> Result<Table, toml::de::Error> {
        toml::from_str::<Self>(text)?;
        toml::from_str(text)
    }
}
