//! Requests of sessions: typed operations with the arguments and grants that checkers read.

use std::net::IpAddr;

use ipam_api::Problem;
use ipam_api::client::Call;
use ipam_api::request::{Allocated, Released, Renewed};
use ipam_api::resource::{Address, Allocation};
use serde_json::{Value as Json, json};

use super::resources::NETWORK;
use super::session::add_detail;
use super::{At, Session};
use crate::history::{Function, Grant, Value, endpoint_name};

/// Name of an endpoint as `kind/realm/namespace/name`. Its namespace is that of the workload.
#[must_use]
pub(super) fn endpoint_of(kind: &str, workload: &str, name: &str) -> String {
    format!("{kind}/default/{workload}/{workload}-{name}")
}

/// Returns true for an endpoint that several sessions use. A session does not know the present grants of such
/// an endpoint: another session may have released it and allocated the same address again.
#[must_use]
pub(super) fn is_shared(endpoint: &str) -> bool {
    endpoint.contains("-shared-")
}

/// Addresses that an endpoint requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// Endpoint as `kind/realm/namespace/name`.
    pub(super) endpoint: String,
    /// Interfaces as in `AllocateRequest`.
    pub(super) interfaces: Vec<Json>,
    /// Pools of all interfaces.
    pub(super) pools: Vec<String>,
    /// Requested address.
    pub(super) target: Option<String>,
    /// TTL of a lease.
    pub(super) ttl_ms: Option<u64>,
    /// True to wait while the pools are exhausted.
    pub(super) waits: bool,
    /// True to record an existing address.
    pub(super) adopts: bool,
    /// Details for checkers.
    pub(super) detail: Json,
}

impl Wanted {
    /// One address of an IPv4 pool on `eth0`.
    #[must_use]
    pub(super) fn one(endpoint: String, pool: &str) -> Self {
        let interfaces = vec![json!({"name": "eth0", "ipv4_pools": [pool]})];
        Self { endpoint, interfaces, pools: vec![pool.to_owned()], ..Self::default() }
    }

    /// One requested address of an IPv4 pool on `eth0`.
    #[must_use]
    pub(super) fn address(endpoint: String, pool: &str, address: &str) -> Self {
        let interfaces = vec![json!({"name": "eth0", "ipv4_pools": [pool], "addresses": [address]})];
        let target = Some(address.to_owned());
        Self { endpoint, interfaces, pools: vec![pool.to_owned()], target, ..Self::default() }
    }

    /// Body of the request.
    #[must_use]
    pub(super) fn body(&self) -> Json {
        let mut body = json!({"endpoint": endpoint_key(&self.endpoint), "interfaces": self.interfaces});
        if let Some(body) = body.as_object_mut() {
            let flags = [("wait", self.waits), ("adopt", self.adopts)];
            body.extend(
                flags.into_iter().filter(|(_, is)| *is).map(|(name, is)| (name.to_owned(), is.into())),
            );
            body.extend(self.ttl_ms.map(|ttl| ("ttl_ms".to_owned(), ttl.into())));
        }
        body
    }

    /// Arguments of the operation. A claim is its own key.
    #[must_use]
    pub(super) fn value(&self, key: Option<&str>) -> Value {
        let claim = self.waits.then(|| self.endpoint.clone());
        Value {
            key: key.map(str::to_owned).or(claim),
            endpoint: Some(self.endpoint.clone()),
            pools: self.pools.clone(),
            target: self.target.clone(),
            ttl_ms: self.ttl_ms,
            detail: self.detail.clone(),
            ..Value::default()
        }
    }
}

/// Endpoint as the API writes it in bodies.
#[must_use]
pub(super) fn endpoint_key(endpoint: &str) -> Json {
    let mut parts = endpoint.splitn(4, '/');
    let mut part = || parts.next().unwrap_or_default();
    json!({"kind": part(), "realm": part(), "namespace": part(), "name": part()})
}

/// Grants that an answer names.
#[must_use]
pub(super) fn grants_of(answer: &Allocated) -> Vec<Grant> {
    let addresses = answer.interfaces.iter().flat_map(|interface| &interface.addresses);
    let grant = |given: &ipam_api::resource::GivenAddress| Grant {
        id: given.allocation,
        network: NETWORK.to_owned(),
        address: given.address.addr().to_string(),
        pool: Some(given.pool.to_string()),
        endpoint: None,
    };
    addresses.map(grant).collect()
}

impl Session {
    /// Allocates, or waits in line. Returns the grants; none while the claim waits.
    pub(super) async fn allocate(
        &mut self,
        at: At,
        wanted: &Wanted,
        key: Option<&str>,
    ) -> Result<Vec<Grant>, Problem> {
        let call = self.prepared(Call::post("/v1/allocations").json(&wanted.body())?, key);
        let f = if wanted.waits { Function::Claim } else { Function::Allocate };
        let answer: Allocated = self
            .call(at, f, wanted.value(key), call, |answer: &Allocated, value| {
                value.grants = grants_of(answer);
                if answer.repeated {
                    add_detail(value, "repeated", true.into());
                }
                if answer.waiting.is_some() {
                    add_detail(value, "waiting", true.into());
                }
            })
            .await?;
        Ok(grants_of(&answer))
    }

