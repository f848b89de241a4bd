//! Comparison of the claims with what the servers have allocated.

use std::collections::BTreeMap;

use ipam_api::Problem;
use ipam_api::client::with_query;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::{EndpointKey, EndpointStatus, Prefix};
use serde::Deserialize;

use super::shared::Shared;
use super::views::{PoolState, Views};
use crate::backoff::Backoff;
use crate::cluster_api::{AddressSpec, Key, owner_of_prefix};
use crate::servers::{Servers, each};

/// Allocations of all claims.
#[derive(Debug, Default)]
struct Held {
    /// Addresses with their pools, by claim.
    addresses: BTreeMap<Key, Vec<(Name, String)>>,
    /// First addresses of prefixes with their pools, by owner.
    prefixes: BTreeMap<ObjectName, Vec<(Name, String)>>,
}

/// Endpoint with its addresses.
#[derive(Deserialize)]
struct EndpointRow {
    #[serde(flatten)]
    key: EndpointKey,
    status: EndpointStatus,
}

/// Compares all claims in intervals, for as long as the provider runs. After a failure the next comparison
/// follows soon.
pub(super) async fn compare_claims(shared: &Shared<impl Servers>, mut has_failed: bool) {
    let mut backoff = Backoff::default();
    loop {
        if has_failed {
            backoff.wait().await;
        } else {
            backoff.reset();
            tokio::time::sleep(shared.settings.compare_interval).await;
        }
        has_failed = !compare(shared).await;
    }
}

/// Compares all claims. Returns false if the servers don't answer.
///
/// A claim whose object exists needs no request if the servers have its address. If they don't, as after the
/// restore of an older backup, the address is adopted.
pub(super) async fn compare(shared: &Shared<impl Servers>) -> bool {
    match read(shared).await {
        Ok(held) => {
            apply(&mut shared.views(), &held);
            shared.note(|status| (status.compared, status.error) = (status.compared + 1, None));
            shared.claims.notify_one();
            true
        }
        Err(problem) => {
            shared.refused(&problem);
            false
        }
    }
}

async fn read(shared: &Shared<impl Servers>) -> Result<Held, Problem> {
    let mut held = Held::default();
    let realm = shared.settings.realm.as_str();
    let path = with_query(&with_query("/v1/endpoints", "realm", realm), "kind", "claim");
    each(&shared.servers, &path, |row: EndpointRow| {
        let given = row.status.interfaces.iter().flat_map(|interface| &interface.addresses);
        let given = given.map(|given| (given.pool.clone(), given.address.addr().to_string())).collect();
        held.addresses.insert((row.key.namespace, row.key.name), given);
    })
    .await?;
    each(&shared.servers, &with_query("/v1/prefixes", "realm", realm), |prefix: Prefix| {
        if let (None, Some(cidr)) = (prefix.parent, prefix.cidr) {
            let given = (prefix.pool, cidr.network().to_string());
            held.prefixes.entry(prefix.owner).or_default().push(given);
        }
    })
    .await?;
    Ok(held)
}

/// Makes the steps of all claims due, even if an event was lost. Also records the allocations of claims with
/// an object. Claims without an object are requested in any case.
fn apply(views: &mut Views, held: &Held) {
    let all: Vec<Key> = views.claims.keys().chain(views.addresses.keys()).cloned().collect();
    views.due_claims.extend(all);
    let mut changed = Vec::new();
    for (key, claim) in views.claims.iter().filter(|(_, claim)| !claim.metadata.is_ending) {
        let Some(address) = views.addresses.get(key).filter(|address| address.fulfils(&key.1, claim)) else {
            continue;
        };
        let pool = match views.states.get(&claim.pool) {
            Some(PoolState::Ready(pool)) => Some(&pool.name),
            _ => None,
        };
        let given = match claim.pool.kind.is_prefix() {
            true => owner_of_prefix(key).and_then(|owner| held.prefixes.get(&owner)),
            false => held.addresses.get(key),
        };
        let is_held = given.into_iter().flatten().any(|(of, given)| {
            let given = AddressSpec { address: given.clone(), prefix: 0, gateway: None };
            pool.is_none_or(|pool| pool == of) && address.spec.has_address_of(&given)
        });
        changed.push((key.clone(), is_held.then(|| address.spec.clone())));
    }
    for (key, granted) in changed {
        let known = views.answers.entry(key).or_default();
        // An address that was granted since the read is requested again, which changes nothing.
        if granted.is_some() || known.granted.is_some() {
            known.granted = granted;
        }
    }
}
