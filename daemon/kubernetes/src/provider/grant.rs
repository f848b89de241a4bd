//! Requests to the servers for the address or the prefix of a claim.

use std::net::IpAddr;
use std::time::Duration;

use ipam_api::brand::HEADER_IDEMPOTENCY_KEY;
use ipam_api::client::{Call, with_query};
use ipam_api::limits::OBJECT_NAME_CHARS_MAX;
use ipam_api::name::Name;
use ipam_api::problem::Applied;
use ipam_api::request::{Allocated, Delegated};
use ipam_api::resource::{Condition, Endpoint, EndpointStatus, Page, Prefix, Resource};
use ipam_api::{Code, Family, Problem};
use serde_json::json;

use super::shared::Shared;
use super::views::ReadyPool;
use crate::cluster_api::{
    ALLOCATION_FAILED, AddressSpec, ClaimFacts, Key, POOL_EXHAUSTED, POOL_NOT_READY, Shown, owner_of_prefix,
};
use crate::servers::{Servers, is_passing, path};

/// Time limit of one request, with all attempts. A claim shows a longer outage.
pub(super) const REQUEST: Duration = Duration::from_secs(3);
/// Interface of a claim, which has a single address by the contract.
pub(super) const INTERFACE: &str = "eth0";

/// Answer of the servers to a claim.
pub(super) enum Grant {
    Allocated(AddressSpec),
    Waiting {
        shown: Shown,
        /// Revision of the answer.
        revision: u64,
    },
}

/// Requests the address of a claim. A repetition gets the same answer.
///
/// # Errors
/// The refusal of the servers.
pub(super) async fn allocate(
    shared: &Shared<impl Servers>,
    key: &Key,
    claim: &ClaimFacts,
    pool: &ReadyPool,
    existing: Option<AddressSpec>,
) -> Result<Grant, Problem> {
    match pool.length {
        Some(length) => delegate(shared, key, pool, length, existing).await,
        None => address(shared, key, claim, pool, existing).await,
    }
}

async fn address(
    shared: &Shared<impl Servers>,
    key: &Key,
    claim: &ClaimFacts,
    pool: &ReadyPool,
    existing: Option<AddressSpec>,
) -> Result<Grant, Problem> {
    let pools = match pool.family {
        Family::V4 => "ipv4_pools",
        Family::V6 => "ipv6_pools",
    };
    let wanted = match (&existing, &claim.requested) {
        (Some(existing), _) => Some(&existing.address),
        (None, requested) => requested.as_ref(),
    };
    let parse = |text: &String| -> Result<IpAddr, Problem> {
        text.parse().map_err(|_| {
            Problem::new(Code::InvalidField, format!("{text:?} is not an IP address"))
                .help("Correct the annotation with the requested address.")
        })
    };
    let addresses: Vec<IpAddr> = wanted.map(parse).transpose()?.into_iter().collect();
    let request = json!({
        "endpoint": {
            "realm": shared.settings.realm, "kind": "claim", "namespace": key.0, "name": key.1,
        },
        "interfaces": [{
            "name": INTERFACE, pools: [pool.name], "families": [pool.family], "addresses": addresses,
        }],
        "labels": claim.labels, "lifecycle": "held",
        "adopt": existing.is_some(),
        // A request for a specific address can't wait.
        "wait": addresses.is_empty(),
    });
    let call = Call::post("/v1/allocations").json(&request)?.repeatable().within(REQUEST);
    let answer = match shared.servers.send(call).await {
        // The claim had other labels when it began to wait. It keeps its place in the queue.
        Err(problem) if problem.code == Code::AlreadyExists => {
            return waits_already(shared, key, problem).await;
        }
        answer => answer?,
    };
    let Allocated { interfaces, waiting, revision, .. } = answer.read()?;
    if let Some(condition) = waiting {
        return Ok(Grant::Waiting { shown: shown(condition), revision });
    }
    let mut given = interfaces.iter().flat_map(|interface| &interface.addresses);
    let Some(given) = given.find(|given| given.pool == pool.name) else {
        let detail = format!("claim {}/{} holds an address of another pool", key.0, key.1);
        return Err(Problem::new(Code::AddressTaken, detail)
            .help("Release the endpoint of the claim, or name the pool that its address is of."));
    };
    let address = given.address.addr();
    let granted = AddressSpec {
        address: address.to_string(),
        prefix: i64::from(pool.prefix.unwrap_or(given.address.prefix_len())),
        gateway: pool.gateway.clone().or_else(|| {
            let of_ipamd = given.gateway.filter(|_| pool.prefix.is_none());
            of_ipamd.map(|gateway| gateway.to_string())
        }),
    };
    // The spec of an object never changes, so its values take precedence over those of the pool.
    Ok(Grant::Allocated(existing.filter(|one| one.has_address_of(&granted)).unwrap_or(granted)))
}

