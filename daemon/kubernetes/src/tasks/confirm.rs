//! Confirmation by quorum reads that pods and controllers no longer exist.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use ipam_api::limits::{KUBERNETES_CONFIRMS_PER_SCAN_MAX, KUBERNETES_READS_AT_ONCE};
use ipam_api::name::ObjectName;
use ipam_api::resource::EndpointKind;
use ipam_api::workload::{WorkloadName, WorkloadPhase};
use kube::Client;
use kube::core::ApiResource;

use crate::connection::{Kinds, Presence, is_name, list_uids, read};
use crate::controllers::ControllerId;
use crate::objects::{KUBEVIRT, Kind, MACHINE, PodFacts, VM, resource};
use crate::servers::Servers;
use crate::shared::Shared;

/// Incarnation of an endpoint whose pod the view lacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) endpoint: WorkloadName,
    pub(super) uid: String,
}

impl Candidate {
    /// Facts about an absent pod. Its other fields are unknown.
    pub(super) fn facts(self) -> PodFacts {
        PodFacts {
            endpoint: self.endpoint,
            uid: self.uid,
            phase: WorkloadPhase::Unknown,
            has_addresses: true,
            deletion_due_at: None,
            finished_at: None,
            node: None,
            is_static: false,
        }
    }
}

/// Reads the pods of candidates. Returns the candidates with an answer, each with true if its pod is deleted.
pub(super) async fn confirm(
    shared: &Shared<impl Servers>,
    client: &Client,
    candidates: Vec<Candidate>,
) -> Vec<(Candidate, bool)> {
    let (pods, machines): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| candidate.endpoint.kind == EndpointKind::Pod);
    let pod = resource("", "Pod", "pods");
    let reads = pods.into_iter().filter(|one| is_valid(&one.endpoint)).map(async |candidate| {
        let WorkloadName { namespace, name, .. } = &candidate.endpoint;
        let answer = read(client, &pod, Some(namespace.as_str()), name.as_str()).await;
        (answer.map(|presence| presence.lacks(Some(&candidate.uid))), candidate)
    });
    let reads: Vec<_> =
        futures::stream::iter(reads).buffer_unordered(KUBERNETES_READS_AT_ONCE).collect().await;
    let mut answers = Vec::new();
    for (answer, candidate) in reads {
        match answer {
            Ok(is_gone) => answers.push((candidate, is_gone)),
            Err(error) => shared.failed(&error),
        }
    }
    // The endpoint of a machine does not name the pod that the machine runs in.
    let mut by_namespace: BTreeMap<ObjectName, Vec<Candidate>> = BTreeMap::new();
    for candidate in machines.into_iter().filter(|one| is_valid(&one.endpoint)) {
        by_namespace.entry(candidate.endpoint.namespace.clone()).or_default().push(candidate);
    }
    for (namespace, candidates) in by_namespace {
        match list_uids(client, &pod, namespace.as_str()).await {
            Ok(uids) => answers.extend(with_uids(candidates, &uids)),
            Err(error) => shared.failed(&error),
        }
    }
    answers
}

/// Reads objects outside of namespaces. Returns the names with an answer, each with true if the object is
/// absent.
pub(super) async fn confirm_missing(
    shared: &Shared<impl Servers>,
    client: &Client,
    resource: &ApiResource,
    due: Vec<ObjectName>,
) -> Vec<(ObjectName, bool)> {
    let due = due.into_iter().filter(|name| is_name(name.as_str())).take(KUBERNETES_CONFIRMS_PER_SCAN_MAX);
    let reads = due.map(async |name| (read(client, resource, None, name.as_str()).await, name));
    let answers: Vec<_> =
        futures::stream::iter(reads).buffer_unordered(KUBERNETES_READS_AT_ONCE).collect().await;
    let answered = answers.into_iter().filter_map(|(answer, name)| match answer {
        Ok(presence) => Some((name, presence == Presence::Missing)),
        Err(error) => {
            shared.failed(&error);
            None
        }
    });
    answered.collect()
}

fn with_uids(candidates: Vec<Candidate>, uids: &BTreeSet<String>) -> impl Iterator<Item = (Candidate, bool)> {
    candidates.into_iter().map(|candidate| {
        let is_gone = !uids.contains(&candidate.uid);
        (candidate, is_gone)
    })
}

fn is_valid(name: &WorkloadName) -> bool {
    is_name(name.namespace.as_str()) && is_name(name.name.as_str())
}

/// True if a controller no longer exists. False if the controller exists, or if the API server doesn't know
/// its kind.
///
/// # Errors
/// Any other answer.
pub(super) async fn is_gone(client: &Client, kinds: &mut Kinds, id: &ControllerId) -> kube::Result<bool> {
    let (namespace, name) = (id.namespace.as_str(), id.name.as_str());
    if !is_name(namespace) || !is_name(name) {
        return Ok(false);
    }
    let kind = Kind::of(&id.group, &id.kind);
    let found = match kind.filter(|kind| Kind::BUILT_IN.contains(kind)) {
        Some(kind) => Some(kind.resource()),
        None => kinds.find(client, &id.group, &id.kind).await?,
    };
    let Some(resource) = found else { return Ok(false) };
    if !read(client, &resource, Some(namespace), name).await?.lacks(id.uid.as_deref()) {
        return Ok(false);
    }
    if (id.group.as_str(), id.kind.as_str()) != (KUBEVIRT, MACHINE) {
        return Ok(true);
    }
    // A stopped VM has no machine, and keeps its addresses.
    match kinds.find(client, KUBEVIRT, VM).await? {
        Some(vm) => Ok(read(client, &vm, Some(namespace), name).await? == Presence::Missing),
        None => Ok(false),
    }
}
