//! Prefix requests that wait, in the model.

use ipam_api::name::{Name, ObjectName};
use ipam_api::{Code, Family};
use ipam_machine::command::{Delegate, PrefixSource};
use ipam_machine::event::WaitReason;

use crate::model::naive::{Model, Reply};

/// Prefix request that waits. Its id is not foretold: 0 until the machine has said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrefixClaim {
    pub(crate) id: u64,
    /// Its place in line.
    pub(crate) place: u64,
    pub(crate) pool: Name,
    pub(crate) request: Delegate,
    pub(crate) why: WaitReason,
    pub(crate) missing: Option<Missing>,
}

/// Resource that a prefix claim lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Its pool is closed.
    Open,
    /// Block of a length in a prefix, by its number, or in the pool.
    Block { parent: Option<u64>, length: u8, realm: Name, owner: ObjectName },
    /// A prefix, by its number, must be cleared first.
    Cleared(u64),
}

/// First level of a request that doesn't exist.
enum Next {
    Missing(Missing),
    WithoutLength,
    Nothing,
}

impl Model {
    pub(crate) fn delegate_or_wait(&mut self, request: &Delegate) -> Result<Reply, Code> {
        let code = match self.delegate(request) {
            Err(code) => code,
            done => return done,
        };
        let Some(pool) = self.pool_of(&request.from) else { return Err(code) };
        let missing = self.missing_block(request, &pool, code);
        let why = why(missing.as_ref());
        let is_same_path = |claim: &&mut PrefixClaim| {
            let owners =
                |of: &Delegate| of.levels.iter().map(|level| level.owner.clone()).collect::<Vec<_>>();
            let (own, other) = (&claim.request, request);
            (&own.from, &own.realm, owners(own)) == (&other.from, &other.realm, owners(other))
        };
        if let Some(claim) = self.prefix_claims.iter_mut().find(is_same_path) {
            if claim.request != *request {
                return Err(Code::AlreadyExists);
            }
            (claim.why, claim.missing) = (why, missing);
            return Ok(Reply::Pending { repeated: true, why });
        }
        if missing.is_none() {
            return Err(code);
        }
        self.places += 1;
        let claim = PrefixClaim { id: 0, place: self.places, pool, request: request.clone(), why, missing };
        self.prefix_claims.push(claim);
        Ok(Reply::Pending { repeated: false, why })
    }

    fn pool_of(&self, from: &PrefixSource) -> Option<Name> {
        match from {
            PrefixSource::Pool(name) => self.pools.get(name).map(|pool| pool.spec.name.clone()),
            PrefixSource::Prefix(id) => {
                self.blocks.iter().find(|one| one.id == id.get()).map(|one| one.pool.clone())
            }
        }
    }

    /// Resource that a refused request lacks, if a free block would be enough.
    fn missing_block(&self, request: &Delegate, pool: &Name, code: Code) -> Option<Missing> {
        let Next::Missing(next) = self.next_missing(request) else { return None };
        match code {
            Code::Terminating | Code::PoolDisabled => Some(Missing::Open),
            Code::PoolExhausted | Code::InUse => Some(next).filter(|next| !self.could(next, pool)),
            _ => None,
        }
    }

    fn next_missing(&self, request: &Delegate) -> Next {
        let (mut parent, pool) = match &request.from {
            PrefixSource::Pool(name) => (None, name.clone()),
            PrefixSource::Prefix(id) => match self.blocks.iter().find(|one| one.id == id.get()) {
                Some(block) => (Some(block.number), block.pool.clone()),
                None => return Next::Nothing,
            },
        };
        for level in &request.levels {
            let known = self.blocks.iter().find(|one| {
                (one.parent, &one.pool, &one.realm, &one.owner)
                    == (parent, &pool, &request.realm, &level.owner)
            });
            match (known, level.length) {
                (Some(block), _) if self.over(block.number) => {
                    return Next::Missing(Missing::Cleared(block.number));
                }
                (Some(block), _) => parent = Some(block.number),
                (None, Some(length)) => {
                    let (realm, owner) = (request.realm.clone(), level.owner.clone());
                    return Next::Missing(Missing::Block { parent, length, realm, owner });
                }
                (None, None) => return Next::WithoutLength,
            }
        }
        Next::Nothing
    }

