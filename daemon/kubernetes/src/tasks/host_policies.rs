//! Roll-out of host policies: writes of policies of kubernetes-nmstate.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ipam_api::brand::HOSTNAME_LABEL;
use ipam_api::client::with_query;
use ipam_api::host_policy::HostPolicy;
use ipam_api::limits::{HOST_POLICY_FAILURES_MAX, HOST_POLICY_WRITTEN_MS};
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::{Labels, Resource};
use ipam_api::{Code, Problem};
use kube::Client;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::host_policy_ends::{Ends, Pair};
use super::host_policy_write::{Failed, Labeled, Writer};
use crate::backoff::Backoff;
use crate::host_policies::{Action, Blocked, Host, NncpFacts, Policy, Rollout, object_name, plan, rollout};
use crate::servers::{Servers, each, is_passing, path};
use crate::shared::{Shared, short};

/// Shortest time between two rounds, so that many changes are one round.
const ROUND: Duration = Duration::from_millis(100);

/// Node of a policy.
type Key = Pair;

/// Object that was written, before the watch shows it.
struct Written {
    /// Uid of the object that it replaces.
    replaces: Option<String>,
    at: Instant,
}

struct HostPolicies<'a, S> {
    shared: &'a Shared<S>,
    writer: Writer<'a, S>,
    ends: Ends<'a, S>,
    /// True once the servers have answered with their policies.
    policies: BTreeMap<Name, Policy>,
    written: BTreeMap<Key, Written>,
    /// Nodes whose last attempt has failed, with the number of attempts.
    failed: BTreeMap<Key, (Blocked, u32)>,
    /// Time of the last comparison of each object with what the servers would render.
    compared: BTreeMap<Key, Instant>,
    stale: BTreeMap<Key, ()>,
}

/// State of the cluster in one round.
struct Seen {
    nodes: BTreeMap<ObjectName, Labels>,
    objects: BTreeMap<ObjectName, NncpFacts>,
    resets: BTreeMap<ObjectName, String>,
    /// Nodes whose host name another node has, which is the value.
    twins: BTreeMap<ObjectName, ObjectName>,
}

impl Seen {
    fn labeled(&self, node: &ObjectName) -> Option<Labeled<'_>> {
        Some(Labeled { labels: self.nodes.get(node)?, twin: self.twins.get(node) })
    }
}

/// Nodes with an ambiguous host name, each with another node of this host name.
fn twins(nodes: &BTreeMap<ObjectName, Labels>) -> BTreeMap<ObjectName, ObjectName> {
    let (mut first, mut twins) = (BTreeMap::new(), BTreeMap::new());
    for (node, labels) in nodes {
        let Some(hostname) = labels.get(HOSTNAME_LABEL) else { continue };
        if let Some(twin) = first.get(hostname).copied() {
            twins.insert(ObjectName::clone(node), ObjectName::clone(twin));
            twins.entry(ObjectName::clone(twin)).or_insert_with(|| node.clone());
        } else {
            first.insert(hostname, node);
        }
    }
    twins
}

/// Rolls host policies out, for as long as the watcher runs.
pub(crate) async fn roll_out(shared: &Shared<impl Servers>, client: &Client) {
    shared.synced().await;
    let mut task = HostPolicies {
        shared,
        writer: Writer { shared, client },
        ends: Ends::new(shared, client),
        policies: BTreeMap::new(),
        written: BTreeMap::new(),
        failed: BTreeMap::new(),
        compared: BTreeMap::new(),
        stale: BTreeMap::new(),
    };
    let interval = shared.settings.status_interval.min(shared.settings.scan_interval);
    let (mut backoff, mut refresh_at, mut done) = (Backoff::default(), Instant::now(), None);
    let mut released = None;
    loop {
        let (version, nodes) = {
            let view = &shared.views().host_policies;
            (view.version, view.nodes_version)
        };
        if done == Some(version) && Instant::now() < refresh_at {
            tokio::select! {
                () = shared.wake.host_policies.notified() => {}
                () = tokio::time::sleep_until(refresh_at) => {}
            }
            tokio::time::sleep(ROUND).await;
            continue;
        }
        let releases = Instant::now() >= refresh_at || released != Some(nodes);
        match task.round(releases).await {
            Ok(()) => {
                backoff.reset();
                done = Some(version);
                if releases {
                    (refresh_at, released) = (Instant::now() + interval, Some(nodes));
                }
                shared.note(|status| status.host_policies_compared += 1);
            }
            Err(problem) => {
                shared.refused(&problem);
                backoff.wait().await;
            }
        }
    }
}

