//! ADD of a pod: its facts are added to the request, and its failure becomes an event.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::client::Answer;
use ipam_api::problem::Problem;
use ipam_api::resource::{EndpointKey, EndpointKind};
use tokio::time::Instant;

use crate::attachment::{self, Container, Request};
use crate::config::UnknownPod;
use crate::node::Node;
use crate::pods::{PodView, Subject, Wanted, fill, is_allowed, unknown};
use crate::probing::wire::Wire;

/// Divisor of the budget: the share of it in which the pod must be found.
const FIND_PART: u32 = 3;

/// Allocates the addresses of an attachment. The request of a pod gets the facts that the agent has.
///
/// # Errors
/// `pod-unknown`, or as [`attachment::add`].
pub async fn add(
    node: Arc<Node>,
    wire: impl Wire + 'static,
    mut request: Request,
    container: Container,
    budget: Duration,
) -> Result<Answer, Problem> {
    let began = Instant::now();
    let Some(view) = node.pods.clone() else {
        return attachment::add(node, wire, request, container, budget).await;
    };
    let wanted = wanted(&request);
    let mut uid = wanted.as_ref().and_then(|wanted| wanted.uid.clone());
    let described = match &wanted {
        Some(wanted) => describe(&node, &view, &mut request, wanted, budget / FIND_PART, &mut uid).await,
        None => Ok(()),
    };
    let result = match described {
        Ok(()) => {
            let left = budget.saturating_sub(began.elapsed());
            attachment::add(node, wire, request, container, left).await
        }
        Err(problem) => Err(problem),
    };
    if let (Err(problem), Some(Wanted { namespace, name, .. })) = (&result, wanted) {
        view.report(&Subject { namespace, name, uid }, problem);
    }
    result
}

/// Pod that requests addresses; `None` for any other endpoint.
fn wanted(request: &Request) -> Option<Wanted> {
    let EndpointKey { kind, namespace, name, .. } = request.endpoint()?;
    let uid = request.uid();
    (kind == EndpointKind::Pod).then_some(Wanted { namespace, name, uid })
}

/// Adds the facts of the pod to the request. Stores the uid of its object in `uid`.
async fn describe(
    node: &Node,
    view: &PodView,
    request: &mut Request,
    wanted: &Wanted,
    within: Duration,
    uid: &mut Option<String>,
) -> Result<(), Problem> {
    match view.find(&node.journal, wanted, within).await {
        Ok(pod) => {
            fill(request.body(), &pod);
            *uid = Some(pod.uid);
            Ok(())
        }
        Err(why) => {
            let is_configured = node.config.unknown_pod == UnknownPod::Allow && is_allowed(request.body());
            if is_configured || lives(node, request, wanted) {
                let Wanted { namespace, name, .. } = wanted;
                tracing::info!(%namespace, %name, why, "an unknown pod is served");
                return Ok(());
            }
            Err(unknown(wanted, &why))
        }
    }
}

/// Returns true if the pod has an attachment on this node, so that the servers find its addresses by its uid.
fn lives(node: &Node, request: &Request, wanted: &Wanted) -> bool {
    let Some((endpoint, uid)) = request.endpoint().zip(wanted.uid.as_ref()) else { return false };
    let attachments = node.journal.attachments();
    attachments.iter().any(|entry| {
        let is_held = !entry.is_deleting() && !entry.allocations.is_empty();
        is_held && entry.uid.as_ref() == Some(uid) && entry.endpoint.as_ref() == Some(&endpoint)
    })
}
