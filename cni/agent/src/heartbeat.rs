//! Heartbeat: readiness, boot, inventory and links of the node in one request.

use std::sync::Arc;
use std::time::Duration;

use ipam_api::client::Call;
use ipam_api::node_report::{AgentProblem, HeartbeatAnswer, HeartbeatRequest};
use ipam_api::probe::Link;
use ipam_api::problem::Problem;

use crate::inventory::reconcile;
use crate::journal::Record;
use crate::node::Node;
use crate::probing::link_report::LinkReport;
use crate::probing::wire::Wire;
use crate::release::path;

/// Time limit of one heartbeat.
const BEAT: Duration = Duration::from_secs(10);
/// Consecutive heartbeats whose inventory differs from the cluster's, before both are compared. A single one
/// may coincide with a running ADD or DEL.
const MISMATCHES: u32 = 2;

/// Sends heartbeats for as long as the agent runs.
pub async fn beat(node: Arc<Node>, wire: impl Wire) {
    let mut mismatches = 0;
    let mut has_failed = false;
    let mut report = LinkReport::default();
    loop {
        let mut pause = node.config.heartbeat_interval;
        let links = report.links(&node.config, &wire).await;
        let result = once(&node, &links).await;
        if has_failed != result.is_err() {
            has_failed = result.is_err();
            match &result {
                Ok(_) => tracing::info!("the cluster hears the heartbeat"),
                Err(problem) => tracing::warn!(%problem, "the cluster doesn't hear the heartbeat"),
            }
        }
        match result {
            Ok(answer) => {
                pause = pause.min(Duration::from_millis(answer.interval_ms));
                node.has_probes.send_if_modified(|before| {
                    std::mem::replace(before, answer.has_probes) != answer.has_probes
                });
                mismatches = if answer.inventory_matches { 0 } else { mismatches + 1 };
            }
            Err(problem) => tracing::debug!(%problem, "the heartbeat failed"),
        }
        if mismatches >= MISMATCHES {
            mismatches = 0;
            if let Err(problem) = reconcile(&node).await {
                tracing::warn!(%problem, "the inventory can't be compared with the cluster's");
            }
        }
        tokio::time::sleep(pause).await;
    }
}

/// Sends one heartbeat, and a second one if the cluster has recorded another boot.
async fn once(node: &Node, links: &[Link]) -> Result<HeartbeatAnswer, Problem> {
    let number = match node.journal.attachments().boot() {
        Some((id, number)) if *id == node.boot_id => *number,
        Some((_, number)) => number.saturating_add(1),
        None => 1,
    };
    let answer = send(node, number, links).await?;
    let number = if answer.boot_id == node.boot_id {
        answer.boot_number
    } else {
        answer.boot_number.saturating_add(1)
    };
    record(node, number).await?;
    // The boot number was lost with the journal, so the heartbeat is repeated with the next number.
    if answer.boot_id == node.boot_id { Ok(answer) } else { send(node, number, links).await }
}

async fn send(node: &Node, boot_number: u64, links: &[Link]) -> Result<HeartbeatAnswer, Problem> {
    let problem = problem(node);
    let inventory = node.journal.attachments().inventory(&node.config.node).digest();
    let request = HeartbeatRequest {
        boot_id: node.boot_id.clone(),
        boot_number,
        ready: problem.is_none(),
        problem,
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        inventory,
        links: links.to_vec(),
    };
    let call = Call::post(path(node, "heartbeat")).json(&request)?.repeatable().within(BEAT);
    node.cluster.send(call).await?.read()
}

/// Reason why the node can't serve ADD.
fn problem(node: &Node) -> Option<AgentProblem> {
    if !node.journal.is_writable() {
        return Some(AgentProblem::JournalUnwritable);
    }
    // The agent's socket stays open without its file, but no plugin finds it.
    let is_missing = matches!(node.config.socket.try_exists(), Ok(false));
    is_missing.then_some(AgentProblem::SocketUnavailable)
}

async fn record(node: &Node, number: u64) -> Result<(), Problem> {
    let boot = (node.boot_id.clone(), number);
    if node.journal.attachments().boot() == Some(&boot) {
        return Ok(());
    }
    let record = Record::Boot { id: boot.0, number };
    Ok(node.journal.write(record).await?.synced().await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fakes::{FakeCluster, FakeWire};

    /// First heartbeat of an agent, and the answer's effect.
    async fn first(more: &str, wire: FakeWire) -> (serde_json::Value, bool) {
        let dir = tempfile::tempdir().unwrap();
        let cluster = FakeCluster::default();
        let node = cluster.node(dir.path(), more).await;
        let beats = tokio::spawn(beat(node.clone(), wire));
        // The effect of the first answer precedes the second heartbeat.
        while cluster.model().heartbeats.len() < 2 {
            cluster.asked.notified().await;
        }
        beats.abort();
        let has_probes = *node.has_probes.borrow();
        (cluster.model().heartbeats.swap_remove(0)["links"].take(), has_probes)
    }

    #[tokio::test]
    async fn a_heartbeat_has_the_links_that_the_agent_can_probe() {
        let plain = serde_json::json!([{"network": "default", "cidr": "10.9.0.0/24"}]);
        assert_eq!(first("", FakeWire::default()).await, (plain, true));
        let link = "[[link]]\ninterface = \"br0\"\nnetwork = \"blue\"\ncidrs = [\"10.0.0.0/16\"]";
        let blue = serde_json::json!([{"network": "blue", "cidr": "10.0.0.0/16"}]);
        assert_eq!(first(link, FakeWire::default()).await, (blue, true));
        let none = (serde_json::Value::Null, false);
        assert_eq!(first("probes = false", FakeWire::default()).await, none);
        assert_eq!(first("", FakeWire { is_forbidden: true, ..FakeWire::default() }).await, none);
    }
}
