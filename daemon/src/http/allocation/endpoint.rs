//! `/v1/endpoints`: endpoints with their allocations.

use axum::extract::Path;
use ipam_api::access::{NodeKey, Target, Verb};
use ipam_api::address::AddressRange;
use ipam_api::limits::RECORDS_SHOWN_MAX;
use ipam_api::request::{Released, Renewed};
use ipam_api::resource::{Endpoint, EndpointKey, EndpointKind, EndpointStatus, Recorded, Resource};
use ipam_api::{Code, Name, ObjectName, Problem};
use ipam_machine::command::Leases;
use ipam_machine::model::Reservation;
use ipam_machine::{Action, Answer, Applied, State};

use super::lease::{renewal, renewed};
use crate::http::convert::controller_out;
use crate::http::convert::{interface, meta, waits};
use crate::http::list::{Listable, Row, Shape, Test};
use crate::http::request::{ApiError, ApiResponse, Read, Write};

type View = Resource<Endpoint, EndpointStatus>;

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/endpoints",
    own: &[
        Row::text("kind", "kind"),
        Row::text("realm", "realm"),
        Row::text("namespace", "namespace"),
        Row::text("name", "name"),
        Row::text("uid", "uid"),
        Row::flag("sticky", "sticky"),
        Row::shown(&["controller", "controller.group", "controller.kind"]),
        Row::text("controller", "controller.name"),
        Row::shown(&["controller.uid", "scale_down", "meta"]),
        Row::number("id", "meta.id"),
        Row::shown(&["meta.revision"]),
        Row::text("created_at", "meta.created_at"),
        Row::text("created_by", "meta.created_by"),
        Row::shown(&["status", "status.interfaces", "status.conditions", "status.recorded"]),
    ],
    named: false,
    addressed: true,
};

/// Endpoints, with one item for each incarnation.
pub(in crate::http) struct Endpoints;

impl Listable for Endpoints {
    type Item = View;
    const SHAPE: &'static Shape = &SHAPE;

    fn target() -> Target {
        Target::Endpoint
    }

    fn total(state: &State) -> usize {
        state.endpoints.len()
    }

    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>> {
        let after = match after {
            Some(id) => Some((&state.endpoints.get(id.into())?.key, id.into())),
            None => None,
        };
        Some(Box::new(state.endpoints_after(after).map(|(_, id)| id.get())))
    }

    fn narrowed(state: &State, tests: &[Test]) -> Option<Vec<u64>> {
        let mut holders: Vec<u64> = match tests.iter().find_map(Test::address) {
            Some(address) => {
                let networks = state.networks.iter().map(|(id, _)| id);
                networks
                    .filter_map(|network| Some(state.allocation_at(network, address)?.1.endpoint.get()))
                    .collect()
            }
            None => {
                let nodes = hosts_in(tests)?;
                nodes.iter().flat_map(|node| state.hosts_named(node)).map(|id| id.get()).collect()
            }
        };
        holders.sort_by_key(|id| (state.endpoints.get((*id).into()).map(|row| &row.key), *id));
        holders.dedup();
        Some(holders)
    }

    fn item(state: &State, id: u64) -> Option<View> {
        view(state, id)
    }

    fn ranges(item: &View) -> Vec<AddressRange> {
        let given = item.status.interfaces.iter().flat_map(|interface| &interface.addresses);
        given.map(|given| AddressRange::single(given.address.addr())).collect()
    }
}

/// Hosts that the filters name, with their realms.
fn hosts_in(tests: &[Test]) -> Option<Vec<NodeKey>> {
    let texts = |field| tests.iter().find_map(|test| test.texts(field));
    let kinds = texts("kind")?;
    let is_host = |kind: &&str| *kind == EndpointKind::Host.as_str();
    let (realms, names) = (texts("realm")?, texts("name")?);
    let node = |realm: &str, name: &str| {
        Some(NodeKey { realm: Name::new(realm).ok()?, name: ObjectName::new(name).ok()? })
    };
    let nodes = realms.iter().flat_map(|realm| names.iter().filter_map(move |name| node(realm, name)));
    kinds.iter().all(is_host).then(|| nodes.collect())
}

pub(in crate::http) async fn show(
    Path(path): Path<(String, String, String, String)>,
    read: Read,
) -> Result<ApiResponse<View>, ApiError> {
    let key = key(path)?;
    let (state, stale_ms) = read.state((Verb::Read, Target::Endpoint)).await?;
    read.app.check_own_host(&read.caller, &state, &key)?;
    let view = newest(&state, &key)?;
    Ok(ApiResponse { stale_ms, etag: Some(view.meta.revision), ..ApiResponse::new(view, state.revision()) })
}

/// The newest incarnation of an endpoint.
pub(super) fn newest(state: &State, key: &EndpointKey) -> Result<View, Problem> {
    let newest = state.newest_incarnation(key).and_then(|id| view(state, id.get()));
    newest.ok_or_else(|| Problem::new(Code::NotFound, format!("endpoint {key} holds nothing")))
}

pub(in crate::http) async fn release(
    Path(path): Path<(String, String, String, String)>,
    write: Write,
) -> Result<ApiResponse<Released>, ApiError> {
    Ok(released(write.propose(Action::ReleaseEndpoint { key: key(path)? }).await?))
}

pub(in crate::http) async fn renew(
    Path(path): Path<(String, String, String, String)>,
    write: Write,
) -> Result<ApiResponse<Renewed>, ApiError> {
    let action = renewal(Leases::Endpoint(key(path)?), &write)?;
    renewed(write.propose(action).await?)
}

/// Response to every kind of release.
pub(super) fn released(applied: Applied) -> ApiResponse<Released> {
    ApiResponse::new(freed(applied.answer, applied.revision), applied.revision)
}

pub(in crate::http) fn freed(answer: Answer, revision: u64) -> Released {
    let (addresses, more, late) = match answer {
        Answer::Released { addresses, more, late } => (addresses, more, late),
        _ => (Vec::new(), 0, false),
    };
    Released { addresses, more, late, revision }
}

pub(super) fn key(
    (kind, realm, namespace, name): (String, String, String, String),
) -> Result<EndpointKey, Problem> {
    let key = format!("{kind}/{realm}/{namespace}/{name}").parse();
    key.map_err(|problem: Problem| Problem::new(Code::NotFound, problem.detail))
}

fn view(state: &State, id: u64) -> Option<View> {
    let row = state.endpoints.get(id.into())?;
    let sticky = row.sticky.as_deref();
    Some(Resource {
        spec: Endpoint {
            key: row.key.clone(),
            uid: row.uid.as_ref().map(ToString::to_string),
            sticky: sticky.is_some(),
            controller: row.controller.as_deref().map(controller_out),
            scale_down: sticky.and_then(|sticky| sticky.scale_down),
        },
        meta: meta(&row.meta),
        status: EndpointStatus {
            interfaces: state.given(&row.allocations, None).iter().map(interface).collect(),
            conditions: row
                .waiting
                .iter()
                .map(|waiting| {
                    let (why, cause) = state.why_waiting(waiting);
                    waits(why, &cause, waiting.since_wall_ms)
                })
                .collect(),
            recorded: state
                .records_of(&row.key)
                .take(RECORDS_SHOWN_MAX)
                .map(|(_, row)| recorded(row))
                .collect(),
        },
    })
}

fn recorded(row: &Reservation) -> Recorded {
    Recorded {
        reservation: row.spec.name.clone(),
        network: row.spec.network.clone(),
        addresses: row.spec.addresses.clone(),
    }
}
