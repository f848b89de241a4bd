//! `[cluster]`: servers that admit a new member, and the address at which other members reach it.

use std::path::PathBuf;

use ipam_api::name::shown;
use ipam_api::place::{PEER_ADDRESS_FORM, PeerAddress};
use serde::{Deserialize, Serialize};

use super::error::{ConfigError, wrong};

/// The section of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileCluster {
    peer_address: Option<String>,
    #[serde(default)]
    join: Vec<String>,
    join_token_file: Option<PathBuf>,
    join_ca: Option<PathBuf>,
}

/// Servers that admit a new member, for a data directory that belongs to no cluster yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinConfig {
    /// URLs for clients of cluster members.
    pub servers: Vec<String>,
    /// The file with the join token.
    pub token_file: Option<PathBuf>,
    /// CAs that verify the servers' certificates.
    pub ca_file: Option<PathBuf>,
}

impl FileCluster {
    /// Checks the section. Returns the address for peers, if any, and the servers to join, if any.
    pub(super) fn complete(
        self,
        peer_ca: Option<PathBuf>,
    ) -> Result<(Option<String>, Option<JoinConfig>), ConfigError> {
        let Self { peer_address, join: servers, join_token_file: token_file, join_ca } = self;
        if let Some(address) = &peer_address
            && PeerAddress::parse(address).is_none()
        {
            let why = format!("{} is not a peer address; {PEER_ADDRESS_FORM}", shown(address));
            return Err(wrong("cluster.peer_address", &why));
        }
        for server in &servers {
            if !server.starts_with("http://") && !server.starts_with("https://") {
                let why = format!("{} must begin with https:// or http://", shown(server));
                return Err(wrong("cluster.join", &why));
            }
        }
        let ca_file = join_ca.or(peer_ca);
        let join = (!servers.is_empty()).then_some(JoinConfig { servers, token_file, ca_file });
        Ok((peer_address, join))
    }
}
