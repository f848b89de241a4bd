//! Which pools a request may take from, and in which order.
//!
//! The first rule that is present wins: the pools that the request names, in its order; else the pools of
//! the network `default` that are marked as default, by name. They are sorted: the more specific ones first, in
//! the order that they had where they are equally so. What remains of them is tried in this order.

use std::collections::BTreeSet;

use ipam_api::limits::POOLS_MATCHED_MAX;
use ipam_api::name::{InterfaceName, Name, NamePattern};
use ipam_api::{Code, Family};

use super::access::fits;
use super::command::{Context, Grant, InterfaceWish, Kind, Refusal, Text, Verdict};
use super::model::Pool;
use super::state::State;
use super::step::not_found;
use super::takers::{Anchor, Taker};

/// A pool that a request may take from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) id: u64,
    pub(super) pool: &'a Pool,
}

/// Why a candidate fell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fallen {
    pub(super) id: u64,
    pub(super) pool: Name,
    pub(super) code: Code,
    pub(super) why: &'static str,
}

/// Default pools that a refusal names when none of them is for the asker.
const EXAMPLES: usize = 8;

impl State {
    /// The candidates of each family that the interface gets an address of, the most specific first.
    pub(super) fn candidates(
        &self,
        wish: &InterfaceWish,
        taker: &Taker<'_>,
    ) -> Result<Vec<(Family, Vec<Candidate<'_>>)>, Refusal> {
        let named = !wish.ipv4_pools.is_empty() || !wish.ipv6_pools.is_empty();
        let mut all = Vec::new();
        for family in Family::BOTH {
            let candidates = if named {
                Some(self.named_pools(family, wish)?).filter(|pools| !pools.is_empty())
            } else {
                self.default_pools(family, taker)
            };
            let asked = wish.addresses.iter().find(|address| Family::of(**address) == family);
            if !wish.families.is_empty() && !wish.families.contains(&family) {
                continue;
            }
            match (candidates, asked) {
                (Some(mut candidates), _) => {
                    candidates.sort_by_cached_key(|candidate| candidate.pool.intention.takers.rank());
                    all.push((family, candidates));
                }
                (None, None) if wish.families.is_empty() => {}
                (None, None) => {
                    let rule = if named { "the request names none" } else { "none is marked as default" };
                    return Err(Refusal::new(
                        Code::NoPoolSelected,
                        format!("{} needs an {family} address, and of that family {rule}", wish.name),
                    )
                    .help("Name a pool of it in the request, or ask for the other family only."));
                }
                (None, Some(address)) => {
                    return Err(Refusal::new(
                        Code::AddressOutsidePools,
                        format!("{address} is asked for, and {} may take from no {family} pool", wish.name),
                    ));
                }
            }
        }
        if all.is_empty() {
            return Err(Refusal::new(
                Code::NoPoolSelected,
                format!("interface {} names no pool, and none is marked as default", wish.name),
            )
            .help("Name a pool in the request, or mark one: ipamctl pool set NAME --default."));
        }
        Ok(all)
    }

    fn named_pools(&self, family: Family, wish: &InterfaceWish) -> Result<Vec<Candidate<'_>>, Refusal> {
        let patterns = match family {
            Family::V4 => &wish.ipv4_pools,
            Family::V6 => &wish.ipv6_pools,
        };
        let mut all: Vec<Candidate<'_>> = Vec::new();
        for pattern in patterns {
            let found = match pattern.name() {
                Some(name) => vec![self.named_pool(family, &name, wish)?],
                None => self.matching_pools(family, pattern, wish)?,
            };
            // Where one is named twice, its first place counts.
            all.extend(found);
        }
        let mut seen = BTreeSet::new();
        all.retain(|candidate| seen.insert(candidate.id));
        Ok(all)
    }

    fn named_pool(
        &self,
        family: Family,
        name: &Name,
        wish: &InterfaceWish,
    ) -> Result<Candidate<'_>, Refusal> {
        let candidate = self.id_of(Kind::Pool, name).and_then(|id| self.candidate(id));
        let candidate = candidate.ok_or_else(|| not_found(Kind::Pool, name))?;
        if self.space(candidate.id).is_none_or(|space| space.family != family) {
            return Err(Refusal::new(
                Code::FamilyMismatch,
                format!("pool {name} is named as an {family} pool of {} and isn't one", wish.name),
            ));
        }
        Ok(candidate)
    }

    /// The pools of a family that a pattern stands for, by name.
    fn matching_pools(
        &self,
        family: Family,
        pattern: &NamePattern,
        wish: &InterfaceWish,
    ) -> Result<Vec<Candidate<'_>>, Refusal> {
        let found: Vec<Candidate<'_>> = self
            .names_beginning(Kind::Pool, pattern.prefix())
            .filter(|(name, id)| {
                pattern.fits(name) && self.space(*id).is_some_and(|space| space.family == family)
            })
            .filter_map(|(_, id)| self.candidate(id))
            .take(POOLS_MATCHED_MAX + 1)
            .collect();
        match found.len() {
            0 => Err(Refusal::new(
                Code::NotFound,
                format!("no {family} pool has a name like {pattern}, which {} names", wish.name),
            )),
            1..=POOLS_MATCHED_MAX => Ok(found),
            _ => Err(Refusal::new(
                Code::LimitExceeded,
                format!("{pattern} stands for more than {POOLS_MATCHED_MAX} {family} pools"),
            )
            .help("Name them more closely.")),
        }
    }

    /// The default pools that may be for somebody, by name; nothing if a family has none at all.
    fn default_pools(&self, family: Family, taker: &Taker<'_>) -> Option<Vec<Candidate<'_>>> {
        let network = self.id_of(Kind::Network, &Name::default_name())?;
        self.all_default_pools(network, family).next()?;
        let mut found: Vec<Candidate<'_>> = Vec::new();
        for anchor in taker.anchors() {
            let (from, to) = ((network, family, anchor.clone(), 0), (network, family, anchor, u64::MAX));
            let ids = self.index.default_pools.range(from..=to).map(|(.., id)| *id);
            found.extend(ids.filter_map(|id| self.candidate(id)));
        }
        if found.is_empty() {
            // Whose reasons are to be told.
            let ids: BTreeSet<u64> = self.all_default_pools(network, family).take(EXAMPLES).collect();
            found.extend(ids.into_iter().filter_map(|id| self.candidate(id)));
        }
        found.sort_by(|one, other| one.pool.intention.name.cmp(&other.pool.intention.name));
        found.dedup_by_key(|candidate| candidate.id);
        Some(found)
    }

    /// Default pools by what they are found by; one may come several times.
    fn all_default_pools(&self, network: u64, family: Family) -> impl Iterator<Item = u64> {
        let from = (network, family, Anchor::Anyone, 0);
        let all = self.index.default_pools.range(from..);
        all.take_while(move |(of, in_family, ..)| (*of, *in_family) == (network, family)).map(|(.., id)| *id)
    }

    fn candidate(&self, id: u64) -> Option<Candidate<'_>> {
        self.pools.get(id).map(|pool| Candidate { id, pool })
    }
}

