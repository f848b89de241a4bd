//! `/v1/nodes/{realm}/{name}/…`: reports of a node's agent, and the attachments of the node.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::extract::Path;
use ipam_api::access::{NodeKey, Target, Verb};
use ipam_api::limits::{HEARTBEAT_INTERVAL_MS, HEARTBEAT_TICK_MS, JSON_INTEGER_MAX};
use ipam_api::name::{Name, ObjectName};
use ipam_api::node_report::{
    AgentReport, HeartbeatAnswer, HeartbeatRequest, Inventory, NodeAgent, NodeAttachment, OrphansReleased,
    OrphansRequest,
};
use ipam_api::probe;
use ipam_api::resource::Page;
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use ipam_machine::command::{
    AgentReadiness, Heartbeat, Link, Orphan, ReleaseOrphans, ReportedBoot, Text, Via,
};
use ipam_machine::{Action, Answer, Applied, State};
use serde::Deserialize;
use tokio::time::Instant;

use crate::http::list::{Listable, Row, Shape};
use crate::http::request::{ApiError, ApiResponse, App, Consistency, Read, Write, in_path, page_limit};

pub(super) type NodePath = (String, String);

pub(in crate::http) async fn heartbeat(
    Path(path): Path<NodePath>,
    write: Write,
) -> Result<ApiResponse<HeartbeatAnswer>, ApiError> {
    let node = node_at(&path)?;
    let request: HeartbeatRequest = write.read()?;
    let reported = Inventory::of(&request.inventory).ok_or_else(|| {
        let detail = "the digest of an inventory has 16 hexadecimal digits in lower case";
        Problem::new(Code::InvalidField, detail).at("/inventory/digest")
    })?;
    let readiness =
        AgentReadiness { ready: request.ready, problem: request.problem.filter(|_| !request.ready) };
    let action = Action::Heartbeat(Heartbeat {
        node: node.clone(),
        boot: ReportedBoot { id: Text::given(request.boot_id), number: request.boot_number },
        readiness,
        agent_version: Text::given(request.agent_version),
        links: links(request.links),
        inventory: reported,
    });
    action.check()?;
    write.app.who(&write.caller).await?.check((Verb::Report, Target::Node))?;
    if !write.dry_run {
        write.app.next_heartbeat_tick(write.caller.deadline).await;
    }
    let Applied { revision, answer, .. } = write.propose_via(Via::Cni, action).await?;
    let Answer::Heard { boot, inventory } = answer else { return Err(another_answer().into()) };
    let body = HeartbeatAnswer {
        boot_number: boot.number,
        boot_id: boot.id.to_string(),
        inventory_matches: inventory == reported,
        interval_ms: HEARTBEAT_INTERVAL_MS,
        has_probes: write.app.node.stale().0.has_probes(&node),
        revision,
    };
    Ok(ApiResponse::new(body, revision))
}

pub(in crate::http) async fn release_orphans(
    Path(path): Path<NodePath>,
    write: Write,
) -> Result<ApiResponse<OrphansReleased>, ApiError> {
    let node = node_at(&path)?;
    let request: OrphansRequest = write.read()?;
    let orphans = request.orphans.into_iter().map(|orphan| Orphan {
        config: orphan.config,
        container_id: orphan.container_id,
        interface: orphan.interface,
        allocations: orphan.allocations.into_iter().map(Into::into).collect(),
        evidence: orphan.evidence,
    });
    let action = Action::ReleaseOrphans(ReleaseOrphans { node, orphans: orphans.collect() });
    let Applied { revision, answer, .. } = write.propose_via(Via::Cni, action).await?;
    let Answer::OrphansReleased { addresses, stale } = answer else { return Err(another_answer().into()) };
    Ok(ApiResponse::new(OrphansReleased { addresses, stale, revision }, revision))
}

pub(in crate::http) async fn show(
    Path(path): Path<NodePath>,
    read: Read,
) -> Result<ApiResponse<NodeAgent>, ApiError> {
    let node = node_at(&path)?;
    let (state, stale_ms) = read.state((Verb::Read, Target::Node)).await?;
    let found = agent(&state, &node)
        .ok_or_else(|| Problem::new(Code::NotFound, format!("no agent of node {node} was heard")))?;
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(found, state.revision()) })
}

/// Fields, filters and orders of the list of agents.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/agents",
    own: &[
        Row::text("realm", "realm"),
        Row::text("node", "node"),
        Row::flag("ready", "agent.ready"),
        Row::text("agent_version", "agent.agent_version"),
        Row::text("heard_at", "agent.heard_at"),
        Row::flag("inventory_matches", "agent.inventory_matches"),
        Row::shown(&["agent"]),
    ],
    named: false,
    addressed: false,
};

/// Newest reports of all agents, of nodes with and without a resource.
pub(in crate::http) struct Agents;

