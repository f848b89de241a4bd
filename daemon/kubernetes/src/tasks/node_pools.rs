//! Application of pools of host addresses (`NodeIPPool`) to the servers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ipam_api::Problem;
use ipam_api::client::{Call, Expect, with_query};
use ipam_api::limits::NODE_POOL_ROUNDS_MAX;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::{Pool, PoolStatus, Resource, Subnet};
use kube::Client;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::confirm::confirm_missing;
use super::node_pool_status::{Findings, NodePoolPublisher};
use super::write::{Outcome, write};
use crate::absent::Absent;
use crate::backoff::Backoff;
use crate::custom::foreign;
use crate::mirror::Row;
use crate::node_pools::{Known, NodePoolView, NodeRange, Own, Step, SubnetRow, kind, plan};
use crate::servers::{Servers, each, is_passing, path};
use crate::shared::Shared;

/// State of the objects that a round depends on: uid, generation and reset by name.
type Print = BTreeMap<ObjectName, (String, i64, Option<String>)>;

/// Task that applies the objects.
struct NodePools<'a, S> {
    shared: &'a Shared<S>,
    client: &'a Client,
    manager: String,
    subnets: BTreeMap<Name, SubnetRow>,
    pools: BTreeMap<ObjectName, Own>,
    refusals: BTreeMap<ObjectName, Problem>,
    absent: Absent<ObjectName>,
    publisher: NodePoolPublisher<'a, S>,
}

/// Applies the objects, for as long as the watcher runs.
pub(crate) async fn apply_node_pools(shared: &Shared<impl Servers>, client: &Client) {
    let mut task = NodePools {
        shared,
        client,
        manager: shared.settings.node_pool_manager(),
        subnets: BTreeMap::new(),
        pools: BTreeMap::new(),
        refusals: BTreeMap::new(),
        absent: Absent::default(),
        publisher: NodePoolPublisher::new(shared, client),
    };
    let interval = shared.settings.status_interval.min(shared.settings.scan_interval);
    let mut backoff = Backoff::default();
    let (mut refresh_at, mut done, mut failing_since) = (Instant::now(), Print::new(), None);
    loop {
        let (is_synced, print) = task.view(|view| (view.listed.is_synced(), print(view)));
        let is_due = Instant::now() >= refresh_at || print != done;
        if !is_synced || !is_due {
            tokio::select! {
                () = shared.wake.node_pools.notified() => {}
                () = tokio::time::sleep_until(refresh_at), if is_synced => {}
            }
            continue;
        }
        match task.rounds().await {
            Ok(()) => {
                backoff.reset();
                (refresh_at, done, failing_since) = (Instant::now() + interval, print, None);
                shared.note(|status| status.node_pools_compared += 1);
            }
            Err(problem) => {
                shared.refused(&problem);
                let since = *failing_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= interval.min(Duration::from_secs(10)) {
                    task.publisher.unreachable(&problem).await;
                }
                backoff.wait().await;
            }
        }
    }
}

fn print(view: &NodePoolView) -> Print {
    let one = view
        .listed
        .iter()
        .map(|(name, facts)| (name.clone(), (facts.uid.clone(), facts.generation, facts.reset.clone())));
    one.collect()
}

