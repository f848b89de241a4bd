//! The handle of a member: start, propose, read, and stop.

use std::fmt;
use std::sync::{Arc, Mutex};

use ipam_api::limits::{PEER_CALLS_MAX, PROPOSALS_WAITING_MAX};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::Instant;

use super::callers::Callers;
use super::config::NodeConfig;
use super::counters::{Counters, NodeMetrics};
use super::digests::{self, Integrity, Trust};
use super::error::{Failure, HandOverError, ReadError, StartError};
use super::gate::Gate;
use super::inner::{Inner, RaftParts};
use super::leadership::Leadership;
use super::lifecycle::Lifecycle;
use super::places::Places;
use super::profile::Profile;
use super::status::Status;
use super::{disks, fetching, founding, handing_over, leaving, members, membership, starting};
use crate::simulation::pausable;
use crate::store::{self, Closer, Identity, StoreError, lock_dir};
use crate::sync::held;
use crate::threads::TaskThread;
use crate::transport::serve;
use crate::types::{Member, MemberInfo};
use ipam_machine::State;
use ipam_machine::command::KnownMember;

/// Directives for the log filter, besides the subscriber's own. The libraries repeat their messages while a
/// peer is down, and this crate reports the important ones.
pub const LOG_DIRECTIVES: &str = "openraft=error,sled=warn";

/// A member of the cluster; cheap to clone. Dropping the last clone stops the member like a crash;
/// [`Node::shutdown`] stops it gracefully.
#[derive(Clone)]
pub struct Node {
    handle: Arc<Handle>,
}

struct Handle {
    inner: Arc<Inner>,
    closer: Mutex<Option<Closer>>,
    /// Thread of all tasks of the member.
    thread: Option<TaskThread>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inner.lifecycle.tasks.abort();
        self.inner.leadership.leads.send_replace(None);
        let running = self.inner.lifecycle.running.send_replace(None);
        if let Some(running) = running
            && let Some(thread) = self.thread.take()
        {
            // The directory stays locked until raft has ended, and the thread runs until then.
            let (inner, tasks) = (self.inner.clone(), thread.tasks());
            tasks.spawn(async move {
                let _ = running.raft.shutdown().await;
                drop((running, inner, thread));
            });
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

impl Node {
    /// Opens the data directory, serves peers, and founds or joins the cluster in the background.
    ///
    /// # Errors
    /// When the configuration can't work or the data directory can't be used.
    pub async fn start(config: NodeConfig) -> Result<Self, StartError> {
        config.check()?;
        let thread = TaskThread::start("ipamd-raft").map_err(StoreError::thread)?;
        let tasks = thread.tasks();
        match tasks.spawn(pausable(Self::start_on(thread, config))).await {
            Ok(started) => started,
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            Err(ended) => Err(StartError::Raft(ended.to_string())),
        }
    }

    /// Starts the member; runs on its thread.
    async fn start_on(thread: TaskThread, config: NodeConfig) -> Result<Self, StartError> {
        let raft_config = config.raft()?;
        let addresses = config.addresses();
        let mut initial_members: Vec<String> =
            config.initial_members.iter().map(|member| member.name.to_string()).collect();
        initial_members.sort_unstable();
        let lock = lock_dir(&config.data_dir)?;
        let identity = Identity::load_or_create(&config.data_dir, config.name.as_str())?;
        let restored = store::Restored::waiting_in(&config.data_dir)?;
        let mut store = store::open_with(&config.data_dir, config.progress.clone()).await?;
        let trust = Trust::load(config.data_dir.clone(), store.shared.clone())?;
        config.progress.begin("its log is applied and its cluster found");
        store.machine.bytes_per_second = config.snapshots.bytes_per_second;
        store.headroom.watch(config.disk).map_err(StoreError::thread)?;
        let gate = Arc::new(Gate::new(store.headroom, Arc::clone(&store.counters), config.timing));
        let counters = Arc::new(Counters::new(Arc::clone(&store.counters)));
        let parts = RaftParts {
            config: raft_config,
            log: store.log,
            machine: store.machine,
            reach: store.reach,
            snapshots: config.snapshots,
        };
        let belongs = identity.cluster_id.is_some();
        let profile = Profile {
            dir: config.data_dir,
            peer_address: config.peer_address,
            client_url: config.client_url,
            timing: config.timing,
            initial_members,
            restored: restored.map(|restored| restored.id()),
            addresses,
            peer_proof: config.peer_port.proof(),
            identity: Mutex::new(identity),
        };
        let integrity = Integrity {
            trust,
            awaited: Default::default(),
            reports: Default::default(),
            state: store.shared.clone(),
            counters: Arc::clone(&counters),
            timing: config.timing,
        };
        let inner = Arc::new(Inner {
            profile,
            lifecycle: Arc::new(Lifecycle::new(store.failed, lock)),
            leadership: Arc::new(Leadership::new(config.timing.election_max_ms)),
            integrity: Arc::new(integrity),
            callers: Callers::default(),
            parts: AsyncMutex::new(Some(parts)),
            state: store.shared,
            journal: store.journal,
            places: Places::new(Arc::clone(&counters), PROPOSALS_WAITING_MAX),
            forwards: Places::new(Arc::clone(&counters), PEER_CALLS_MAX),
            counters,
            gate: Arc::clone(&gate),
        });
        let Inner { lifecycle, leadership, integrity, .. } = &*inner;
        let tasks = &lifecycle.tasks;
        tasks.spawn(Arc::clone(leadership).follow(lifecycle.clone()));
        tasks.spawn(fetching::run(lifecycle.clone(), inner.journal.clone()));
        tasks.spawn(digests::run(lifecycle.clone(), integrity.clone()));
        tasks.spawn(disks::run(lifecycle.clone(), gate, config.timing));
        tasks.spawn(lifecycle.clone().follow_store());
        tasks.spawn(serve(config.peer_port, inner.clone()));
        let (closer, thread) = (Mutex::new(Some(store.closer)), Some(thread));
        let node = Self { handle: Arc::new(Handle { inner, closer, thread }) };
        if belongs {
            let running = starting::resume(node.inner()).await?;
            node.inner().profile.check_reachable(&running).await?;
        } else if config.joins {
            node.inner().lifecycle.wait_for("a cluster to take it in".to_owned());
        } else {
            node.inner().lifecycle.tasks.spawn(founding::run(node.inner().clone()));
        }
        Ok(node)
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.handle.inner
    }

    /// The address at which other members reach this one; empty if it has no peer port.
    #[must_use]
    pub fn peer_address(&self) -> &str {
        &self.inner().profile.peer_address
    }

    /// Returns the current revision of this member's state.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.inner().state.with(State::revision)
    }

    /// Returns the state of this member, and the milliseconds since it last knew a working leader (0 if it
    /// does).
    #[must_use]
    pub fn stale(&self) -> (State, u64) {
        // In this order: the state is at least as new as the reported age.
        let stale_ms = self.inner().stale_ms();
        (self.inner().state.view(), stale_ms)
    }

    /// Reads the state of this member. Cheaper than [`stale`](Self::stale), which clones it.
    pub fn look<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        self.inner().state.with(look)
    }