/// Present reason for which a claim waits, or the problem of a claim that does not wait.
async fn waits_already(shared: &Shared<impl Servers>, key: &Key, problem: Problem) -> Result<Grant, Problem> {
    let found = endpoint(shared, key).await?;
    let condition = found.and_then(|found| found.status.conditions.into_iter().next());
    match (condition, problem.revision) {
        (Some(condition), Some(revision)) => Ok(Grant::Waiting { shown: shown(condition), revision }),
        _ => Err(problem),
    }
}

/// Path of the endpoint of a claim.
fn endpoint_path(shared: &Shared<impl Servers>, key: &Key) -> String {
    path(&["endpoints", "claim", shared.settings.realm.as_str(), key.0.as_str(), key.1.as_str()])
}

/// Endpoint of a claim, if it holds an address or waits.
async fn endpoint(
    shared: &Shared<impl Servers>,
    key: &Key,
) -> Result<Option<Resource<Endpoint, EndpointStatus>>, Problem> {
    match shared.servers.send(Call::get(endpoint_path(shared, key)).within(REQUEST)).await {
        Ok(answer) => answer.read().map(Some),
        Err(problem) if problem.code == Code::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

async fn delegate(
    shared: &Shared<impl Servers>,
    key: &Key,
    pool: &ReadyPool,
    length: u8,
    existing: Option<AddressSpec>,
) -> Result<Grant, Problem> {
    let owner = owner_of_prefix(key).ok_or_else(|| {
        let detail = format!("{}.{} has more than {OBJECT_NAME_CHARS_MAX} characters", key.0, key.1);
        Problem::new(Code::InvalidField, detail).help("Claim a prefix with a shorter name.")
    })?;
    let request = json!({
        "pool": pool.name, "realm": shared.settings.realm, "owner": owner, "length": length, "wait": true,
    });
    let call = Call::post("/v1/prefixes").json(&request)?.repeatable().within(REQUEST);
    let answer = match shared.servers.send(call).await {
        // The pool had another length when the claim began to wait. The next request has the new one.
        Err(problem) if problem.code == Code::AlreadyExists => {
            let realm = &shared.settings.realm;
            let waiting = prefixes(&shared.servers, realm, key).await?.into_iter();
            let waiting = waiting.filter(|prefix| prefix.cidr.is_none()).collect();
            release_prefixes(&shared.servers, waiting).await?;
            return Err(problem);
        }
        answer => answer?,
    };
    let Delegated { prefix, revision, .. } = answer.read()?;
    let Some(cidr) = prefix.cidr else {
        let unknown = || Shown::Unfulfilled { reason: ALLOCATION_FAILED, message: "it waits".to_owned() };
        return Ok(Grant::Waiting { shown: prefix.waiting.map_or_else(unknown, shown), revision });
    };
    let granted = AddressSpec {
        address: cidr.network().to_string(),
        prefix: cidr.prefix_len().into(),
        gateway: pool.gateway.clone(),
    };
    Ok(Grant::Allocated(existing.filter(|one| one.has_address_of(&granted)).unwrap_or(granted)))
}

/// Reason for waiting in the words of the contract.
fn shown(condition: Condition) -> Shown {
    let known = [POOL_EXHAUSTED, POOL_NOT_READY].into_iter().find(|one| *one == condition.reason);
    Shown::Unfulfilled { reason: known.unwrap_or(ALLOCATION_FAILED), message: condition.message }
}

/// Refusal in the words of the contract.
pub(super) fn reason(problem: &Problem) -> &'static str {
    match problem.code {
        Code::PoolExhausted => POOL_EXHAUSTED,
        Code::PoolDisabled | Code::Terminating | Code::EpochUnconfirmed => POOL_NOT_READY,
        _ => ALLOCATION_FAILED,
    }
}

/// Prefixes and waiting requests of a claim on a prefix pool.
///
/// # Errors
/// The refusal of the servers.
pub(super) async fn held(
    shared: &Shared<impl Servers>,
    key: &Key,
    claim: &ClaimFacts,
) -> Result<Vec<Prefix>, Problem> {
    match claim.pool.kind.is_prefix() {
        true => prefixes(&shared.servers, &shared.settings.realm, key).await,
        false => Ok(Vec::new()),
    }
}

/// Releases what a claim holds, and withdraws its request. Returns false if it may hold more.
///
/// Prefixes are named by their ids. The release of an address has an idempotency key with the claim's uid, so
/// that it takes place once: a late repetition, by this provider or another one, can't release the addresses
/// of a later claim of the same name.
///
/// # Errors
/// The refusal of the servers.
pub(super) async fn release(
    shared: &Shared<impl Servers>,
    key: &Key,
    claim: &ClaimFacts,
    held: Vec<Prefix>,
) -> Result<bool, Problem> {
    if claim.pool.kind.is_prefix() {
        return release_prefixes(&shared.servers, held).await;
    }
    let attempt = shared.views().answers.get(key).map_or(0, |answer| answer.releases);
    let once = format!("release:{}:{attempt}", claim.metadata.uid);
    let call = Call::delete(endpoint_path(shared, key)).header(HEADER_IDEMPOTENCY_KEY, &once)?;
    match shared.servers.send(call.repeatable().within(REQUEST)).await {
        Ok(_) => Ok(true),
        Err(problem) if problem.code == Code::NotFound => Ok(true),
        Err(problem) => {
            // The servers keep this answer for the key, so the next attempt needs another key.
            if problem.applied == Applied::No && !is_passing(&problem) {
                shared.views().answers.entry(key.clone()).or_default().releases += 1;
            }
            Err(problem)
        }
    }
}

async fn prefixes(servers: &impl Servers, realm: &Name, key: &Key) -> Result<Vec<Prefix>, Problem> {
    let Some(owner) = owner_of_prefix(key) else { return Ok(Vec::new()) };
    let list = with_query("/v1/prefixes", "realm", realm.as_str());
    // The path of a prefix that is cut from a pool is its owner alone; prefixes below it have longer paths.
    let list = with_query(&list, "path", owner.as_str());
    let found: Page<Prefix> = servers.send(Call::get(list).within(REQUEST)).await?.read()?;
    Ok(found.items)
}

/// Releases prefixes. Returns false if a request may have been served since the list, because its prefix then
/// has another id.
async fn release_prefixes(servers: &impl Servers, held: Vec<Prefix>) -> Result<bool, Problem> {
    let mut is_complete = true;
    for prefix in held {
        is_complete &= prefix.cidr.is_some();
        delete(servers, path(&["prefixes", &prefix.id.to_string()])).await?;
    }
    Ok(is_complete)
}

/// Deletes a path. A missing resource counts as deleted.
async fn delete(servers: &impl Servers, path: String) -> Result<(), Problem> {
    match servers.send(Call::delete(path).within(REQUEST)).await {
        Ok(_) => Ok(()),
        Err(problem) if problem.code == Code::NotFound => Ok(()),
        Err(problem) => Err(problem),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use ipam_api::client::Answer;
    use ipam_api::name::ObjectName;
    use serde_json::Value;

    use super::*;

    /// Servers that serve the request of a claim between its list and its withdrawal.
    #[derive(Debug, Clone)]
    struct Racing(Arc<Mutex<Vec<Value>>>);

    impl Servers for Racing {
        async fn send(&self, call: Call) -> Result<Answer, Problem> {
            let mut prefixes = self.0.lock().unwrap();
            let answer =
                |body: Value| Ok(Answer::new(200, Default::default(), body.to_string().into_bytes()));
            if call.method() == "GET" {
                assert!(call.path().contains("path=shop.m-0"), "{}", call.path());
                let listed = json!({"items": *prefixes, "revision": 1});
                if let Some(first) = prefixes.first_mut().filter(|first| first["cidr"].is_null()) {
                    (first["id"], first["cidr"]) = (json!(8), json!("fd00::/64"));
                }
                return answer(listed);
            }
            let count = prefixes.len();
            prefixes.retain(|prefix| !call.path().ends_with(&format!("/{}", prefix["id"])));
            let missing = || Problem::new(Code::NotFound, "no such prefix");
            if prefixes.len() < count { answer(json!({})) } else { Err(missing()) }
        }
    }

    #[tokio::test]
    async fn a_prefix_of_a_request_that_was_served_meanwhile_is_released_too() {
        let waiting = json!({
            "id": 7, "length": 64, "network": "default", "subnet": "s", "pool": "p", "realm": "eu",
            "owner": "shop.m-0", "path": "shop.m-0", "keep_edges": false, "children": 0,
            "created_at": "2026-01-01T00:00:00Z", "created_by": "cluster-api/eu",
        });
        let servers = Racing(Arc::new(Mutex::new(vec![waiting])));
        let key = (ObjectName::new("shop").unwrap(), ObjectName::new("m-0").unwrap());
        let realm = Name::new("eu").unwrap();
        let mut lists = 1;
        while !release_prefixes(&servers, prefixes(&servers, &realm, &key).await.unwrap()).await.unwrap() {
            lists += 1;
        }
        assert_eq!(lists, 2);
        assert!(servers.0.lock().unwrap().is_empty());
    }
}
