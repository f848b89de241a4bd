//! Routes of a container's request, and the interface of the default route.

use ipam_api::address::{parse_address, parse_cidr};
use ipam_api::name::InterfaceName;
use ipam_api::resource::Route;

use crate::config::Network;
use crate::fail::Failure;
use crate::json::Section;

/// Keys for an interface without default route, in the list of interfaces, in `args.cni` and in `ipam`.
pub const CLEAN_GATEWAY: [&str; 2] = ["clean_gateway", "cleangateway"];
const ROUTES: &str = "routes";
/// Keys of a destination: that of ipamd, and that of CNI and Spiderpool.
const DESTINATION: [&str; 2] = ["destination", "dst"];
const GATEWAY: [&str; 2] = ["gateway", "gw"];
/// Key of the only interface with a default route.
pub const DEFAULT_ROUTE_INTERFACE: &str = "default_route_interface";

/// Routes in `args.cni.routes`.
///
/// # Errors
/// Code 7.
pub fn routes(network: &Network) -> Result<Vec<Route>, Failure> {
    let arguments = network.arguments()?;
    let route = |entry: Section<'_>| {
        let destination = required(&entry, DESTINATION)?;
        let gateway = required(&entry, GATEWAY)?;
        Ok(Route {
            destination: parse_cidr(destination)
                .map_err(|problem| entry.wrong_in(DESTINATION, &problem.detail))?,
            gateway: parse_address(gateway).map_err(|problem| entry.wrong_in(GATEWAY, &problem.detail))?,
        })
    };
    arguments.sections(ROUTES)?.into_iter().map(route).collect()
}

/// Only interface with a default route, from `args.cni.default_route_interface`.
///
/// # Errors
/// Code 7.
pub fn default_route_interface(network: &Network) -> Result<Option<InterfaceName>, Failure> {
    let arguments = network.arguments()?;
    let wrong = |problem: ipam_api::Problem| arguments.wrong(DEFAULT_ROUTE_INTERFACE, &problem.detail);
    arguments.text(DEFAULT_ROUTE_INTERFACE)?.map(|text| InterfaceName::new(text).map_err(wrong)).transpose()
}

/// True if the ADD's own interface gets no default route. `args.cni` precedes the configuration.
///
/// # Errors
/// Code 7.
pub fn clean_gateway(network: &Network) -> Result<bool, Failure> {
    let said = match is_clean(&network.arguments()?)? {
        Some(said) => Some(said),
        None => is_clean(&network.ipam()?)?,
    };
    Ok(said.unwrap_or_default())
}

/// Setting in a section, if any.
///
/// # Errors
/// Code 7.
pub fn is_clean(section: &Section<'_>) -> Result<Option<bool>, Failure> {
    for key in CLEAN_GATEWAY {
        if let Some(said) = section.boolean(key)? {
            return Ok(Some(said));
        }
    }
    Ok(None)
}

fn required<'a>(entry: &Section<'a>, keys: [&'static str; 2]) -> Result<&'a str, Failure> {
    match entry.first(keys)? {
        Some(text) => Ok(text),
        None => Err(Failure::configuration(format!("{} is missing", entry.path(keys[0])))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::CniVersion;

    fn network(arguments: &str, ipam: &str) -> Network {
        let text = format!(r#"{{"name":"n","args":{{"cni":{arguments}}},"ipam":{ipam}}}"#);
        Network::new(crate::json::parse(text.as_bytes()).unwrap(), CniVersion::LATEST).unwrap()
    }

    #[test]
    fn routes_are_read_in_all_words() {
        let both =
            r#"{"routes":[{"destination":"10.0.0.0/8","gateway":"10.1.0.1"},{"dst":"::/0","gw":"fe80::1"}]}"#;
        let routes = routes(&network(both, "{}")).unwrap();
        let shown: Vec<String> =
            routes.iter().map(|one| format!("{} {}", one.destination, one.gateway)).collect();
        assert_eq!(shown, ["10.0.0.0/8 10.1.0.1", "::/0 fe80::1"]);
        for (bad, says) in [
            (r#"{"routes":7}"#, "args.cni.routes must be a list of objects"),
            (r#"{"routes":[{"gw":"10.1.0.1"}]}"#, "args.cni.routes[0].destination is missing"),
            (r#"{"routes":[{"dst":"10.0.0.0/8"}]}"#, "args.cni.routes[0].gateway is missing"),
            (r#"{"routes":[{"dst":"10.0.0.1/8","gw":"10.1.0.1"}]}"#, "did you mean 10.0.0.0/8?"),
            (r#"{"routes":[{"dst":"10.0.0.0/8","gw":"10.1.0"}]}"#, "args.cni.routes[0].gw"),
        ] {
            let failure = super::routes(&network(bad, "{}")).unwrap_err();
            assert!(failure.details.contains(says), "{bad}: {}", failure.details);
        }
    }

    #[test]
    fn the_request_counts_before_the_configuration() {
        for (arguments, ipam, clean) in [
            ("null", "{}", false),
            ("{}", r#"{"clean_gateway":true}"#, true),
            (r#"{"clean_gateway":false}"#, r#"{"clean_gateway":true}"#, false),
            (r#"{"cleangateway":true}"#, r#"{"clean_gateway":false}"#, true),
        ] {
            assert_eq!(clean_gateway(&network(arguments, ipam)).unwrap(), clean, "{arguments} {ipam}");
        }
        let failure = clean_gateway(&network("{}", r#"{"clean_gateway":"yes"}"#)).unwrap_err();
        assert!(failure.details.contains("ipam.clean_gateway must be true or false"), "{}", failure.details);
        let only = default_route_interface(&network(r#"{"default_route_interface":"net1"}"#, "{}")).unwrap();
        assert_eq!(only.unwrap().as_str(), "net1");
        assert!(default_route_interface(&network(r#"{"default_route_interface":"a/b"}"#, "{}")).is_err());
    }
}
