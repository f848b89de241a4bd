//! Common requests of the tests to a cluster.

use std::net::IpAddr;

use ipam_api::client::{Answer, Call, Client};
use ipam_api::request::{AllocateRequest, Allocated};
use ipam_api::resource::{Address, Allocation, Page};
use ipam_api::{Code, Problem};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::LONG;

/// A large subnet and pool of each family: `web` and `web6`.
pub(crate) const SUBNETS: [(&str, &str, &str); 2] =
    [("web", "10.7.0.0/16", "10.7.0.1"), ("web6", "2001:db8:7::/64", "2001:db8:7::1")];

/// Creates [`SUBNETS`]. Freed addresses can be allocated again at once, so small pools suffice.
pub(crate) async fn make_pools(client: &Client) {
    for (name, cidr, gateway) in SUBNETS {
        put(client, "subnets", json!({"name": name, "cidr": cidr, "gateway": gateway})).await;
        put(client, "pools", json!({"name": name, "subnet": name, "cooling_ms": 0})).await;
    }
}

/// Puts a resource; it must come about.
#[track_caller]
pub(crate) fn put(client: &Client, plural: &str, body: Value) -> impl Future<Output = Answer> {
    let path = format!("/v1/{plural}/{}", body["name"].as_str().unwrap());
    let call = Call::put(path).json(&body).unwrap().within(LONG);
    async move { client.send(call).await.unwrap_or_else(|problem| panic!("{body}: {problem}")) }
}

/// Creates a subnet, and a pool of the same name with all of it and these fields.
pub(crate) async fn subnet_with_pool(client: &Client, name: &str, cidr: &str, more: Value) {
    put(client, "subnets", json!({"name": name, "cidr": cidr})).await;
    let mut pool = json!({"name": name, "subnet": name});
    pool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    put(client, "pools", pool).await;
}

pub(crate) async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T, Problem> {
    client.call(Call::get(path).within(LONG)).await
}

/// Request for addresses of `pools` (those of IPv6 end with 6) for the endpoint `host/<name>`.
pub(crate) fn allocate_request(name: &str, pools: &[&str]) -> AllocateRequest {
    let (six, four): (Vec<&str>, Vec<&str>) = pools.iter().partition(|pool| pool.ends_with('6'));
    serde_json::from_value(json!({
        "endpoint": {"kind": "host", "name": name},
        "interfaces": [{"name": "eth0", "ipv4_pools": four, "ipv6_pools": six}],
    }))
    .unwrap()
}

/// Call of the request. A repetition for the same endpoint is the same request.
pub(crate) fn allocate_call(allocate_request: &AllocateRequest) -> Call {
    Call::post("/v1/allocations").json(allocate_request).unwrap().repeatable().within(LONG)
}

pub(crate) async fn allocate(
    client: &Client,
    allocate_request: &AllocateRequest,
) -> Result<Allocated, Problem> {
    client.call(allocate_call(allocate_request)).await
}

/// The addresses of an answer.
pub(crate) fn addresses(allocated: &Allocated) -> Vec<IpAddr> {
    let all = allocated.interfaces.iter().flat_map(|interface| &interface.addresses);
    all.map(|given| given.address.addr()).collect()
}

/// Everything that is known of an address.
pub(crate) async fn known(client: &Client, address: IpAddr) -> Address {
    get(client, &format!("/v1/addresses/{address}")).await.unwrap()
}

/// All items of a list, page by page. The list begins again if the member of its cursor no longer answers.
pub(crate) async fn list<T: DeserializeOwned>(client: &Client, path: &str) -> Vec<T> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let page: Page<T> = match get(client, &format!("{path}?limit=1000{cursor}")).await {
            Err(problem) if problem.code == Code::CursorExpired => {
                items.clear();
                cursor.clear();
                continue;
            }
            page => page.unwrap(),
        };
        items.extend(page.items);
        match page.next {
            Some(next) => cursor = format!("&cursor={}", next.replace('/', "%2F")),
            None => return items,
        }
    }
}

pub(crate) async fn allocations(client: &Client) -> Vec<Allocation> {
    list(client, "/v1/allocations").await
}

/// A refusal with this code; its sentence.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, Problem>, code: Code) -> String {
    match answer {
        Ok(answer) => panic!("not refused with {code}: {answer:?}"),
        Err(problem) => {
            assert_eq!(problem.code, code, "{problem}");
            problem.detail
        }
    }
}
