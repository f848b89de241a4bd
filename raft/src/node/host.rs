//! Answers of this member to its peers.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::limits::BUDGET_MS_MAX;
use openraft::EntryPayload;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::raft::SnapshotResponse;
use tokio::time::Instant;

use super::counters::Counters;
use super::error::Failure;
use super::inner::Inner;
use super::proposals::COMMAND_BYTES_MAX;
use super::running::Running;
use super::{digests, fetching, handing_over, members, membership, reads, starting};
use crate::simulation::pausable;
use crate::store::{FreeSpace, IncomingSnapshot, SnapshotFile};
use crate::transport::{
    Answer, Append, Declined, Handshake, Hello, Host, PeerIdentity, Refusal, Request, SnapshotHead, Span,
    check_append,
};
use crate::types::Types;
use ipam_machine::{Command, Outcome};

/// Time for which a caller waits until this member runs.
const START_PATIENCE: Duration = Duration::from_secs(2);

/// The refusal of a member on a full disk.
const NO_ROOM: &str = "its disk is full";

impl Host for Arc<Inner> {
    fn hello(&self) -> Hello {
        Inner::hello(self)
    }

    async fn admit(&self, handshake: &Handshake) -> Result<(), Refusal> {
        let identity = self.profile.identity();
        let mine = PeerIdentity {
            name: identity.name,
            member_id: identity.member_id.unwrap_or_default(),
            disk_id: identity.disk_id,
        };
        let same_disk = handshake.to.disk_id == mine.disk_id && handshake.to.name == mine.name;
        match identity.cluster_id {
            Some(cluster_id) if cluster_id != handshake.cluster_id => {
                return Err(Refusal::WrongCluster { mine: cluster_id });
            }
            Some(_) if !same_disk || handshake.to.member_id != mine.member_id => {
                return Err(Refusal::WrongTarget { mine });
            }
            None if !same_disk => return Err(Refusal::WrongTarget { mine }),
            Some(_) => {}
            None => self.take_part(handshake).await?,
        }
        match self.lifecycle.running_by(Instant::now() + START_PATIENCE).await {
            Some(running) if running.cluster_id != handshake.cluster_id => {
                Err(Refusal::WrongCluster { mine: running.cluster_id.clone() })
            }
            Some(running) => {
                check_caller(&running, handshake)?;
                self.check_belongs(&running, handshake)?;
                self.callers.note_client_url(handshake.from.member_id, handshake.client_url.clone());
                if let Some(peer_address) = &handshake.peer_address {
                    running.peers.learn(handshake.from.member_id, peer_address.clone());
                }
                Ok(())
            }
            None => Err(Refusal::NotReady { why: "it is still starting".to_owned() }),
        }
    }

    async fn expelled(&self, member_id: u64) {
        let mut expelled = self.callers.expelled.subscribe();
        // The sender lives as long as this member.
        let _ = expelled.wait_for(|expelled| expelled.contains(&member_id)).await;
    }

    fn connection_closed(&self, member_id: u64) {
        if let Some(running) = self.lifecycle.running() {
            running.elections.closed(&running.raft, member_id);
        }
    }

    async fn answer(&self, request: Request) -> Answer {
        match self.lifecycle.running() {
            Some(running) => self.answer_of(&running, request).await.unwrap_or_else(Answer::Failed),
            None => Answer::Failed("it isn't running".to_owned()),
        }
    }

    async fn incoming(&self) -> Result<IncomingSnapshot, String> {
        if self.gate.headroom.room() == FreeSpace::Nothing {
            return Err(NO_ROOM.to_owned());
        }
        SnapshotFile::incoming(&self.profile.dir).await.map_err(text)
    }

    async fn install(
        &self,
        head: SnapshotHead,
        incoming: IncomingSnapshot,
    ) -> Result<SnapshotResponse<Types>, String> {
        let file = self.state.guard_io(incoming.seal_and_verify()).await.map_err(text)?;
        if *file.meta() != head.meta {
            return Err("the snapshot isn't the one that was announced".to_owned());
        }
        // openraft panics on such a snapshot.
        let leader = head.vote.leader_id();
        let owner = head.meta.last_log_id.map(|last| (last.leader_id.term, last.leader_id.node_id));
        if owner > Some((leader.term, leader.node_id)) {
            return Err("the snapshot is of a later leader than the one that sends it".to_owned());
        }
        let running = self.lifecycle.running().ok_or("it isn't running")?;
        let Some(file) = self.integrity.awaited.take(&self.state, file).await else {
            let vote = running.raft.metrics().borrow_watched().vote;
            return Ok(SnapshotResponse { vote });
        };
        let snapshot = openraft::Snapshot { meta: head.meta, snapshot: file };
        let installed = running.raft.install_full_snapshot(head.vote, snapshot).await;
        let installed = installed.map_err(text)?;
        Counters::add(&self.counters.snapshots_installed);
        Ok(installed)
    }
}