/// Why a pool gives nothing after a restore.
const UNCONFIRMED: &str = "not confirmed since the restore";

/// Divides candidates into those that may give and those that fell, with the reason.
pub(super) fn filter<'a>(
    state: &State,
    candidates: Vec<Candidate<'a>>,
    taker: &Taker<'_>,
    grant: &Grant,
) -> (Vec<Candidate<'a>>, Vec<Fallen>) {
    let mut fallen = Vec::new();
    let mut fit = Vec::new();
    for candidate in candidates {
        let intention = &candidate.pool.intention;
        // First whether it is meant at all: pools that are for others make no difference, looked at or not.
        let verdict = if let Some(why) = intention.takers.why_not(taker) {
            Some((Code::NoPoolFits, why))
        } else if intention.terminating {
            Some((Code::Terminating, "terminating"))
        } else if intention.disabled {
            Some((Code::PoolDisabled, "disabled"))
        } else if !state.is_confirmed(candidate.id) {
            Some((Code::GenerationUnconfirmed, UNCONFIRMED))
        } else if !fits(grant, &intention.remarks) {
            Some((Code::Forbidden, "not labelled as the asker's token demands"))
        } else {
            None
        };
        match verdict {
            Some((code, why)) => {
                fallen.push(Fallen { id: candidate.id, pool: intention.name.clone(), code, why })
            }
            None => fit.push(candidate),
        }
    }
    (fit, fallen)
}

impl State {
    /// The refusal when every candidate fell.
    pub(super) fn nothing_fits(
        &self,
        interface: &InterfaceName,
        family: Family,
        fallen: &[Fallen],
    ) -> Refusal {
        let reasons: Vec<String> =
            fallen.iter().map(|pool| format!("{} is {}", pool.pool, pool.why)).collect();
        let meant: Vec<Code> =
            fallen.iter().map(|pool| pool.code).filter(|code| *code != Code::NoPoolFits).collect();
        let code = match meant.as_slice() {
            [only] => *only,
            // That alone ends by itself: it is worth asking again.
            several if several.contains(&Code::GenerationUnconfirmed) => Code::GenerationUnconfirmed,
            _ => Code::NoPoolFits,
        };
        Refusal::new(code, format!("{interface} {family}: {}", reasons.join("; "))).context(self.verdicts(
            interface,
            family,
            &[],
            fallen,
        ))
    }

    /// For programs: why each pool can't give, and when that may change by itself.
    pub(super) fn verdicts(
        &self,
        interface: &InterfaceName,
        family: Family,
        exhausted: &[Candidate<'_>],
        fallen: &[Fallen],
    ) -> Context {
        let counts = |id| self.space(id).map(|space| space.counts()).unwrap_or_default();
        let mut pools: Vec<Verdict> = exhausted
            .iter()
            .map(|candidate| Verdict {
                pool: candidate.pool.intention.name.clone(),
                why: Text::from("exhausted"),
                counts: counts(candidate.id),
            })
            .collect();
        pools.extend(fallen.iter().map(|pool| Verdict {
            pool: pool.pool.clone(),
            why: Text::from(pool.why),
            counts: counts(pool.id),
        }));
        let resting = exhausted.iter().filter_map(|candidate| {
            let oldest = self.space(candidate.id)?.cooling.get_min()?;
            Some(self.coolings.get(*oldest)?.until_ms.saturating_sub(self.log_time_ms()))
        });
        Context::Pools { interface: interface.clone(), family, next_free_ms: resting.min(), pools }
    }
}