    /// Returns the state of this member, and the index of the last log entry in it.
    #[must_use]
    pub fn stale_with_index(&self) -> (State, Option<u64>) {
        let (state, applied) = self.inner().state.view_with_position();
        (state, applied.map(|applied| applied.index))
    }

    /// Returns the log time that this leader's next entry would carry; nothing if this member doesn't lead.
    #[must_use]
    pub fn log_time_ms(&self) -> Option<u64> {
        let running = self.inner().lifecycle.running()?;
        let held_leadership = running.own_leadership.borrow().clone()?;
        Some(held_leadership.log_time_ms(Instant::now()))
    }

    /// Calls the machine on a copy of the state, as a dry run does. A broken invariant stops this member,
    /// since its own state breaks the same invariant.
    ///
    /// # Errors
    /// [`ReadError::Quarantined`] with the broken invariant.
    pub fn guard<R>(&self, call: impl FnOnce() -> R) -> Result<R, ReadError> {
        self.inner().state.guard(call).map_err(|broken| ReadError::Quarantined(broken.to_string()))
    }

    /// Runs asynchronous work, such as a whole request, with the same check as [`guard`](Self::guard).
    ///
    /// # Errors
    /// [`ReadError::Quarantined`] with the broken invariant.
    pub async fn guard_work<F: Future>(&self, work: F) -> Result<F::Output, ReadError> {
        let done = self.inner().state.guard_work(work).await;
        done.map_err(|broken| ReadError::Quarantined(broken.to_string()))
    }

