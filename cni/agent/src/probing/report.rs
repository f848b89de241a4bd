//! Report of probes to the cluster.

use std::time::Duration;

use ipam_api::client::Call;
use ipam_api::limits::PROBE_MACS_MAX;
use ipam_api::mac::MacAddress;
use ipam_api::probe::{ProbesAnswer, ProbesRequest};
use ipam_api::problem::Problem;

use crate::node::Node;
use crate::probe::Outcome;
use crate::release::path;

/// Sends results of this node's probes.
///
/// # Errors
/// The servers' problem.
pub(crate) async fn report(
    node: &Node,
    request: &ProbesRequest,
    within: Duration,
) -> Result<ProbesAnswer, Problem> {
    let call = Call::post(path(node, "probes")).json(request)?.repeatable().within(within);
    node.cluster.send(call).await?.read()
}

/// MAC addresses of an outcome, for a report.
#[must_use]
pub(crate) fn macs(outcome: Outcome) -> Vec<MacAddress> {
    outcome.macs().map(|mac| MacAddress::new(mac.octets())).take(PROBE_MACS_MAX).collect()
}
