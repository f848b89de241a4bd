//! Interfaces of an endpoint in `args.cni.interfaces`: the same list in the ADD of each of them.
//!
//! Spiderpool's keys (`interface`, `ipv4`, `ipv6`) are aliases of those of ipamd.

use std::str::FromStr;

use ipam_api::Problem;
use ipam_api::name::InterfaceName;
use ipam_api::request::InterfaceRequest;

use crate::config::{IPV4_POOLS, IPV6_POOLS, Network, SUBNETS, named};
use crate::fail::Failure;
use crate::json::Section;
use crate::routing::{DEFAULT_ROUTE_INTERFACE, is_clean};

/// Key of the list.
pub const INTERFACES: &str = "interfaces";
/// Keys of an interface's name.
const NAME: [&str; 2] = ["name", "interface"];
/// Key of the interface's network attachment.
const NETWORK_ATTACHMENT: &str = "network_attachment";

/// Interfaces that an ADD requests: `own` alone without a list, else all of the list, in its order. For the
/// own interface the list precedes other sources of pools.
///
/// # Errors
/// Code 7. The servers check that the list has the own interface, and none twice.
pub fn interfaces(network: &Network, own: InterfaceRequest) -> Result<Vec<InterfaceRequest>, Failure> {
    let arguments = network.arguments()?;
    let entries = arguments.sections(INTERFACES)?;
    if entries.is_empty() {
        return Ok(vec![own]);
    }
    let mut texts = Vec::with_capacity(entries.len());
    for entry in &entries {
        texts.push(entry.first(NAME)?);
    }
    if texts.iter().any(Option::is_some) && texts.iter().any(Option::is_none) {
        let why = "must have a name in each entry, or in none: then they are eth0, net1, net2 and so on";
        return Err(arguments.wrong(INTERFACES, why));
    }
    let mut all = Vec::with_capacity(entries.len());
    for (i, (entry, text)) in entries.iter().zip(texts).enumerate() {
        let name = match text {
            Some(text) => InterfaceName::new(text).map_err(|problem| {
                Failure::configuration(format!("{}: {}", entry.path("name"), problem.detail))
            })?,
            None => InterfaceName::usual(i)?,
        };
        let listed = InterfaceRequest {
            subnets: named(entry, &[SUBNETS])?,
            ipv4_pools: named(entry, &[IPV4_POOLS[0], "ipv4"])?,
            ipv6_pools: named(entry, &[IPV6_POOLS[0], "ipv6"])?,
            network_attachment: parsed(entry, NETWORK_ATTACHMENT)?,
            clean_gateway: is_clean(entry)?.unwrap_or(name == own.name && own.clean_gateway),
            ..InterfaceRequest::blank(name)
        };
        all.push(if listed.name == own.name { merged(listed, &own) } else { listed });
    }
    Ok(all)
}

/// Refuses a default route for an interface outside the list: its endpoint would have none at all.
///
/// # Errors
/// Code 7.
pub fn check_default_route(
    network: &Network,
    interfaces: &[InterfaceRequest],
    interface: Option<&InterfaceName>,
) -> Result<(), Failure> {
    let arguments = network.arguments()?;
    let is_listed = !arguments.sections(INTERFACES)?.is_empty();
    match interface.filter(|name| is_listed && interfaces.iter().all(|one| one.name != **name)) {
        None => Ok(()),
        Some(_) => Err(arguments.wrong(DEFAULT_ROUTE_INTERFACE, "must be one of interfaces")),
    }
}

/// Merges the own interface. Its subnets and pools come from the list, if the list names any. The network
/// attachment and `clean_gateway` always come from the list, and all other settings from this ADD.
fn merged(listed: InterfaceRequest, own: &InterfaceRequest) -> InterfaceRequest {
    let is_silent = listed.subnets.is_empty() && listed.ipv4_pools.is_empty() && listed.ipv6_pools.is_empty();
    let from = if is_silent { own } else { &listed };
    InterfaceRequest {
        subnets: from.subnets.clone(),
        ipv4_pools: from.ipv4_pools.clone(),
        ipv6_pools: from.ipv6_pools.clone(),
        network_attachment: listed.network_attachment,
        clean_gateway: listed.clean_gateway,
        ..own.clone()
    }
}