impl Inner {
    /// Refuses a member that was removed, and reports the removal to it. A removed member that is still in
    /// the membership is admitted, since its vote may be needed.
    fn check_belongs(&self, running: &Running, handshake: &Handshake) -> Result<(), Refusal> {
        let PeerIdentity { member_id, name, .. } = &handshake.from;
        let cluster = &running.cluster_id;
        if !membership::expelled(self, running).contains(member_id) {
            return Ok(());
        }
        let why = format!("member {member_id}, {name}, was removed from the cluster {cluster}");
        Err(Refusal::Removed { why })
    }

    /// Joins the caller's cluster, in a separate task, since the caller may disconnect meanwhile.
    async fn take_part(self: &Arc<Self>, handshake: &Handshake) -> Result<(), Refusal> {
        let (inner, handshake) = (self.clone(), handshake.clone());
        let joined = tokio::spawn(pausable(async move {
            starting::join(&inner, &handshake).await.map_err(|error| {
                let why = error.to_string();
                inner.lifecycle.fail(Failure::Other(why.clone()));
                why
            })
        }));
        match joined.await {
            Ok(joined) => joined.map_err(|why| Refusal::NotReady { why }),
            Err(error) => Err(Refusal::NotReady { why: error.to_string() }),
        }
    }

    /// Returns true if the append could fill the disk completely, which the log wouldn't survive. Entries
    /// that begin a leadership, blank entries and membership entries are still accepted.
    fn has_no_room_for(&self, append: &Append) -> bool {
        !self.gate.headroom.takes_entries()
            && append.entries.iter().any(|entry| match &entry.payload {
                EntryPayload::Normal(batch) => !batch.begins_leadership(),
                EntryPayload::Blank | EntryPayload::Membership(_) => false,
            })
    }

    async fn answer_of(&self, running: &Running, request: Request) -> Result<Answer, String> {
        let raft = &running.raft;
        Ok(match request {
            Request::Ping => Answer::Pong,
            Request::Append(append) => {
                if self.has_no_room_for(&append) {
                    return Err(NO_ROOM.to_owned());
                }
                check_append(&append)?;
                running.elections.heard(raft, &append.vote);
                let span = Span::of(&append);
                let response = raft.append_entries(append).await.map_err(text)?;
                let appended = span.answer(response).ok_or("a conflict at no entry")?;
                if appended.is_ok() {
                    self.leadership.note_leader_heard();
                }
                Answer::Append(appended)
            }
            Request::Vote(vote) => Answer::Vote(running.elections.vote(raft, vote).await.map_err(text)?),
            Request::PreVote(vote) => {
                Answer::Vote(running.elections.pre_vote(raft, vote).await.map_err(text)?)
            }
            Request::TransferLeader(_) if self.integrity.trust.is_quarantined() => {
                return Err("its state is quarantined".to_owned());
            }
            Request::TransferLeader(request) => {
                Answer::TransferLeader(raft.handle_transfer_leader(request).await.map_err(text)?)
            }
            Request::Propose { command, budget_ms } => {
                Answer::Propose(self.propose(running, *command, within(budget_ms)).await)
            }
            Request::JournalPiece { number, offset } => {
                fetching::piece(&self.journal, number, offset).await?
            }
            Request::Report => Answer::Report(Box::new(self.integrity.report())),
            Request::SendSnapshot { to, at_least } => {
                digests::send_snapshot(&self.integrity, running, to, at_least).await?;
                Answer::SnapshotSent
            }
            Request::Headroom => Answer::Headroom(self.gate.headroom.room()),
            Request::ReadIndex => Answer::ReadIndex(reads::of_leader(raft).await),
            Request::Members => Answer::Members(members::confirmed(self, raft).await),
            Request::HandOver { to, budget_ms } => {
                Answer::HandOver(handing_over::here(self, running, to, within(budget_ms)).await)
            }
        })
    }

    /// Proposes for another member.
    async fn propose(
        &self,
        running: &Running,
        command: Command,
        deadline: Instant,
    ) -> Result<Outcome, Declined> {
        if self.lifecycle.is_stopping() {
            return Err(Declined::ShuttingDown);
        }
        if self.integrity.trust.is_quarantined() {
            return Err(Declined::NoLeader);
        }
        let bytes = postcard::experimental::serialized_size(&command).unwrap_or(COMMAND_BYTES_MAX);
        let _share = self.places.take(&command, bytes)?;
        let _waiting = self.counters.wait();
        let decided = running.proposals.propose(command, bytes, deadline).await;
        decided.map(|(outcome, _timing)| outcome)
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Deadline of a caller with this budget.
fn within(budget_ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(budget_ms.min(BUDGET_MS_MAX))
}

/// Refuses a caller whose id is known under another name or disk id, since ids are never reused. Unknown ids
/// are accepted: this member's log may not have those members yet.
fn check_caller(running: &Running, handshake: &Handshake) -> Result<(), Refusal> {
    let from = &handshake.from;
    let known = running.members().into_iter().find(|(id, _)| *id == from.member_id);
    match known {
        Some((id, member)) if member.name != from.name || member.disk_id != from.disk_id => {
            let why = format!("member {id} is {} with the disk {}", member.name, member.disk_id);
            Err(Refusal::Stranger { why })
        }
        _ => Ok(()),
    }
}
