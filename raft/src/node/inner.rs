//! What all parts of a member share: who it is, how far it is, and how it comes to run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::Instant;

use super::config::Timing;
use super::counters::Counters;
use super::digests::{Awaited, Trust};
use super::error::{Failure, StartError};
use super::founding::{self, Founders};
use super::gate::Gate;
use super::membership;
use super::running::{Ingredients, Running};
use super::tasks::Tasks;
use crate::store::{DirLock, Identity, Journal, Restored, SharedState};
use crate::transport::{Hello, Party, PeerTls, Peers, Said, Standing, Ticket};

/// A member without its handle.
pub(super) struct Inner {
    pub(super) dir: PathBuf,
    pub(super) peer_address: String,
    pub(super) client_url: String,
    pub(super) timing: Timing,
    /// All initial members, sorted.
    pub(super) initial_members: Vec<String>,
    /// Which state waits here for a cluster to begin with it.
    pub(super) restored: Option<String>,
    /// Where the other ones are, by name.
    pub(super) addresses: BTreeMap<String, String>,
    /// TLS with the others, if there is any.
    pub(super) peer_tls: Option<PeerTls>,
    pub(super) identity: Mutex<Identity>,
    /// What raft starts on. Whoever holds this decides which cluster the member belongs to, and nobody else at
    /// the same time.
    pub(super) ingredients: AsyncMutex<Option<Ingredients>>,
    pub(super) running: watch::Sender<Option<Arc<Running>>>,
    pub(super) state: SharedState,
    pub(super) journal: Journal,
    pub(super) counters: Arc<Counters>,
    pub(super) gate: Arc<Gate>,
    /// Why the store can't be written any more.
    pub(super) store_failed: watch::Receiver<Option<String>>,
    pub(super) waiting_for: Mutex<Option<String>>,
    pub(super) failed: watch::Sender<Option<Failure>>,
    pub(super) stopping: watch::Sender<bool>,
    /// Number of this member's leadership, while it leads.
    pub(super) leads: watch::Sender<Option<u64>>,
    pub(super) tasks: Tasks,
    pub(super) started: Instant,
    /// When a leader was last heard, in milliseconds since the start; 0 before that.
    pub(super) heard_ms: AtomicU64,
    /// Where callers said that they answer clients, by member.
    pub(super) client_urls: Mutex<BTreeMap<u64, String>>,
    /// Whether this member believes its own state.
    pub(super) trust: Trust,
    /// A snapshot that it has asked for.
    pub(super) awaited: Awaited,
    /// What the members said of themselves when they were last asked.
    pub(super) reports: Mutex<BTreeMap<u64, Said>>,
    /// Members that were removed and have left the membership: nobody speaks with them any more.
    pub(super) expelled: watch::Sender<BTreeSet<u64>>,
    pub(super) lock: Mutex<Option<DirLock>>,
}

pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(super) fn identity(&self) -> Identity {
        held(&self.identity).clone()
    }

    pub(super) fn running(&self) -> Option<Arc<Running>> {
        self.running.borrow().clone()
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Who this is, for whoever asks.
    pub(super) fn hello(&self) -> Hello {
        let identity = self.identity();
        let standing = match (identity.cluster_id, identity.member_id) {
            (Some(cluster_id), _) if identity.founding => Standing::Founding { cluster_id },
            (Some(cluster_id), Some(member_id)) => Standing::Member {
                cluster_id,
                member_id,
                knows: self.running().map(|running| running.acquaintances()).unwrap_or_default(),
            },
            _ => match self.restored.clone() {
                Some(state) => Standing::Restored { initial_members: self.initial_members.clone(), state },
                None => Standing::Pristine { initial_members: self.initial_members.clone() },
            },
        };
        Hello {
            name: identity.name,
            disk_id: identity.disk_id,
            peer_address: self.peer_address.clone(),
            client_url: self.client_url.clone(),
            standing,
        }
    }

    /// Notes what the member waits for; logs it when it is something new.
    pub(super) fn wait_for(&self, what: String) {
        let mut waiting_for = held(&self.waiting_for);
        // Whoever was still asking around when somebody called.
        if self.running().is_some() {
            return;
        }
        if waiting_for.as_ref() != Some(&what) {
            tracing::info!(what, "waiting for");
            *waiting_for = Some(what);
        }
    }

    /// Notes that the process must end.
    pub(super) fn fail(&self, why: Failure) {
        tracing::error!(%why, "this member can't go on");
        self.failed.send_if_modified(|failed| {
            let first = failed.is_none();
            failed.get_or_insert(why);
            first
        });
    }

    pub(super) fn note_leader_heard(&self) {
        self.heard_ms.store(self.age_ms().max(1), Relaxed);
    }

    /// Milliseconds since the start.
    pub(super) fn age_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Founds a cluster, unless this member has come to belong to one meanwhile.
    pub(super) async fn found(self: &Arc<Self>, founders: Founders) -> Result<(), StartError> {
        let mut ingredients = self.ingredients.lock().await;
        let mut identity = self.identity();
        if identity.cluster_id.is_some() {
            return Ok(());
        }
        let me = founders.iter().find(|(_, member)| member.disk_id == identity.disk_id);
        identity.member_id = me.map(|(id, _)| *id);
        identity.cluster_id = Some(uuid::Uuid::new_v4().to_string());
        identity.founding = true;
        founding::write_founders(&self.dir, &founders)?;
        self.start_as(identity, &mut ingredients).await
    }

    /// Joins the cluster whose member has called this disk by its id.
    pub(super) async fn join(self: &Arc<Self>, ticket: &Ticket) -> Result<(), StartError> {
        let mut ingredients = self.ingredients.lock().await;
        let mut identity = self.identity();
        if identity.cluster_id.is_some() {
            return Ok(());
        }
        tracing::info!(
            cluster = ticket.cluster_id,
            member = ticket.to.member_id,
            from = ticket.from.name,
            "taken into a cluster"
        );
        identity.cluster_id = Some(ticket.cluster_id.clone());
        identity.member_id = Some(ticket.to.member_id);
        self.start_as(identity, &mut ingredients).await
    }

    /// Starts again as the member that the directory belongs to.
    pub(super) async fn resume(self: &Arc<Self>) -> Result<(), StartError> {
        let mut ingredients = self.ingredients.lock().await;
        self.start_as(self.identity(), &mut ingredients).await
    }

    /// Makes the identity durable, then starts raft with it; in this order, so that a disk which has spoken for
    /// a cluster never speaks for another one.
    async fn start_as(
        self: &Arc<Self>,
        identity: Identity,
        ingredients: &mut Option<Ingredients>,
    ) -> Result<(), StartError> {
        let (Some(cluster_id), Some(member_id)) = (identity.cluster_id.clone(), identity.member_id) else {
            return Err(StartError::Founding("the identity lacks cluster or member id".to_owned()));
        };
        identity.save(&self.dir)?;
        *held(&self.identity) = identity.clone();
        let Some(mut ingredients) = ingredients.take() else {
            return Err(StartError::Raft("it was started before".to_owned()));
        };
        if identity.founding {
            founding::begin_restored(&mut ingredients.machine, &self.dir).await?;
        }
        let me = Party { name: identity.name.clone(), member_id, disk_id: identity.disk_id.clone() };
        let peers = Peers::new(
            cluster_id.clone(),
            me.clone(),
            self.client_url.clone(),
            self.peer_address.clone(),
            self.addresses.clone(),
            self.peer_tls.clone(),
        );
        let running = Running::start(ingredients, cluster_id, me, peers, &self.tasks).await?;
        let running = Arc::new(running);
        self.tasks.spawn(super::watchdog(self.clone(), running.raft.clone()));
        self.tasks.spawn(membership::run(self.clone(), running.clone()));
        self.running.send_replace(Some(running.clone()));
        *held(&self.waiting_for) = None;
        if !identity.founding {
            // Its cluster began with another member's copy of it.
            Restored::forget(&self.dir);
        }
        if identity.founding {
            let identity = founding::complete(&running, &self.dir, identity).await?;
            *held(&self.identity) = identity;
        }
        Ok(())
    }
}
