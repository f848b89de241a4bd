//! Request of a host for its addresses.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use ipam_api::access::NodeKey;
use ipam_api::brand::DEFAULT;
use ipam_api::limits::HOST_FILE_BYTES_MAX;
use ipam_api::resource::Interface;
use serde_json::{Value, json};

use super::binding::Bound;
use super::session::View;
use crate::host_config::{HostConfig, InterfaceConfig};

/// Longest machine id.
const MACHINE_ID_CHARS_MAX: usize = 64;

/// Reads the machine id.
///
/// # Errors
/// The failed read, or its content.
pub(super) fn machine_id(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(HOST_FILE_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let id = text.trim();
    let is_usable = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if id.is_empty() || id.len() > MACHINE_ID_CHARS_MAX || !id.bytes().all(is_usable) {
        return Err(format!("{} has no machine id; run systemd-machine-id-setup", path.display()));
    }
    Ok(id.to_owned())
}

/// Interfaces of the host that get addresses from the agent, as a request names them.
pub(super) fn interfaces(config: &HostConfig, view: &View) -> Vec<Value> {
    let is_free = |bound: &&Bound| !view.frozen.contains(&bound.device);
    let interface = |bound: &Bound| {
        let InterfaceConfig { ipv4_pools, ipv6_pools, clean_gateway, .. } =
            config.interfaces.get(bound.section)?;
        Some(json!({
            "name": bound.name, "mac": bound.mac.map(|mac| mac.to_string()), "ipv4_pools": ipv4_pools,
            "ipv6_pools": ipv6_pools, "clean_gateway": clean_gateway,
        }))
    };
    view.bindings.bound.iter().filter(is_free).filter_map(interface).collect()
}

/// Body of `POST /v1/allocations` for some interfaces.
pub(super) fn body(config: &HostConfig, node: &NodeKey, machine_id: &str, interfaces: &[Value]) -> Value {
    let mut body = json!({
        "endpoint": {"realm": node.realm, "kind": "host", "namespace": DEFAULT, "name": node.name},
        "uid": machine_id, "node": node.name, "lifecycle": "held", "interfaces": interfaces,
    });
    if let (true, Some(body)) = (config.take_over, body.as_object_mut()) {
        body.insert("take_over".to_owned(), Value::Bool(true));
    }
    body
}

/// Adds the former addresses of interfaces that currently have no link to the servers' answer.
pub(super) fn merged(answer: Vec<Interface>, former: &[Interface], view: &View) -> Vec<Interface> {
    let mut merged: Vec<Interface> =
        answer.into_iter().filter(|one| view.bindings.named(&one.name).is_some()).collect();
    let is_absent = |one: &&Interface| {
        let is_frozen = view.bindings.named(&one.name).is_some_and(|own| view.frozen.contains(&own.device));
        is_frozen || view.observed.named(one.name.as_str()).is_none()
    };
    let absent = former.iter().filter(is_absent);
    let absent: Vec<Interface> =
        absent.filter(|one| merged.iter().all(|other| other.name != one.name)).cloned().collect();
    merged.extend(absent);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_id_is_hexadecimal() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machine-id");
        assert!(machine_id(&path).is_err());
        for (text, is_usable) in [("0123456789abcdef0123456789abcdef\n", true), ("", false), ("a b", false)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(machine_id(&path).is_ok(), is_usable, "{text:?}");
        }
    }
}
