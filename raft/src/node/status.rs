//! The status of a member and its cluster.

use openraft::async_runtime::watch::WatchReceiver;
use openraft::{Instant as _, ServerState};

use super::inner::Inner;
use super::running::Running;
use crate::durations::as_ms;
use crate::store::DiskSpace;
use crate::types::{Member, MemberInfo, Role};

/// Committed entries that a ready member may still have to apply.
const READY_UNAPPLIED_ENTRIES_MAX: u64 = 10_000;

/// View of one member on itself and its cluster at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Id of the cluster, once there is one.
    pub cluster_id: Option<String>,
    pub member_id: Option<u64>,
    pub name: String,
    pub role: Role,
    /// The Raft term.
    pub term: u64,
    /// The leader, if one is known.
    pub leader: Option<MemberInfo>,
    /// All members, by id.
    pub members: Vec<MemberInfo>,
    /// The last log entry that this member has applied.
    pub applied: Option<u64>,
    /// The last log entry in the newest snapshot.
    pub snapshot: Option<u64>,
    /// The last purged log entry, whose effect is only in the snapshot.
    pub purged: Option<u64>,
    /// True if this member belongs to a cluster.
    pub founded: bool,
    /// Event that a start waits for, as a phrase after "waiting for".
    pub waiting_for: Option<String>,
    pub disk: DiskSpace,
}

impl Inner {
    pub(super) fn status(&self) -> Status {
        let identity = self.profile.identity();
        let mut status = Status {
            founded: identity.cluster_id.is_some(),
            cluster_id: identity.cluster_id,
            member_id: identity.member_id,
            name: identity.name,
            role: Role::Pristine,
            term: 0,
            leader: None,
            members: Vec::new(),
            applied: self.state.applied().map(|applied| applied.index),
            snapshot: None,
            purged: None,
            waiting_for: self.lifecycle.waiting_for(),
            disk: self.gate.headroom.space(),
        };
        if let Some(running) = self.lifecycle.running() {
            self.describe(&running, &mut status);
        }
        status
    }

    fn describe(&self, running: &Running, status: &mut Status) {
        let metrics = running.raft.metrics();
        let metrics = metrics.borrow_watched();
        status.term = metrics.current_term;
        status.snapshot = metrics.snapshot.map(|last| last.index);
        status.purged = metrics.purged.map(|last| last.index);
        status.role = match metrics.state {
            ServerState::Leader => Role::Leader,
            ServerState::Candidate => Role::Candidate,
            ServerState::Follower => Role::Follower,
            ServerState::Learner | ServerState::Shutdown => Role::Learner,
        };
        let membership = metrics.membership_config.membership();
        let voters: Vec<u64> = membership.voter_ids().collect();
        let last = metrics.last_log_index.map_or(0, |last| last + 1);
        for (id, member) in membership.nodes() {
            let role = match () {
                () if metrics.current_leader == Some(*id) => Role::Leader,
                () if voters.contains(id) => Role::Follower,
                () => Role::Learner,
            };
            let matched = metrics.replication.as_ref().and_then(|replication| replication.get(id));
            let behind =
                matched.map(|matched| last.saturating_sub(matched.map_or(0, |matched| matched.index + 1)));
            let heard = metrics.heartbeat.as_ref().and_then(|heard| heard.get(id).copied().flatten());
            let knows = metrics.replication.is_some();
            let silent_ms = match role {
                Role::Leader if knows => Some(0),
                _ => heard.map(|heard| as_ms(heard.into_inner().elapsed())),
            };
            let patience_ms = 2 * self.profile.timing.election_max_ms;
            let answers = knows.then(|| silent_ms.is_some_and(|silent_ms| silent_ms <= patience_ms));
            let peer_address = match *id == running.me.member_id {
                true => self.profile.peer_address.clone(),
                false => running.peers.address(*id, member),
            };
            let mine = (*id == running.me.member_id).then(|| self.integrity.peer_report());
            let peer_report = mine.or_else(|| self.integrity.report_of(*id));
            status.members.push(MemberInfo {
                id: *id,
                name: member.name.clone(),
                role,
                peer_address,
                client_url: self.client_url(running, *id, member),
                behind,
                level: peer_report.as_ref().map(|peer_report| peer_report.level),
                version: peer_report.as_ref().map(|peer_report| peer_report.version.clone()),
                quarantined: peer_report.and_then(|peer_report| peer_report.quarantine),
                silent_ms,
                answers,
            });
        }
        status.leader = status.members.iter().find(|member| member.role == Role::Leader).cloned();
    }

    /// URL at which the leader answers clients, if one is known. Each response has it.
    pub(super) fn leader_client_url(&self) -> Option<String> {
        let running = self.lifecycle.running()?;
        let metrics = running.raft.metrics();
        let metrics = metrics.borrow_watched();
        let leader = metrics.current_leader?;
        let member = metrics.membership_config.membership().get_node(&leader)?;
        Some(self.client_url(&running, leader, member))
    }

    /// URL of a member for clients; its own report is newer than the log.
    fn client_url(&self, running: &Running, id: u64, member: &Member) -> String {
        if id == running.me.member_id {
            return self.profile.client_url.clone();
        }
        self.callers.client_url(id).unwrap_or_else(|| member.client_url.clone())
    }

    /// Checks that this member is ready for clients; the error is the reason against it.
    pub(super) fn ready(&self) -> Result<(), String> {
        if self.lifecycle.is_stopping() {
            return Err("it is stopping".to_owned());
        }
        if let Some(why) = self.lifecycle.failure() {
            return Err(format!("it has failed: {why}"));
        }
        if let Some(why) = self.integrity.trust.quarantine_reason() {
            return Err(why);
        }
        let Some(running) = self.lifecycle.running() else {
            let what = self.lifecycle.waiting_for();
            return Err(format!("waiting for {}", what.as_deref().unwrap_or("its start")));
        };
        if let Some(stalled) = self.gate.stalled() {
            return Err(format!("its disk hasn't answered for {} ms", stalled.as_millis()));
        }
        let stale_ms = self.stale_ms();
        let metrics = running.raft.metrics();
        let metrics = metrics.borrow_watched();
        if metrics.current_leader.is_none() {
            return Err("no member leads".to_owned());
        }
        if stale_ms > 0 {
            return Err(format!("no word of a leader with a majority for {stale_ms} ms"));
        }
        let index = |log_id: Option<crate::types::LogId>| log_id.map_or(0, |log_id| log_id.index);
        let behind = index(metrics.cluster_committed).saturating_sub(index(self.state.applied()));
        if behind > READY_UNAPPLIED_ENTRIES_MAX {
            return Err(format!("it is catching up: {behind} log entries to go"));
        }
        Ok(())
    }
}
