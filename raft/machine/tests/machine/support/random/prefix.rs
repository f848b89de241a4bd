//! Requests for prefixes at random.

use ipam_api::name::{Name, ObjectName};
use ipam_machine::Action;
use ipam_machine::command::{
    Delegate, Expect, PoolSpec, PrefixLevel, PrefixSource, Put, SetPrefixes, SubnetSpec,
};
use ipam_machine::id::ParentId;
use ipam_machine::model::PrefixOwner;

use crate::support::random::Draw;

/// Longest first: small blocks leave room for others.
const V4: [u8; 8] = [32, 32, 31, 30, 30, 29, 28, 33];
const V6: [u8; 6] = [128, 128, 127, 126, 126, 125];

impl Draw<'_> {
    /// Only prefixes, of one pool whose addresses cool. Among all commands they rarely get this far.
    pub(crate) fn prefixes_only(&mut self) -> Action {
        match (self.index, self.dice.below(100)) {
            (0, _) => Action::PutSubnet(Put {
                spec: SubnetSpec {
                    name: Name::new("lan").unwrap(),
                    network: Name::default_name(),
                    cidr: "10.0.0.0/28".parse().unwrap(),
                    ..SubnetSpec::default()
                },
                expect: Expect::Anything,
            }),
            (1, _) | (_, 0..=3) => self.cooling_pool(),
            (_, 4..=9) => Action::Expire,
            (_, 10..=31) => self.release_single(),
            (_, 32..=39) => self.set_prefixes(),
            (_, 40..=79) => self.divide(),
            _ => self.prefix(),
        }
    }

    fn cooling_pool(&mut self) -> Action {
        let spec = PoolSpec {
            name: Name::new("a").unwrap(),
            subnet: Name::new("lan").unwrap(),
            cooling_ms: [0, 30, 200, 200][self.index_below(4)],
            strict_cooling: self.dice.chance(50),
            cooling_reserve: self.dice.below(3),
            allow_edges: true,
            disabled: self.dice.chance(10),
            ..PoolSpec::default()
        };
        Action::PutPool(Put { spec, expect: Expect::Anything })
    }

    /// Releases a prefix of one address, if there is one.
    fn release_single(&mut self) -> Action {
        let all = self.state.prefixes.iter();
        let singles = all.filter(|(_, row)| row.cidr.prefix_len() == row.cidr.max_prefix_len());
        let singles: Vec<u64> = singles.map(|(id, _)| id.get()).collect();
        match singles.len() {
            0 => self.prefix(),
            count => Action::ReleasePrefix { id: singles[self.index_below(count)].into() },
        }
    }

    /// Delegates from a prefix that is larger than one address, if there is one.
    fn divide(&mut self) -> Action {
        let all = self.state.prefixes.iter();
        let larger = all.filter(|(_, row)| row.cidr.prefix_len() < row.cidr.max_prefix_len());
        let larger: Vec<u64> = larger.map(|(id, _)| id.get()).collect();
        if larger.is_empty() {
            return self.prefix();
        }
        let from = PrefixSource::Prefix(larger[self.index_below(larger.len())].into());
        let levels = vec![PrefixLevel {
            owner: self.dice.pick(&["a", "b", "c", "d", "e", "f"]).parse().unwrap(),
            length: Some([32, 32, 32, 31, 30][self.index_below(5)]),
            keep_edges: false,
            ttl_ms: self.dice.chance(40).then(|| 1_000 + self.dice.below(3) * 200),
        }];
        let request = Delegate { from, realm: Name::default_name(), levels };
        if self.dice.chance(40) { Action::DelegateOrWait(request) } else { Action::Delegate(request) }
    }

    /// A list of some owners of a pool or a prefix, mostly with the lengths that they have.
    fn set_prefixes(&mut self) -> Action {
        let prefixes = self
            .state
            .prefixes
            .iter()
            .map(|(id, row)| (PrefixSource::Prefix(id), ParentId::from(id), row.owner.realm.clone()));
        let pools =
            self.state.pools.iter().map(|(id, row)| {
                (PrefixSource::Pool(row.spec.name.clone()), id.into(), Name::default_name())
            });
        let sources: Vec<_> = pools.chain(prefixes).collect();
        if sources.is_empty() {
            return self.prefix();
        }
        let (from, parent, realm) = sources[self.index_below(sources.len())].clone();
        let mut listed = Vec::new();
        for owner in ["a", "b", "c", "d", "e", "f"].map(|owner| owner.parse::<ObjectName>().unwrap()) {
            if self.dice.chance(55) {
                continue;
            }
            let known =
                self.state.prefix_of(parent, &PrefixOwner { realm: realm.clone(), name: owner.clone() });
            let known = known.map(|(_, row)| (row.cidr.prefix_len(), row.keep_edges));
            let drawn = ([32, 32, 32, 31, 30, 29][self.index_below(6)], self.dice.chance(10));
            let (length, keep_edges) = known.filter(|_| self.dice.chance(97)).unwrap_or(drawn);
            listed.push(PrefixLevel {
                owner,
                length: self.dice.chance(97).then_some(length),
                keep_edges,
                ttl_ms: self.dice.chance(30).then(|| 1_000 + self.dice.below(3) * 200),
            });
        }
        Action::SetPrefixes(SetPrefixes { from, realm, prefixes: listed })
    }

    pub(crate) fn prefix(&mut self) -> Action {
        if self.dice.chance(8) {
            return self.set_prefixes();
        }
        let claims: Vec<u64> = self.state.prefix_claims.iter().map(|(id, _)| id.get()).collect();
        if !claims.is_empty() && self.dice.chance(8) {
            return Action::ReleasePrefix { id: claims[self.index_below(claims.len())].into() };
        }
        let ids: Vec<u64> = self.state.prefixes.iter().map(|(id, _)| id.get()).collect();
        let any = (!ids.is_empty()).then(|| ids[self.index_below(ids.len())]);
        match any {
            Some(id) if self.dice.chance(20) => Action::ReleasePrefix { id: id.into() },
            None if self.dice.chance(3) => Action::ReleasePrefix { id: (1 << 40).into() },
            Some(id) if self.dice.chance(35) => self.delegate(PrefixSource::Prefix(id.into()), Some(id)),
            _ => {
                let pools = self.state.pools.iter().map(|(id, row)| (row.spec.name.clone(), id.get()));
                let pools: Vec<(Name, u64)> = pools.collect();
                if pools.is_empty() || self.dice.chance(1) {
                    return self.delegate(PrefixSource::Pool(Name::new("nowhere").unwrap()), None);
                }
                let (name, id) = pools[self.index_below(pools.len())].clone();
                self.delegate(PrefixSource::Pool(name), Some(id))
            }
        }
    }

    fn index_below(&mut self, length: usize) -> usize {
        usize::try_from(self.dice.below(length as u64)).unwrap()
    }

    fn delegate(&mut self, from: PrefixSource, of: Option<u64>) -> Action {
        let pool = of.map(|id| self.state.prefixes.get(id.into()).map_or(id, |row| row.pool.get()));
        let space = pool.and_then(|id| self.state.space(id.into()));
        let lengths: &[u8] = match space.map(|space| space.family) {
            Some(ipam_api::Family::V6) => &V6,
            _ => &V4,
        };
        let mut levels = Vec::new();
        let mut shortest = 0;
        for _ in 0..[1, 1, 1, 2, 2, 3][self.index_below(6)] {
            let length = lengths[self.index_below(lengths.len())];
            if length <= shortest && self.dice.chance(95) {
                continue;
            }
            shortest = length;
            levels.push(PrefixLevel {
                owner: self.dice.pick(&["a", "b", "c"]).parse().unwrap(),
                length: self.dice.chance(90).then_some(length),
                keep_edges: self.dice.chance(20),
                ttl_ms: self.dice.chance(50).then(|| 1_000 + self.dice.below(3) * 200),
            });
        }
        let realm = self.dice.pick(&["default", "default", "default", "prod"]).parse().unwrap();
        let request = Delegate { from, realm, levels };
        if self.dice.chance(40) { Action::DelegateOrWait(request) } else { Action::Delegate(request) }
    }
}
