//! `/v1/allocations/bulk` and `/v1/allocations/release`: many endpoints or allocations per log entry.

use axum::http::StatusCode;
use ipam_api::name::ObjectName;
use ipam_api::request::{
    AllocateRequest, BulkAllocateRequest, BulkAllocated, BulkAllocation, BulkPool, BulkReleaseRequest,
    BulkReleased,
};
use ipam_api::resource::EndpointKey;
use ipam_api::{Code, Family, Problem};
use ipam_machine::command::{AllocateMany, AllocatedMany, GivenPool, GivenTo};
use ipam_machine::{Action, Answer};
use ipnet::IpNet;

use super::allocate::to_command;
use crate::http::convert::dns_out;
use crate::http::request::{ApiError, ApiResponse, Write};
use crate::metrics::Metrics;

pub(in crate::http) async fn allocate_many(write: Write) -> Result<ApiResponse<BulkAllocated>, ApiError> {
    let (names, action) = allocation_of(write.read()?)?;
    let applied = write.propose(action).await.map_err(|problem| at_item(problem, "names"))?;
    if let Answer::AllocatedMany(many) = &applied.answer
        && !write.dry_run
    {
        count(&write.app.metrics, many);
    }
    let (status, body) = allocated_many(&names, applied.answer, applied.revision)?;
    Ok(ApiResponse { status, ..ApiResponse::new(body, applied.revision) })
}

/// Command of a request, and the names of its endpoints in the order of the answer.
pub(in crate::http) fn allocation_of(
    request: BulkAllocateRequest,
) -> Result<(Vec<ObjectName>, Action), Problem> {
    let BulkAllocateRequest { kind, realm, namespace, names, interface, labels, node, .. } = request;
    let Some((first, others)) = names.split_first() else {
        return Err(Problem::new(Code::InvalidField, "there are no names").at("/names"));
    };
    let one = to_command(AllocateRequest {
        labels,
        node,
        controller: request.controller,
        replicas: request.replicas,
        sticky: request.sticky,
        scale_down: request.scale_down,
        lifecycle: request.lifecycle,
        interfaces: vec![interface],
        automatic_pool: request.automatic_pool,
        ttl_ms: request.ttl_ms,
        description: request.description,
        ..AllocateRequest::blank(EndpointKey { kind, realm, namespace, name: first.clone() })
    })?;
    let many = AllocateMany { request: one, others: others.to_vec() };
    Ok((names, Action::AllocateMany(Box::new(many))))
}

/// Counts the addresses of an answer.
pub(in crate::http) fn count(metrics: &Metrics, many: &AllocatedMany) {
    for family in Family::BOTH {
        for repeated in [false, true] {
            let is_counted = |given: &&GivenTo| {
                Family::of(given.address) == family && is_repeated(many, given.endpoint) == repeated
            };
            let number = many.addresses.iter().filter(is_counted).count();
            if number > 0 {
                metrics.allocated_many(family, repeated, number as u64);
            }
        }
    }
}

fn is_repeated(many: &AllocatedMany, endpoint: u32) -> bool {
    many.repeated.binary_search(&endpoint).is_ok()
}

pub(in crate::http) fn allocated_many(
    names: &[ObjectName],
    answer: Answer,
    revision: u64,
) -> Result<(StatusCode, BulkAllocated), Problem> {
    let unexpected = || Problem::new(Code::Internal, "the machine gave another answer than was asked for");
    let Answer::AllocatedMany(many) = answer else { return Err(unexpected()) };
    let line = |given: &GivenTo| {
        let pool = many.pools.get(usize::try_from(given.pool).ok()?)?;
        Some(BulkAllocation {
            name: names.get(usize::try_from(given.endpoint).ok()?)?.clone(),
            allocation: given.allocation.get(),
            address: IpNet::new(given.address, pool.cidr.prefix_len()).ok()?,
            pool: pool.name.clone(),
            repeated: is_repeated(&many, given.endpoint),
        })
    };
    let allocations: Option<Vec<_>> = many.addresses.iter().map(line).collect();
    let allocations = allocations.ok_or_else(unexpected)?;
    let status = if many.repeated.len() == names.len() { StatusCode::OK } else { StatusCode::CREATED };
    let pools = many.pools.into_iter().map(pool).collect();
    Ok((status, BulkAllocated { allocations, pools, revision }))
}

fn pool(given: GivenPool) -> BulkPool {
    let GivenPool { name, subnet, cidr: _, gateway, routes, dns, vlan, mtu } = given;
    BulkPool { name, subnet, gateway, routes, dns: dns_out(dns), vlan, mtu }
}

pub(in crate::http) async fn release_many(write: Write) -> Result<ApiResponse<BulkReleased>, ApiError> {
    let action = release_of(write.read()?);
    let applied = write.propose(action).await.map_err(|problem| at_item(problem, "allocations"))?;
    let revision = applied.revision;
    Ok(ApiResponse::new(released_many(applied.answer, revision)?, revision))
}

pub(in crate::http) fn release_of(request: BulkReleaseRequest) -> Action {
    Action::ReleaseAllocations { ids: request.allocations.into_iter().map(Into::into).collect() }
}

pub(in crate::http) fn released_many(answer: Answer, revision: u64) -> Result<BulkReleased, Problem> {
    match answer {
        Answer::AllocationsReleased { addresses, gone } => Ok(BulkReleased { addresses, gone, revision }),
        _ => Err(Problem::new(Code::Internal, "the machine gave another answer than was asked for")),
    }
}

/// Names the refused item of a list in the detail and the JSON pointer of a problem.
fn at_item(mut problem: Problem, list: &str) -> Problem {
    let Some(item) = problem.context.as_ref().and_then(|context| context.step) else { return problem };
    if let Some(reason) = problem.detail.strip_prefix(&format!("steps[{item}]: ")) {
        problem.detail = format!("{list}[{item}]: {reason}");
    }
    problem.at(format!("/{list}/{item}"))
}
