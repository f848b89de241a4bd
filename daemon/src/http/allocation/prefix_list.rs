//! Prefixes as HTTP shows them, and their list.

use ipam_api::access::Target;
use ipam_api::address::AddressRange;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::Prefix;
use ipam_api::time::Timestamp;
use ipam_machine::State;
use ipam_machine::command::{GivenPrefix, PendingPrefix};
use ipam_machine::model::PrefixOwner;

use crate::http::convert::waits;
use crate::http::list::{Listable, Row, Shape, Test};

/// Prefix as HTTP shows it.
pub(in crate::http) fn prefix(given: GivenPrefix) -> Prefix {
    let path: Vec<&str> = given.path.iter().map(ObjectName::as_str).collect();
    Prefix {
        id: given.id.get(),
        cidr: Some(given.cidr),
        length: None,
        network: given.network,
        subnet: given.subnet,
        pool: given.pool,
        parent: given.parent.map(u64::from),
        realm: given.realm,
        path: path.join("/"),
        owner: given.owner,
        keep_edges: given.keep_edges,
        ttl_ms: given.ttl_ms,
        ends_in_ms: given.ends_in_ms,
        children: given.children,
        waiting: None,
        created_at: Timestamp(given.created_wall_ms),
        created_by: given.created_by.to_string(),
    }
}

/// Waiting request as HTTP shows it; none without an owner, which every request has.
pub(in crate::http) fn waiting(pending: PendingPrefix) -> Option<Prefix> {
    let path: Vec<&str> = pending.path.iter().map(ObjectName::as_str).collect();
    Some(Prefix {
        id: pending.claim.get(),
        cidr: None,
        length: pending.length,
        network: pending.network,
        subnet: pending.subnet,
        pool: pending.pool,
        parent: pending.parent.map(u64::from),
        realm: pending.realm,
        owner: pending.path.last()?.clone(),
        path: path.join("/"),
        keep_edges: pending.keep_edges,
        ttl_ms: pending.ttl_ms,
        ends_in_ms: None,
        children: 0,
        waiting: Some(waits(pending.why, &pending.cause, pending.since_wall_ms)),
        created_at: Timestamp(pending.since_wall_ms),
        created_by: pending.created_by.to_string(),
    })
}

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/prefixes",
    own: &[
        Row::number("id", "id"),
        Row::address("cidr", "cidr"),
        Row::text("network", "network"),
        Row::text("subnet", "subnet"),
        Row::text("pool", "pool"),
        Row::number("parent", "parent"),
        Row::text("realm", "realm"),
        Row::text("owner", "owner"),
        Row::text("path", "path"),
        Row::shown(&["keep_edges", "ttl_ms", "length", "waiting"]),
        Row::number("ends_in_ms", "ends_in_ms"),
        Row::number("children", "children"),
        Row::text("created_at", "created_at"),
        Row::text("created_by", "created_by"),
    ],
    named: false,
    addressed: true,
};

/// Prefixes, the oldest first.
pub(in crate::http) struct Prefixes;

impl Listable for Prefixes {
    type Item = Prefix;
    const SHAPE: &'static Shape = &SHAPE;

    fn target() -> Target {
        Target::Prefix
    }

    fn total(state: &State) -> usize {
        state.prefixes.len() + state.prefix_claims.len()
    }

    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>> {
        let after = after.unwrap_or(0);
        let mut prefixes = state.prefixes.iter_after(after.into()).map(|(id, _)| id.get()).peekable();
        let mut claims = state.prefix_claims.iter_after(after.into()).map(|(id, _)| id.get()).peekable();
        Some(Box::new(std::iter::from_fn(move || match (prefixes.peek(), claims.peek()) {
            (Some(prefix), Some(claim)) if claim < prefix => claims.next(),
            (None, _) => claims.next(),
            _ => prefixes.next(),
        })))
    }

    fn narrowed(state: &State, tests: &[Test]) -> Option<Vec<u64>> {
        let owned = Owned::of(tests);
        let mut ids = match (tests.iter().find_map(Test::address), parents(tests)) {
            (Some(address), _) => {
                let networks = state.networks.iter().map(|(id, _)| id);
                let smallest = networks.filter_map(|network| state.prefix_at(network, address));
                smallest.flat_map(|(id, _)| state.prefix_chain(id)).map(u64::from).collect()
            }
            (None, Some(parents)) => parents.into_iter().flat_map(|id| owned.below(state, id)).collect(),
            (None, None) => owned.anywhere(state)?,
        };
        ids.sort_unstable();
        ids.dedup();
        Some(ids)
    }

