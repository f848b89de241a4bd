//! `[access]`: callers with rights, besides those with a token of the cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ipam_api::access::Role;
use ipam_api::name::Name;
use serde::{Deserialize, Serialize};

use super::error::{ConfigError, wrong};
use crate::access::AccessConfig;

/// The section of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileAccess {
    /// True if anonymous callers are refused. By default true beyond loopback, unless `insecure` is set.
    pub(super) require_tokens: Option<bool>,
    pub(super) tokens_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) trusted_uids: Vec<u32>,
    #[serde(default)]
    pub(super) clients: BTreeMap<Name, Role>,
}

impl FileAccess {
    /// Completes the section. `exposed` is true if clients beyond loopback can connect, `insecure` if the
    /// operator declared this network trusted.
    pub(super) fn complete(self, exposed: bool, insecure: bool) -> Result<AccessConfig, ConfigError> {
        let required = match self.require_tokens {
            None => exposed && !insecure,
            Some(false) if exposed && !insecure => {
                return Err(wrong(
                    "access.require_tokens",
                    "it can't be false where clients come from beyond loopback: any process that reaches the \
                     port could do everything. Leave it out, or say `insecure = true` for a network that you \
                     trust",
                ));
            }
            Some(required) => required,
        };
        if self.clients.values().any(|role| *role == Role::Node) {
            return Err(wrong("access.clients", "the role node comes from a node's certificate or token"));
        }
        Ok(AccessConfig {
            open: !required,
            trusted_uids: self.trusted_uids,
            clients: self.clients,
            tokens_file: self.tokens_file,
        })
    }
}
