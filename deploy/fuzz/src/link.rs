//! Input of the agent: frames of any station of a link, and answers of a Kubernetes API server.

use ipam_agent::journal::{Pod, Record};
use ipam_agent::kubernetes::{List, WatchEvent};
use ipam_agent::pods::{Object, fill};
use ipam_agent::probe::frame::answer;
use ipam_api::limits::{LABELS_MAX, POD_BYTES_MAX, PODS_PER_NODE_MAX};
use serde_json::json;

/// One frame.
pub(crate) fn frame(data: &[u8]) {
    let Some((_, mac)) = answer(data) else { return };
    assert!(!mac.is_zero() && !mac.is_multicast(), "no station has the address {mac}");
}

/// A list of pods, or a line of a watch.
pub(crate) fn pods(data: &[u8]) {
    if let Ok(list) = serde_json::from_slice::<List<Object, PODS_PER_NODE_MAX>>(data) {
        assert!(list.items.0.len() <= PODS_PER_NODE_MAX);
        list.items.0.into_iter().filter_map(Object::into_pod).for_each(pod);
    }
    match WatchEvent::read(data).and_then(|event| event.object::<Object>()) {
        Ok(object) => object.into_pod().into_iter().for_each(pod),
        Err(error) => assert!(error.to_string().len() < 4096, "{error}"),
    }
}

/// Checks that a pod survives the journal, and that it completes a request.
fn pod(pod: Pod) {
    assert!(pod.labels.len() <= LABELS_MAX);
    let mut body = serde_json::Map::new();
    body.insert("endpoint".to_owned(), json!({"kind": "pod", "namespace": "a", "name": "b"}));
    body.insert("interfaces".to_owned(), json!([{"name": "eth0"}, {"name": "net1"}]));
    fill(&mut body, &pod);
    assert!(serde_json::to_vec(&body).is_ok_and(|json| json.len() <= 4 * POD_BYTES_MAX));
    let record = Record::Pods { put: vec![pod], gone: Vec::new() };
    let json = serde_json::to_vec(&record).unwrap_or_default();
    assert_eq!(serde_json::from_slice(&json).ok(), Some(record));
}
