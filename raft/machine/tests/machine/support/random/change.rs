//! Pools that are split, and drained to others, and nodes and namespaces, at random.

use ipam_api::address::AddressRange;
use ipam_api::name::{Name, ResourceName};
use ipam_machine::Action;
use ipam_machine::command::{
    AddressLimits, ControllerName, Expect, Kind, NamespaceSpec, NodeSpec, PoolPatterns, Put, Quota,
    SplitPool, Text,
};

use crate::support::random::{Draw, POOLS, part};

impl Draw<'_> {
    pub(crate) fn drains_to(&mut self) -> Option<Name> {
        let to = POOLS[usize::try_from(self.dice.below(7)).unwrap()].0;
        self.dice.chance(14).then(|| Name::new(to).unwrap())
    }

    /// Mostly of a pool that exists, into one that mostly doesn't, a part that is mostly its own.
    pub(crate) fn split_pool(&mut self, expect: Expect) -> Action {
        let of = [("s", "lan"), ("t", "six")];
        let all: Vec<(&str, &str)> = POOLS.iter().copied().chain(of).collect();
        let (name, subnet) = all[usize::try_from(self.dice.below(all.len() as u64)).unwrap()];
        let into = match self.dice.below(10) {
            0 => "a",
            1..=5 => "s",
            _ => "t",
        };
        let own = part(subnet, name);
        let first =
            own.first() + u128::from(self.dice.below(u64::try_from(own.last() - own.first()).unwrap() + 1));
        let last = (first + u128::from(self.dice.below(3))).min(own.last());
        let address = |number| own.family().address(number);
        let ranges = vec![AddressRange::new(address(first), address(last)).unwrap()];
        Action::SplitPool(SplitPool {
            name: Name::new(name).unwrap(),
            into: Name::new(into).unwrap(),
            ranges,
            expect,
        })
    }

    /// Mostly none, else a tight one.
    fn quota(&mut self) -> Quota {
        let mut quota = Quota::default();
        if self.dice.chance(55) {
            return quota;
        }
        let mut limits = |most: u64| {
            let mut limit = || self.dice.chance(60).then(|| self.dice.below(most));
            AddressLimits { ipv4: limit(), ipv6: limit() }
        };
        (quota.whole, quota.per_application) = (limits(6), limits(4));
        let own = limits(5);
        if own != AddressLimits::default() {
            quota.applications.insert(ControllerName::of(&self.controller()), own);
        }
        quota
    }

    pub(crate) fn put_in_realm(&mut self, kind: Kind, name: &str, expect: Expect) -> Action {
        let (realm, name) = ResourceName::new(name).unwrap().parts().unwrap();
        let mut metadata = self.metadata();
        let (key, values) = if kind == Kind::Node { ("zone", ["a", "b"]) } else { ("team", ["x", "y"]) };
        if self.dice.chance(70) {
            metadata.labels.insert(Text::given(key), Text::given(self.dice.pick(&values)));
        }
        if kind == Kind::Node {
            return Action::PutNode(Put { spec: NodeSpec { realm, name, metadata }, expect });
        }
        let default_pools = if self.dice.chance(25) { self.both_pools() } else { PoolPatterns::default() };
        Action::PutNamespace(Put {
            spec: NamespaceSpec { realm, name, default_pools, quota: self.quota(), metadata },
            expect,
        })
    }
}