    /// True if the resource is available.
    fn could(&self, missing: &Missing, pool: &Name) -> bool {
        let Some(pool) = self.pools.get(pool) else { return false };
        let spec = &pool.spec;
        match missing {
            Missing::Open => !spec.terminating && !spec.disabled && spec.drains_to.is_none(),
            Missing::Cleared(_) => false,
            Missing::Block { parent, length, realm, owner }
                if self.own_address(*parent, (realm, owner), *length).is_some() =>
            {
                true
            }
            Missing::Block { parent, length, .. } => {
                let bits = Family::of(self.subnet_of(spec).cidr.addr()).bits();
                // A longer one than an address is refused once its turn comes.
                let length = (*length).min(bits);
                let is_whole = parent.is_some_and(|number| {
                    let block = self.block(number);
                    let divided = self.blocks.iter().any(|one| one.parent == *parent)
                        || self.cooling_below(number).next().is_some();
                    length == block.cidr.prefix_len() && !divided && !block.keep_edges
                });
                is_whole || self.lowest(spec, *parent, length).is_ok()
            }
        }
    }

    /// The oldest claim whose resource is available.
    pub(crate) fn first_prefix_claim(&self) -> Option<&PrefixClaim> {
        let could = |claim: &&PrefixClaim| {
            claim.missing.as_ref().is_some_and(|missing| self.could(missing, &claim.pool))
        };
        self.prefix_claims.iter().find(could)
    }

    /// Serves a claim, or records the resource that it lacks.
    pub(crate) fn serve_prefix_claim(&mut self, place: u64) {
        let mut draft = self.clone();
        draft.prefix_claims.retain(|one| one.place != place);
        let claim = self.prefix_claims.iter().find(|one| one.place == place).expect("it waits").clone();
        match draft.delegate(&claim.request) {
            Ok(_) => *self = draft,
            Err(code) => {
                let missing = self.missing_block(&claim.request, &claim.pool, code);
                let claim = self.prefix_claims.iter_mut().find(|one| one.place == place).expect("it waits");
                (claim.why, claim.missing) = (why(missing.as_ref()), missing);
            }
        }
    }

    /// Turns the claims of which `which` is true to what they need next.
    pub(crate) fn turn_prefix_claims(&mut self, which: impl Fn(&PrefixClaim, &Missing) -> bool) {
        let is_touched = |claim: &&PrefixClaim| claim.missing.as_ref().is_some_and(|of| which(claim, of));
        let touched: Vec<u64> = self.prefix_claims.iter().filter(is_touched).map(|one| one.place).collect();
        for place in touched {
            let request =
                self.prefix_claims.iter().find(|one| one.place == place).expect("it waits").request.clone();
            let next = self.next_missing(&request);
            let claim = self.prefix_claims.iter_mut().find(|one| one.place == place).expect("it waits");
            match next {
                Next::Missing(missing) => {
                    (claim.why, claim.missing) = (WaitReason::PoolExhausted, Some(missing));
                }
                Next::WithoutLength => {
                    (claim.why, claim.missing) = (WaitReason::AllocationFailed, None);
                }
                Next::Nothing => self.prefix_claims.retain(|one| one.place != place),
            }
        }
    }

    /// Ends the claims below a prefix that is gone, and turns those that waited for a block of it.
    pub(crate) fn forget_block(&mut self, id: u64, number: u64) {
        self.prefix_claims
            .retain(|one| !matches!(one.request.from, PrefixSource::Prefix(of) if of.get() == id));
        self.turn_prefix_claims(|_, missing| match missing {
            Missing::Block { parent, .. } => *parent == Some(number),
            Missing::Cleared(of) => *of == number,
            Missing::Open => false,
        });
    }
}

fn why(missing: Option<&Missing>) -> WaitReason {
    match missing {
        Some(Missing::Open) => WaitReason::PoolNotReady,
        Some(_) => WaitReason::PoolExhausted,
        None => WaitReason::AllocationFailed,
    }
}
