//! Host interface to which the main plugin connects containers. Their addresses are on its link.

use ipam_api::name::InterfaceName;
use serde_json::Value;

use crate::config::Network;

/// Bridge of the plugin `bridge`, unless its configuration names another.
const BRIDGE: &str = "cni0";

/// Interface that the configuration of a main plugin names, for probes by the node's agent.
///
/// `None` for plugins whose containers are on no link of the host (`ptp`), or on the link of a VLAN: there
/// the agent finds the interface in its own configuration. The main plugin itself refuses a malformed name.
#[must_use]
pub fn link(network: &Network) -> Option<InterfaceName> {
    let whole = network.whole();
    let text = |key| whole.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let has =
        |key| whole.get(key).is_some_and(|value| ![Value::Null, 0.into(), false.into()].contains(value));
    let name = match text("type")? {
        // The ports of the bridge are in a VLAN that frames of the bridge itself don't reach.
        "bridge" if has("vlan") || has("vlanTrunk") => None,
        "bridge" => Some(text("bridge").unwrap_or(BRIDGE)),
        // The master is another container's interface.
        "macvlan" | "macvtap" | "ipvlan" | "ipvtap" if has("linkInContainer") => None,
        "macvlan" | "macvtap" | "ipvlan" | "ipvtap" => text("master"),
        _ => None,
    };
    InterfaceName::new(name?).ok()
}

/// Returns true if the main plugin connects containers to a bridge whose link is known.
#[must_use]
pub fn is_bridge(network: &Network) -> bool {
    network.whole().get("type").and_then(Value::as_str) == Some("bridge") && link(network).is_some()
}

/// Returns true if the main plugin assigns the gateway's address to the node itself. It does so after the
/// first ADD has returned addresses, so that an earlier probe of the gateway finds nothing.
#[must_use]
pub fn node_is_gateway(network: &Network) -> bool {
    let whole = network.whole();
    let is_on = |key| whole.get(key).and_then(Value::as_bool).unwrap_or(false);
    match whole.get("type").and_then(Value::as_str) {
        Some("bridge") => is_on("isGateway") || is_on("isDefaultGateway"),
        Some("ptp") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::CniVersion;

    #[test]
    fn the_main_plugins_configuration_names_the_link() {
        for (keys, link) in [
            (r#""type":"bridge","bridge":"br0""#, Some("br0")),
            (r#""type":"bridge""#, Some("cni0")),
            (r#""type":"bridge","bridge":"br0","vlan":0,"vlanTrunk":null"#, Some("br0")),
            (r#""type":"bridge","bridge":"br0","vlan":100"#, None),
            (r#""type":"bridge","bridge":"a/b""#, None),
            (r#""type":"bridge","bridge":7"#, Some("cni0")),
            (r#""type":"macvlan","master":"eth1","mode":"bridge""#, Some("eth1")),
            (r#""type":"macvlan""#, None),
            (r#""type":"ipvlan","master":"eth1","linkInContainer":false"#, Some("eth1")),
            (r#""type":"ipvlan","master":"eth1","linkInContainer":true"#, None),
            (r#""type":"vlan","master":"eth1","vlanId":7"#, None),
            (r#""type":"ptp""#, None),
            (r#""type":7"#, None),
        ] {
            let document = crate::json::parse(format!(r#"{{"name":"n",{keys}}}"#).as_bytes()).unwrap();
            let network = Network::new(document, CniVersion::LATEST).unwrap();
            assert_eq!(self::link(&network).as_ref().map(InterfaceName::as_str), link, "{keys}");
        }
    }

    #[test]
    fn some_main_plugins_make_the_node_the_gateway() {
        for (keys, is_gateway) in [
            (r#""type":"bridge""#, false),
            (r#""type":"bridge","isGateway":false,"isDefaultGateway":"yes""#, false),
            (r#""type":"bridge","isGateway":true"#, true),
            (r#""type":"bridge","isDefaultGateway":true"#, true),
            (r#""type":"macvlan","isGateway":true"#, false),
            (r#""type":"ptp""#, true),
        ] {
            let document = crate::json::parse(format!(r#"{{"name":"n",{keys}}}"#).as_bytes()).unwrap();
            let network = Network::new(document, CniVersion::LATEST).unwrap();
            assert_eq!(node_is_gateway(&network), is_gateway, "{keys}");
        }
    }
}
