//! `/v1/host-policies/{name}/render` and `/reset`: the addresses of the hosts of a policy.

use std::collections::BTreeSet;

use axum::extract::Path;
use ipam_api::access::{Target, Verb};
use ipam_api::host_policy::{
    HostPolicy, HostPolicyReset, RenderHostPolicy, RenderedHostPolicy, ResetHostPolicy, interface_requests,
    resolve,
};
use ipam_api::limits::HOST_POLICY_RESETS_MAX;
use ipam_api::name::{Name, NamePattern, ObjectName, ResourceName};
use ipam_api::request::{AllocateRequest, InterfaceRequest};
use ipam_api::resource::{EndpointKey, Interface, Lifecycle};
use ipam_api::{Code, Family, Problem};
use ipam_machine::command::{Expect, Kind, Precondition, Transaction};
use ipam_machine::{Action, Answer, State};

use super::host_policy::{HostPolicies, endpoint_of, endpoints, fits};
use super::named::{NamedResource, TRIES_MAX, name_in_path, unknown};
use crate::http::allocation::allocate;
use crate::http::convert::interface;
use crate::http::request::{ApiError, ApiResponse, Consistency, Proposed, Write};

/// Maximum number of pools in a chain of `drains_to`.
const HOPS_MAX: usize = 16;

pub(in crate::http) async fn render(
    Path(name): Path<String>,
    write: Write,
) -> Result<ApiResponse<RenderedHostPolicy>, ApiError> {
    let name = name_in_path(Kind::HostPolicy, &name)?;
    let RenderHostPolicy { node } = write.read()?;
    let mut tries_left = TRIES_MAX;
    loop {
        let state = state(&write).await?;
        let plan = Plan::of(&state, &name, &node)?;
        if let Some(held) = plan.held.clone().filter(|_| write.idempotency.is_none()) {
            // Nothing would change, so no entry of the log is needed.
            write.app.who(&write.caller).await?.check((Verb::Allocate, Target::Allocation))?;
            return Ok(plan.resolved(held, state.revision())?);
        }
        tries_left -= 1;
        let done = match write.kept(&state)? {
            Some(done) => Ok(done),
            None => write.carry_out(Action::Transaction(plan.transaction()?)).await,
        };
        match done {
            // The policy, the node or the addresses changed meanwhile.
            Err(problem) if tries_left > 0 && is_race(&problem) => {}
            Err(problem) => return Err(plan.explained(problem).into()),
            Ok(done) => return Ok(plan.rendered(&write, done)?),
        }
    }
}

fn is_race(problem: &Problem) -> bool {
    matches!(problem.code, Code::RevisionMismatch | Code::AllocationChanged)
}

async fn state(write: &Write) -> Result<State, Problem> {
    let read = (Verb::Read, Target::HostPolicy);
    Ok(write.app.read(&write.caller, read, Consistency::Linearizable).await?.0)
}

/// Policy of a path, with its revision.
fn policy(state: &State, name: &ResourceName) -> Result<(HostPolicy, u64), Problem> {
    let view = state.id_of(Kind::HostPolicy, name).and_then(|id| HostPolicies::show(state, id));
    let view = view.ok_or_else(|| unknown(state, Kind::HostPolicy, name))?;
    Ok((view.spec, view.meta.revision))
}

/// Rendering of one node.
struct Plan {
    policy: HostPolicy,
    node: ObjectName,
    endpoint: EndpointKey,
    requests: Vec<InterfaceRequest>,
    /// Allocations that the policy no longer refers to.
    stale: Vec<u64>,
    /// Interfaces as they are, if a request would change nothing.
    held: Option<Vec<Interface>>,
    preconditions: Vec<Precondition>,
}