impl<S: Servers> HostPolicies<'_, S> {
    /// Takes one step of each policy, and releases addresses if it may be time.
    async fn round(&mut self, releases: bool) -> Result<(), Problem> {
        let (is_served, is_known) = {
            let views = self.shared.views();
            let (view, policies) = (&views.host_policies, &views.custom.host_policies);
            let has_resets = view.has_policies == Some(false) || policies.listed.is_synced();
            (view.is_served, view.objects.listed.is_synced() && has_resets)
        };
        self.read().await?;
        if is_served != Some(true) || !is_known {
            // Addresses of deleted nodes are released in any case.
            let none = BTreeSet::new();
            let is_missing = is_served == Some(false);
            if is_missing {
                self.show_missing();
            }
            return self.ends.release(&self.policies, &self.nodes(), is_missing.then_some(&none)).await;
        }
        let seen = self.seen();
        self.written.retain(|key, written| is_unseen(key, written, &seen));
        self.failed.retain(|(policy, node), _| {
            let of = self.policies.get(policy);
            of.is_some_and(|of| seen.nodes.get(node).is_some_and(|labels| of.matches(labels)))
        });
        let mut failure = None;
        for policy in self.policies.values().cloned().collect::<Vec<_>>() {
            if let Err(problem) = self.step(&policy, &seen).await {
                failure = Some(problem);
            }
        }
        let known: Vec<Name> = self.policies.keys().cloned().collect();
        self.compared.retain(|(policy, _), _| known.contains(policy));
        self.forget_rollouts();
        self.ends.delete(&self.policies, &seen.nodes, &seen.objects).await;
        if releases {
            // An object that was deleted in this round counts, too, until the watch shows its deletion.
            let owners = seen.objects.values().filter_map(|object| object.owner.as_ref());
            let owned = owners.map(|owner| (owner.policy.clone(), owner.node.clone()));
            let configured = owned.chain(self.written.keys().cloned()).collect();
            self.ends.release(&self.policies, &seen.nodes, Some(&configured)).await?;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Reads the policies of the realm.
    async fn read(&mut self) -> Result<(), Problem> {
        let list = with_query(&path(&["host-policies"]), "realm", self.shared.settings.realm.as_str());
        let mut policies = BTreeMap::new();
        each(&self.shared.servers, &list, |one: Resource<HostPolicy, IgnoredAny>| {
            policies.insert(one.spec.name.clone(), Policy::of(&one.spec));
        })
        .await?;
        self.policies = policies;
        Ok(())
    }

    fn nodes(&self) -> BTreeMap<ObjectName, Labels> {
        let views = self.shared.views();
        views.nodes.listed.iter().map(|(name, facts)| (name.clone(), facts.labels.clone())).collect()
    }

    fn seen(&self) -> Seen {
        let nodes = self.nodes();
        let views = self.shared.views();
        let objects = views.host_policies.objects.listed.iter();
        let objects = objects.map(|(name, facts)| (name.clone(), facts.clone())).collect();
        let resets = views.custom.host_policies.listed.iter();
        let resets = resets.filter_map(|(name, facts)| Some((name.clone(), facts.reset.clone()?)));
        let twins = twins(&nodes);
        Seen { nodes, objects, resets: resets.collect(), twins }
    }

    /// Writes the next objects of a policy, and shows its progress.
    async fn step(&mut self, policy: &Policy, seen: &Seen) -> Result<(), Problem> {
        let reset = ObjectName::new(policy.name.as_str()).ok();
        let reset = reset.and_then(|name| seen.resets.get(&name)).map(String::as_str);
        let mut failure = self.compare(policy, seen).await.err();
        let hosts = self.hosts(policy, seen);
        let next = plan(policy, &hosts, reset);
        let (asked, problem) = self.take(policy, seen, reset, (&next.asked, u64::MAX)).await;
        failure = problem.or(failure);
        let room = next.room.saturating_sub(asked);
        let (_, problem) = self.take(policy, seen, reset, (&next.actions, room)).await;
        failure = problem.or(failure);
        // The objects written in this round count as being configured.
        let shown = plan(policy, &self.hosts(policy, seen), reset);
        let blocked =
            self.failed.iter().find(|((of, _), _)| *of == policy.name).map(|(_, (blocked, _))| blocked);
        self.show(&policy.name, rollout(&shown, blocked, reset));
        failure.map_or(Ok(()), Err)
    }

    /// Takes steps until there is no room, or too many fail. Returns the number of objects written.
    async fn take(
        &mut self,
        policy: &Policy,
        seen: &Seen,
        reset: Option<&str>,
        (actions, room): (&[Action], u64),
    ) -> (u64, Option<Problem>) {
        let (mut written, mut failures, mut failure) = (0, 0, None);
        for action in actions {
            if failures >= HOST_POLICY_FAILURES_MAX || written >= room {
                break;
            }
            let (node, replaced) = action.target();
            let key = (policy.name.clone(), node.clone());
            let Some(labels) = seen.labeled(node) else { continue };
            match self.writer.take(policy, labels, action, reset).await {
                Ok(()) => {
                    written += 1;
                    self.failed.remove(&key);
                    self.stale.remove(&key);
                    self.compared.insert(key.clone(), Instant::now());
                    let written = Written { replaces: replaced.cloned(), at: Instant::now() };
                    self.written.insert(key, written);
                }
                Err(Failed::Refused(problem))
                    if is_passing(&problem) && problem.code != Code::PoolExhausted =>
                {
                    failure = Some(problem);
                }
                Err(Failed::Refused(problem)) => {
                    let blocked = self.writer.blocked(policy, node, &problem).await;
                    self.fail(key, blocked);
                    failures += 1;
                }
                // The watch will show the object, or what has changed.
                Err(Failed::Rejected(kube::Error::Api(status))) if status.code == 409 => failures += 1,
                Err(Failed::Rejected(error)) => {
                    self.shared.failed(&error);
                    let (reason, message) = ("Rejected".to_owned(), short(&error));
                    self.fail(key, Blocked { node: node.clone(), reason, message });
                    failures += 1;
                }
            }
        }
        (written, failure)
    }

    fn fail(&mut self, key: Key, blocked: Blocked) {
        let attempts = self.failed.get(&key).map_or(0, |(_, attempts)| *attempts);
        self.failed.insert(key, (blocked, attempts.saturating_add(1)));
    }

    fn hosts(&self, policy: &Policy, seen: &Seen) -> Vec<Host> {
        let matching = seen.nodes.iter().filter(|(_, labels)| policy.matches(labels));
        let host = |(node, _): (&ObjectName, &Labels)| {
            let key = (policy.name.clone(), node.clone());
            let name = ObjectName::new(&object_name(&policy.name, node)).ok();
            Host {
                name: node.clone(),
                object: name.and_then(|name| seen.objects.get(&name).cloned()),
                is_written: self.written.contains_key(&key),
                is_stale: self.stale.contains_key(&key),
                failures: self.failed.get(&key).map_or(0, |(_, attempts)| *attempts),
            }
        };
        matching.map(host).collect()
    }

    /// Finds objects that the servers would render in another way, each once in the interval of scans.
    async fn compare(&mut self, policy: &Policy, seen: &Seen) -> Result<(), Problem> {
        for host in self.hosts(policy, seen) {
            let key = (policy.name.clone(), host.name.clone());
            let owner = host.object.as_ref().and_then(|object| object.owner.as_ref());
            let (Some(owner), false) = (owner, host.is_written) else { continue };
            let now = Instant::now();
            let at = *self.compared.entry(key.clone()).or_insert(now);
            if now.duration_since(at) < self.shared.settings.scan_interval {
                continue;
            }
            let Some(labels) = seen.labeled(&host.name) else { continue };
            match self.writer.digest(policy, &host.name, labels).await {
                Ok(digest) if digest != owner.rendered => {
                    self.stale.insert(key.clone(), ());
                }
                Ok(_) => {
                    self.stale.remove(&key);
                }
                Err(problem) if is_passing(&problem) => return Err(problem),
                // A refusal is shown when the step of the node is taken.
                Err(_) => {}
            }
            self.compared.insert(key, now);
        }
        Ok(())
    }

    fn show(&self, policy: &Name, rollout: Rollout) {
        let Ok(name) = ObjectName::new(policy.as_str()) else { return };
        let mut views = self.shared.views();
        if views.custom.rollouts.get(&name) == Some(&rollout) {
            return;
        }
        views.custom.rollouts.insert(name.clone(), rollout);
        // The object is compared again, and its status written.
        views.custom.host_policies.changed.insert(name);
        drop(views);
        self.shared.wake.custom.notify_one();
    }

    fn show_missing(&self) {
        let why = "the API server has no NodeNetworkConfigurationPolicy; install kubernetes-nmstate";
        for name in self.policies.keys() {
            self.show(name, Rollout::without("NmstateMissing", why));
        }
    }

    fn forget_rollouts(&self) {
        let rollouts = &mut self.shared.views().custom.rollouts;
        rollouts
            .retain(|name, _| Name::new(name.as_str()).is_ok_and(|name| self.policies.contains_key(&name)));
    }
}

/// True while the watch does not show an object that was written.
fn is_unseen((policy, node): &Key, written: &Written, seen: &Seen) -> bool {
    let shown = ObjectName::new(&object_name(policy, node)).ok();
    let shown = shown.and_then(|name| seen.objects.get(&name)).map(|object| object.uid.as_str());
    let is_same = shown.is_none() || shown == written.replaces.as_deref();
    is_same && written.at.elapsed() < Duration::from_millis(HOST_POLICY_WRITTEN_MS)
}