impl Listable for Agents {
    type Item = AgentReport;
    const SHAPE: &'static Shape = &SHAPE;

    fn target() -> Target {
        Target::Node
    }

    fn total(state: &State) -> usize {
        state.reports.len()
    }

    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>> {
        Some(Box::new(state.reports.iter_after(after.unwrap_or(0).into()).map(|(id, _)| id.get())))
    }

    fn item(state: &State, id: u64) -> Option<AgentReport> {
        let NodeKey { realm, name } = state.reports.get(id.into())?.node.clone();
        let agent = agent(state, &NodeKey { realm: realm.clone(), name: name.clone() })?;
        Some(AgentReport { realm, node: name, agent })
    }
}

/// Parameters of a list without filters.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct PageQuery {
    pub(super) limit: Option<usize>,
    pub(super) cursor: Option<String>,
    consistency: Option<Consistency>,
    at_least_revision: Option<u64>,
}

impl PageQuery {
    pub(super) fn freshness(&self) -> (Option<Consistency>, Option<u64>) {
        (self.consistency, self.at_least_revision)
    }
}

/// Lists attachments, oldest first. Ids never recur, so a page continues after the last id of the page
/// before, whatever has changed meanwhile.
pub(in crate::http) async fn attachments(
    Path(path): Path<NodePath>,
    read: Read<PageQuery>,
) -> Result<ApiResponse<Page<NodeAttachment>>, ApiError> {
    let node = node_at(&path)?;
    let limit = page_limit(read.query.limit)?;
    let after = match read.query.cursor.as_deref().map(str::parse::<u64>) {
        None => None,
        Some(Ok(id)) => Some(id.into()),
        Some(Err(_)) => return Err(Problem::new(Code::InvalidCursor, "the cursor is malformed").into()),
    };
    let (state, stale_ms) = read.state_at((Verb::Read, Target::Attachment), read.query.freshness()).await?;
    read.app.check_own_node(&read.caller, &state, &node)?;
    let mut rows = state.attachments_on(&node, after);
    let (mut items, mut last) = (Vec::new(), None);
    for (id, row) in rows.by_ref().take(limit) {
        let Some(holder) = state.endpoints.get(row.endpoint) else { continue };
        last = Some(id);
        items.push(NodeAttachment {
            attachment: row.key.clone(),
            started_boot_id: row.started.boot_id.to_string(),
            endpoint: holder.key.clone(),
            uid: holder.uid.as_ref().map(ToString::to_string),
            allocations: row.allocations.iter().map(|id| id.get()).collect(),
        });
    }
    let next = last.filter(|_| rows.next().is_some()).map(|id| id.to_string());
    let revision = state.revision();
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(Page { items, revision, next, count: None }, revision) })
}

/// Sorts and deduplicates links, and clears their host bits.
fn links(links: Vec<probe::Link>) -> Vec<Link> {
    let links = links.into_iter().map(|link| Link { network: link.network, cidr: link.cidr.trunc() });
    links.collect::<BTreeSet<Link>>().into_iter().collect()
}

/// Newest report of a node's agent.
pub(in crate::http) fn agent(state: &State, node: &NodeKey) -> Option<NodeAgent> {
    let (_, report) = state.report_of(node)?;
    let inventory = state.inventory(node);
    Some(NodeAgent {
        boot_id: report.boot.id.to_string(),
        boot_number: report.boot.number,
        ready: report.readiness.ready,
        problem: report.readiness.problem,
        since: Timestamp(report.since_wall_ms),
        agent_version: report.agent_version.to_string(),
        heard_at: Timestamp(report.heard_wall_ms),
        attachments: inventory.attachments(),
        reported_attachments: report.inventory.attachments().min(JSON_INTEGER_MAX),
        inventory_matches: report.inventory_matched || report.inventory == inventory,
    })
}

pub(super) fn node_at((realm, name): &NodePath) -> Result<NodeKey, Problem> {
    Ok(NodeKey { realm: in_path("realm", realm, Name::new)?, name: in_path("node", name, ObjectName::new)? })
}

pub(super) fn another_answer() -> Problem {
    Problem::new(Code::Internal, "the machine gave another answer than was asked for")
}

impl App {
    /// Waits for the next tick of this member, so that the heartbeats of one tick travel in one log entry.
    async fn next_heartbeat_tick(&self, deadline: Instant) {
        let tick = Duration::from_millis(HEARTBEAT_TICK_MS);
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.started).as_millis() % u128::from(HEARTBEAT_TICK_MS);
        let wait = tick.saturating_sub(Duration::from_millis(u64::try_from(passed).unwrap_or_default()));
        // Without enough time left, the heartbeat is proposed at once.
        if now + wait < deadline {
            tokio::time::sleep(wait).await;
        }
    }
}
