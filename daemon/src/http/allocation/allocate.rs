//! `/v1/allocations`: allocate, list, release.

use axum::extract::Path;
use axum::http::StatusCode;
use ipam_api::access::Target;
use ipam_api::address::{AddressRange, canonical_mac};
use ipam_api::request::{self, AllocateRequest, Allocated, Released, Renewed};
use ipam_api::resource::{Allocation, EndpointKey, Lifecycle};
use ipam_api::{Code, Problem, annotations};
use ipam_machine::command::{
    Allocate, AllocateOptions, AllocationMetadata, InterfaceRequest, Leases, PoolPatterns, Routing, Text, Via,
};
use ipam_machine::{Action, Answer, State};

use super::automatic::automatic_pool;
use super::controller::stickiness;
use super::endpoint::released;
use super::lease::{renewal, renewed};
use crate::http::convert::{allocation, interface, started, texts, waits};
use crate::http::list::{Holds, Listable, Row, Shape, Test, id_in_path};
use crate::http::request::{ApiError, ApiResponse, Write};

pub(in crate::http) async fn allocate(write: Write) -> Result<ApiResponse<Allocated>, ApiError> {
    let request: AllocateRequest = write.read()?;
    let endpoint = request.endpoint.clone();
    let own = request.attachment.as_ref().map(|key| key.interface.clone());
    let via = if request.attachment.is_some() { Via::Cni } else { Via::Http };
    let applied = write.propose_via(via, to_command(request)?.into()).await?;
    if let Answer::Allocated { repeated, interfaces } = &applied.answer
        && !write.dry_run
    {
        write.app.metrics.allocated(own.as_ref(), interfaces, *repeated);
    }
    let (status, body) = allocated(endpoint, applied.answer, applied.revision)?;
    Ok(ApiResponse { status, ..ApiResponse::new(body, applied.revision) })
}

/// Response to an allocation request: allocated now, allocated before, or waiting.
pub(in crate::http) fn allocated(
    endpoint: EndpointKey,
    answer: Answer,
    revision: u64,
) -> Result<(StatusCode, Allocated), Problem> {
    match answer {
        Answer::Allocated { repeated, interfaces } => {
            let interfaces = interfaces.iter().map(interface).collect();
            let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
            Ok((status, Allocated { endpoint, interfaces, repeated, waiting: None, revision }))
        }
        Answer::Pending(pending) => {
            let repeated = pending.repeated;
            let why = waits(pending.why, &pending.cause, pending.since_wall_ms);
            let body = Allocated { endpoint, interfaces: Vec::new(), repeated, waiting: Some(why), revision };
            Ok((StatusCode::ACCEPTED, body))
        }
        _ => Err(Problem::new(Code::Internal, "the machine gave another answer than was asked for")),
    }
}

pub(in crate::http) fn to_command(request: AllocateRequest) -> Result<Allocate, Problem> {
    let request = annotations::taken_in(request)?;
    let otherwise = match (&request.attachment, request.ttl_ms) {
        (Some(_), _) => Lifecycle::Attached,
        (None, Some(_)) => Lifecycle::Leased,
        (None, None) => Lifecycle::Held,
    };
    let is_clean = |one: &&request::InterfaceRequest| one.clean_gateway;
    let routing = Routing {
        routes: request.routes,
        clean: request.interfaces.iter().filter(is_clean).map(|one| one.name.clone()).collect(),
        default_interface: request.default_route_interface,
    };
    Ok(Allocate {
        endpoint: request.endpoint,
        uid: request.uid.map(Text::given),
        labels: texts(request.labels),
        node: request.node,
        attachment: request.attachment,
        stickiness: stickiness(request.controller, request.sticky, request.scale_down),
        lifecycle: request.lifecycle.unwrap_or(otherwise),
        interfaces: request.interfaces.into_iter().map(interface_request).collect(),
        automatic_pool: request
            .automatic_pool
            .map(|said| automatic_pool(said, request.replicas))
            .transpose()?,
        started: request.started.map(started),
        options: AllocateOptions {
            ttl_ms: request.ttl_ms,
            adopt: request.adopt,
            take_over: request.take_over,
            wait: request.wait,
            metadata: AllocationMetadata {
                hostname: request.hostname.map(Text::given),
                description: Text::given(request.description),
            },
        },
        routing,
    })
}

