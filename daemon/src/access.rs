//! What a member lets in by itself, without a token.

use std::collections::BTreeMap;

use ipam_api::access::Role;
use ipam_api::name::Name;

/// Whom a member knows by the connection alone.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Whether whoever asks without saying who may do everything: only on loopback, or when somebody has
    /// said that the network is trusted.
    pub open: bool,
    /// Users of the unix socket who may do everything, beside root and the daemon's own.
    pub trusted_uids: Vec<u32>,
    /// Roles of clients by the names in their certificates.
    pub clients: BTreeMap<Name, Role>,
}

impl Access {
    /// Whether a user of the unix socket may do everything.
    #[must_use]
    pub fn is_trusted(&self, uid: u32) -> bool {
        uid == 0 || uid == rustix::process::getuid().as_raw() || self.trusted_uids.contains(&uid)
    }

    /// What a client may whose certificate has this name.
    #[must_use]
    pub fn role_of_client(&self, name: &Name) -> Option<Role> {
        self.clients.get(name).copied()
    }
}
