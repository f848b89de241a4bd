//! Lists of prefixes in the model: what is listed is there or waits, and nothing else of the realm is.

use ipam_api::Code;
use ipam_api::limits::EXPIRIES_PER_COMMAND_MAX;
use ipam_api::name::ObjectName;
use ipam_machine::command::{Delegate, PrefixLevel, PrefixSource, SetPrefixes};

use crate::model::naive::prefix_waiting::PrefixClaim;
use crate::model::naive::{Model, Reply};

impl Model {
    pub(crate) fn set_prefixes(&mut self, set: &SetPrefixes) -> Result<Reply, Code> {
        let mut draft = self.clone();
        let said = draft.set_exactly(set)?;
        *self = draft;
        Ok(said)
    }

    /// Delegates or waits; an owner that waits waits for what is listed now.
    fn delegate_listed(&mut self, mut listed: Delegate) -> Result<(), Code> {
        let own = self.prefix_claims.iter().position(|one| {
            let old = &one.request;
            (&old.from, &old.realm) == (&listed.from, &listed.realm)
                && matches!(&old.levels[..], [only] if only.owner == listed.levels[0].owner)
        });
        if let Some(own) = own {
            let (old, level) = (self.prefix_claims[own].request.levels[0].clone(), &mut listed.levels[0]);
            if level.length.is_none() {
                *level = PrefixLevel { ttl_ms: level.ttl_ms.or(old.ttl_ms), ..old.clone() };
            }
            if *level != old {
                // Refused as without a claim that waits, and then in its place.
                let (mut claim, before) = (self.prefix_claims.remove(own), self.prefix_claims.clone());
                self.delegate_or_wait(&listed)?;
                if let Some(new) = self.prefix_claims.get(before.len()).cloned() {
                    claim = PrefixClaim { request: listed, why: new.why, missing: new.missing, ..claim };
                    self.prefix_claims = before;
                    self.prefix_claims.insert(own, claim);
                }
                return Ok(());
            }
        }
        self.delegate_or_wait(&listed).map(drop)
    }

    fn set_exactly(&mut self, set: &SetPrefixes) -> Result<Reply, Code> {
        let SetPrefixes { from, realm, prefixes } = set;
        let (parent, pool) = match from {
            PrefixSource::Pool(name) => (None, self.pools.get(name).ok_or(Code::NotFound)?.spec.name.clone()),
            PrefixSource::Prefix(id) => {
                let block = self.blocks.iter().find(|one| one.id == id.get()).ok_or(Code::NotFound)?;
                (Some(block.number), block.pool.clone())
            }
        };
        if parent.is_some_and(|number| self.over(number)) {
            return Err(Code::NotFound);
        }
        for level in prefixes {
            let (from, realm) = (from.clone(), realm.clone());
            self.delegate_listed(Delegate { from, realm, levels: vec![level.clone()] })?;
        }
        let is_listed = |owner: &ObjectName| prefixes.iter().any(|level| level.owner == *owner);
        let here =
            self.blocks.iter().filter(|one| (one.parent, &one.pool, &one.realm) == (parent, &pool, realm));
        let mut ending = here.clone().any(|one| one.released);
        let unlisted = here.filter(|one| !one.released && !is_listed(&one.owner));
        let mut unlisted: Vec<_> = unlisted.map(|one| (one.owner.clone(), one.number, one.cidr)).collect();
        unlisted.sort();
        let is_unlisted = |one: &PrefixClaim| {
            let request = &one.request;
            (&request.from, &request.realm) == (from, realm) && !is_listed(&request.levels[0].owner)
        };
        let path = |one: &PrefixClaim| -> Vec<ObjectName> {
            one.request.levels.iter().map(|level| level.owner.clone()).collect()
        };
        let waits = self.prefix_claims.iter().filter(|one| is_unlisted(one));
        let mut withdrawn: Vec<_> = waits.map(path).collect();
        withdrawn.sort();
        self.prefix_claims.retain(|one| !is_unlisted(one));
        for (_, number, _) in &unlisted {
            self.blocks.iter_mut().find(|one| one.number == *number).unwrap().released = true;
        }
        let mut left = EXPIRIES_PER_COMMAND_MAX;
        for (_, number, _) in &unlisted {
            let is_present = |model: &Self| model.blocks.iter().any(|one| one.number == *number);
            while left > 0 && is_present(self) {
                left -= 1;
                self.clear_below(*number);
            }
            ending |= is_present(self);
        }
        self.serve_waiting();
        let mut said = Vec::new();
        for level in prefixes {
            let block = self.blocks.iter().find(|one| {
                (one.parent, &one.pool, &one.realm, &one.owner) == (parent, &pool, realm, &level.owner)
            });
            let claim = self.prefix_claims.iter().find(|one| {
                let request = &one.request;
                (&request.from, &request.realm) == (from, realm)
                    && matches!(&request.levels[..], [only] if only.owner == level.owner)
            });
            said.push(match (block.filter(|one| !self.over(one.number)), claim) {
                (Some(block), _) => Ok(block.cidr),
                (None, Some(claim)) => Err(claim.why),
                // The pool is gone with its last prefix.
                (None, None) => return Err(Code::NotFound),
            });
        }
        let withdrawn = withdrawn.into_iter().filter_map(|mut path| Some((path.pop()?, None)));
        let released = withdrawn.chain(unlisted.into_iter().map(|(owner, _, cidr)| (owner, Some(cidr))));
        Ok(Reply::PrefixesSet { prefixes: said, released: released.collect(), ending })
    }
}
