//! Routes of maps, of holders, and of changes of pools in use.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::{Parameter, fresh, parameter};
use super::route::{Handled, OF_RULES, Route};
use crate::http::resource::{map, pool_change};

pub(super) fn routes() -> [Handled; 4] {
    let problems = [Code::NotFound, Code::RevisionNotReached];
    [
        Route::get(
            "/v1/pools/{name}/map",
            Target::Pool,
            "Shows which addresses of a pool are in which state, as runs.",
        )
        .query(of_map())
        .json(200, "AddressMap")
        .refuses(&problems)
        .refuses(&[Code::FamilyMismatch])
        .to(map::of_pool),
        Route::get(
            "/v1/pools/{name}/holders",
            Target::Allocation,
            "Shows who holds a pool's addresses, namespace by namespace.",
        )
        .query(vec![parameter("limit", "limit", "Namespaces to show, 1 to 1000.")])
        .query(fresh())
        .json(200, "Holders")
        .refuses(&problems)
        .to(map::holders),
        Route::get(
            "/v1/subnets/{name}/map",
            Target::Subnet,
            "Shows which addresses of a subnet are in which state, and whose they are, as runs.",
        )
        .query(of_map())
        .json(200, "AddressMap")
        .refuses(&problems)
        .refuses(&[Code::FamilyMismatch])
        .to(map::of_subnet),
        Route::get(
            "/v1/networks/{name}/map",
            Target::Network,
            "Shows the subnets of a network by address, with what is in them.",
        )
        .query(paged("Subnets of one page, 1 to 1000."))
        .json(200, "NetworkMap")
        .refuses(&problems)
        .to(map::of_network),
    ]
}

pub(super) fn changes_of_pools() -> [Handled; 2] {
    let write = (Verb::Write, Target::Pool);
    [
        Route::post(
            "/v1/pools/{name}/split",
            write,
            "Makes some ranges of a pool a pool of their own, with all that is held there.",
        )
        .takes("SplitRequest")
        .json(201, "PoolView")
        .refuses(OF_RULES)
        .to(pool_change::split),
        Route::post(
            "/v1/pools/{name}/drain",
            write,
            "Lets another pool stand in for a pool, and says who still holds something of it.",
        )
        .takes("DrainRequest")
        .json(200, "Drained")
        .refuses(OF_RULES)
        .to(pool_change::drain),
    ]
}

fn paged(about: &str) -> Vec<Parameter> {
    let from = "The address to begin at: the `next` of the page before.";
    let mut all = vec![parameter("from", "address", from), parameter("limit", "limit", about)];
    all.extend(fresh());
    all
}

fn of_map() -> Vec<Parameter> {
    let mut all = paged("Runs of one page, 1 to 1000.");
    all.push(parameter("state", "state", "Only addresses in this state, for example `free`."));
    all
}
