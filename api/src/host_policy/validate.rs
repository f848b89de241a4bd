//! Validation of host policies.

use std::collections::BTreeSet;

use super::assign::of_capture;
use super::reference::{is_capture_name, pool_of, reads};
use super::resolve::check_references;
use super::{HostPolicy, HostPolicyInterface, interface_requests};
use crate::limits::{
    HOST_POLICY_CAPTURES_MAX, HOST_POLICY_STATE_BYTES_MAX, INTERFACES_MAX, NAME_CHARS_MAX, POOLS_NAMED_MAX,
    TEXT_CHARS_MAX,
};
use crate::name::shown;
use crate::{Code, Problem};

impl HostPolicy {
    /// Checks limits, captures and references.
    ///
    /// # Errors
    /// `invalid-field` or `limit-exceeded`, with the place and the reason.
    pub fn check(&self) -> Result<(), Problem> {
        let limit = |count: usize, max: usize, what: &str, pointer: &str| {
            if count <= max {
                return Ok(());
            }
            let detail = format!("{count} {what}; at most {max} are allowed");
            Err(Problem::new(Code::LimitExceeded, detail).at(pointer))
        };
        if !self.desired_state.is_object() {
            let detail = "the desired state is an object";
            return Err(Problem::new(Code::InvalidField, detail).at("/desired_state"));
        }
        let bytes = self.desired_state.to_string().len();
        limit(bytes, HOST_POLICY_STATE_BYTES_MAX, "bytes of JSON", "/desired_state")?;
        limit(self.capture.len(), HOST_POLICY_CAPTURES_MAX, "captures", "/capture")?;
        limit(self.interfaces.len(), INTERFACES_MAX, "interfaces", "/interfaces")?;
        self.capture.iter().try_for_each(|(name, expression)| self.check_capture(name, expression))?;
        let mut names = BTreeSet::new();
        for (index, interface) in self.interfaces.iter().enumerate() {
            let at = format!("/interfaces/{index}");
            limit(interface.ipv4_pools.len(), POOLS_NAMED_MAX, "IPv4 pools", &at)?;
            limit(interface.ipv6_pools.len(), POOLS_NAMED_MAX, "IPv6 pools", &at)?;
            interface.check().map_err(|detail| Problem::new(Code::InvalidField, detail).at(at.clone()))?;
            if !names.insert(&interface.name) {
                let detail = format!("interface {} is listed twice", interface.name);
                return Err(Problem::new(Code::InvalidField, detail).at(at));
            }
        }
        interface_requests(self)?;
        check_references(self)
    }

    fn check_capture(&self, name: &str, expression: &str) -> Result<(), Problem> {
        if name.len() > NAME_CHARS_MAX || !is_capture_name(name) {
            let rule = format!(
                "its name is not up to {NAME_CHARS_MAX} letters, digits and \"-\", the first one a letter"
            );
            return Err(of_capture(name, &rule));
        }
        if expression.chars().count() > TEXT_CHARS_MAX {
            let detail = format!("its expression has more than {TEXT_CHARS_MAX} characters");
            return Err(of_capture(name, &detail));
        }
        if expression.chars().any(char::is_control) {
            return Err(of_capture(name, "its expression has control characters"));
        }
        if pool_of(expression).is_some() {
            return Ok(());
        }
        if expression.starts_with("ippool.") {
            let detail = format!("{} is not ippool.POOL.allocate", shown(expression));
            return Err(of_capture(name, &detail));
        }
        let ours = self.capture.iter().filter(|(_, expression)| pool_of(expression).is_some());
        if let Some((read, _)) = ours.into_iter().find(|(ours, _)| reads(expression, ours)) {
            let detail = format!(
                "it reads capture {}, which only the desired state can refer to: nmpolicy does not know it",
                shown(read)
            );
            return Err(of_capture(name, &detail));
        }
        Ok(())
    }
}

impl HostPolicyInterface {
    fn check(&self) -> Result<(), String> {
        if self.ipv4_pools.is_empty() && self.ipv6_pools.is_empty() {
            return Err(format!("interface {} names no pool", self.name));
        }
        match self.ipv4_pools.iter().find(|pool| self.ipv6_pools.contains(pool)) {
            Some(pool) => Err(format!("pool {pool} is listed for both families")),
            None => Ok(()),
        }
    }
}
