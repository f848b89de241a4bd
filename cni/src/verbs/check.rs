//! CHECK: verifies that the attachment still holds the allocations of its ADD.

use std::net::IpAddr;

use ipam_api::Family;
use ipam_api::client::Call;
use ipam_api::problem::{Code, Problem};
use ipam_api::request::{Attachment, AttachmentKey};

use super::attachment;
use crate::ask::Ask;
use crate::config::{IPV4_POOLS, IPV6_POOLS, Network};
use crate::environment::Environment;
use crate::fail::Failure;

/// Compares the servers' allocations with the addresses that the runtime remembers.
///
/// # Errors
/// Code 117 where they differ.
pub async fn check(environment: &Environment, network: &Network) -> Result<Vec<u8>, Failure> {
    let key = attachment(&network.home()?, network, environment.container()?);
    let remembered = network.previous_addresses()?;
    let ask = Ask::new(environment, network)?;
    let known: Attachment = ask.call(Call::get(key.path())).await.map_err(|problem| match problem.code {
        Code::NotFound => failed(format!("no address is held by {key}")),
        _ => problem.into(),
    })?;
    let held: Vec<IpAddr> = known.interface.addresses.iter().map(|one| one.address.addr()).collect();
    compare(&key, &held, remembered.as_deref(), &expected(network))?;
    Ok(Vec::new())
}

/// Families for which the configuration names pools.
fn expected(network: &Network) -> Vec<Family> {
    let named = [(Family::V4, IPV4_POOLS), (Family::V6, IPV6_POOLS)];
    // An invalid name has no addresses, either.
    let named =
        named.into_iter().filter(|(_, keys)| network.pools(*keys).is_ok_and(|pools| !pools.is_empty()));
    named.map(|(family, _)| family).collect()
}

/// Compares addresses with the expected ones. Addresses of a family without an allocation or expectation
/// belong to another plugin of the chain, and are ignored.
fn compare(
    key: &AttachmentKey,
    held: &[IpAddr],
    remembered: Option<&[IpAddr]>,
    expected: &[Family],
) -> Result<(), Failure> {
    if held.is_empty() {
        return Err(failed(format!("no address is held by {key}")));
    }
    let Some(remembered) = remembered else { return Ok(()) };
    if let Some(address) = held.iter().find(|address| !remembered.contains(address)) {
        return Err(failed(format!("{address} is held by {key}, but prevResult doesn't list it")));
    }
    let ours = |address: IpAddr| {
        let family = Family::of(address);
        expected.contains(&family) || held.iter().any(|one| Family::of(*one) == family)
    };
    match remembered.iter().find(|address| ours(**address) && !held.contains(address)) {
        Some(address) => Err(failed(format!("{address} of prevResult is not held by {key}"))),
        None => Ok(()),
    }
}

fn failed(detail: String) -> Failure {
    Problem::new(Code::CheckFailed, detail).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipam_api::name::{InterfaceName, Name, ObjectName};

    fn key(interface: &str) -> AttachmentKey {
        AttachmentKey {
            realm: Name::default_name(),
            node: ObjectName::new("node:1").unwrap(),
            config: ObjectName::new("net").unwrap(),
            container_id: ObjectName::new("c1").unwrap(),
            interface: InterfaceName::new(interface).unwrap(),
        }
    }

    #[test]
    fn both_sides_must_agree() {
        let addresses =
            |texts: &[&str]| -> Vec<IpAddr> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        let held = addresses(&["10.1.2.2"]);
        let none = &[][..];
        for (remembered, expected, good) in [
            (Some(addresses(&["10.1.2.2"])), none, true),
            (Some(addresses(&["10.1.2.2", "2001:db8::9"])), none, true),
            (Some(addresses(&["10.1.2.2", "2001:db8::9"])), &[Family::V4], true),
            (Some(addresses(&["10.1.2.2", "2001:db8::9"])), &[Family::V4, Family::V6], false),
            (None, &[Family::V4, Family::V6], true),
            (Some(addresses(&["10.1.2.2", "10.1.2.3"])), none, false),
            (Some(addresses(&["10.1.2.3"])), none, false),
            (Some(Vec::new()), none, false),
        ] {
            let outcome = compare(&key("eth0"), &held, remembered.as_deref(), expected);
            assert_eq!(outcome.is_ok(), good, "{remembered:?}, {expected:?}");
        }
        assert!(compare(&key("eth0"), &[], None, none).is_err());
    }
}
