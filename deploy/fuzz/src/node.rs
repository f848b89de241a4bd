//! Input of the plugin from a container runtime: standard input and the environment.

use std::collections::BTreeMap;

use ipam_api::brand::CNI_DEADLINE_ENV;
use ipam_api::name::{InterfaceName, Name, ObjectName};
use ipam_cni::arguments::Arguments;
use ipam_cni::config::{IPV4_POOLS, IPV6_POOLS, Network};
use ipam_cni::environment::Environment;
use ipam_cni::fail::Failure;
use ipam_cni::interfaces::interfaces;
use ipam_cni::json;
use ipam_cni::version::CniVersion;
use serde_json::Value;

/// Standard input.
pub(crate) fn config(data: &[u8]) {
    if let Err(failure) = network(data) {
        told(&failure);
    }
}

fn network(data: &[u8]) -> Result<(), Failure> {
    let document = json::parse(&ipam_cni::read_bounded(data)?)?;
    let version = CniVersion::of(&document)?;
    let network = Network::new(document, version)?;
    let own = ipam_api::request::InterfaceRequest::blank(InterfaceName::new("eth0").map_err(Failure::from)?);
    let looks: [Result<(), Failure>; 13] = [
        network.home().map(drop),
        network.reach("http://127.0.0.1:1").map(drop),
        network.pools(IPV4_POOLS).map(drop),
        network.pools(IPV6_POOLS).map(drop),
        interfaces(&network, own).map(drop),
        network.addresses().map(drop),
        network.mac().map(drop),
        ipam_cni::annotations::annotations(&network).map(drop),
        network.replicas().map(drop),
        network.automatic_pool().map(drop),
        network.dns().map(drop),
        network.previous_addresses().map(drop),
        network.valid_attachments().map(drop),
    ];
    for failure in looks.into_iter().filter_map(Result::err) {
        told(&failure);
    }
    Ok(())
}

/// The environment, a variable a line.
pub(crate) fn arguments(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let variables: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    // The warning about a malformed deadline goes to standard error.
    let get = |name: &str| {
        variables.get(name).filter(|_| name != CNI_DEADLINE_ENV).map(|value| (*value).to_owned())
    };
    match Environment::read(&get) {
        Ok(environment) => read_arguments(&environment.arguments),
        Err(failure) => told(&failure),
    }
    read_arguments(text);
}

fn read_arguments(text: &str) {
    match Arguments::parse(text) {
        Ok(arguments) => {
            let id = ObjectName::default_name();
            let (endpoint, _) = arguments.endpoint(&Name::default_name(), &id, &id, None);
            assert_eq!(endpoint.to_string().parse().ok(), Some(endpoint));
        }
        Err(failure) => told(&failure),
    }
}

/// Checks that a runtime can read a failure as JSON.
fn told(failure: &Failure) {
    let json = failure.to_json(CniVersion::LATEST);
    assert!(serde_json::from_slice::<Value>(&json).is_ok_and(|value| value.is_object()));
}
