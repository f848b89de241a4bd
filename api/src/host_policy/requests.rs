//! Addresses that a host policy requests for each node.

use super::HostPolicy;
use super::assign::assign;
use crate::limits::INTERFACES_MAX;
use crate::name::NamePattern;
use crate::request::InterfaceRequest;
use crate::{Code, Family, Problem};

/// Interfaces of a policy's hosts with their pools: the listed ones, then those that only captures name.
///
/// # Errors
/// `invalid-field` or `limit-exceeded`, with the place and the reason.
pub fn interface_requests(policy: &HostPolicy) -> Result<Vec<InterfaceRequest>, Problem> {
    let mut requests: Vec<InterfaceRequest> = Vec::new();
    for listed in &policy.interfaces {
        let mut request = InterfaceRequest::blank(listed.name.clone());
        request.clean_gateway = listed.clean_gateway;
        for family in [Family::V4, Family::V6] {
            for pool in listed.pools(family) {
                add(&mut request, family, pool.into());
            }
        }
        requests.push(request);
    }
    for one in assign(policy)?.into_values() {
        let pool = NamePattern::from(&one.pool);
        let listed = policy.interfaces.iter().any(|listed| listed.name == one.interface);
        match requests.iter_mut().find(|request| request.name == one.interface) {
            Some(_) if listed => {}
            Some(request) => add(request, one.family, pool),
            None => {
                let mut request = InterfaceRequest::blank(one.interface);
                add(&mut request, one.family, pool);
                requests.push(request);
            }
        }
    }
    if requests.len() > INTERFACES_MAX {
        let detail = format!("{} interfaces; a policy has at most {INTERFACES_MAX}", requests.len());
        return Err(Problem::new(Code::LimitExceeded, detail).at("/interfaces"));
    }
    Ok(requests)
}

fn add(request: &mut InterfaceRequest, family: Family, pool: NamePattern) {
    match family {
        Family::V4 => request.ipv4_pools.push(pool),
        Family::V6 => request.ipv6_pools.push(pool),
    }
    if !request.families.contains(&family) {
        request.families.push(family);
        request.families.sort();
    }
}