fn interface_request(request: request::InterfaceRequest) -> InterfaceRequest {
    let request::InterfaceRequest {
        name,
        subnets,
        ipv4_pools,
        ipv6_pools,
        default_ipv4_pools,
        default_ipv6_pools,
        families,
        addresses,
        mac,
        network_attachment,
        clean_gateway: _,
        link_addresses,
    } = request;
    let addresses = addresses.into_iter().map(|address| address.to_canonical()).collect();
    InterfaceRequest {
        name,
        subnets,
        pools: PoolPatterns { ipv4: ipv4_pools, ipv6: ipv6_pools },
        default_pools: PoolPatterns { ipv4: default_ipv4_pools, ipv6: default_ipv6_pools },
        families,
        addresses,
        mac: mac.map(|mac| Text::given(canonical_mac(&mac))),
        network_attachment,
        link_addresses: link_addresses.into_iter().map(|address| address.to_canonical()).collect(),
    }
}

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/allocations",
    own: &[
        Row::number("id", "id"),
        Row::address("address", "address"),
        Row::text("network", "network"),
        Row::text("subnet", "subnet"),
        Row::text("pool", "pool"),
        Row::of(Holds::Endpoint, "endpoint", "endpoint"),
        Row::text("kind", "endpoint.kind"),
        Row::text("realm", "endpoint.realm"),
        Row::text("namespace", "endpoint.namespace"),
        Row::text("name", "endpoint.name"),
        Row::text("interface", "interface"),
        Row::text("node", "node"),
        Row::text("lifecycle", "lifecycle"),
        Row::shown(&["lease", "lease.ttl_ms"]),
        Row::text("ends_at", "lease.ends_at"),
        Row::of(Holds::Mac, "mac", "mac"),
        Row::text("hostname", "hostname"),
        Row::shown(&["description"]),
        Row::flag("checked", "checked"),
        Row::text("station", "station"),
        Row::text("colliding", "colliding"),
        Row::text("created_at", "created_at"),
        Row::text("created_by", "created_by"),
    ],
    named: false,
    addressed: true,
};

/// Allocations, the oldest first.
pub(in crate::http) struct Allocations;

impl Listable for Allocations {
    type Item = Allocation;
    const SHAPE: &'static Shape = &SHAPE;

    fn target() -> Target {
        Target::Allocation
    }

    fn total(state: &State) -> usize {
        state.allocations.len()
    }

    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>> {
        Some(Box::new(state.allocations.iter_after(after.unwrap_or(0).into()).map(|(id, _)| id.get())))
    }

    fn narrowed(state: &State, tests: &[Test]) -> Option<Vec<u64>> {
        let mut ids: Vec<u64> = match tests.iter().find_map(Test::address) {
            Some(address) => {
                let networks = state.networks.iter().map(|(id, _)| id);
                networks.filter_map(|network| Some(state.allocation_at(network, address)?.0.get())).collect()
            }
            None if tests.iter().any(|test| test.numbers("id").is_some()) => {
                let ids = tests.iter().find_map(|test| test.numbers("id"))?;
                ids.into_iter().filter(|id| state.allocations.get((*id).into()).is_some()).collect()
            }
            None => {
                let keys = tests.iter().find_map(|test| test.texts("endpoint"))?;
                let keys: Vec<EndpointKey> = keys.iter().filter_map(|key| key.parse().ok()).collect();
                let endpoints = keys.iter().flat_map(|key| state.incarnations(key));
                let rows = endpoints.filter_map(|id| state.endpoints.get(id));
                rows.flat_map(|row| row.allocations.iter().map(|id| id.get())).collect()
            }
        };
        ids.sort_unstable();
        ids.dedup();
        Some(ids)
    }

    fn item(state: &State, id: u64) -> Option<Allocation> {
        allocation(state, id, state.allocations.get(id.into())?)
    }

    fn ranges(item: &Allocation) -> Vec<AddressRange> {
        vec![AddressRange::single(item.address.addr())]
    }
}

pub(in crate::http) async fn release(
    Path(id): Path<String>,
    write: Write,
) -> Result<ApiResponse<Released>, ApiError> {
    let id = id_in_path(Target::Allocation, &id)?.into();
    Ok(released(write.propose(Action::ReleaseAllocation { id }).await?))
}

pub(in crate::http) async fn renew(
    Path(id): Path<String>,
    write: Write,
) -> Result<ApiResponse<Renewed>, ApiError> {
    let action = renewal(Leases::Allocation(id_in_path(Target::Allocation, &id)?.into()), &write)?;
    renewed(write.propose(action).await?)
}
