//! At random: applications with pools of their own, which people try to change, and which end.

use ipam_api::Family;
use ipam_api::address::{AddressRange, number};
use ipam_api::name::Name;
use ipam_api::resource::PoolSize;
use ipam_machine::Action;
use ipam_machine::command::{Allocate, AutomaticPool, AutomaticRules, EndController, Expect, PoolSpec, Put};
use ipnet::IpNet;

use crate::support::random::{Dice, Draw};

impl Draw<'_> {
    /// One that is there, if any is.
    pub(crate) fn automatic_pool(&mut self) -> Option<PoolSpec> {
        let all = self.state.pools.iter().map(|(_, row)| row).filter(|row| row.automatic.is_some());
        let all: Vec<&PoolSpec> = all.map(|row| &row.spec).collect();
        self.dice.pick_any(&all).cloned()
    }

    /// Mostly all of a subnet; at times a part of it, small pools only, or nothing at all.
    pub(crate) fn automatic_rules(&mut self, cidr: IpNet) -> Option<AutomaticRules> {
        let family = Family::of(cidr.addr());
        let (first, last) = (number(cidr.network()), number(cidr.broadcast()));
        let range = |dice: &mut Dice| {
            let from = first + u128::from(dice.below(u64::try_from(last - first + 1).unwrap().max(1)));
            let to = (from + u128::from(dice.below(6))).min(last);
            AddressRange::new(family.address(from), family.address(to)).unwrap()
        };
        match self.dice.below(20) {
            0 => None,
            1..=3 => {
                let ranges = (0..self.dice.below(3)).map(|_| range(&mut self.dice)).collect();
                let exclude = (0..self.dice.below(2)).map(|_| range(&mut self.dice)).collect();
                let max_size = self.dice.chance(50).then(|| 1 + u32::try_from(self.dice.below(4)).unwrap());
                Some(AutomaticRules { ranges, exclude, max_size })
            }
            _ => Some(AutomaticRules::default()),
        }
    }

    /// Mostly a request that could be granted.
    pub(crate) fn with_own_pools(&mut self, request: &mut Allocate) {
        let count = u32::try_from(self.dice.below(4)).unwrap();
        let size =
            if self.dice.chance(40) { PoolSize::Fixed(count.max(1)) } else { PoolSize::Flexible(count) };
        let replicas = u32::try_from(self.dice.below(4)).unwrap();
        request.automatic_pool = Some(AutomaticPool { size, replicas, reclaim: self.dice.chance(60) });
        if self.dice.chance(97) {
            request.stickiness.controller = Some(self.controller());
            request.stickiness.sticky = request.stickiness.sticky.filter(|_| self.dice.chance(20));
        }
        for interface in &mut request.interfaces {
            if self.dice.chance(20) {
                continue;
            }
            let subnets: &[&str] = match self.dice.below(8) {
                0 => &["six"],
                1 => &["free", "six"],
                2 => &["six", "lan"],
                3 => &["lan", "free"],
                _ => &["free"],
            };
            interface.subnets = subnets.iter().map(|name| Name::new(name).unwrap()).collect();
            interface.addresses.retain(|_| self.dice.chance(20));
        }
    }

    /// Mostly what people may change of one.
    pub(crate) fn put_automatic_pool(&mut self) -> Action {
        let mut spec = self.automatic_pool().expect("there is one");
        match self.dice.below(12) {
            0 => spec.ranges.truncate(1),
            1 => spec.exclude = spec.ranges.clone(),
            2 => spec.default = true,
            3 => spec.drains_to = Some(Name::new("a").unwrap()),
            4 => spec.terminating = !spec.terminating,
            5 => spec.disabled = !spec.disabled,
            6 => spec.selectors.node_names = vec!["n1".parse().unwrap()],
            7 => spec.reclaim = None,
            8 | 9 => spec.reclaim = spec.reclaim.map(|reclaim| !reclaim),
            _ => spec.cooling_ms = self.dice.below(2) * 30,
        }
        Action::PutPool(Put { spec, expect: Expect::Anything })
    }

    pub(crate) fn end(&mut self) -> Action {
        Action::EndController(EndController {
            realm: Name::new(self.dice.pick(&["default", "default", "prod"])).unwrap(),
            namespace: self.dice.pick(&["web", "web", "default"]).parse().unwrap(),
            controller: self.controller(),
        })
    }
}
