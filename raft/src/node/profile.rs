//! Profile of the member: its configuration at the start, and the identity of its directory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use super::config::Timing;
use super::error::StartError;
use super::running::Running;
use crate::store::Identity;
use crate::sync::held;
use crate::transport::{Hello, PeerProof, Standing};
use crate::types::Member;

/// Configuration and identity of a member.
pub(super) struct Profile {
    pub(super) dir: PathBuf,
    pub(super) peer_address: String,
    pub(super) client_url: String,
    pub(super) timing: Timing,
    /// All initial members, sorted.
    pub(super) initial_members: Vec<String>,
    /// Id of a restored state that waits for a cluster to be founded with it.
    pub(super) restored: Option<String>,
    /// Peer addresses of the other initial members, by name.
    pub(super) addresses: BTreeMap<String, String>,
    /// Proof of identity that peers exchange.
    pub(super) peer_proof: PeerProof,
    pub(super) identity: Mutex<Identity>,
}

impl Profile {
    pub(super) fn identity(&self) -> Identity {
        held(&self.identity).clone()
    }

    pub(super) fn set_identity(&self, identity: Identity) {
        *held(&self.identity) = identity;
    }

    /// This member as the others know it.
    pub(super) fn member(&self) -> Member {
        let Identity { name, disk_id, .. } = self.identity();
        Member { name, disk_id, peer_address: self.peer_address.clone(), client_url: self.client_url.clone() }
    }

    /// Returns the response to a hello request: name and standing.
    pub(super) fn hello(&self, running: Option<&Running>) -> Hello {
        let identity = self.identity();
        let standing = match (identity.cluster_id, identity.member_id) {
            (Some(cluster_id), _) if identity.founding => Standing::Founding { cluster_id },
            (Some(cluster_id), Some(member_id)) => Standing::Member {
                cluster_id,
                member_id,
                knows: running.map(|running| running.known_peers()).unwrap_or_default(),
            },
            _ => match self.restored.clone() {
                Some(state) => Standing::Restored { initial_members: self.initial_members.clone(), state },
                None => Standing::Pristine { initial_members: self.initial_members.clone() },
            },
        };
        Hello { member: self.member(), standing }
    }

    /// Refuses to run without a peer port if there are other members, which couldn't reach this one.
    pub(super) async fn check_reachable(&self, running: &Running) -> Result<(), StartError> {
        if !self.peer_address.is_empty() {
            return Ok(());
        }
        // None means that raft has ended, which `Lifecycle::follow_raft` reports.
        let Some(members) = running.stored_members().await else { return Ok(()) };
        let (me, others): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|(id, _)| *id == running.me.member_id);
        // A member that joined and stopped before the first entries reached it knows no members, not even
        // itself.
        if !me.is_empty() && others.is_empty() {
            return Ok(());
        }
        let others: Vec<String> = others.into_iter().map(|(_, member)| member.name).collect();
        Err(StartError::Config(format!(
            "its cluster has other members ({}), and it has no peer port: set peer_listen as before, or \
             initial_members",
            others.join(", ")
        )))
    }
}