    fn item(state: &State, id: u64) -> Option<Prefix> {
        match state.given_prefix(id.into()) {
            Some(given) => Some(prefix(given)),
            None => waiting(state.pending_prefix(id.into())?),
        }
    }

    fn ranges(item: &Prefix) -> Vec<AddressRange> {
        item.cidr.into_iter().map(AddressRange::of_cidr).collect()
    }
}

fn parents(tests: &[Test]) -> Option<Vec<u64>> {
    tests.iter().find_map(|test| test.numbers("parent"))
}

/// Owners that filters permit. Values that are not valid names match no owner.
struct Owned<'a> {
    /// Names of the owners; none if no filter restricts them.
    names: Option<Vec<ObjectName>>,
    /// Realms of the owners.
    realms: Option<Vec<Name>>,
    /// Paths, of which the last segment is the owner.
    paths: Option<Vec<&'a str>>,
}

impl<'a> Owned<'a> {
    fn of(tests: &'a [Test]) -> Self {
        let texts = |field| tests.iter().find_map(|test: &'a Test| test.texts(field));
        let paths = texts("path");
        let last = |path: &&'a str| path.rsplit_once('/').map_or(*path, |(_, owner)| owner);
        let names = texts("owner").or_else(|| Some(paths.as_ref()?.iter().map(last).collect()));
        Self {
            names: names.map(|all| all.into_iter().filter_map(|name| ObjectName::new(name).ok()).collect()),
            realms: texts("realm")
                .map(|all| all.into_iter().filter_map(|realm| Name::new(realm).ok()).collect()),
            paths,
        }
    }

    /// Prefixes below one parent. With names and realms, they are looked up; otherwise all are examined.
    fn below(&self, state: &State, parent: u64) -> Vec<u64> {
        let claims = state.prefix_claims_from(parent.into()).map(u64::from);
        let (Some(names), Some(realms)) = (&self.names, &self.realms) else {
            return state.prefixes_below(parent.into()).map(u64::from).chain(claims).collect();
        };
        let owners = realms.iter().flat_map(|realm| {
            names.iter().map(|name| PrefixOwner { realm: realm.clone(), name: name.clone() })
        });
        let prefixes = owners.filter_map(|owner| state.prefix_of(parent.into(), &owner));
        prefixes.map(|(id, _)| id.get()).chain(claims).collect()
    }

    /// Prefixes of the permitted owners at the permitted paths; none if no filter restricts owner names.
    fn anywhere(&self, state: &State) -> Option<Vec<u64>> {
        let of = |owner: &ObjectName| match &self.realms {
            Some(realms) => {
                realms.iter().flat_map(|realm| state.prefixes_owned_by(owner, Some(realm))).collect()
            }
            None => state.prefixes_owned_by(owner, None).collect::<Vec<_>>(),
        };
        let ids = self.names.as_ref()?.iter().flat_map(of);
        Some(ids.filter(|id| self.may_be_at(state, *id)).collect())
    }

    /// Returns false for a prefix at a path that the filters exclude, without building its item.
    fn may_be_at(&self, state: &State, id: u64) -> bool {
        let chain = state.prefix_chain(id.into());
        let Some(paths) = self.paths.as_ref().filter(|_| !chain.is_empty()) else { return true };
        let owners =
            chain.into_iter().filter_map(|id| state.prefixes.get(id)).map(|row| row.owner.name.as_str());
        let owners: Vec<&str> = owners.collect();
        paths.iter().any(|path| path.rsplit('/').eq(owners.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::list::tests_of;
    use ipam_machine::command::{Delegate, PoolSpec, PrefixLevel, PrefixSource};
    use ipam_machine::{Action, At, apply, fixtures};

    const NODES: u64 = 40;

    /// Nodes with children of the same names, in two conduits and two realms, and a waiting request.
    fn state() -> State {
        let mut state = State::new();
        let mut run = |action| drop(apply(&mut state, At::default(), &fixtures::command(action)).0.unwrap());
        run(Action::PutSubnet(fixtures::put(fixtures::subnet("trench", "10.0.0.0/16"))));
        let pool = PoolSpec { allow_edges: true, ..fixtures::pool("trench", "trench") };
        run(Action::PutPool(fixtures::put(pool)));
        for node in 0..NODES {
            let conduit = if node % 2 == 0 { "a" } else { "b" };
            let realm = if node % 4 == 0 { "prod" } else { "default" };
            for child in ["bridge", "src", "dst"] {
                let levels = [(conduit, 20), (&format!("node-{node}"), 28), (child, 32)];
                run(Action::Delegate(delegation(realm, &levels)));
            }
        }
        run(Action::DelegateOrWait(delegation("default", &[("all", 16)])));
        state
    }

    fn delegation(realm: &str, levels: &[(&str, u8)]) -> Delegate {
        let level = |(owner, length): &(&str, u8)| PrefixLevel {
            owner: owner.parse().unwrap(),
            length: Some(*length),
            keep_edges: false,
            ttl_ms: None,
        };
        Delegate {
            from: PrefixSource::Pool("trench".parse().unwrap()),
            realm: realm.parse().unwrap(),
            levels: levels.iter().map(level).collect(),
        }
    }

    /// Returns the number of rows that a query examines (none for all), and the number that it returns.
    fn examined(state: &State, query: &str) -> (Option<usize>, usize) {
        let tests = tests_of(&format!("/v1/prefixes?{query}").parse().unwrap(), &SHAPE).unwrap();
        let narrowed = Prefixes::narrowed(state, &tests);
        let fits = |id: &u64| {
            let item = Prefixes::item(state, *id).unwrap();
            let json = serde_json::to_value(&item).unwrap();
            tests.iter().all(|test| test.fits::<Prefixes>(&item, &json))
        };
        let all: Vec<u64> = Prefixes::ids(state, None).unwrap().filter(fits).collect();
        if let Some(ids) = &narrowed {
            assert!(ids.is_sorted(), "in the list's own order");
            assert!(all.iter().all(|id| ids.contains(id)), "nothing is left out by {query}");
        }
        (narrowed.map(|ids| ids.len()), all.len())
    }

    #[test]
    fn a_list_by_owner_or_path_examines_only_its_items() {
        let state = state();
        let nodes = usize::try_from(NODES).unwrap();
        let node = state.prefixes_owned_by(&"node-6".parse().unwrap(), None).next().unwrap();
        let pool = state.pools.first().unwrap().0;
        for (query, shown) in [
            ("owner=node-7".to_owned(), 1),
            ("owner=bridge".to_owned(), nodes),
            ("owner=bridge&realm=prod".to_owned(), nodes / 4),
            ("owner=bridge&owner=node-7&realm=prod&realm=default".to_owned(), nodes + 1),
            ("owner=all".to_owned(), 1),
            ("path=all".to_owned(), 1),
            ("owner=nothing".to_owned(), 0),
            ("owner=no%20name".to_owned(), 0),
            ("path=a/node-4/bridge".to_owned(), 1),
            ("path=b/node-4/bridge".to_owned(), 0),
            ("path=node-4/bridge".to_owned(), 0),
            ("path=bridge".to_owned(), 0),
            ("path=a".to_owned(), 2),
            ("path=a&realm=prod".to_owned(), 1),
            ("path=a/node-4/src&path=b/node-7/dst".to_owned(), 2),
            ("path=".to_owned(), 0),
            (format!("parent={node}"), 3),
        ] {
            assert_eq!(examined(&state, &query), (Some(shown), shown), "{query}");
        }
        // Waiting requests of the parent are few, and all are examined.
        assert_eq!(examined(&state, &format!("parent={node}&owner=bridge&realm=default")), (Some(1), 1));
        assert_eq!(examined(&state, &format!("parent={pool}&owner=all&realm=default")), (Some(1), 0));
        assert_eq!(examined(&state, "contains=10.0.0.0"), (Some(3), 3));
        assert_eq!(examined(&state, "realm=prod"), (None, 2 + nodes / 4 * 4 - 1));
    }
}
