//! `[cluster]`: how a new member finds the cluster that takes it in, and where the others reach it.

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

/// What the environment says of it.
#[derive(Debug, Default)]
pub(super) struct EnvironmentCluster {
    peer_address: Option<String>,
    join: Option<String>,
    join_token_file: Option<PathBuf>,
    join_ca: Option<PathBuf>,
}

impl EnvironmentCluster {
    /// Takes a setting; whether it is one of these.
    pub(super) fn take(&mut self, setting: &str, value: &str) -> bool {
        match setting {
            "PEER_ADDRESS" => self.peer_address = Some(value.to_owned()),
            "JOIN" => self.join = Some(value.to_owned()),
            "JOIN_TOKEN_FILE" => self.join_token_file = Some(value.into()),
            "JOIN_CA" => self.join_ca = Some(value.into()),
            _ => return false,
        }
        true
    }
}

/// Whom to ask to be taken in, where the data directory belongs to no cluster yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinConfig {
    /// Members of the cluster, where they answer clients.
    pub servers: Vec<String>,
    /// The file with the join token.
    pub token_file: Option<PathBuf>,
    /// The CAs by which these servers are believed.
    pub ca_file: Option<PathBuf>,
}

/// Complete and checked: where peers reach this member, if that was said, and whom it asks to join.
pub(super) fn merge(
    environment: EnvironmentCluster,
    file: FileCluster,
    peer_ca: Option<PathBuf>,
) -> Result<(Option<String>, Option<JoinConfig>), ConfigError> {
    let peer_address = environment.peer_address.or(file.peer_address);
    if let Some(address) = &peer_address
        && PeerAddress::parse(address).is_none()
    {
        let why = format!("{} is no peer address; {PEER_ADDRESS_FORM}", shown(address));
        return Err(wrong("cluster.peer_address", &why));
    }
    let servers = match environment.join {
        Some(all) => all.split(',').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect(),
        None => file.join,
    };
    for server in &servers {
        if !server.starts_with("http://") && !server.starts_with("https://") {
            let why = format!("{} must begin with https:// or http://", shown(server));
            return Err(wrong("cluster.join", &why));
        }
    }
    let token_file = environment.join_token_file.or(file.join_token_file);
    let ca_file = environment.join_ca.or(file.join_ca).or(peer_ca);
    let join = (!servers.is_empty()).then_some(JoinConfig { servers, token_file, ca_file });
    Ok((peer_address, join))
}