    /// Checks that this member's state isn't suspect, so that even a stale read may return it.
    ///
    /// # Errors
    /// If the state of this member is suspect.
    pub fn check_trust(&self) -> Result<(), ReadError> {
        self.inner()
            .integrity
            .trust
            .quarantine_reason()
            .map_or(Ok(()), |why| Err(ReadError::Quarantined(why)))
    }

    /// Next feature level, if all members have lately reported support for it.
    #[must_use]
    pub fn next_level(&self) -> Option<u32> {
        let status = self.status();
        let next = self.inner().state.with(|state| state.header().level) + 1;
        let known = |member: &MemberInfo| member.level.is_some_and(|level| level >= next);
        (!status.members.is_empty() && status.members.iter().all(known)).then_some(next)
    }

    /// Changes the state of this member alone, as a defect would.
    #[cfg(feature = "testing")]
    pub fn spoil<R: Send + 'static>(&self, how: impl FnOnce(&mut State) -> R + Send + 'static) -> R {
        self.inner().state.spoil(how)
    }

    /// Delays each flush of this member's log by `ms` milliseconds, like a slow disk.
    #[cfg(feature = "testing")]
    pub fn delay_flushes(&self, ms: u64) {
        self.inner().counters.store.flush.delay_ms.store(ms, std::sync::atomic::Ordering::Relaxed);
    }

    /// Returns the status of this member, and its view of the cluster.
    #[must_use]
    pub fn status(&self) -> Status {
        self.inner().status()
    }

    /// Returns all members as the leader sees them, with each one's progress and last answer.
    ///
    /// # Errors
    /// When no member leads until the deadline.
    pub async fn members(&self, deadline: impl Into<Instant>) -> Result<Vec<MemberInfo>, ReadError> {
        members::of_leader(self.inner(), deadline.into()).await
    }

    /// Transfers leadership to the voter with this id, by request to the present leader. No effect if the
    /// voter leads already.
    ///
    /// # Errors
    /// If it can't lead, or doesn't before the deadline.
    pub async fn hand_over(&self, to: u64, deadline: impl Into<Instant>) -> Result<(), HandOverError> {
        handing_over::ask(self.inner(), to, deadline.into()).await
    }

    /// The URL at which the leader answers clients, if one is known.
    #[must_use]
    pub fn leader_client_url(&self) -> Option<String> {
        self.inner().leader_client_url()
    }

    /// Checks that this member is ready for clients.
    ///
    /// # Errors
    /// The reason why it isn't ready.
    pub fn ready(&self) -> Result<(), String> {
        self.inner().ready()
    }

    /// Returns true once the raft thread has answered, or if raft doesn't run yet. Watchdogs use it to end a
    /// stuck process.
    pub async fn responds(&self) -> bool {
        match self.inner().lifecycle.running() {
            Some(running) => running.responds().await,
            None => true,
        }
    }

    /// Returns the current counters.
    #[must_use]
    pub fn metrics(&self) -> NodeMetrics {
        self.inner().counters.read()
    }

    /// Number of this member's leadership, once it has applied all entries of earlier leaders. For tasks that
    /// only the leader runs: they propose under it with [`Self::propose_as_leader`].
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Option<u64>> {
        self.inner().leadership.leads.subscribe()
    }

    /// Waits until this member fails, and returns the reason: the process should then exit.
    pub async fn failed(&self) -> Failure {
        self.inner().lifecycle.failed().await
    }

    /// Reason for which the process must end, if any.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.inner().lifecycle.failure()
    }

    /// Returns this member's data for a request to join, as long as it belongs to no cluster.
    #[must_use]
    pub fn applicant(&self) -> Option<Member> {
        let profile = &self.inner().profile;
        profile.identity().cluster_id.is_none().then(|| profile.member())
    }

    /// Records the event that this member waits for while it belongs to no cluster.
    pub fn wait_for(&self, what: String) {
        self.inner().lifecycle.wait_for(what);
    }

    /// Returns the members in the log's membership with their disk ids, for commands that change members.
    #[must_use]
    pub fn known_members(&self) -> Vec<KnownMember> {
        self.inner().lifecycle.running().map(|running| membership::known(&running)).unwrap_or_default()
    }

    /// Stops gracefully: refuses new work, hands leadership to the most complete voter, closes the store. At
    /// the deadline it stops without waiting any longer.
    pub async fn shutdown(&self, deadline: impl Into<Instant>) {
        let closer = held(&self.handle.closer).take();
        leaving::leave(self.inner(), closer, deadline.into()).await;
    }
}
