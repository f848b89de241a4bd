//! Statements that hold for all claims of a test, whatever has happened before.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::management::Management;
use super::scene::{Scene, ready};
use crate::support::until;

impl Management {
    /// All objects of a plural in the namespace of the test.
    pub(super) async fn all(&self, plural: &str) -> Vec<Value> {
        let list = self.send("GET", &self.collection(&self.namespace, plural), None).await.unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Removes the finalizers of an object, as `clusterctl move` and impatient people do.
    pub(super) async fn strip(&self, plural: &str, name: &str) {
        let none = json!({"metadata": {"finalizers": null}});
        match self.patch(&self.path(plural, name), none).await {
            Ok(_) | Err((404, _)) => {}
            Err(refusal) => panic!("{plural}/{name}: {refusal:?}"),
        }
    }
}

pub(super) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

fn address(object: &Value) -> String {
    object["spec"]["address"].as_str().unwrap().to_owned()
}

/// Addresses of the `IPAddress` objects; each occurs once.
pub(super) async fn distinct(management: &Management) -> BTreeMap<String, String> {
    let objects = management.all("ipaddresses").await;
    let addresses: BTreeMap<String, String> = objects.iter().map(|one| (name(one), address(one))).collect();
    let different: BTreeSet<&String> = addresses.values().collect();
    assert_eq!(different.len(), objects.len(), "two objects have one address: {addresses:?}");
    addresses
}

/// Waits until each claim is fulfilled, has one `IPAddress` with the address or prefix that the servers have,
/// and nothing else is held; returns the addresses, for prefixes their first ones.
pub(super) async fn consistent(scene: &Scene) -> BTreeMap<String, String> {
    until("claims, addresses and allocations agree", async || agreed(scene).await).await
}

async fn agreed(scene: &Scene) -> Result<BTreeMap<String, String>, String> {
    let claims = scene.management.all("ipaddressclaims").await;
    for claim in &claims {
        let own = name(claim);
        let is_fulfilled = ready(claim).0 == "True" && claim["status"]["addressRef"]["name"] == own.as_str();
        if !is_fulfilled || !claim["metadata"]["deletionTimestamp"].is_null() {
            return Err(claim.to_string());
        }
    }
    let addresses = distinct(&scene.management).await;
    let uids: BTreeMap<String, &Value> =
        claims.iter().map(|one| (name(one), &one["metadata"]["uid"])).collect();
    for object in scene.management.all("ipaddresses").await {
        let controller = &object["metadata"]["ownerReferences"][0];
        let is_of_claim = object["spec"]["claimRef"]["name"] == object["metadata"]["name"]
            && uids.get(&name(&object)) == Some(&&controller["uid"])
            && controller["controller"] == true;
        if !is_of_claim || object["metadata"]["finalizers"] != json!(["ipam.ipamd.internal/release"]) {
            return Err(object.to_string());
        }
    }
    let (held, prefixes) = (scene.held().await, scene.prefixes().await);
    let mut of_claims: BTreeMap<String, String> =
        held.iter().map(|one| (one.endpoint.name.to_string(), one.address.addr().to_string())).collect();
    for prefix in &prefixes {
        let owner = prefix.owner.as_str();
        let owner = owner.strip_prefix(&format!("{}.", scene.management.namespace)).unwrap_or(owner);
        let first = prefix.cidr.map(|cidr| cidr.network().to_string());
        of_claims.insert(owner.to_owned(), first.unwrap_or_else(|| "waits".to_owned()));
    }
    let count = held.len() + prefixes.len();
    if addresses.len() != claims.len() || count != claims.len() || of_claims != addresses {
        let count = claims.len();
        return Err(format!("{count} claims, objects {addresses:?}, allocations {held:?}, {prefixes:?}"));
    }
    Ok(addresses)
}