impl<S: Servers> NodePools<'_, S> {
    fn view<T>(&self, read: impl FnOnce(&mut NodePoolView) -> T) -> T {
        read(&mut self.shared.views().node_pools)
    }

    /// Compares all objects with the servers, until nothing is left to write.
    async fn rounds(&mut self) -> Result<(), Problem> {
        self.publisher.announce().await;
        for _ in 0..NODE_POOL_ROUNDS_MAX {
            self.read().await?;
            self.find_absent().await;
            if !self.round().await? {
                break;
            }
        }
        let objects = self.objects();
        let known = Known { manager: &self.manager, objects, subnets: &self.subnets, pools: &self.pools };
        let findings = Findings { pools: &self.pools, refusals: &self.refusals, known: &known };
        self.publisher.publish(&findings).await
    }

    fn objects(&self) -> BTreeMap<ObjectName, NodeRange> {
        self.view(|view| {
            let readable = view
                .listed
                .iter()
                .filter_map(|(name, facts)| Some((name.clone(), facts.range.as_ref().ok()?.clone())));
            readable.collect()
        })
    }

    /// Reads the subnets, and the pools of this manager.
    async fn read(&mut self) -> Result<(), Problem> {
        let mut subnets = BTreeMap::new();
        each(&self.shared.servers, &path(&["subnets"]), |one: Resource<Subnet, IgnoredAny>| {
            let Resource { spec, meta, .. } = one;
            let is_own = spec.managed_by.as_deref() == Some(self.manager.as_str());
            let row = SubnetRow { network: spec.network, cidr: spec.cidr, is_own, revision: meta.revision };
            subnets.insert(spec.name, row);
        })
        .await?;
        let list = with_query(&path(&["pools"]), "managed_by", &self.manager);
        let mut pools = BTreeMap::new();
        each(&self.shared.servers, &list, |one: Resource<Pool, PoolStatus>| pools.extend(own(one))).await?;
        (self.subnets, self.pools) = (subnets, pools);
        Ok(())
    }

    /// Finds resources whose objects no longer exist although no deletion was watched.
    async fn find_absent(&mut self) {
        let subnets = self.subnets.iter().filter(|(_, subnet)| subnet.is_own);
        let subnets = subnets.filter_map(|(name, _)| ObjectName::new(name.as_str()).ok());
        let names: BTreeSet<ObjectName> = self.pools.keys().cloned().chain(subnets).collect();
        let absent: BTreeSet<ObjectName> = self.view(|view| {
            let is_absent = |name: &ObjectName| view.listed.get(name).is_none() && !view.is_gone(name);
            names.into_iter().filter(|name| is_absent(name)).collect()
        });
        let due = self.absent.scan(absent, Instant::now(), self.shared.settings.scan_interval);
        for (name, is_missing) in confirm_missing(self.shared, self.client, &kind(), due).await {
            self.absent.forget(&name);
            if is_missing {
                self.view(|view| view.end(name));
            }
        }
    }

    /// Takes the next steps. Returns true if the servers have changed anything.
    async fn round(&mut self) -> Result<bool, Problem> {
        let unreadable = self.view(|view| {
            let all = view.listed.iter();
            let all = all.filter_map(|(name, facts)| Some((name.clone(), facts.range.clone().err()?)));
            all.collect::<BTreeMap<_, _>>()
        });
        self.refusals = unreadable;
        let objects = self.objects();
        let known = Known { manager: &self.manager, objects, subnets: &self.subnets, pools: &self.pools };
        let steps = {
            let views = self.shared.views();
            plan(&known, |name| views.node_pools.is_gone(name))
        };
        let mut has_changed = false;
        for step in steps {
            let (of, call) = match step {
                Step::Keep(_) => continue,
                Step::Refuse(name, problem) => {
                    self.refusals.insert(name, problem);
                    continue;
                }
                Step::DeletePool(name, revision) => {
                    let own = path(&["pools", name.as_str()]);
                    let call = Call::delete(own).query("manager", &self.manager).query("drain", "true");
                    (name, call.expect(Expect::Revision(revision)))
                }
                Step::DeleteSubnet(name, revision) => {
                    let call =
                        Call::delete(path(&["subnets", name.as_str()])).query("manager", &self.manager);
                    let Ok(name) = ObjectName::new(name.as_str()) else { continue };
                    (name, call.expect(Expect::Revision(revision)))
                }
                Step::PutSubnet(name, spec) => {
                    let call = Call::put(path(&["subnets", spec.name.as_str()])).json(&spec)?;
                    (name, call.expect(Expect::Absent))
                }
                Step::PutPool(name, ..) if self.refusals.contains_key(&name) => continue,
                Step::PutPool(name, spec, expect) => {
                    let call = Call::put(path(&["pools", spec.name.as_str()])).json(&spec)?;
                    (name, call.expect(expect))
                }
            };
            match self.send(call).await {
                Ok(()) => has_changed = true,
                Err(problem) if is_passing(&problem) => return Err(problem),
                Err(problem) => {
                    self.shared.note(|status| status.refuse(problem.code));
                    self.refusals.insert(of, problem);
                }
            }
        }
        Ok(has_changed)
    }

    /// Sends a write. A conflict with another writer is no error: the next round reads the present state.
    async fn send(&self, call: Call) -> Result<(), Problem> {
        let plain = call.path().split('?').next().unwrap_or_default().to_owned();
        let is_delete = call.body().is_none();
        let outcome = write::<Resource<Managed, IgnoredAny>>(&self.shared.servers, plain, call).await?;
        match outcome {
            Outcome::Done(_) => Ok(()),
            Outcome::Raced { problem, .. } if is_passing(&problem) => Err(problem),
            Outcome::Raced { present: Some(present), .. } => match present.spec.managed_by.as_deref() {
                Some(by) if by == self.manager => Ok(()),
                by => Err(foreign("Resource", &present.spec.name, by)),
            },
            Outcome::Raced { present: None, .. } if is_delete => Ok(()),
            // A resource that this one refers to does not exist.
            Outcome::Raced { problem, present: None } => Err(problem),
        }
    }
}

/// Part of a resource that tells its manager.
#[derive(Debug, serde::Deserialize)]
struct Managed {
    name: ObjectName,
    managed_by: Option<String>,
}

fn own(one: Resource<Pool, PoolStatus>) -> Option<(ObjectName, Own)> {
    let name = ObjectName::new(one.spec.name.as_str()).ok()?;
    let row = Row { revision: one.meta.revision, spec: one.spec };
    Some((name, Own { row, status: one.status }))
}
