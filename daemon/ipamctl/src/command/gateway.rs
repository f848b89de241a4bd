//! Holders that keep their gateway when the gateway of their subnet or pool changes.

use std::net::IpAddr;

use ipam_api::Name;
use ipam_api::client::with_query;
use ipam_api::resource::{Allocation, Pool};

use crate::client::resource_type::Read;
use crate::client::session::Session;

/// Number of holders that a note names.
const NAMED: usize = 5;

/// Names holders in a subnet that keep its previous gateway, except in pools with their own gateway.
pub(crate) async fn tell_of_subnet(session: &Session, subnet: &Name, old: Option<IpAddr>) {
    let path = with_query("/v1/pools", "subnet", subnet.as_str());
    let pools = session.list::<Read<Pool>>(&path, None, |pool| pool.spec.gateway.is_some()).await;
    let apart: Vec<Name> =
        pools.map(|listed| listed.items.into_iter().map(|pool| pool.spec.name).collect()).unwrap_or_default();
    let old = old.map_or_else(|| "no gateway".to_owned(), |old| format!("gateway {old}"));
    tell(session, ("subnet", subnet), &old, |one| !apart.contains(&one.pool)).await;
}

/// Names holders in a pool that keep its previous gateway. Without `old`, it was the gateway of the subnet.
pub(crate) async fn tell_of_pool(session: &Session, pool: &Name, old: Option<IpAddr>) {
    let old = old.map_or_else(|| "the gateway of the subnet".to_owned(), |old| format!("gateway {old}"));
    tell(session, ("pool", pool), &old, |_| true).await;
}

/// Prints a note about the holders. A failed read is ignored, because the change itself is complete.
async fn tell(session: &Session, (word, name): (&str, &Name), old: &str, keep: impl Fn(&Allocation) -> bool) {
    let path = with_query("/v1/allocations", word, name.as_str());
    let Ok(listed) = session.list::<Allocation>(&path, Some(NAMED), keep).await else { return };
    if listed.items.is_empty() {
        return;
    }
    let mut holders: Vec<String> =
        listed.items.iter().map(|one| format!("{} ({})", one.endpoint, one.address.addr())).collect();
    if listed.more {
        holders.push("…".to_owned());
    }
    session.tell(&format!(
        "note: existing endpoints keep {old} until they are recreated: {}   all: ipamctl allocation list --{word} \
         {name}",
        holders.join(", ")
    ));
}