fn parsed<N: FromStr<Err = Problem>>(entry: &Section<'_>, key: &str) -> Result<Option<N>, Failure> {
    let wrong = |problem: Problem| Failure::configuration(format!("{}: {}", entry.path(key), problem.detail));
    entry.text(key)?.map(|text| text.parse().map_err(wrong)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::CniVersion;

    /// Name, subnets and pools of each interface that the ADD of `eth0` requests.
    fn asked(list: &str) -> Result<String, Failure> {
        let text = format!(r#"{{"name":"n","args":{{"cni":{{"interfaces":{list}}}}}}}"#);
        let document = crate::json::parse(text.as_bytes()).unwrap();
        let network = Network::new(document, CniVersion::LATEST).unwrap();
        let own = InterfaceRequest {
            ipv4_pools: vec!["own".parse().unwrap()],
            mac: Some("m".to_owned()),
            ..InterfaceRequest::blank("eth0".parse().unwrap())
        };
        let one = |one: &InterfaceRequest| {
            let names = [&one.ipv4_pools, &one.ipv6_pools].into_iter().flatten().map(ToString::to_string);
            let names =
                one.subnets.iter().map(ToString::to_string).chain(names).collect::<Vec<_>>().join(",");
            let by = one.network_attachment.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            let clean = if one.clean_gateway { " clean" } else { "" };
            format!("{}{} {names}{by}{clean}", one.name, if one.mac.is_some() { "!" } else { "" })
        };
        Ok(interfaces(&network, own)?.iter().map(one).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn the_default_route_is_of_an_interface_of_the_list() {
        for (arguments, is_fine) in [
            (r#"{"default_route_interface":"net9"}"#, true),
            (r#"{"interfaces":[{"name":"eth0"}],"default_route_interface":"eth0"}"#, true),
            (r#"{"interfaces":[{"name":"eth0"}],"default_route_interface":"net9"}"#, false),
        ] {
            let text = format!(r#"{{"name":"n","args":{{"cni":{arguments}}}}}"#);
            let document = crate::json::parse(text.as_bytes()).unwrap();
            let network = Network::new(document, CniVersion::LATEST).unwrap();
            let all = interfaces(&network, InterfaceRequest::blank("eth0".parse().unwrap())).unwrap();
            let by_default = crate::routing::default_route_interface(&network).unwrap();
            assert_eq!(
                check_default_route(&network, &all, by_default.as_ref()).is_ok(),
                is_fine,
                "{arguments}"
            );
        }
    }

    #[test]
    fn a_list_says_what_each_interface_takes_from() {
        for (list, expected) in [
            ("null", "eth0! own"),
            ("[]", "eth0! own"),
            (r#"[{"name":"eth0"},{"name":"net1","ipv4_pools":"b"}]"#, "eth0! own; net1 b"),
            (
                r#"[{"name":"net1","subnets":["s"]},{"name":"eth0","ipv6_pools":["six"]}]"#,
                "net1 s; eth0! six",
            ),
            (r#"[{"interface":"eth0","ipv4":["a"],"ipv6":["c"]}]"#, "eth0! a,c"),
            (
                r#"[{"ipv4":["a"]},{"ipv4":["b"]},{"network_attachment":"ns/x"}]"#,
                "eth0! a; net1 b; net2  by ns/x",
            ),
            (r#"[{"name":"net1"},{"name":"net1"}]"#, "net1 ; net1 "),
            (
                r#"[{"ipv4":"a","cleangateway":true},{"ipv4":"b","clean_gateway":false}]"#,
                "eth0! a clean; net1 b",
            ),
        ] {
            assert_eq!(asked(list).unwrap(), expected, "{list}");
        }
    }

    #[test]
    fn a_list_that_is_none_is_refused() {
        for (list, says) in [
            ("7", "args.cni.interfaces must be a list of objects"),
            (r#"["eth0"]"#, "args.cni.interfaces must be a list of objects"),
            (r#"[{"name":"eth0"},{}]"#, "must have a name in each entry, or in none"),
            (r#"[{"name":"a/b"}]"#, "args.cni.interfaces[0].name"),
            (r#"[{"name":7}]"#, "args.cni.interfaces[0].name must be a text"),
            (r#"[{},{"ipv4":["A_B"]}]"#, "args.cni.interfaces[1].ipv4"),
            (r#"[{"network_attachment":"a/b/c"}]"#, "args.cni.interfaces[0].network_attachment"),
        ] {
            let failure = asked(list).unwrap_err();
            assert_eq!(failure.code, crate::fail::CONFIGURATION, "{list}");
            assert!(failure.details.contains(says), "{list}: {}", failure.details);
        }
    }
}
