//! Network attachments of a pod's interfaces, in the annotations of Multus.
//!
//! Malformed text names no attachment here: Multus itself refuses it.

use std::collections::BTreeMap;

use super::members::Members;
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

/// Sets the attachment of each interface that has none, as `namespace/name`.
pub(super) fn apply(request: &mut AllocateRequest, annotations: &Labels) {
    let namespace = request.endpoint.namespace.as_str();
    let mut attachments: BTreeMap<InterfaceName, NetworkAttachment> = BTreeMap::new();
    for (annotation, namespace, first) in [(DEFAULT_NETWORK, DEFAULT_NAMESPACE, 0), (NETWORKS, namespace, 1)]
    {
        let text = annotations.get(annotation).map(String::as_str).unwrap_or_default();
        for (place, selection) in selections(text).into_iter().flatten().enumerate() {
            attachments.extend(selection.attachment(namespace, first + place));
        }
    }
    for interface in request.interfaces.iter_mut().filter(|one| one.network_attachment.is_none()) {
        interface.network_attachment = attachments.get(&interface.name).cloned();
    }
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

    /// Interface and attachment of the element at a place.
    fn attachment(&self, default: &str, place: usize) -> Option<(InterfaceName, NetworkAttachment)> {
        let interface = match self.interface.as_str() {
            "" => InterfaceName::usual(place).ok()?,
            name => InterfaceName::new(name).ok()?,
        };
        let namespace = if self.namespace.is_empty() { default } else { &self.namespace };
        // Either part alone may not contain a slash.
        let (namespace, name) = (ObjectName::new(namespace).ok()?, ObjectName::new(&self.name).ok()?);
        Some((interface, NetworkAttachment::new(&format!("{namespace}/{name}")).ok()?))
    }
}

/// Elements of an annotation in either of its forms; nothing if it is malformed.
fn selections(text: &str) -> Option<Vec<Selection>> {
    if text.trim().is_empty() {
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
    fn attachments(networks: &str, default: &str) -> Vec<String> {
        let names = ["eth0", "net1", "net2", "data"];
        let mut request: AllocateRequest = serde_json::from_value(json!({
            "endpoint": {"kind": "pod", "namespace": "shop", "name": "web-0"},
            "interfaces": names.map(|name| json!({"name": name})),
        }))
        .unwrap();
        let annotations = [(NETWORKS, networks), (DEFAULT_NETWORK, default)];
        apply(&mut request, &annotations.map(|(key, text)| (key.to_owned(), text.to_owned())).into());
        let shown = |one: crate::request::InterfaceRequest| {
            one.network_attachment.map(|by| by.to_string()).unwrap_or_else(|| "-".to_owned())
        };
        request.interfaces.into_iter().map(shown).collect()
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
            assert_eq!(attachments(networks, ""), expected, "{networks}");
        }
        assert_eq!(attachments("fabric", "lan"), ["kube-system/lan", "shop/fabric", "-", "-"]);
        assert_eq!(attachments("", "shop/lan"), ["shop/lan", "-", "-", "-"]);
    }
}