impl Plan {
    fn of(state: &State, name: &ResourceName, node: &ObjectName) -> Result<Self, Problem> {
        let (policy, revision) = policy(state, name)?;
        let key = ResourceName::in_realm(&policy.realm, node);
        let row = state.node(&policy.realm, node).ok_or_else(|| unknown(state, Kind::Node, &key))?;
        if !fits(&policy.node_selector, row) {
            let detail =
                format!("the labels of node {key} do not match the node selector of host policy {name}");
            return Err(Problem::new(Code::ConflictingFields, detail)
                .at("/node")
                .help("Label the node, or change node_selector of the policy."));
        }
        let requests = interface_requests(&policy)?;
        let endpoint = endpoint_of(&policy.realm, &policy.name, node)?;
        let precondition = |kind, name, revision| {
            let expect = Expect::Revision(revision);
            Precondition { kind, name, expect }
        };
        let preconditions = vec![
            precondition(Kind::HostPolicy, name.clone(), revision),
            precondition(Kind::Node, key, row.meta.revision),
        ];
        let stale = stale(state, &endpoint, &requests);
        let held = stale.is_empty().then(|| held(state, (&endpoint, node), &requests)).flatten();
        Ok(Self { policy, node: node.clone(), endpoint, requests, stale, held, preconditions })
    }

    /// Builds the log entry. Releases come first, so that an interface can change its pool.
    fn transaction(&self) -> Result<Transaction, Problem> {
        let releases = self.stale.iter().map(|id| Action::ReleaseAllocation { id: (*id).into() });
        let mut steps: Vec<Action> = releases.collect();
        if !self.requests.is_empty() {
            steps.push(allocate::to_command(self.request())?.into());
        }
        Ok(Transaction { preconditions: self.preconditions.clone(), steps })
    }

    fn request(&self) -> AllocateRequest {
        AllocateRequest {
            node: Some(self.node.clone()),
            lifecycle: Some(Lifecycle::Held),
            interfaces: self.requests.clone(),
            ..AllocateRequest::blank(self.endpoint.clone())
        }
    }

    /// Rephrases a problem of the transaction for users of the policy.
    fn explained(&self, mut problem: Problem) -> Problem {
        let pools = problem.context.as_deref().map(|context| context.pools.as_slice()).unwrap_or_default();
        let pools: Vec<String> = pools
            .iter()
            .map(|pool| format!("pool {} has {} addresses", pool.pool, pool.counts.size))
            .collect();
        if problem.code == Code::PoolExhausted && !pools.is_empty() {
            problem.detail = format!(
                "node {} gets no address of host policy {}: {} ({})",
                self.node,
                self.policy.name,
                problem.detail,
                pools.join(", ")
            );
            problem.help = "Grow the pool in place (ipamctl pool set POOL --add-range RANGE): the addresses \
                            of other hosts stay. Or release unused addresses."
                .to_owned();
        }
        problem
    }

    fn rendered(&self, write: &Write, done: Proposed) -> Result<ApiResponse<RenderedHostPolicy>, Problem> {
        let revision = done.applied.revision;
        let Answer::Steps(answers) = done.applied.answer else {
            return Err(Problem::new(Code::Internal, "the machine gave another answer than was asked for"));
        };
        let mut interfaces = Vec::new();
        if let Some(Answer::Allocated { repeated, interfaces: given }) = answers.last() {
            if !write.dry_run {
                write.app.metrics.allocated(None, given, *repeated);
            }
            interfaces.extend(given.iter().map(interface));
        }
        // If rendering fails, the node keeps the addresses, and the next request returns them again.
        self.resolved(interfaces, revision).map_err(Problem::maybe_applied)
    }

    fn resolved(
        &self,
        mut interfaces: Vec<Interface>,
        revision: u64,
    ) -> Result<ApiResponse<RenderedHostPolicy>, Problem> {
        for interface in &mut interfaces {
            let request = self.requests.iter().find(|request| request.name == interface.name);
            let is_clean = request.is_some_and(|request| request.clean_gateway);
            // An allocation keeps the routing of its first request, and the policy may have changed since.
            interface.addresses.iter_mut().for_each(|given| given.clean_gateway = is_clean);
        }
        let resolved = resolve(&self.policy, &interfaces)?;
        let body = RenderedHostPolicy {
            policy: self.policy.name.clone(),
            node: self.node.clone(),
            endpoint: self.endpoint.clone(),
            interfaces,
            capture: resolved.capture,
            desired_state: resolved.desired_state,
            revision,
        };
        Ok(ApiResponse::new(body, revision))
    }
}