    /// Releases one allocation by its id.
    pub(super) async fn release(
        &mut self,
        at: At,
        endpoint: &str,
        grant: &Grant,
        key: Option<&str>,
    ) -> Result<Released, Problem> {
        let call = self.prepared(Call::delete(format!("/v1/allocations/{}", grant.id)), key);
        let grants = vec![grant.clone()];
        self.call(at, Function::Release, release_of(endpoint, grants, key, "id"), call, ended).await
    }

    /// Releases all grants of an endpoint, or withdraws its claim. `grants` are the known grants.
    pub(super) async fn release_endpoint(
        &mut self,
        at: At,
        endpoint: &str,
        grants: &[Grant],
        key: Option<&str>,
    ) -> Result<Released, Problem> {
        let call = self.prepared(Call::delete(format!("/v1/endpoints/{endpoint}")), key);
        let grants = if is_shared(endpoint) { Vec::new() } else { grants.to_vec() };
        let value = release_of(endpoint, grants, key, "endpoint");
        self.call(at, Function::Release, value, call, ended).await
    }

    /// Renews the leases of an endpoint, or of one allocation.
    pub(super) async fn renew(
        &mut self,
        at: At,
        endpoint: &str,
        grants: &[Grant],
        only: Option<u64>,
        ttl_ms: Option<u64>,
    ) -> Result<Renewed, Problem> {
        let path = match only {
            Some(id) => format!("/v1/allocations/{id}/renew"),
            None => format!("/v1/endpoints/{endpoint}/renew"),
        };
        let body = match ttl_ms {
            Some(ttl_ms) => json!({"ttl_ms": ttl_ms}),
            None => json!({}),
        };
        let call = self.prepared(Call::post(path).json(&body)?, None);
        let (endpoint, grants) = (Some(endpoint.to_owned()), grants.to_vec());
        let value = Value { endpoint, grants, ttl_ms, ..Value::default() };
        let renewed = |answer: &Renewed, value: &mut Value| {
            value.ttl_ms = answer.leases.first().map(|lease| lease.lease.ttl_ms).or(value.ttl_ms);
            let grant = |id: u64, address: IpAddr| Grant {
                id,
                network: NETWORK.to_owned(),
                address: address.to_string(),
                pool: None,
                endpoint: None,
            };
            value.grants = answer.leases.iter().map(|lease| grant(lease.allocation, lease.address)).collect();
        };
        self.call(at, Function::Renew, value, call, renewed).await
    }

    /// Reads the state of one address.
    pub(super) async fn read_address(
        &mut self,
        at: At,
        address: &str,
        is_stale: bool,
    ) -> Result<Address, Problem> {
        let mut call = Call::get(format!("/v1/addresses/{address}"));
        if is_stale {
            call = call.query("consistency", "stale");
        }
        let call = self.prepared(call, None);
        let value = Value { target: Some(address.to_owned()), is_stale, ..Value::default() };
        self.call(at, Function::Read, value, call, seen).await
    }
}

/// Grants of a read of one address. A prefix that contains the address is a grant, too.
fn seen(answer: &Address, value: &mut Value) {
    add_detail(value, "state", answer.state.clone().into());
    value.revision = Some(answer.revision);
    value.grants = answer.allocation.iter().map(grant_of).collect();
    if let Some(prefix) = answer.prefix.as_ref().and_then(|prefix| prefix.cidr) {
        add_detail(value, "prefix", prefix.to_string().into());
    }
}

/// Grant of an allocation, with its endpoint.
#[must_use]
pub(super) fn grant_of(held: &Allocation) -> Grant {
    Grant {
        id: held.id,
        network: held.network.to_string(),
        address: held.address.addr().to_string(),
        pool: Some(held.pool.to_string()),
        endpoint: Some(endpoint_name(&held.endpoint)),
    }
}

/// Arguments of a release. `detail.by` is `id` or `endpoint`: a release by endpoint ends all grants of the
/// endpoint, also grants that the session does not know.
fn release_of(endpoint: &str, grants: Vec<Grant>, key: Option<&str>, by: &str) -> Value {
    let (endpoint, key) = (Some(endpoint.to_owned()), key.map(str::to_owned));
    Value { endpoint, key, grants, detail: json!({"by": by}), ..Value::default() }
}

/// Results of a release: the grants whose addresses it freed, and all freed addresses.
pub(super) fn ended(answer: &Released, value: &mut Value) {
    let freed: Vec<String> = answer.addresses.iter().map(ToString::to_string).collect();
    value.grants.retain(|grant| freed.contains(&grant.address));
    add_detail(value, "addresses", freed.into());
}
