//! The configuration of a member.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use ipam_api::Name;
use ipam_api::limits::{LEASE_GRACE_MS_DEFAULT, MEMBERS_MAX};
use ipam_api::name::shown;
use ipam_api::place::{CLIENT_URL_FORM, PEER_ADDRESS_FORM, PeerAddress, is_client_url};
use openraft::Config;

use super::error::StartError;
use super::snapshots::SnapshotPolicy;
use crate::progress::Progress;
use crate::store::DiskLimits;
use crate::transport::PeerPort;

/// One of the members that found the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialMember {
    /// Its name; the same everywhere, and for ever.
    pub name: Name,
    /// Address for peers, `host:port` or `unix:/path`; may differ between members and between starts.
    pub peer_address: String,
}

/// Timing by which the members detect a failed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Interval of the leader's heartbeats.
    pub heartbeat_ms: u64,
    /// Minimum wait of a member before it becomes a candidate.
    pub election_min_ms: u64,
    /// Longest such wait; also the time without a majority after which a leader takes no more proposals.
    pub election_max_ms: u64,
    /// Log time, from the beginning of a leadership of this member, in which no lease and no prefix ends.
    pub lease_grace_ms: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            heartbeat_ms: 50,
            election_min_ms: 150,
            election_max_ms: 300,
            lease_grace_ms: LEASE_GRACE_MS_DEFAULT,
        }
    }
}

/// Configuration of a member.
#[derive(Debug)]
pub struct NodeConfig {
    /// Directory of its data; made if need be.
    pub data_dir: PathBuf,
    pub name: Name,
    /// Peer port, with the proof that it requires of peers.
    pub peer_port: PeerPort,
    /// Address that the member tells its peers; empty if the port is closed.
    pub peer_address: String,
    /// URL at which clients reach it, as it tells them.
    pub client_url: String,
    /// Founders of the cluster, this member included; the same names on each of them.
    pub initial_members: Vec<InitialMember>,
    /// True to wait for admission to a cluster instead of founding one. The initial members then only give
    /// addresses.
    pub joins: bool,
    /// Times by which failures are noticed.
    pub timing: Timing,
    /// Snapshot policy: triggers, write rate, and the log kept after them.
    pub snapshots: SnapshotPolicy,
    /// Limits below which its disk counts as full.
    pub disk: DiskLimits,
    /// Progress of its start.
    pub progress: Progress,
}

impl NodeConfig {
    /// Configuration with defaults for everything else.
    #[must_use]
    pub fn new(
        data_dir: PathBuf,
        name: Name,
        peer_port: PeerPort,
        peer_address: String,
        client_url: String,
        initial_members: Vec<InitialMember>,
    ) -> Self {
        Self {
            data_dir,
            name,
            peer_port,
            peer_address,
            client_url,
            initial_members,
            joins: false,
            timing: Timing::default(),
            snapshots: SnapshotPolicy::default(),
            disk: DiskLimits::default(),
            progress: Progress::default(),
        }
    }

    /// Refuses what can't work.
    pub(super) fn check(&self) -> Result<(), StartError> {
        let names: BTreeSet<&Name> = self.initial_members.iter().map(|member| &member.name).collect();
        if names.len() != self.initial_members.len() {
            return Err(StartError::Config("two initial members have the same name".to_owned()));
        }
        if !self.joins && !names.contains(&self.name) {
            return Err(StartError::Config(format!("{} is not one of the initial members", self.name)));
        }
        if names.len() > MEMBERS_MAX {
            return Err(StartError::Config(format!("a cluster has at most {MEMBERS_MAX} members")));
        }
        let others = self.initial_members.iter().filter(|member| member.name != self.name);
        let closed = matches!(self.peer_port, PeerPort::Closed);
        if closed && (self.joins || others.clone().next().is_some()) {
            return Err(StartError::Config("a member among others has a peer port".to_owned()));
        }
        let mine = (!closed).then_some(&self.peer_address);
        let addresses = others.map(|member| &member.peer_address).chain(mine);
        if let Some(wrong) = addresses.into_iter().find(|address| PeerAddress::parse(address).is_none()) {
            return Err(StartError::Config(format!(
                "{} is not a peer address: {PEER_ADDRESS_FORM}",
                shown(wrong)
            )));
        }
        if !is_client_url(&self.client_url) {
            let url = shown(&self.client_url);
            return Err(StartError::Config(format!("{url} is not a client URL: {CLIENT_URL_FORM}")));
        }
        Ok(())
    }

    /// Addresses of the other members, by name.
    pub(super) fn addresses(&self) -> BTreeMap<String, String> {
        let others = self.initial_members.iter().filter(|member| member.name != self.name);
        others.map(|member| (member.name.to_string(), member.peer_address.clone())).collect()
    }

    /// The same for openraft.
    pub(super) fn raft(&self) -> Result<Config, StartError> {
        let config = Config {
            cluster_name: "ipamd".to_owned(),
            heartbeat_interval: self.timing.heartbeat_ms,
            // The time for an answer to a vote, once openraft's timer is off. It must be below the lease.
            election_timeout_min: self.timing.election_max_ms.saturating_sub(1),
            // The lease of a leader at its voters.
            election_timeout_max: self.timing.election_max_ms,
            // `elections.rs` has the timer and the pre-vote.
            enable_elect: false,
            // Both are done in `snapshots.rs`, which counts bytes, too.
            snapshot_policy: openraft::SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: u64::MAX,
            // A learner that lags less than that counts as caught up.
            replication_lag_threshold: self.snapshots.every_entries.saturating_mul(2),
            install_snapshot_timeout: 60_000,
            max_payload_entries: 1024,
            // Raft's task sends the heartbeats and must not wait for commands to be applied: more jobs for
            // the thread that applies fit than a leader ever has entries on their way.
            state_machine_channel_size: Some(1 << 16),
            // A member that restarts is back in the quorum soon.
            backoff: "20ms 40ms 80ms ..400ms".to_owned(),
            allow_log_reversion: Some(false),
            // The restored leader of openraft trusts that its machine lost nothing; ours is rebuilt.
            enable_leader_restore: Some(false),
            ..Config::default()
        };
        config.validate().map_err(|error| StartError::Config(error.to_string()))
    }
}
