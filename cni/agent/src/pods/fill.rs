//! Facts of a pod in the request of its ADD. Fields that the request already has are kept.

use ipam_api::limits::LABELS_MAX;
use ipam_api::resource::{Controller, EndpointKind};
use serde_json::{Map, Value, json};

use crate::journal::Pod;

const LABELS: &str = "labels";
const CONTROLLER: &str = "controller";
const REPLICAS: &str = "replicas";
const ENDPOINT: &str = "endpoint";
const INTERFACES: &str = "interfaces";
const NETWORK_ATTACHMENT: &str = "network_attachment";

/// Adds labels, controller, replicas, the identity of a machine, and network attachments.
pub fn fill(body: &mut Map<String, Value>, pod: &Pod) {
    labels(body, pod);
    if !body.contains_key(CONTROLLER) {
        if let Some(machine) = pod.machine() {
            endpoint(body, machine);
        }
        controller(body, pod);
    }
    networks(body, pod);
}

fn labels(body: &mut Map<String, Value>, pod: &Pod) {
    if pod.labels.is_empty() {
        return;
    }
    if let Value::Object(labels) = body.entry(LABELS).or_insert_with(|| json!({})) {
        for (key, value) in &pod.labels {
            if labels.len() >= LABELS_MAX {
                break;
            }
            labels.entry(key.clone()).or_insert_with(|| value.as_str().into());
        }
    }
}

/// Makes the machine the endpoint: its pods differ by node, and a migration has two of them.
fn endpoint(body: &mut Map<String, Value>, machine: &Controller) {
    if let Some(endpoint) = body.get_mut(ENDPOINT).and_then(Value::as_object_mut) {
        endpoint.insert("kind".to_owned(), EndpointKind::Vm.as_str().into());
        endpoint.insert("name".to_owned(), machine.name.as_str().into());
    }
}

/// Adds the controller. While the application is unknown, the owner is added only if it is a StatefulSet,
/// which has no controller of its own.
fn controller(body: &mut Map<String, Value>, pod: &Pod) {
    let own = pod.owner.as_ref().filter(|owner| owner.kind == "StatefulSet" && owner.group == "apps");
    let application = pod.application.as_ref();
    let Some(controller) = application.map(|one| &one.controller).or(own) else { return };
    let Ok(value) = serde_json::to_value(controller) else { return };
    body.insert(CONTROLLER.to_owned(), value);
    if let Some(replicas) = application.and_then(|one| one.replicas) {
        body.entry(REPLICAS).or_insert_with(|| replicas.into());
    }
}

fn networks(body: &mut Map<String, Value>, pod: &Pod) {
    let interfaces = body.get_mut(INTERFACES).and_then(Value::as_array_mut);
    for interface in interfaces.into_iter().flatten().filter_map(Value::as_object_mut) {
        let name = interface.get("name").and_then(Value::as_str).unwrap_or_default();
        let network = pod.networks.iter().find(|network| network.interface.as_str() == name);
        if let Some(network) = network {
            let attachment = network.attachment.as_str();
            interface.entry(NETWORK_ATTACHMENT).or_insert_with(|| attachment.into());
        }
    }
}
