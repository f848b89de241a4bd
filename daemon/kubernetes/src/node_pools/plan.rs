//! Next steps for all objects: pure, from the objects and the resources of the servers.

use std::collections::BTreeMap;

use ipam_api::client::Expect;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::{Pool, PoolStatus, Subnet};
use ipam_api::{Code, Problem};
use ipnet::IpNet;

use super::range::NodeRange;
use crate::mirror::Row;

/// Subnet of the servers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SubnetRow {
    pub(crate) network: Name,
    pub(crate) cidr: IpNet,
    /// True if the subnet has the manager of these pools.
    pub(crate) is_own: bool,
    pub(crate) revision: u64,
}

/// Pool of the manager of these pools.
#[derive(Debug, Clone)]
pub(crate) struct Own {
    pub(crate) row: Row<Pool>,
    pub(crate) status: PoolStatus,
}

/// Objects and resources of the servers.
pub(crate) struct Known<'a> {
    pub(crate) manager: &'a str,
    /// Ranges of the readable objects.
    pub(crate) objects: BTreeMap<ObjectName, NodeRange>,
    pub(crate) subnets: &'a BTreeMap<Name, SubnetRow>,
    pub(crate) pools: &'a BTreeMap<ObjectName, Own>,
}

/// Next step for a resource.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// End the pool; held addresses stay until they are released, or until the object returns.
    DeletePool(ObjectName, u64),
    /// Delete a subnet that no object needs.
    DeleteSubnet(Name, u64),
    /// Write the subnet of an object.
    PutSubnet(ObjectName, Box<Subnet>),
    /// Write the pool of an object.
    PutPool(ObjectName, Box<Pool>, Expect),
    /// The pool matches the object.
    Keep(ObjectName),
    /// The object can't be applied.
    Refuse(ObjectName, Problem),
}

/// Steps in the order of their execution. `is_gone` returns true for objects whose deletion is known.
pub(crate) fn plan(known: &Known<'_>, is_gone: impl Fn(&ObjectName) -> bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for (name, own) in known.pools {
        if is_gone(name) && !known.objects.contains_key(name) && !own.row.spec.terminating {
            steps.push(Step::DeletePool(name.clone(), own.row.revision));
        }
    }
    for (name, subnet) in known.subnets.iter().filter(|(_, subnet)| subnet.is_own) {
        let is_wanted = known.objects.values().any(|range| has(subnet, range));
        let is_used = known.pools.values().any(|own| own.row.spec.subnet == *name);
        let object = ObjectName::new(name.as_str()).ok();
        let is_known = object.is_none_or(|object| is_gone(&object) || known.objects.contains_key(&object));
        if !is_wanted && !is_used && is_known {
            steps.push(Step::DeleteSubnet(name.clone(), subnet.revision));
        }
    }
    let mut written: Vec<&NodeRange> = Vec::new();
    for (name, range) in &known.objects {
        let next = known.steps_of(name, range, &mut written);
        steps.extend(next.unwrap_or_else(|problem| vec![Step::Refuse(name.clone(), problem)]));
    }
    steps
}

fn has(subnet: &SubnetRow, range: &NodeRange) -> bool {
    subnet.network == range.network && subnet.cidr == range.cidr
}

