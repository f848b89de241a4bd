//! Network attachments of a pod's interfaces, in the annotations of Multus.
//!
//! Malformed text names no attachment here: Multus itself refuses it.

use std::collections::BTreeMap;

use super::members::Members;
use crate::limits::INTERFACES_MAX;
use crate::name::{InterfaceName, NetworkAttachment, ObjectName};
use crate::request::AllocateRequest;
use crate::resource::Labels;

/// Attachments of the interfaces after the first one.
const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
/// Attachment of the first interface.
const DEFAULT_NETWORK: &str = "v1.multus-cni.io/default-network";
/// Both annotations.
pub(super) const NAMES: [&str; 2] = [NETWORKS, DEFAULT_NETWORK];
/// Namespace of a default network without one, as in Multus.
const DEFAULT_NAMESPACE: &str = "kube-system";

/// Longest annotation that is read, in bytes. A list of all interfaces with full names is shorter.
const BYTES_MAX: usize = 32 << 10;

/// Sets the attachment of each interface that has none, as `namespace/name`.
pub(super) fn apply(request: &mut AllocateRequest, annotations: &Labels) {
    let text = |name| annotations.get(name).map(String::as_str);
    let attachments = attachments(&request.endpoint.namespace, text(DEFAULT_NETWORK), text(NETWORKS));
    for interface in request.interfaces.iter_mut().filter(|one| one.network_attachment.is_none()) {
        interface.network_attachment = attachments.get(&interface.name).cloned();
    }
}

/// Returns the network attachments of a pod by interface, from both annotations.
///
/// Both annotations have the short form `[namespace/]name[@interface]`, separated by commas, or are lists in
/// JSON. An interface without a name is `net1`, `net2`, … by its position. Malformed entries are skipped.
#[must_use]
pub fn attachments(
    namespace: &ObjectName,
    default_network: Option<&str>,
    networks: Option<&str>,
) -> BTreeMap<InterfaceName, NetworkAttachment> {
    let mut attachments = BTreeMap::new();
    for (text, namespace, first) in
        [(default_network, DEFAULT_NAMESPACE, 0), (networks, namespace.as_str(), 1)]
    {
        let selections = text.and_then(selections).unwrap_or_default();
        for (place, selection) in selections.into_iter().take(INTERFACES_MAX).enumerate() {
            attachments.extend(selection.attachment(namespace, first + place));
        }
    }
    attachments
}

/// One element of an annotation.
struct Selection {
    namespace: String,
    name: String,
    interface: String,
}

impl Selection {
    /// Reads `name`, `namespace/name` or `namespace/name@interface`.
    fn parse(text: &str) -> Self {
        let (path, interface) = text.split_once('@').unwrap_or((text, ""));
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        let [namespace, name, interface] = [namespace, name, interface].map(|part| part.trim().to_owned());
        Self { namespace, name, interface }
    }

    fn read(members: &Members) -> Option<Self> {
        let text = |name| members.get::<String>(name).ok();
        Some(Self { namespace: text("namespace")?, name: text("name")?, interface: text("interface")? })
    }

    /// Interface and attachment of the element at a position.
    fn attachment(&self, default: &str, place: usize) -> Option<(InterfaceName, NetworkAttachment)> {
        let interface = match self.interface.as_str() {
            "" => InterfaceName::usual(place).ok()?,
            name => InterfaceName::new(name).ok()?,
        };
        let namespace = if self.namespace.is_empty() { default } else { &self.namespace };
        // Neither part may contain a slash.
        let (namespace, name) = (ObjectName::new(namespace).ok()?, ObjectName::new(&self.name).ok()?);
        Some((interface, NetworkAttachment::new(&format!("{namespace}/{name}")).ok()?))
    }
}

/// Elements of an annotation in either of its forms; nothing if it is malformed.
fn selections(text: &str) -> Option<Vec<Selection>> {
    if text.trim().is_empty() || text.len() > BYTES_MAX {
        return None;
    }
    if text.contains(['[', '{', '"']) {
        let elements: Vec<Members> = serde_json::from_str(text).ok()?;
        return elements.iter().map(Selection::read).collect();
    }
    Some(text.split(',').map(Selection::parse).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Attachments of `eth0`, `net1`, `net2` and `data` of a pod in the namespace `shop`.
    fn shown(networks: &str, default: &str) -> Vec<String> {
        let names = ["eth0", "net1", "net2", "data"];
        let mut request: AllocateRequest = serde_json::from_value(json!({
            "endpoint": {"kind": "pod", "namespace": "shop", "name": "web-0"},
            "interfaces": names.map(|name| json!({"name": name})),
        }))
        .unwrap();
        let annotations = [(NETWORKS, networks), (DEFAULT_NETWORK, default)];
        apply(&mut request, &annotations.map(|(key, text)| (key.to_owned(), text.to_owned())).into());
        let text = |one: crate::request::InterfaceRequest| {
            one.network_attachment.map(|by| by.to_string()).unwrap_or_else(|| "-".to_owned())
        };
        request.interfaces.into_iter().map(text).collect()
    }

    #[test]
    fn both_forms_name_the_attachment_of_each_interface() {
        for (networks, expected) in [
            ("", ["-", "-", "-", "-"]),
            ("fabric", ["-", "shop/fabric", "-", "-"]),
            ("fabric, kube-system/lan", ["-", "shop/fabric", "kube-system/lan", "-"]),
            ("kube-system/lan@data,fabric", ["-", "-", "shop/fabric", "kube-system/lan"]),
            (
                r#"[{"name":"fabric"},{"Name":"lan","Namespace":"kube-system","ips":["10.0.0.1"]}]"#,
                ["-", "shop/fabric", "kube-system/lan", "-"],
            ),
            (r#"[{"name":"fabric","namespace":null,"interface":"data"}]"#, ["-", "-", "-", "shop/fabric"]),
            (r#"[{"name":"fabric"}"#, ["-", "-", "-", "-"]),
            (r#"[{"name":7}]"#, ["-", "-", "-", "-"]),
            ("a/b/c,fabric", ["-", "-", "shop/fabric", "-"]),
        ] {
            assert_eq!(shown(networks, ""), expected, "{networks}");
        }
        assert_eq!(shown("fabric", "lan"), ["kube-system/lan", "shop/fabric", "-", "-"]);
        assert_eq!(shown("", "shop/lan"), ["shop/lan", "-", "-", "-"]);
        let endless = "x,".repeat(BYTES_MAX);
        assert_eq!(shown(&endless, ""), ["-", "-", "-", "-"]);
    }
}
