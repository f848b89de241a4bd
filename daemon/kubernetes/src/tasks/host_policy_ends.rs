//! Ends of host policies on single nodes: deletions of objects, and releases of addresses.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::client::{Call, with_query};
use ipam_api::limits::KUBERNETES_CONFIRMS_PER_SCAN_MAX;
use ipam_api::name::{Name, ObjectName};
use ipam_api::request::Released;
use ipam_api::resource::{EndpointKey, Labels, Node, Resource};
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use kube::Client;
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::time::Instant;

use super::confirm::confirm_missing;
use crate::absent::Absent;
use crate::connection::Target;
use crate::host_policies::{NncpFacts, Policy, kind};
use crate::objects::resource;
use crate::rows::{AgentRow, HostRow};
use crate::servers::{Servers, each, path};
use crate::shared::Shared;

/// Policies of the realm by their names.
type Policies = BTreeMap<Name, Policy>;
/// Labels of the nodes of the cluster.
type Nodes = BTreeMap<ObjectName, Labels>;

/// Policy and one of its nodes.
pub(super) type Pair = (Name, ObjectName);

/// State of a node for which a policy had an object or addresses.
enum Standing {
    /// The policy applies to the node, or the state of the node is unknown.
    Keeps,
    /// The node exists, and the policy does not apply to it.
    Left,
    /// The node was deleted.
    Gone,
}

/// Ends of policies on single nodes.
pub(super) struct Ends<'a, S> {
    shared: &'a Shared<S>,
    client: &'a Client,
    absent: Absent<ObjectName>,
    /// Nodes that a policy does not apply to any more.
    left: Absent<Pair>,
}

impl<'a, S: Servers> Ends<'a, S> {
    pub(super) fn new(shared: &'a Shared<S>, client: &'a Client) -> Self {
        Self { shared, client, absent: Absent::default(), left: Absent::default() }
    }

    fn standing(&self, policy: &Policy, node: &ObjectName, nodes: &Nodes) -> Standing {
        match nodes.get(node) {
            Some(labels) if policy.matches(labels) => Standing::Keeps,
            Some(_) => Standing::Left,
            None if self.shared.views().nodes.is_gone(node) => Standing::Gone,
            None => Standing::Keeps,
        }
    }

    /// Deletes objects without a policy or a node.
    pub(super) async fn delete(
        &self,
        policies: &Policies,
        nodes: &Nodes,
        objects: &BTreeMap<ObjectName, NncpFacts>,
    ) {
        let resource = kind();
        for (name, facts) in objects {
            let Some(owner) = &facts.owner else { continue };
            let standing = policies.get(&owner.policy).map(|of| self.standing(of, &owner.node, nodes));
            let is_over = match standing {
                None | Some(Standing::Left | Standing::Gone) => true,
                Some(Standing::Keeps) => false,
            };
            if !is_over || facts.is_deleting {
                continue;
            }
            let target =
                Target { resource: &resource, namespace: None, name: name.as_str(), uid: &facts.uid };
            if let Err(error) = target.delete(self.client).await {
                self.shared.failed(&error);
            }
        }
    }

    /// Releases the addresses of nodes that were deleted, or to which their policy no longer applies.
    ///
    /// A running node keeps its addresses while it is in `configured`, since its object still applies them.
    /// While the objects are unknown, all nodes keep their addresses.
    ///
    /// # Errors
    /// Failure of a read or a release.
    pub(super) async fn release(
        &mut self,
        policies: &Policies,
        nodes: &Nodes,
        configured: Option<&BTreeSet<Pair>>,
    ) -> Result<(), Problem> {
        let list = with_query(&path(&["endpoints"]), "realm", self.shared.settings.realm.as_str());
        let list = with_query(&list, "kind", "host");
        let mut held: Vec<(EndpointKey, Vec<u64>)> = Vec::new();
        each(&self.shared.servers, &list, |row: HostRow| {
            let allocations = row.allocations();
            held.extend(row.uid.is_none().then_some((row.key, allocations)));
        })
        .await?;
        // The ids are read before the confirmation, so that later allocations have other ids.
        let mut leaving: BTreeMap<Pair, Vec<u64>> = BTreeMap::new();
        let mut gone: BTreeMap<ObjectName, Vec<u64>> = BTreeMap::new();
        let mut absent = BTreeSet::new();
        for (EndpointKey { namespace, name, .. }, mut ids) in held {
            let Some(policy) = Name::new(namespace.as_str()).ok().and_then(|name| policies.get(&name)) else {
                continue;
            };
            match self.standing(policy, &name, nodes) {
                Standing::Left => {
                    let pair = (policy.name.clone(), name);
                    leaving.extend(configured.is_some_and(|all| !all.contains(&pair)).then_some((pair, ids)));
                }
                Standing::Gone => gone.entry(name).or_default().append(&mut ids),
                Standing::Keeps if nodes.contains_key(&name) => {}
                Standing::Keeps => {
                    absent.insert(name.clone());
                    gone.entry(name).or_default().append(&mut ids);
                }
            }
        }
        let (now, interval) = (Instant::now(), self.shared.settings.scan_interval);
        for pair in self.left.scan(leaving.keys().cloned().collect(), now, interval) {
            self.release_all(leaving.remove(&pair).unwrap_or_default()).await?;
            self.left.forget(&pair);
        }
        let due = self.absent.scan(absent.clone(), now, interval);
        let known = gone.keys().filter(|node| !absent.contains(*node)).cloned();
        let due: Vec<ObjectName> = known.chain(due).take(KUBERNETES_CONFIRMS_PER_SCAN_MAX).collect();
        // A node may have returned since, under another uid.
        let answers = confirm_missing(self.shared, self.client, &resource("", "Node", "nodes"), due).await;
        for (node, is_missing) in answers {
            self.absent.forget(&node);
            // A host outside of the cluster may be in a namespace with the name of the policy.
            if !is_missing || self.is_elsewhere(&node).await? {
                continue;
            }
            self.shared.views().end_node(node.clone());
            self.release_all(gone.remove(&node).unwrap_or_default()).await?;
        }
        Ok(())
    }

    /// True if another system manages a node that the cluster lacks, or if its agent was heard lately.
    async fn is_elsewhere(&self, node: &ObjectName) -> Result<bool, Problem> {
        let settings = &self.shared.settings;
        let own = path(&["nodes", settings.realm.as_str(), node.as_str()]);
        let row: Option<Resource<Node, IgnoredAny>> = self.find(&own).await?;
        if row.is_some_and(|row| row.spec.managed_by != Some(settings.manager())) {
            return Ok(true);
        }
        let agent: Option<AgentRow> = self.find(&format!("{own}/agent")).await?;
        Ok(agent.is_some_and(|agent| agent.is_heard(Timestamp::now())))
    }

    /// Reads a path; none if nothing exists there.
    async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Problem> {
        match self.shared.servers.send(Call::get(path)).await {
            Ok(answer) => answer.read().map(Some),
            Err(problem) if problem.code == Code::NotFound => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Releases allocations by their ids. Newer allocations of the same addresses stay.
    async fn release_all(&self, allocations: Vec<u64>) -> Result<(), Problem> {
        for id in allocations {
            let own = path(&["allocations", &id.to_string()]);
            match self.shared.servers.send(Call::delete(own)).await {
                Ok(answer) => {
                    let released = answer.read::<Released>()?.addresses.len() as u64;
                    self.shared.note(|status| status.reclaimed += released);
                }
                Err(problem) if matches!(problem.code, Code::NotFound | Code::AllocationChanged) => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(())
    }
}
