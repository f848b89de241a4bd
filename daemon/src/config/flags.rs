//! Flags of `ipamd serve`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use toml::Table;

use super::error::ConfigError;
use super::tls;

/// Flags of `ipamd serve`.
#[derive(Debug, Clone, Default, Args, Serialize)]
#[command(
    after_help = "Examples:\n  ipamd serve --config /etc/ipamd/ipamd.toml\n  ipamd serve --name n1 --data-dir /var/lib/ipamd\n\nFlags override the environment (IPAMD_NAME, IPAMD_DATA_DIR, …), which overrides the file. Members may\nshare one file if their names come from flags, the environment or the host."
)]
pub struct Flags {
    /// Configuration file [default: /etc/ipamd/ipamd.toml, if it exists].
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub(super) config: Option<PathBuf>,
    /// Name of this member [default: the host name].
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Data directory.
    #[arg(long, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
    /// Listen address for clients.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) client_listen: Option<String>,
    /// Listen address for peers: ADDRESS:PORT, or unix:/PATH for members on one host.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) peer_listen: Option<String>,
    /// Additional Unix socket for clients.
    #[arg(long, value_name = "PATH")]
    pub(super) client_socket: Option<PathBuf>,
    /// Advertised URL of this member for clients.
    #[arg(long, value_name = "URL")]
    pub(super) client_url: Option<String>,
    /// Initial member, as NAME=ADDRESS; may be repeated, and includes this member.
    #[arg(long = "member", value_name = "NAME=ADDRESS")]
    #[serde(rename = "initial_members", skip_serializing_if = "Vec::is_empty")]
    pub(super) members: Vec<String>,
    /// Serve without TLS on non-loopback addresses, and trust every peer; for trusted networks only.
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) insecure: bool,
    /// Log filter, such as `info` or `ipam_raft=debug`.
    #[arg(long, value_name = "FILTER")]
    pub(super) log: Option<String>,
    #[command(flatten)]
    pub(super) tls: tls::FileTls,
    #[command(flatten)]
    pub(super) peer_tls: tls::FilePeerTls,
    /// Stop when the process that started this one ends, however it ends.
    #[arg(long, hide = true)]
    #[serde(skip)]
    pub(crate) stop_with_parent: bool,
    /// A deviation from the shipped program that a test needs; repeat for each.
    #[cfg(feature = "testing")]
    #[arg(long = "test-option", hide = true, value_name = "OPTION")]
    #[serde(skip)]
    pub(crate) test_options: Vec<ipam_machine::testing::TestOption>,
}

impl Flags {
    /// Flags with a configuration file.
    #[cfg(test)]
    pub(crate) fn of_file(file: &std::path::Path) -> Self {
        Self { config: Some(file.to_owned()), ..Self::default() }
    }

    /// Settings of the flags, by the keys of the file.
    pub(super) fn table(&self) -> Result<Table, ConfigError> {
        Table::try_from(self).map_err(|error| ConfigError(error.to_string()))
    }
}
