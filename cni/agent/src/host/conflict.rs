//! Probes of new addresses of the host: an address that another station uses is not configured.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use ipam_api::limits::PROBE_ADDRESSES_MAX;
use ipam_api::name::InterfaceName;
use ipam_api::probe::{ProbeResult, ProbesRequest};
use ipam_api::resource::Interface;

use super::plan::has_address;
use super::session::View;
use super::target::device_of;
use crate::node::Node;
use crate::probe::Purpose;
use crate::probing::links::Links;
use crate::probing::report::{macs, report};
use crate::probing::wire::Wire;

/// Time limit of the report.
const REPORT: Duration = Duration::from_secs(5);

/// Result of the probes.
#[derive(Debug, Default)]
pub(super) struct Probed {
    /// Addresses that must not be used now.
    pub(super) withheld: BTreeSet<IpAddr>,
    /// Reasons why addresses are withheld.
    pub(super) reasons: Vec<String>,
}

/// Probes the addresses that need it and that no link of this host has yet, and reports conflicts.
pub(super) async fn probed(node: &Node, wire: &impl Wire, view: &View, interfaces: &[Interface]) -> Probed {
    let mut probed = Probed::default();
    let fresh = fresh(view, interfaces);
    if !node.config.probes || fresh.is_empty() {
        return probed;
    }
    let found = match wire.interfaces().await {
        Ok(found) => found,
        Err(error) => {
            probed.withhold(fresh.into_values().flatten(), &error.to_string());
            return probed;
        }
    };
    let links = Links::new(&node.config.links, &found);
    let mut results = Vec::new();
    for (device, addresses) in fresh {
        let outcomes = match wire.probe(&device, &addresses, Purpose::Conflict).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                probed.withhold(addresses.into_iter(), &format!("can't be probed: {error}"));
                continue;
            }
        };
        for (address, outcome) in outcomes {
            let macs = macs(outcome);
            let Some(mac) = macs.first() else { continue };
            probed.withhold(std::iter::once(address), &format!("is used by {mac} on {device}"));
            let named = InterfaceName::new(&device).ok();
            if let Some((_, network)) = links.of_add(named.as_ref(), address) {
                results.push(ProbeResult { network, address, macs, allocation: None });
            }
        }
    }
    if !results.is_empty() {
        let request = ProbesRequest { results, ..ProbesRequest::default() };
        if let Err(problem) = report(node, &request, REPORT).await {
            tracing::warn!(%problem, "conflicts of the host's addresses are not reported");
        }
    }
    probed
}

/// Former conflicts that can't be probed now, since their link is absent or belongs to another manager.
pub(super) fn unprobed(view: &View, interfaces: &[Interface], former: &BTreeSet<IpAddr>) -> BTreeSet<IpAddr> {
    let mut unprobed = BTreeSet::new();
    for interface in interfaces {
        let bound = view.bindings.named(&interface.name);
        for given in &interface.addresses {
            let is_probed = bound.is_some_and(|bound| {
                let device = device_of(bound, &view.observed, given);
                !view.frozen.contains(&bound.device) && !view.frozen.contains(&device)
            });
            let address = given.address.addr();
            if !is_probed && former.contains(&address) {
                unprobed.insert(address);
            }
        }
    }
    unprobed
}

/// Addresses to probe, by link.
fn fresh(view: &View, interfaces: &[Interface]) -> BTreeMap<String, BTreeSet<IpAddr>> {
    let mut fresh: BTreeMap<String, BTreeSet<IpAddr>> = BTreeMap::new();
    for interface in interfaces {
        let Some(bound) = view.bindings.named(&interface.name) else { continue };
        if view.frozen.contains(&bound.device) {
            continue;
        }
        for given in interface.addresses.iter().filter(|given| given.probes.conflicts) {
            let device = device_of(bound, &view.observed, given);
            let address = given.address.addr();
            let count = fresh.get(&device).map_or(0, BTreeSet::len);
            if !view.frozen.contains(&device)
                && !has_address(&view.observed, &device, address)
                && count < PROBE_ADDRESSES_MAX
            {
                fresh.entry(device).or_default().insert(address);
            }
        }
    }
    fresh
}

impl Probed {
    fn withhold(&mut self, addresses: impl Iterator<Item = IpAddr>, why: &str) {
        for address in addresses {
            self.withheld.insert(address);
            self.reasons.push(format!("{address} {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::binding::{Bindings, Bound};
    use super::super::fake::link;
    use super::super::kernel::Observed;
    use super::*;

    #[test]
    fn a_conflict_stays_while_its_link_can_not_be_probed() {
        let bound = Bound {
            name: "eth1".parse().unwrap(),
            device: "eth1".to_owned(),
            index: 2,
            mac: None,
            section: 0,
            place: 0,
        };
        let observed = Observed { links: vec![link(2, "eth1", 1)], ..Observed::default() };
        let bindings = Bindings { bound: vec![bound], warnings: Vec::new() };
        let mut view = View { observed, bindings, frozen: BTreeSet::new() };
        let given =
            |address: &str| json!({"address": address, "pool": "p", "allocation": 1, "checked": true});
        let interfaces: Vec<Interface> = serde_json::from_value(json!([
            {"name": "eth1", "addresses": [given("10.0.0.7/24")]},
            {"name": "eth2", "addresses": [given("10.0.0.8/24"), given("10.0.0.9/24")]},
        ]))
        .unwrap();
        let [seven, eight] = ["10.0.0.7", "10.0.0.8"].map(|one| one.parse::<IpAddr>().unwrap());
        let former = BTreeSet::from([seven, eight]);
        assert_eq!(unprobed(&view, &interfaces, &former), BTreeSet::from([eight]));
        view.frozen.insert("eth1".to_owned());
        assert_eq!(unprobed(&view, &interfaces, &former), former);
    }
}
