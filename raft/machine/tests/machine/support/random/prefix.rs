//! Requests for prefixes at random.

use ipam_api::name::Name;
use ipam_machine::Action;
use ipam_machine::command::{Delegate, PrefixLevel, PrefixSource};

use crate::support::random::Draw;

/// Longest first: small blocks leave room for others.
const V4: [u8; 8] = [32, 32, 31, 30, 30, 29, 28, 33];
const V6: [u8; 6] = [128, 128, 127, 126, 126, 125];

impl Draw<'_> {
    pub(crate) fn prefix(&mut self) -> Action {
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
        Action::Delegate(Delegate { from, realm, levels })
    }
}
