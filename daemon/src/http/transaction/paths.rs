//! Paths of transaction steps.

use ipam_api::name::{ResourceName, shown};
use ipam_api::resource::EndpointKey;
use ipam_api::transaction::Condition;
use ipam_api::{Code, Problem};
use ipam_machine::command::{Expect, Kind, Leases, Precondition};

use crate::http::request::propose::revision;

/// Target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Kind(Kind),
    /// Resource by name.
    Named(Kind, ResourceName),
    Allocations,
    BulkAllocation,
    BulkRelease,
    Allocation(u64),
    Prefixes,
    Prefix(u64),
    Endpoint(EndpointKey),
    ReleaseAttachment,
    ScaleController,
    EndController,
    Renew(Leases),
}

const KINDS: [(&str, Kind); 7] = [
    ("networks", Kind::Network),
    ("subnets", Kind::Subnet),
    ("pools", Kind::Pool),
    ("reservations", Kind::Reservation),
    ("nodes", Kind::Node),
    ("namespaces", Kind::Namespace),
    ("host-policies", Kind::HostPolicy),
];

fn nowhere(path: &str) -> Problem {
    Problem::new(Code::InvalidField, format!("{} is not a place for a step", shown(path))).help(
        "Name a network, subnet, pool, reservation, node, namespace, host policy, allocation, prefix or \
             endpoint, for example /v1/pools/web.",
    )
}

/// Returns a named resource of a kind; none if the name is invalid for the kind.
fn named(kind: Kind, name: &str) -> Option<Place> {
    let name = ResourceName::new(name).ok()?;
    (kind.is_in_realm() == name.parts().is_some()).then_some(Place::Named(kind, name))
}

/// Parses a path. The flag is true if a pool is to be drained.
pub(super) fn place(path: &str) -> Result<(Place, bool), Problem> {
    let (bare, drain) = match path.split_once('?') {
        None => (path, false),
        Some((bare, "drain=true")) => (bare, true),
        Some((bare, "drain=false")) => (bare, false),
        Some(_) => return Err(nowhere(path)),
    };
    let segments: Vec<&str> = bare.split('/').collect();
    let kind = |plural: &str| KINDS.iter().find(|(known, _)| *known == plural).map(|(_, kind)| *kind);
    let place = match segments.as_slice() {
        ["", "v1", "allocations"] => Some(Place::Allocations),
        ["", "v1", "allocations", "bulk"] => Some(Place::BulkAllocation),
        ["", "v1", "allocations", "release"] => Some(Place::BulkRelease),
        ["", "v1", "allocations", id] => id.parse().ok().map(Place::Allocation),
        ["", "v1", "prefixes"] => Some(Place::Prefixes),
        ["", "v1", "prefixes", id] => id.parse().ok().map(Place::Prefix),
        ["", "v1", "attachments", "release"] => Some(Place::ReleaseAttachment),
        ["", "v1", "controllers", "scale"] => Some(Place::ScaleController),
        ["", "v1", "controllers", "end"] => Some(Place::EndController),
        ["", "v1", "allocations", id, "renew"] => {
            id.parse().ok().map(|id: u64| Leases::Allocation(id.into())).map(Place::Renew)
        }
        ["", "v1", "endpoints", key @ .., "renew"] if key.len() == 4 => {
            key.join("/").parse().ok().map(Leases::Endpoint).map(Place::Renew)
        }
        ["", "v1", "endpoints", key @ ..] if key.len() == 4 => {
            key.join("/").parse().ok().map(Place::Endpoint)
        }
        ["", "v1", plural] => kind(plural).map(Place::Kind),
        ["", "v1", plural, name @ ..] => kind(plural).and_then(|kind| named(kind, &name.join("/"))),
        _ => None,
    };
    Ok((place.ok_or_else(|| nowhere(path))?, drain))
}

pub(super) fn preconditions(conditions: &[Condition]) -> Result<Vec<Precondition>, Problem> {
    let one = |(at, condition): (usize, &Condition)| {
        let wrong = |field: &str, problem: Problem| problem.at(format!("/if/{at}{field}"));
        let (kind, name) = match place(&condition.path) {
            Ok((Place::Named(kind, name), false)) => (kind, name),
            _ => return Err(wrong("/path", nowhere(&condition.path))),
        };
        let expect = match (condition.absent, &condition.revision) {
            (Some(true), None) => Expect::Absent,
            (None | Some(false), Some(etag)) => {
                Expect::Revision(revision(etag, "revision").map_err(|problem| wrong("/revision", problem))?)
            }
            _ => {
                let detail = format!("{} must be either absent or at a revision", shown(&condition.path));
                return Err(wrong("", Problem::new(Code::ConflictingFields, detail)));
            }
        };
        Ok(Precondition { kind, name, expect })
    };
    conditions.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_what_they_mean_as_requests() {
        let web = ResourceName::new("web").unwrap();
        for (path, expected) in [
            ("/v1/pools/web", (Place::Named(Kind::Pool, web.clone()), false)),
            ("/v1/pools/web?drain=true", (Place::Named(Kind::Pool, web), true)),
            ("/v1/networks", (Place::Kind(Kind::Network), false)),
            ("/v1/host-policies", (Place::Kind(Kind::HostPolicy), false)),
            ("/v1/nodes/default/n1", (Place::Named(Kind::Node, "default/n1".parse().unwrap()), false)),
            ("/v1/allocations", (Place::Allocations, false)),
            ("/v1/allocations/bulk", (Place::BulkAllocation, false)),
            ("/v1/allocations/release", (Place::BulkRelease, false)),
            ("/v1/allocations/7", (Place::Allocation(7), false)),
            ("/v1/prefixes", (Place::Prefixes, false)),
            ("/v1/prefixes/7", (Place::Prefix(7), false)),
            ("/v1/attachments/release", (Place::ReleaseAttachment, false)),
            ("/v1/controllers/scale", (Place::ScaleController, false)),
            ("/v1/controllers/end", (Place::EndController, false)),
            ("/v1/allocations/7/renew", (Place::Renew(Leases::Allocation(7.into())), false)),
            (
                "/v1/endpoints/host/a/b/c/renew",
                (Place::Renew(Leases::Endpoint("host/a/b/c".parse().unwrap())), false),
            ),
            ("/v1/endpoints/host/a/b/c", (Place::Endpoint("host/a/b/c".parse().unwrap()), false)),
        ] {
            assert_eq!(place(path).unwrap(), expected, "{path}");
        }
        for path in [
            "",
            "/",
            "v1/pools/web",
            "/v1/pools/",
            "/v1/pools/a%20b",
            "/v1/pools/web?force=true",
            "/v1/tokens/web",
            "/v1/nodes/n1",
            "/v1/pools/default/web",
            "/v1/allocations/x",
            "/v1/endpoints/ship/a/b/c",
            "/v1/endpoints/host/a/b",
            "/v1/transactions",
            "/v2/pools/web",
        ] {
            assert_eq!(place(path).unwrap_err().code, Code::InvalidField, "{path}");
        }
    }
}
