//! Comparison of the maps of pools and subnets with a walk over every address.

use std::net::IpAddr;

use ipam_api::address::number;
use ipam_api::name::Name;
use ipam_machine::State;
use ipam_machine::command::Kind;
use ipam_machine::map::{MapPage, Run, Standing, Wanted};

use crate::model::naive::{Model, all_of};

/// Result of the walk for one address: state, pool, and true if it is held and reserved.
type Known = (&'static str, Option<Name>, bool);

/// Every map, in one page and in many, from its beginning and from the middle, of each state alone.
pub(crate) fn maps_agree(state: &State, model: &Model) {
    for (name, pool) in &model.pools {
        let cidr = model.subnet_of(&pool.spec).cidr;
        let has = |address: &IpAddr| model.has(&pool.spec, *address);
        let walked = all_of(cidr).filter(has).map(|address| (address, of_pool(model, name, address)));
        let id = state.id_of(Kind::Pool, name).unwrap();
        compare(state, &walked.collect::<Vec<_>>(), |wanted| state.map_of_pool(id.into(), wanted).unwrap());
        let whole = state.map_of_pool(id.into(), EVERYTHING).unwrap();
        counts_agree(state, id, &whole.runs);
        holders_agree(state, model, name, id);
    }
    for (name, subnet) in &model.subnets {
        let walked = all_of(subnet.cidr).map(|address| (address, of_subnet(model, name, address)));
        let id = state.id_of(Kind::Subnet, name).unwrap();
        compare(state, &walked.collect::<Vec<_>>(), |wanted| state.map_of_subnet(id.into(), wanted).unwrap());
    }
}

const EVERYTHING: Wanted = Wanted { from: 0, limit: 1000, only: None };

fn of_pool(model: &Model, name: &Name, address: IpAddr) -> Known {
    let pool = &model.pools.get(name).unwrap().spec;
    let word = model.state_of(pool, address);
    let network = &model.subnet_of(pool).network;
    let occupied = ["allocated", "quarantined", "cooling"].contains(&word);
    (word, Some(name.clone()), occupied && model.is_reserved(network, address))
}

fn of_subnet(model: &Model, name: &Name, address: IpAddr) -> Known {
    let mut pools = model.pools.iter().filter(|(_, pool)| pool.spec.subnet == *name);
    let owner = pools.clone().find(|(_, pool)| model.owns(&pool.spec, address));
    if let Some((owner, _)) = owner {
        return of_pool(model, owner, address);
    }
    let network = &model.subnets.get(name).unwrap().network;
    let word = if model.is_reserved(network, address) {
        "reserved"
    } else if pools.any(|(_, pool)| model.has(&pool.spec, address)) {
        "excluded"
    } else {
        "unmanaged"
    };
    (word, None, false)
}

fn compare(state: &State, walked: &[(IpAddr, Known)], map: impl Fn(Wanted) -> MapPage) {
    let pages = |wanted: Wanted| {
        let (mut runs, mut wanted) = (Vec::new(), wanted);
        loop {
            let page = map(wanted);
            assert!(page.runs.len() <= wanted.limit);
            runs.extend(page.runs);
            match page.next {
                Some(next) => wanted.from = next,
                None => return runs,
            }
        }
    };
    let middle = walked.get(walked.len() / 2).map_or(0, |(address, _)| number(*address));
    for from in [0, middle] {
        for only in [None].into_iter().chain(Standing::ALL.map(Some)) {
            let expected = runs_of(state, walked, from, only);
            assert_eq!(pages(Wanted { from, limit: 1000, only }), expected, "from {from}, {only:?}");
            assert_eq!(pages(Wanted { from, limit: 2, only }), expected, "two a page from {from}, {only:?}");
        }
    }
}

/// As few runs as possible of what was walked.
fn runs_of(state: &State, walked: &[(IpAddr, Known)], from: u128, only: Option<Standing>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (address, (word, pool, reserved)) in walked {
        let at = number(*address);
        let standing = Standing::ALL.into_iter().find(|standing| standing.as_str() == *word).unwrap();
        if at < from || only.is_some_and(|only| only != standing) {
            continue;
        }
        let pool = pool.as_ref().map(|name| state.id_of(Kind::Pool, name).unwrap().into());
        match runs.last_mut() {
            Some(run)
                if run.last + 1 == at
                    && (run.standing, run.pool, run.reserved) == (standing, pool, *reserved) =>
            {
                run.last = at;
            }
            _ => runs.push(Run { first: at, last: at, standing, pool, reserved: *reserved }),
        }
    }
    runs
}

/// The runs of a pool add up to its counts.
fn counts_agree(state: &State, pool: u64, runs: &[Run]) {
    let space = state.space(pool.into()).unwrap();
    let counts = space.counts();
    let sum = |fits: &dyn Fn(&Run) -> bool| -> u128 {
        runs.iter().filter(|run| fits(run)).map(|run| run.last - run.first + 1).sum()
    };
    for (standing, count) in [
        (Standing::Allocated, counts.allocated),
        (Standing::Cooling, counts.cooling),
        (Standing::Quarantined, counts.quarantined),
        (Standing::Reserved, counts.reserved),
        (Standing::Excluded, counts.excluded),
        (Standing::Free, counts.free),
    ] {
        assert_eq!(sum(&|run| run.standing == standing), count, "{standing:?}");
    }
    assert_eq!(sum(&|_| true), counts.size);
    assert_eq!(sum(&|run| run.reserved), space.reserved_while_held());
}

fn holders_agree(state: &State, model: &Model, name: &Name, pool: u64) {
    let holders = state.holders_of(pool.into()).unwrap();
    let held: Vec<_> = model.held.iter().filter(|one| one.pool == *name).collect();
    assert!(holders.complete && holders.counted == held.len() as u64);
    assert!(holders.namespaces.is_sorted_by_key(|(.., held)| std::cmp::Reverse(*held)));
    for (realm, namespace, count) in &holders.namespaces {
        let of = held.iter().filter(|one| {
            let endpoint = model.endpoints.iter().find(|endpoint| endpoint.number == one.endpoint).unwrap();
            (&endpoint.key.realm, &endpoint.key.namespace) == (realm, namespace)
        });
        assert_eq!(of.count() as u64, *count);
    }
    assert_eq!(holders.namespaces.iter().map(|(.., held)| held).sum::<u64>(), holders.counted);
}
