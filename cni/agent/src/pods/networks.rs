//! Networks annotation of Multus, in both of its forms.
//!
//! The short form is `[namespace/]name[@interface]`, divided by commas; the other one is a list in JSON. Both
//! name the interfaces `net1`, `net2`, … in their order, unless an entry has a name.

use ipam_api::limits::INTERFACES_MAX;
use ipam_api::name::{InterfaceName, NetworkAttachment, ObjectName};
use serde::Deserialize;

use crate::journal::PodNetwork;
use crate::kubernetes::First;

/// Entries that are read; the request of an ADD has fewer interfaces.
const ENTRIES_MAX: usize = INTERFACES_MAX;

/// Entry of the JSON form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    name: String,
    namespace: Option<String>,
    interface: Option<String>,
}

/// Interfaces and attachments of a pod; entries that are malformed are left out.
///
/// The default network counts only with its namespace: without one it depends on the settings of Multus.
pub(super) fn read(
    own_namespace: &ObjectName,
    default_network: Option<&str>,
    networks: Option<&str>,
) -> Vec<PodNetwork> {
    let network = |place: usize, entry: &Entry| {
        let namespace = entry.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or(own_namespace.as_str());
        let attachment = NetworkAttachment::new(&format!("{namespace}/{}", entry.name)).ok()?;
        let interface = match entry.interface.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => InterfaceName::new(name).ok()?,
            None => InterfaceName::usual(place).ok()?,
        };
        Some(PodNetwork { interface, attachment })
    };
    let first = default_network.map(entries).unwrap_or_default().into_iter().next();
    let first = first.filter(|entry| entry.namespace.is_some()).and_then(|entry| {
        // The runtime names the interface of the default network.
        network(0, &Entry { interface: None, ..entry })
    });
    let listed = networks.map(entries).unwrap_or_default();
    let listed = listed.iter().zip(1..).filter_map(|(entry, place)| network(place, entry));
    first.into_iter().chain(listed).take(ENTRIES_MAX).collect()
}

fn entries(text: &str) -> Vec<Entry> {
    if text.trim_start().starts_with('[') {
        let list: Result<First<Entry, ENTRIES_MAX>, _> = serde_json::from_str(text);
        return list.map(|First(entries)| entries).unwrap_or_default();
    }
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.take(ENTRIES_MAX).map(entry).collect()
}

fn entry(text: &str) -> Entry {
    let (text, interface) = match text.split_once('@') {
        Some((text, interface)) => (text, Some(interface.to_owned())),
        None => (text, None),
    };
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, text),
    };
    Entry { name: name.to_owned(), namespace, interface }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(default: Option<&str>, networks: &str) -> String {
        let all = read(&"shop".parse().unwrap(), default, Some(networks));
        let all = all.iter().map(|one| format!("{}={}", one.interface, one.attachment));
        all.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn both_forms_name_the_same_networks() {
        for (text, expected) in [
            ("", ""),
            ("lan", "net1=shop/lan"),
            (" kube-system/lan@eth1 , wan", "eth1=kube-system/lan net2=shop/wan"),
            (r#"[{"name":"lan"}]"#, "net1=shop/lan"),
            (
                concat!(
                    r#" [{"name":"lan","namespace":"kube-system","interface":"eth1","ips":["10.0.0.1"]},"#,
                    r#"{"name":"wan"}]"#
                ),
                "eth1=kube-system/lan net2=shop/wan",
            ),
            // A malformed entry has its place all the same.
            ("a b,wan", "net2=shop/wan"),
            ("x/y/z,wan@much-too-long-for-one,lan", "net3=shop/lan"),
            (r#"[{"name":"lan"}"#, ""),
            (r#"[{"name":7}]"#, ""),
            (r#"{"name":"lan"}"#, ""),
        ] {
            assert_eq!(shown(None, text), expected, "{text}");
        }
        assert_eq!(shown(Some("kube-system/main"), "lan"), "eth0=kube-system/main net1=shop/lan");
        assert_eq!(shown(Some(r#"[{"name":"main","namespace":"a"}]"#), ""), "eth0=a/main");
        assert_eq!(shown(Some("main"), "lan"), "net1=shop/lan");
    }

    #[test]
    fn endless_lists_have_an_end() {
        assert_eq!(shown(None, &"lan,".repeat(100_000)).split(' ').count(), INTERFACES_MAX);
        let list = vec![r#"{"name":"lan"}"#; 100_000].join(",");
        assert_eq!(shown(None, &format!("[{list}]")).split(' ').count(), INTERFACES_MAX);
    }
}
