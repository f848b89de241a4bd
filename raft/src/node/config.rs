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
    /// Maximum of that wait; also the time without a majority after which a leader refuses proposals.
    pub election_max_ms: u64,
    /// Log time after the start of a leadership of this member in which no lease and no prefix expires.
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
    /// Data directory; created if it doesn't exist.
    pub data_dir: PathBuf,
    pub name: Name,
    /// Peer port, with the proof of identity that peers must give.
    pub peer_port: PeerPort,
    /// Peer address that the member advertises; empty if the port is closed.
    pub peer_address: String,
    /// Client URL that the member advertises.
    pub client_url: String,
    /// Founders of the cluster, this member included; the same names on each of them.
    pub initial_members: Vec<InitialMember>,
    /// True to wait for admission to a cluster instead of founding one. The initial members then only give
    /// addresses.
    pub joins: bool,
    /// Heartbeat and election timing.
    pub timing: Timing,
    /// Snapshot policy: triggers, write rate, and the log kept after a snapshot.
    pub snapshots: SnapshotPolicy,
    /// Limits below which the disk counts as full.
    pub disk: DiskLimits,
    /// Progress of the start.
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

    /// Checks member names, addresses and the client URL.
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

    /// Returns the configuration of openraft.
    pub(super) fn raft(&self) -> Result<Config, StartError> {
        let config = Config {
            cluster_name: "ipamd".to_owned(),
            heartbeat_interval: self.timing.heartbeat_ms,
            // Timeout of openraft's own vote requests, since its timer is off. It must be below the lease.
            election_timeout_min: self.timing.election_max_ms.saturating_sub(1),
            // Duration of a leader's lease at its voters.
            election_timeout_max: self.timing.election_max_ms,
            // `elections/` implements the timer and the pre-vote.
            enable_elect: false,
            // `snapshots.rs` triggers snapshots and purges the log, since it also counts bytes.
            snapshot_policy: openraft::SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: u64::MAX,
            // A learner that lags less than that counts as caught up.
            replication_lag_threshold: self.snapshots.every_entries.saturating_mul(2),
            install_snapshot_timeout: 60_000,
            max_payload_entries: 1024,
            // Raft's task sends the heartbeats and must not wait for the apply thread: the queue holds more
            // jobs than a leader ever has entries in flight.
            state_machine_channel_size: Some(1 << 16),
            // A short back-off, so that a restarted member soon counts for the quorum again.
            backoff: "20ms 40ms 80ms ..400ms".to_owned(),
            allow_log_reversion: Some(false),
            // A restored leader of openraft relies on a state machine that lost nothing; ours may be rebuilt
            // at a start.
            enable_leader_restore: Some(false),
            ..Config::default()
        };
        config.validate().map_err(|error| StartError::Config(error.to_string()))
    }
}
