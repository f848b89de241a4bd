//! Assignment of captures to interfaces: each capture represents the address of one interface.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::reference::{Reference, pool_of};
use super::walk::{copy, element, family, pointer};
use super::{HostPolicy, HostPolicyInterface};
use crate::name::{InterfaceName, Name, shown};
use crate::{Code, Family, Problem};

/// Address that a capture represents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assigned {
    /// Pool of the capture.
    pub pool: Name,
    /// Interface of the address.
    pub interface: InterfaceName,
    /// Family of the address.
    pub family: Family,
}

/// References to one capture: elements of `interfaces`, and families.
#[derive(Default)]
struct Uses {
    elements: BTreeSet<usize>,
    families: BTreeSet<Family>,
}

impl HostPolicyInterface {
    /// Pools of a family.
    #[must_use]
    pub fn pools(&self, family: Family) -> &[Name] {
        match family {
            Family::V4 => &self.ipv4_pools,
            Family::V6 => &self.ipv6_pools,
        }
    }

    fn lists(&self, pool: &Name) -> Option<Family> {
        [Family::V4, Family::V6].into_iter().find(|family| self.pools(*family).contains(pool))
    }
}

/// Problem with a capture.
pub(super) fn of_capture(capture: &str, detail: &str) -> Problem {
    let detail = format!("capture {}: {detail}", shown(capture));
    let pointer = format!("/capture/{}", capture.replace('~', "~0").replace('/', "~1"));
    Problem::new(Code::InvalidField, detail).at(pointer)
}

/// Assigns each `ippool` capture to an interface and a family.
pub(super) fn assign(policy: &HostPolicy) -> Result<BTreeMap<&str, Assigned>, Problem> {
    let uses = uses(policy)?;
    let mut assigned = BTreeMap::new();
    let mut taken: BTreeMap<(InterfaceName, Family), &str> = BTreeMap::new();
    for (capture, expression) in &policy.capture {
        let Some(pool) = pool_of(expression) else { continue };
        let uses = uses.get(capture.as_str());
        let one = listed(policy, capture, &pool, uses)
            .and_then(|one| one.map_or_else(|| unlisted(policy, capture, &pool, uses), Ok))?;
        if let Some(other) = taken.insert((one.interface.clone(), one.family), capture) {
            let detail = format!(
                "capture {} already stands for the {} address of interface {}; an interface has one of \
                 each family",
                shown(other),
                one.family,
                one.interface
            );
            return Err(of_capture(capture, &detail));
        }
        assigned.insert(capture.as_str(), one);
    }
    Ok(assigned)
}

/// Collects the references to `ippool` captures.
fn uses(policy: &HostPolicy) -> Result<BTreeMap<String, Uses>, Problem> {
    let mut uses: BTreeMap<String, Uses> = BTreeMap::new();
    copy(&policy.desired_state, &mut |path, text| {
        if let Some(reference) = Reference::whole(text) {
            let uses = uses.entry(reference.capture.to_owned()).or_default();
            uses.elements.extend(element(path));
            uses.families.extend(element(path).and_then(|_| family(path)));
        }
        Ok(None)
    })?;
    Ok(uses)
}

/// Returns the interface of `interfaces` that lists the pool; of several, the one that refers to the capture.
fn listed(
    policy: &HostPolicy,
    capture: &str,
    pool: &Name,
    uses: Option<&Uses>,
) -> Result<Option<Assigned>, Problem> {
    let listing = policy.interfaces.iter().filter_map(|one| Some((&one.name, one.lists(pool)?)));
    let listing: Vec<(&InterfaceName, Family)> = listing.collect();
    let of = |(name, family): (&InterfaceName, Family)| Assigned {
        pool: pool.clone(),
        interface: name.clone(),
        family,
    };
    let using = |name: &InterfaceName| {
        let mut elements = uses.into_iter().flat_map(|uses| &uses.elements);
        elements.any(|index| element_name(policy, *index) == Some(name.as_str()))
    };
    match listing.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(of(*one))),
        _ => match listing.iter().filter(|(name, _)| using(name)).collect::<Vec<_>>().as_slice() {
            [one] => Ok(Some(of(**one))),
            _ => {
                let detail = format!(
                    "several interfaces list pool {pool}; refer to the capture from one of them in \
                     desired_state.interfaces"
                );
                Err(of_capture(capture, &detail))
            }
        },
    }
}

/// The interface of the desired state that refers to the capture.
fn unlisted(
    policy: &HostPolicy,
    capture: &str,
    pool: &Name,
    uses: Option<&Uses>,
) -> Result<Assigned, Problem> {
    let list = |reason: &str| {
        let detail = format!("{reason}; list the interface with pool {pool} in interfaces");
        of_capture(capture, &detail)
    };
    let uses = uses.ok_or_else(|| list("no string of the desired state refers to it"))?;
    let index = match uses.elements.iter().collect::<Vec<_>>().as_slice() {
        [] => return Err(list("no interface of the desired state refers to it")),
        [index] => **index,
        _ => return Err(list("several interfaces of the desired state refer to it")),
    };
    let place = pointer(&["interfaces".to_owned(), index.to_string(), "name".to_owned()]);
    let name = element_name(policy, index).filter(|name| !name.contains("{{"));
    let Some(name) = name else {
        return Err(list(&format!("{place} is not the name of an interface")));
    };
    let interface = InterfaceName::new(name).map_err(|problem| problem.at(place))?;
    if let Some(entry) = policy.interfaces.iter().find(|one| one.name == interface) {
        let detail = format!("interfaces lists {} without pool {pool}; add the pool", entry.name);
        return Err(of_capture(capture, &detail));
    }
    match uses.families.iter().collect::<Vec<_>>().as_slice() {
        [family] => Ok(Assigned { pool: pool.clone(), interface, family: **family }),
        [] => Err(list("no reference in ipv4 or ipv6 tells its family")),
        _ => Err(list("references in ipv4 and in ipv6 contradict each other")),
    }
}

/// Name of an element of `interfaces` of the desired state, if it has one.
pub(super) fn element_name(policy: &HostPolicy, index: usize) -> Option<&str> {
    policy.desired_state.get("interfaces")?.get(index)?.get("name").and_then(Value::as_str)
}