/// Interfaces of an endpoint, if they have exactly the addresses of the requests.
fn held(
    state: &State,
    (endpoint, node): (&EndpointKey, &ObjectName),
    requests: &[InterfaceRequest],
) -> Option<Vec<Interface>> {
    let mut incarnations = state.incarnations(endpoint);
    let row = state.endpoints.get(incarnations.next()?)?;
    if incarnations.next().is_some() || row.waiting.is_some() {
        return None;
    }
    let rows: Option<Vec<_>> = row.allocations.iter().map(|id| state.allocations.get(*id)).collect();
    let rows = rows?;
    let has = |request: &InterfaceRequest, family: Family| {
        rows.iter().any(|row| {
            // The addresses of a drained pool move with the next request.
            let stays = state.pools.get(row.pool).is_some_and(|pool| pool.spec.drains_to.is_none());
            (&row.interface, Family::of(row.address)) == (&request.name, family)
                && row.node.as_ref() == Some(node)
                && stays
        })
    };
    let is_complete = requests.iter().all(|request| request.families.iter().all(|one| has(request, *one)));
    is_complete.then(|| state.given(&row.allocations, None).iter().map(interface).collect())
}

/// Allocations of an endpoint that match no request.
fn stale(state: &State, endpoint: &EndpointKey, requests: &[InterfaceRequest]) -> Vec<u64> {
    let rows = state.incarnations(endpoint).filter_map(|id| state.endpoints.get(id));
    let ids = rows.flat_map(|row| row.allocations.iter().copied());
    let is_wanted = |id| {
        let row = state.allocations.get(id)?;
        let pool = &state.pools.get(row.pool)?.spec.name;
        let request = requests.iter().find(|request| request.name == row.interface)?;
        let pools = match Family::of(row.address) {
            Family::V4 => &request.ipv4_pools,
            Family::V6 => &request.ipv6_pools,
        };
        pools.iter().filter_map(NamePattern::name).any(|named| leads_to(state, named, pool)).then_some(())
    };
    ids.filter(|id| is_wanted(*id).is_none()).map(u64::from).collect()
}

/// True if `pool`, or a pool that it drains to, is `wanted`.
fn leads_to(state: &State, mut pool: Name, wanted: &Name) -> bool {
    let mut seen = BTreeSet::new();
    while seen.len() < HOPS_MAX && seen.insert(pool.clone()) {
        if pool == *wanted {
            return true;
        }
        let row = state.id_of(Kind::Pool, &pool).and_then(|id| state.pools.get(id.into()));
        let Some(next) = row.and_then(|row| row.spec.drains_to.clone()) else { return false };
        pool = next;
    }
    false
}

pub(in crate::http) async fn reset(
    Path(name): Path<String>,
    write: Write,
) -> Result<ApiResponse<HostPolicyReset>, ApiError> {
    let name = name_in_path(Kind::HostPolicy, &name)?;
    let ResetHostPolicy { node } =
        if write.body.is_empty() { ResetHostPolicy::default() } else { write.read()? };
    let mut tries_left = TRIES_MAX;
    loop {
        let state = state(&write).await?;
        let (policy, _) = policy(&state, &name)?;
        let holding = |state: &State| -> Vec<EndpointKey> {
            let all = endpoints(state, &policy.realm, &policy.name);
            all.filter(|key| node.as_ref().is_none_or(|node| key.name == *node)).cloned().collect()
        };
        let keys = holding(&state).into_iter().take(HOST_POLICY_RESETS_MAX);
        let steps: Vec<Action> = keys.map(|key| Action::ReleaseEndpoint { key }).collect();
        tries_left -= 1;
        let done = match write.kept(&state)? {
            Some(done) => Ok(done),
            None => {
                let transaction = Transaction { preconditions: Vec::new(), steps };
                write.carry_out(Action::Transaction(transaction)).await
            }
        };
        match done {
            // An endpoint was released meanwhile.
            Err(problem) if tries_left > 0 && problem.code == Code::NotFound => {}
            done => {
                let done = done?;
                let after = write.after(&done).await;
                let revision = done.applied.revision;
                let more = holding(&after).len() as u64;
                let addresses = released(done.applied.answer);
                return Ok(ApiResponse::new(HostPolicyReset { addresses, more, revision }, revision));
            }
        }
    }
}

fn released(answer: Answer) -> Vec<std::net::IpAddr> {
    let Answer::Steps(answers) = answer else { return Vec::new() };
    let addresses = answers.into_iter().filter_map(|answer| match answer {
        Answer::Released { addresses, .. } => Some(addresses),
        _ => None,
    });
    addresses.flatten().collect()
}
