//! Which pools a request may take from, and in which order.
//!
//! The first rule that is present wins: the pools that the request names, in its order; else the pools of
//! the network `default` that are marked as default, by name.

use ipam_api::name::{InterfaceName, Name};
use ipam_api::{Code, Family};

use super::access::fits;
use super::command::{Context, Grant, InterfaceWish, Kind, Refusal, Text, Verdict};
use super::model::Pool;
use super::state::State;
use super::step::not_found;

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

impl State {
    /// The candidates of each family that the interface gets an address of.
    pub(super) fn candidates(
        &self,
        wish: &InterfaceWish,
    ) -> Result<Vec<(Family, Vec<Candidate<'_>>)>, Refusal> {
        let named = !wish.ipv4_pools.is_empty() || !wish.ipv6_pools.is_empty();
        let mut all = Vec::new();
        for family in Family::BOTH {
            let candidates = if named { self.named_pools(family, wish)? } else { self.default_pools(family) };
            let asked = wish.addresses.iter().find(|address| Family::of(**address) == family);
            match (candidates.is_empty(), asked) {
                (false, _) => all.push((family, candidates)),
                (true, None) => {}
                (true, Some(address)) => {
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
        let names = match family {
            Family::V4 => &wish.ipv4_pools,
            Family::V6 => &wish.ipv6_pools,
        };
        names
            .iter()
            .map(|name| {
                let candidate = self.id_of(Kind::Pool, name).and_then(|id| self.candidate(id));
                let candidate = candidate.ok_or_else(|| not_found(Kind::Pool, name))?;
                if self.space(candidate.id).is_none_or(|space| space.family != family) {
                    return Err(Refusal::new(
                        Code::FamilyMismatch,
                        format!("pool {name} is named as an {family} pool of {} and isn't one", wish.name),
                    ));
                }
                Ok(candidate)
            })
            .collect()
    }

    fn default_pools(&self, family: Family) -> Vec<Candidate<'_>> {
        let Some(network) = self.id_of(Kind::Network, &Name::default_name()) else { return Vec::new() };
        self.index
            .default_pools
            .range((network, family, Name::lowest(), 0)..)
            .take_while(|(of, in_family, ..)| (*of, *in_family) == (network, family))
            .filter_map(|(.., id)| self.candidate(*id))
            .collect()
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
    grant: &Grant,
) -> (Vec<Candidate<'a>>, Vec<Fallen>) {
    let mut fallen = Vec::new();
    let mut fit = Vec::new();
    for candidate in candidates {
        let intention = &candidate.pool.intention;
        let verdict = if intention.terminating {
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
        let waits = fallen.iter().any(|pool| pool.code == Code::GenerationUnconfirmed);
        let code = match fallen {
            [only] => only.code,
            // That alone ends by itself: it is worth asking again.
            _ if waits => Code::GenerationUnconfirmed,
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