impl<'a> Known<'a> {
    fn steps_of<'b>(
        &self,
        name: &ObjectName,
        range: &'b NodeRange,
        written: &mut Vec<&'b NodeRange>,
    ) -> Result<Vec<Step>, Problem> {
        let mut steps = Vec::new();
        let present = self.subnets.iter().find(|(_, subnet)| has(subnet, range)).map(|(name, _)| name);
        let planned = written.iter().find(|one| one.network == range.network && one.cidr == range.cidr);
        let subnet = match (present, planned) {
            (Some(name), _) => name.clone(),
            (None, Some(other)) => other.name.clone(),
            (None, None) => {
                if let Some(other) = self.subnets.get(&range.name) {
                    return Err(taken(&range.name, other));
                }
                written.push(range);
                steps.push(Step::PutSubnet(name.clone(), Box::new(range.subnet(self.manager)?)));
                range.name.clone()
            }
        };
        let wanted = range.pool(&subnet, self.manager)?;
        match self.pools.get(name) {
            None => steps.push(Step::PutPool(name.clone(), Box::new(wanted), Expect::Absent)),
            Some(own) if own.row.spec.subnet != subnet => {
                let held = own.status.counts.allocated;
                if held > 0 {
                    return Err(held_elsewhere(own, range.cidr, held));
                }
                // The pool of the new subnet follows in the next round.
                return Ok(vec![Step::DeletePool(name.clone(), own.row.revision)]);
            }
            Some(own) if own.row.spec == wanted => steps.push(Step::Keep(name.clone())),
            Some(own) => {
                let expect = Expect::Revision(own.row.revision);
                steps.push(Step::PutPool(name.clone(), Box::new(wanted), expect));
            }
        }
        Ok(steps)
    }

    /// Names of other objects that overlap with an object.
    pub(crate) fn overlapping(&'a self, name: &'a ObjectName) -> impl Iterator<Item = &'a ObjectName> {
        let own = self.objects.get(name);
        self.objects.iter().filter_map(move |(other, range)| {
            (other != name && own.is_some_and(|own| own.overlaps(range))).then_some(other)
        })
    }
}

/// Refusal of a subnet whose name another subnet has.
fn taken(name: &Name, other: &SubnetRow) -> Problem {
    let why = format!("subnet {name} exists with {} in network {}", other.cidr, other.network);
    Problem::new(Code::AlreadyExists, why).help("Rename the object, or delete the subnet.")
}

