//! Start of raft, once this member founds or joins a cluster, or if it belongs to one already.

use std::sync::Arc;

use tokio::sync::watch;

use super::elections::{Candidate, Elections};
use super::error::StartError;
use super::founders::{self, Founders};
use super::inner::{Inner, RaftParts};
use super::own_leadership::LeadershipDriver;
use super::proposals::Proposals;
use super::raft::RaftHandle;
use super::reads::Reads;
use super::running::Running;
use super::{membership, snapshots};
use crate::simulation::random_id;
use crate::store::{Identity, Restored, StoreError};
use crate::transport::{Handshake, Network, Own, PeerIdentity, Peers};
use crate::types::with_random_numbers;

/// Founds a cluster, unless this member has come to belong to one meanwhile.
pub(super) async fn found(inner: &Arc<Inner>, founders: Founders) -> Result<(), StartError> {
    let mut parts = inner.parts.lock().await;
    let mut identity = inner.profile.identity();
    if identity.cluster_id.is_some() {
        return Ok(());
    }
    let me = founders.iter().find(|(_, member)| member.disk_id == identity.disk_id);
    identity.member_id = me.map(|(id, _)| *id);
    identity.cluster_id = Some(random_id().to_string());
    identity.founding = true;
    founders::write(&inner.profile.dir, &founders)?;
    start_as(inner, identity, &mut parts).await.map(drop)
}

/// Joins the cluster of the member that has called this disk by its id.
pub(super) async fn join(inner: &Arc<Inner>, handshake: &Handshake) -> Result<(), StartError> {
    let mut parts = inner.parts.lock().await;
    let mut identity = inner.profile.identity();
    if identity.cluster_id.is_some() {
        return Ok(());
    }
    tracing::info!(
        cluster = handshake.cluster_id,
        member = handshake.to.member_id,
        from = handshake.from.name,
        "taken into a cluster"
    );
    identity.cluster_id = Some(handshake.cluster_id.clone());
    identity.member_id = Some(handshake.to.member_id);
    start_as(inner, identity, &mut parts).await.map(drop)
}

/// Restarts as the member that the directory belongs to.
pub(super) async fn resume(inner: &Arc<Inner>) -> Result<Arc<Running>, StartError> {
    let mut parts = inner.parts.lock().await;
    let started = start_as(inner, inner.profile.identity(), &mut parts).await;
    // Raft replays the log, and reports a broken invariant only as text.
    started.map_err(|error| inner.state.broken().map_or(error, |broken| StoreError::Broken(broken).into()))
}

/// Makes the identity durable, then starts raft with it. The order ensures that a disk serves one cluster
/// only.
async fn start_as(
    inner: &Arc<Inner>,
    identity: Identity,
    parts: &mut Option<RaftParts>,
) -> Result<Arc<Running>, StartError> {
    let (Some(cluster_id), Some(member_id)) = (identity.cluster_id.clone(), identity.member_id) else {
        return Err(StartError::Founding("the identity lacks cluster or member id".to_owned()));
    };
    identity.save(&inner.profile.dir)?;
    inner.profile.set_identity(identity.clone());
    let Some(mut parts) = parts.take() else {
        return Err(StartError::Raft("it was started before".to_owned()));
    };
    if identity.founding {
        founders::begin_restored(&mut parts.machine, &inner.profile.dir).await?;
    }
    let me = PeerIdentity { name: identity.name.clone(), member_id, disk_id: identity.disk_id.clone() };
    let peers = Peers::new(Own {
        cluster_id: cluster_id.clone(),
        me: me.clone(),
        client_url: inner.profile.client_url.clone(),
        peer_address: inner.profile.peer_address.clone(),
        addresses: inner.profile.addresses.clone(),
        proof: inner.profile.peer_proof.clone(),
        snapshot_bytes_per_second: parts.snapshots.bytes_per_second,
    });
    let running = Arc::new(run(inner, parts, cluster_id, me, peers).await?);
    inner.lifecycle.tasks.spawn(inner.lifecycle.clone().follow_raft(running.raft.clone()));
    inner.lifecycle.tasks.spawn(membership::run(inner.clone(), running.clone()));
    inner.lifecycle.begin(running.clone());
    if !identity.founding {
        // The cluster began with another member's copy of the restored state.
        Restored::forget(&inner.profile.dir);
    }
    if identity.founding {
        let identity = founders::complete(&running.raft, &inner.profile.dir, identity).await?;
        inner.profile.set_identity(identity);
    }
    Ok(running)
}

/// Starts raft and the tasks around it.
async fn run(
    inner: &Inner,
    parts: RaftParts,
    cluster_id: String,
    me: PeerIdentity,
    peers: Peers,
) -> Result<Running, StartError> {
    let RaftParts { config, log, machine, reach, snapshots: policy } = parts;
    let (tasks, counters, timing) = (&inner.lifecycle.tasks, &inner.counters, inner.profile.timing);
    let raft = RaftHandle::new(me.member_id, Arc::new(config), Network(peers.clone()), log.clone(), machine);
    let raft = with_random_numbers(raft).await.map_err(|error| StartError::Raft(error.to_string()))?;
    inner.state.allow_lag();
    let (publish_leadership, own_leadership) = watch::channel(None);
    let (state, counted) = (inner.state.clone(), counters.clone());
    let driver = LeadershipDriver {
        raft: raft.clone(),
        timing,
        state,
        own_leadership: publish_leadership,
        counters: counted,
    };
    tasks.spawn(driver.follow());
    tasks.spawn(snapshots::run(raft.clone(), reach, policy));
    let elections = Arc::new(Elections::new(timing));
    let candidate = Candidate {
        raft: raft.clone(),
        peers: peers.clone(),
        elections: elections.clone(),
        timing,
        counters: counters.clone(),
    };
    tasks.spawn(candidate.run());
    let (gate, state) = (inner.gate.clone(), inner.state.clone());
    let (proposals, proposing) =
        Proposals::new(raft.clone(), own_leadership.clone(), gate, counters.clone(), state);
    tasks.spawn(proposing);
    let (reads, reading) = Reads::new(raft.clone(), peers.clone(), counters.clone());
    tasks.spawn(reading);
    Ok(Running { raft, peers, cluster_id, me, own_leadership, proposals, reads, elections, log })
}
