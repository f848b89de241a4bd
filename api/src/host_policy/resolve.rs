//! Replacement of references by the values of addresses.

use std::collections::BTreeMap;

use serde_json::Value;

use super::HostPolicy;
use super::assign::{Assigned, assign};
use super::reference::Reference;
use super::walk::{copy, pointer};
use crate::name::shown;
use crate::resource::{GivenAddress, Interface};
use crate::{Code, Family, Problem};

/// Captures and desired state of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Captures that nmpolicy evaluates.
    pub capture: BTreeMap<String, String>,
    /// Desired state without references to `ippool` captures.
    pub desired_state: Value,
}

/// Fields of an `ippool` capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// Address.
    Ip,
    /// Prefix length of the subnet.
    PrefixLength,
    /// Router of the subnet.
    Gateway,
    /// MTU of the subnet.
    Mtu,
    /// 802.1Q id of the subnet.
    Vlan,
}

impl Field {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "ip" => Self::Ip,
            "prefix-length" => Self::PrefixLength,
            "gateway" => Self::Gateway,
            "mtu" => Self::Mtu,
            "vlan" => Self::Vlan,
            _ => return None,
        })
    }

    /// Value of the field; `None` if the address lacks it.
    fn of(self, given: &GivenAddress) -> Option<Value> {
        match self {
            Self::Ip => Some(given.address.addr().to_string().into()),
            Self::PrefixLength => Some(given.address.prefix_len().into()),
            Self::Gateway => given.gateway.map(|gateway| gateway.to_string().into()),
            Self::Mtu => given.mtu.map(Value::from),
            Self::Vlan => given.vlan.map(Value::from),
        }
    }
}

/// Replaces the references of a policy by the addresses of a node.
///
/// Other strings, and references to captures that nmpolicy evaluates, stay unchanged.
///
/// # Errors
/// `invalid-field` with the place of a reference that can't be resolved; `limit-exceeded`.
pub fn resolve(policy: &HostPolicy, interfaces: &[Interface]) -> Result<Resolved, Problem> {
    let assigned = assign(policy)?;
    let desired_state = copy_with(policy, &assigned, &mut |capture, assigned, field| {
        let given = find(interfaces, assigned).ok_or_else(|| {
            let Assigned { interface, family, .. } = assigned;
            format!("capture {}: interface {interface} has no {family} address", shown(capture))
        })?;
        field
            .of(given)
            .ok_or_else(|| format!("the subnet of {} has no value for this field", given.address.addr()))
    })?;
    let foreign = policy.capture.iter().filter(|(name, _)| !assigned.contains_key(name.as_str()));
    let capture = foreign.map(|(name, expression)| (name.clone(), expression.clone())).collect();
    Ok(Resolved { capture, desired_state })
}

/// Checks all references of a policy.
pub(super) fn check_references(policy: &HostPolicy) -> Result<(), Problem> {
    copy_with(policy, &assign(policy)?, &mut |_, _, _| Ok(Value::Null)).map(drop)
}

fn find<'a>(interfaces: &'a [Interface], assigned: &Assigned) -> Option<&'a GivenAddress> {
    let interface = interfaces.iter().find(|interface| interface.name == assigned.interface)?;
    interface.addresses.iter().find(|given| Family::of(given.address.addr()) == assigned.family)
}

/// Copies the desired state with the values that `value` returns.
fn copy_with(
    policy: &HostPolicy,
    assigned: &BTreeMap<&str, Assigned>,
    value: &mut dyn FnMut(&str, &Assigned, Field) -> Result<Value, String>,
) -> Result<Value, Problem> {
    copy(&policy.desired_state, &mut |path, text| {
        let wrong = |detail: String| Problem::new(Code::InvalidField, detail).at(pointer(path));
        let Some(Reference { capture, path: field }) = Reference::whole(text) else {
            let inside = Reference::all(text).find(|one| assigned.contains_key(one.capture));
            return inside.map_or(Ok(None), |one| {
                let capture = shown(one.capture);
                let detail = format!("the reference to capture {capture} has to be the whole string");
                Err(wrong(detail))
            });
        };
        let Some(one) = assigned.get(capture) else {
            return if policy.capture.contains_key(capture) {
                Ok(None)
            } else {
                Err(wrong(format!("no capture has the name {}", shown(capture))))
            };
        };
        let field = Field::parse(field).ok_or_else(|| {
            wrong(format!(
                "capture {} has no field {}; its fields are ip, prefix-length, gateway, mtu and vlan",
                shown(capture),
                shown(field)
            ))
        })?;
        value(capture, one, field).map(Some).map_err(wrong)
    })
}