/// Refusal of a changed CIDR while addresses of the former CIDR are held.
fn held_elsewhere(own: &Own, wanted: IpNet, held: u64) -> Problem {
    let why = format!("{held} addresses of {} are held, so the CIDR can't become {wanted}", own.status.cidr);
    Problem::new(Code::ImmutableField, why)
        .at("/range/cidr")
        .help("Keep the CIDR and change start and end, or use another object and reset the policies.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MANAGER: &str = "m";

    fn object(name: &str) -> ObjectName {
        ObjectName::new(name).unwrap()
    }

    fn range(name: &str, cidr: &str, end: &str) -> NodeRange {
        NodeRange::read(&object(name), json!({"range": {"cidr": cidr, "end": end}})).unwrap()
    }

    fn subnet(cidr: &str, is_own: bool) -> SubnetRow {
        SubnetRow { network: Name::default_name(), cidr: cidr.parse().unwrap(), is_own, revision: 5 }
    }

    fn own(range: &NodeRange, subnet: &str, held: u64) -> Own {
        let spec = range.pool(&Name::new(subnet).unwrap(), MANAGER).unwrap();
        let status = serde_json::from_value(json!({
            "revision": 9, "family": 4, "cidr": range.cidr, "conditions": [],
            "counts": {"size": 9, "allocated": held, "cooling": 0, "quarantined": 0, "reserved": 0,
                       "excluded": 0, "free": 0, "saturated": false},
        }));
        Own { row: Row { spec, revision: 7 }, status: status.unwrap() }
    }

    fn steps(
        objects: &[NodeRange],
        subnets: &[(&str, SubnetRow)],
        pools: &[(&str, Own)],
        gone: &[&str],
    ) -> Vec<String> {
        let subnets = subnets.iter().map(|(name, row)| (Name::new(name).unwrap(), row.clone())).collect();
        let pools = pools.iter().map(|(name, own)| (object(name), own.clone())).collect();
        let objects = objects.iter().map(|range| (object(range.name.as_str()), range.clone())).collect();
        let known = Known { manager: MANAGER, objects, subnets: &subnets, pools: &pools };
        let shown = |step: &Step| match step {
            Step::DeletePool(name, revision) => format!("delete pool {name} {revision}"),
            Step::DeleteSubnet(name, revision) => format!("delete subnet {name} {revision}"),
            Step::PutSubnet(_, spec) => format!("put subnet {} {}", spec.name, spec.cidr),
            Step::PutPool(name, spec, expect) => format!("put pool {name} in {} {expect:?}", spec.subnet),
            Step::Keep(name) => format!("keep {name}"),
            Step::Refuse(name, problem) => format!("refuse {name} {}", problem.code.reason()),
        };
        plan(&known, |name| gone.contains(&name.as_str())).iter().map(shown).collect()
    }

    #[test]
    fn an_object_gets_a_subnet_and_a_pool_and_shares_a_subnet_of_its_cidr() {
        let (one, two) = (range("a", "10.0.0.0/24", "10.0.0.9"), range("b", "10.0.0.0/24", "10.0.0.99"));
        let both = [one.clone(), two.clone()];
        assert_eq!(
            steps(&both, &[], &[], &[]),
            ["put subnet a 10.0.0.0/24", "put pool a in a Absent", "put pool b in a Absent"]
        );
        let lan = [("lan", subnet("10.0.0.0/24", false))];
        assert_eq!(
            steps(&both, &lan, &[("a", own(&one, "lan", 2))], &[]),
            ["keep a", "put pool b in lan Absent"]
        );
        let foreign = [("a", subnet("10.9.0.0/24", false))];
        assert_eq!(steps(&[one], &foreign, &[], &[]), ["refuse a AlreadyExists"]);
    }

    #[test]
    fn a_pool_grows_in_place_and_returns_with_its_object() {
        let (small, large) = (range("a", "10.0.0.0/24", "10.0.0.9"), range("a", "10.0.0.0/24", "10.0.0.99"));
        let lan = [("a", subnet("10.0.0.0/24", true))];
        let put = ["put pool a in a Revision(7)"];
        assert_eq!(steps(std::slice::from_ref(&large), &lan, &[("a", own(&small, "a", 6))], &[]), put);
        let mut ending = own(&small, "a", 6);
        ending.row.spec.terminating = true;
        assert_eq!(steps(&[large], &lan, &[("a", ending.clone())], &["a"]), put);
        assert!(steps(&[], &lan, &[("a", ending)], &["a"]).is_empty(), "it ends with its last address");
    }

    #[test]
    fn only_what_is_known_to_be_gone_is_deleted() {
        let one = range("a", "10.0.0.0/24", "10.0.0.9");
        let lan = [("a", subnet("10.0.0.0/24", true))];
        let pools = [("a", own(&one, "a", 0))];
        assert!(steps(&[], &lan, &pools, &[]).is_empty());
        assert_eq!(steps(&[], &lan, &pools, &["a"]), ["delete pool a 7"]);
        assert!(steps(&[], &lan, &[], &[]).is_empty());
        assert_eq!(steps(&[], &lan, &[], &["a"]), ["delete subnet a 5"]);
        assert!(steps(&[], &[("a", subnet("10.0.0.0/24", false))], &[], &["a"]).is_empty());
    }

    #[test]
    fn another_cidr_needs_a_pool_without_addresses() {
        let (old, new) = (range("a", "10.0.0.0/24", "10.0.0.9"), range("a", "10.0.0.0/16", "10.0.0.9"));
        let lan = [("a", subnet("10.0.0.0/24", true))];
        let other = [("lan", subnet("10.0.0.0/16", false)), lan[0].clone()];
        assert_eq!(
            steps(std::slice::from_ref(&new), &other, &[("a", own(&old, "a", 0))], &[]),
            ["delete pool a 7"]
        );
        assert_eq!(
            steps(std::slice::from_ref(&new), &other, &[("a", own(&old, "a", 1))], &[]),
            ["refuse a ImmutableField"]
        );
        assert_eq!(steps(&[new], &lan, &[], &[]), ["delete subnet a 5", "refuse a AlreadyExists"]);
    }
}
