//! Claims of nodes about their pods, verified by the reports of a watcher.

use crate::command::{Allocate, Cause, Controller, Refusal};
use crate::state::State;
use crate::state::row::ReportedPod;
use crate::value::Text;
use crate::value::cause::Claimed;
use ipam_api::access::NodeKey;
use ipam_api::name::{Name, ObjectName};

impl State {
    /// Returns true if claims of the nodes of a realm are verified.
    #[must_use]
    pub fn is_verified(&self, realm: &Name) -> bool {
        self.reported_realm(realm).is_some_and(|(_, row)| row.until_ms > self.log_time_ms())
    }

    /// Request of a node with the labels of its pod. None if the realm isn't verified or the endpoint is no
    /// pod: pools then select by the claims of the request.
    ///
    /// # Errors
    /// `pod-unreported` for an unknown pod, `claim-mismatch` for a claim that the reported pod contradicts.
    pub(crate) fn verified(&self, node: &NodeKey, request: &Allocate) -> Result<Option<Allocate>, Refusal> {
        if !self.is_verified(&node.realm) {
            return Ok(None);
        }
        let refuted = |claimed| {
            let (node, endpoint) = (node.clone(), request.endpoint.clone());
            Err(Cause::ClaimMismatch { node, endpoint, claimed }.into())
        };
        if !ReportedPod::is_kind(request.endpoint.kind) {
            return match of_no_pod(request) {
                Some(claimed) => refuted(claimed),
                None => Ok(None),
            };
        }
        let Some(uid) = &request.uid else { return refuted(Claimed::Uid) };
        let Some(pod) = self.reported_pod(&node.realm, uid) else {
            return Err(Cause::PodUnreported { realm: node.realm.clone(), uid: Text::clone(uid) }.into());
        };
        match contradicted(pod, node, request) {
            Some(claimed) => refuted(claimed),
            None => Ok(Some(Allocate { labels: pod.labels.clone(), ..request.clone() })),
        }
    }
}

/// First claim of a request that its pod contradicts. An omitted claim is no contradiction.
fn contradicted(pod: &ReportedPod, node: &NodeKey, request: &Allocate) -> Option<Claimed> {
    if pod.node != node.name {
        return Some(Claimed::Node);
    }
    if pod.endpoint != request.endpoint {
        return Some(Claimed::Name);
    }
    let mut labels = request.labels.iter();
    if let Some((key, _)) = labels.find(|(key, value)| pod.labels.get(*key) != Some(value)) {
        return Some(Claimed::Label { key: key.excerpt() });
    }
    let controller = request.stickiness.controller.as_ref()?;
    let is_same = |own: &Controller| {
        (&own.group, &own.kind, &own.name) == (&controller.group, &controller.kind, &controller.name)
            && own.may_be(controller)
    };
    (!pod.controllers.iter().any(is_same)).then_some(Claimed::Controller)
}

/// Claim of a request for an endpoint that is no pod. Pools could select by the claim, which has no proof.
fn of_no_pod(request: &Allocate) -> Option<Claimed> {
    if let Some((key, _)) = request.labels.first_key_value() {
        return Some(Claimed::Label { key: key.excerpt() });
    }
    if request.stickiness.controller.is_some() {
        return Some(Claimed::Controller);
    }
    (request.endpoint.namespace != ObjectName::default_name()).then_some(Claimed::Namespace)
}
