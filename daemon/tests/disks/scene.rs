//! Cluster with a disk for each member.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::process::ExitStatus;
use std::time::Duration;

use ipam_api::Problem;
use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster as Shown;
use ipam_api::request::Allocated;

use super::image::Image;
use crate::support::ask::{allocate_call, allocate_request, allocations, make_pools};
use crate::support::{Cluster, until};

/// Exit code of a member with a failed disk.
pub(crate) const DISK_FAILED: i32 = 3;
/// Exit code of a member whose data directory is damaged.
pub(crate) const DAMAGED: i32 = 4;
pub(crate) const MEBIBYTE: u64 = 1 << 20;
/// Low free space on these disks, and the size of the ballast.
pub(crate) const LOW_BYTES: u64 = 8 * MEBIBYTE;
const BALLAST_BYTES: u64 = 4 * MEBIBYTE;
/// Size of a disk: several times the data of a test.
const DISK_BYTES: u64 = 64 * MEBIBYTE;

/// Slower than what ships to think that a leader is dead, so that a busy machine doesn't look like it.
const RAFT: &str = "heartbeat_ms = 100\nelection_min_ms = 1500\nelection_max_ms = 3000";

/// The cluster and its disks, in the order in which they must go.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) disks: Vec<Image>,
}

impl Scene {
    /// Starts this many members with a disk each, and creates pools.
    pub(crate) async fn up(count: usize) -> Self {
        Self::up_with(count, RAFT).await
    }

    /// The same with other settings of `[raft]`.
    pub(crate) async fn up_with(count: usize, raft: &str) -> Self {
        let disks = (0..count).map(|_| Image::new(DISK_BYTES)).collect();
        Self::start(disks, raft, LOW_BYTES, BALLAST_BYTES).await
    }

    /// The same on these disks.
    pub(crate) async fn up_on(disks: Vec<Image>, low_bytes: u64, ballast_bytes: u64) -> Self {
        Self::start(disks, RAFT, low_bytes, ballast_bytes).await
    }

    async fn start(disks: Vec<Image>, raft: &str, low_bytes: u64, ballast_bytes: u64) -> Self {
        let disk = format!("[disk]\nlow_bytes = {low_bytes}\nballast_bytes = {ballast_bytes}");
        let mut cluster = Cluster::of_with(disks.len(), &format!("{raft}\n{disk}"));
        for (member, disk) in cluster.members.iter_mut().zip(&disks) {
            member.data_dir = disk.path().join("data");
        }
        let cluster = cluster.all_up().await;
        make_pools(&cluster.ask()).await;
        Self { cluster, disks }
    }

    /// Waits until a member reports this class of free space.
    pub(crate) async fn sees(&self, at: usize, room: &str) {
        until(&format!("the disk of {} has room for {room}", self.cluster.members[at].name), async || {
            let shown = self.cluster.shown(at).await;
            match &shown.disk_room {
                Some(seen) if seen == room => Ok(()),
                seen => Err(format!("{seen:?}, {:?} bytes", shown.disk_free_bytes)),
            }
        })
        .await;
    }

    /// Waits until a member has enough free space, or has ended; returns its exit status then.
    pub(crate) async fn recovers_or_ends(&mut self, at: usize) -> Option<ExitStatus> {
        let member = &mut self.cluster.members[at];
        until(&format!("{} has enough free space, or ends", member.name.clone()), async || {
            if let Some(status) = member.ended() {
                return Ok(Some(status));
            }
            let call = Call::get("/v1/cluster").within(Duration::from_secs(1));
            let shown: Shown = member.ask().call(call).await.map_err(|problem| problem.to_string())?;
            match shown.disk_room.as_deref() {
                Some("enough") => Ok(None),
                seen => Err(format!("{seen:?}, {:?} bytes", shown.disk_free_bytes)),
            }
        })
        .await
    }

    /// Fills the disk of a member to the last byte, and waits until it has noticed.
    pub(crate) async fn fill(&self, at: usize) {
        self.disks[at].fill_but(0);
        self.sees(at, "nothing").await;
    }

    /// Waits until allocations succeed again; one for the endpoint `name` exists then.
    pub(crate) async fn works_again(&self, name: &str) -> Allocated {
        until("allocations go through", async || {
            allocate_soon(&self.cluster.ask(), name).await.map_err(|problem| problem.to_string())
        })
        .await
    }

    /// Everything that was acknowledged is still held.
    pub(crate) async fn holds(&self, acknowledged: &BTreeSet<IpAddr>) {
        let held = allocations(&self.cluster.ask()).await;
        let held: BTreeSet<IpAddr> = held.iter().map(|one| one.address.addr()).collect();
        assert!(held.is_superset(acknowledged), "lost: {:?}", acknowledged.difference(&held));
    }

    /// Restarts members that have exited, like a supervisor. Their disk must be the only reason.
    pub(crate) async fn supervise(&mut self) {
        for at in 0..self.disks.len() {
            let member = &mut self.cluster.members[at];
            if let Some(status) = member.ended() {
                assert_eq!(status.code(), Some(DISK_FAILED), "{}", member.tail());
                println!("{} ended and is started again", member.name);
                member.exit().await;
                self.cluster.start(at);
            }
        }
    }

    /// Process ids of the running members.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.cluster.up_members().map(|member| member.pid()).collect()
    }

    /// None of the processes has ended by itself.
    pub(crate) fn all_run(&mut self) {
        for member in self.cluster.members.iter_mut().filter(|member| member.is_up()) {
            let ended = member.ended();
            assert!(ended.is_none(), "{}: {ended:?}\n{}", member.name, member.tail());
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // A process that waits for a frozen disk can't be killed.
        self.disks.iter_mut().for_each(Image::thaw);
    }
}

/// Allocates an address of `web`, with a short budget.
pub(crate) async fn allocate_soon(client: &Client, name: &str) -> Result<Allocated, Problem> {
    client.call(allocate_call(&allocate_request(name, &["web"])).within(Duration::from_secs(3))).await
}

/// Releases an allocation, with little patience.
pub(crate) async fn release_soon(client: &Client, id: &str) -> Result<(), Problem> {
    let call = Call::delete(format!("/v1/allocations/{id}")).within(Duration::from_secs(3));
    client.send(call).await.map(drop)
}
