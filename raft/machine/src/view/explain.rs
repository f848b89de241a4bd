//! What a request would get, and why: the same code that gives, on a draft, and what it looked at on its way.

use std::net::IpAddr;

use ipam_api::Family;
use ipam_api::address::{AddressRange, number};
use ipam_api::limits::{CANDIDATES_EXPLAINED_MAX, GAPS_LOOKED_THROUGH_MAX};
use ipam_api::name::{InterfaceName, Name};

use crate::allocate::candidates::Candidate;
use crate::allocate::carry_over::Comer;
use crate::allocate::course::Courses;
use crate::allocate::pick::{Judged, Judgement, Pick, Spoken, Taken, UNITS_PER_POOL_JUDGED, behind};
use crate::allocate::selectors::Taker;
use crate::allocate::unclaimed::Needs;
use crate::apply::work::{Search, Work};
use crate::command::{Allocate, Command, Outcome, Refusal};
use crate::dispatch::carry_out_looking;
use crate::state::State;
use crate::state::id::{PoolId, SubnetId};
use crate::state::row::Subnet;
use crate::value::At;
use crate::value::cause::{Rule, WhyNot};
use crate::value::counts::Counts;
use crate::view::skipped::Skipped;

/// What became of a request on a draft, and how it came to that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What the request would be answered.
    pub outcome: Outcome,
    /// For each interface and family what was chosen from; empty where nothing needs to be chosen, since the endpoint
    /// has it already.
    pub choices: Vec<Explained>,
}

/// What one interface chooses from, for one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The interface.
    pub interface: InterfaceName,
    /// The family.
    pub family: Family,
    /// What made pools candidates.
    pub rule: Rule,
    /// The pools, in the order in which they are tried; the first of very many.
    pub candidates: Vec<Considered>,
    /// True if there are more, of these or of those that are skipped.
    pub more: bool,
    /// Default pools that are not even tried, by reason.
    pub skipped: Vec<Skipped>,
    /// The pool and the address that it would be given.
    pub given: Option<(Name, IpAddr)>,
    /// Whether that is what its endpoint has already and takes along, whatever pools come first.
    pub stays: bool,
    /// Why it would be given none, if so.
    pub refused: Option<Refusal>,
}

/// One pool that came into question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Considered {
    /// Its name.
    pub pool: Name,
    /// What becomes of it.
    pub fate: Fate,
    /// How its addresses stand.
    pub counts: Counts,
    /// In how many milliseconds of log time its next address has rested.
    pub next_free_ms: Option<u64>,
    /// Addresses of its subnet that no pool has: the first such range.
    pub spare: Option<AddressRange>,
}

/// What becomes of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is not for the asker, or gives nothing now.
    Falls {
        /// Why.
        why: WhyNot,
    },
    /// It has nothing left.
    Exhausted,
    /// It hasn't the address that is asked for by value.
    Lacks,
    /// It would give this address, had none before it.
    Gives(IpAddr),
}

/// What [`crate::dispatch::apply`] would answer, and why, with no effect. Anything but an allocation has no choices.
#[must_use]
pub fn explain(state: &State, at: At, command: &Command) -> Explanation {
    let mut draft = state.clone();
    let (outcome, _, choices) =
        carry_out_looking(&mut draft, at, command, |step| match (&command.action, step.rights) {
            (crate::command::Action::Allocate(wish), Ok((grant, _))) => {
                // Apart from the work of the request itself, which must be refused when that alone is too much.
                let work = Work::default();
                let search = Search { grant, work: &work };
                match step.with_pools_of(wish, search) {
                    Ok(Some(prepared)) => prepared.choices(wish, search),
                    Ok(None) => step.state.choices(wish, search),
                    // There is nothing to choose from; the outcome says why.
                    Err(_) => Vec::new(),
                }
            }
            _ => Vec::new(),
        });
    // What it has already was not chosen now.
    let chosen = !matches!(
        outcome.as_ref().map(|applied| &applied.answer),
        Ok(crate::command::Answer::Allocated { repeated: true, .. })
    );
    // What exists already isn't chosen at all.
    let chosen =
        chosen && !matches!(&command.action, crate::command::Action::Allocate(wish) if wish.manner.adopt);
    Explanation { outcome, choices: if chosen { choices } else { Vec::new() } }
}

impl State {
    /// What each interface would choose from. Where one family is refused the others are looked at all the same.
    fn choices(&self, wish: &Allocate, search: Search<'_>) -> Vec<Explained> {
        let mut all = Vec::new();
        let mut picked: Vec<Pick> = Vec::new();
        let row = self.incarnation_for(wish).and_then(|id| self.endpoints.get(id));
        let comer = Comer { wish, row };
        let asked_by_value = self.asked_by_value(wish, search);
        let mut courses = Courses::default();
        for (place, interface) in wish.interfaces.iter().enumerate() {
            // What it has, or finds waiting, is not chosen now.
            let Needs::Addresses(portable) = self.needs(&comer, interface, search.work) else { continue };
            let taker = Taker::of(self, wish, interface);
            // What can't even be looked for has no candidates, and ends it; the outcome says why.
            let all_courses = self.courses_for(interface, &taker, &portable, search, &mut courses);
            let Ok(mut all_courses) = all_courses else { break };
            let mut taken = Vec::new();
            let behind = behind(&asked_by_value, place);
            let spoken = Spoken { picked: &picked, behind: &behind };
            for course in &mut all_courses {
                let (family, rule) = (course.family, course.rule);
                let asked = interface.asked(family);
                let mut judged: Vec<Judged<'_>> =
                    course.judged_before().take(CANDIDATES_EXPLAINED_MAX + 1).collect();
                let next = course.peek(CANDIDATES_EXPLAINED_MAX + 1 - judged.len());
                let next = next.take_while(|_| search.work.take(UNITS_PER_POOL_JUDGED));
                judged.extend(next.map(|candidate| self.judged(candidate, asked, &taker, spoken, search)));
                let more = judged.len() > CANDIDATES_EXPLAINED_MAX;
                judged.truncate(CANDIDATES_EXPLAINED_MAX);
                let (skipped, more_skipped) = match (rule, asked) {
                    (Rule::Default, None) => self.skipped(family, &taker, &judged, search),
                    _ => (Vec::new(), false),
                };
                let pick = self.pick_from((interface, &taker), course, &portable, spoken, search);
                if search.work.is_exceeded() {
                    // What was cut short explains nothing; the outcome says why.
                    return all;
                }
                let stays = matches!(pick, Ok(Taken::Along(_)));
                let (given, refused) = match pick {
                    Ok(Taken::Along(id)) => {
                        let row = self.allocations.get(id);
                        (row.map(|row| (self.name_of_pool(row.pool), row.address)), None)
                    }
                    Ok(Taken::New(pick)) => {
                        let given = (self.name_of_pool(pick.pool), pick.address);
                        taken.push(pick);
                        (Some(given), None)
                    }
                    Err(refusal) => (None, Some(refusal)),
                };
                all.push(Explained {
                    interface: interface.name.clone(),
                    family,
                    rule,
                    candidates: judged.iter().map(|one| self.considered(one)).collect(),
                    more: more || more_skipped,
                    skipped,
                    given,
                    stays,
                    refused,
                });
            }
            picked.extend(taken);
            if portable.is_empty() {
                courses.keep(interface, taker, all_courses);
            }
        }
        all
    }

    fn considered(&self, judged: &Judged<'_>) -> Considered {
        let Candidate { id, pool } = judged.candidate;
        let fate = match &judged.judgement {
            Judgement::Falls(why) => Fate::Falls { why: *why },
            Judgement::Exhausted { .. } => Fate::Exhausted,
            Judgement::Lacks => Fate::Lacks,
            Judgement::Gives(address) => Fate::Gives(*address),
        };
        // Nobody adds a range to what follows its application.
        let may_grow = matches!(fate, Fate::Exhausted) && pool.automatic.is_none();
        let spare = may_grow.then(|| self.spare_range(pool.subnet)).flatten();
        Considered {
            pool: pool.intention.name.clone(),
            fate,
            counts: self.space(id).map(|space| space.counts()).unwrap_or_default(),
            next_free_ms: self.space(id).and_then(|space| self.next_free_ms(space)),
            spare,
        }
    }

    pub(crate) fn name_of_pool(&self, id: PoolId) -> Name {
        self.pools.get(id).map_or_else(Name::default_name, |pool| pool.intention.name.clone())
    }

    /// The first range of a subnet that no pool has and that hosts may have, if one is near its beginning.
    fn spare_range(&self, subnet: SubnetId) -> Option<AddressRange> {
        let row = self.subnets.get(subnet)?;
        let cidr = AddressRange::of_cidr(row.intention.cidr);
        let family = cidr.family();
        let (from, until) = ((row.network, family, cidr.first()), (row.network, family, cidr.last()));
        let owned = self.index.owners.range(from..=until).map(|((_, _, first), (last, _))| (*first, *last));
        let mut next = cidr.first();
        for (first, last) in owned.take(GAPS_LOOKED_THROUGH_MAX) {
            if next < first
                && let Some(range) = self.for_hosts(row, next, first - 1)
            {
                return Some(range);
            }
            next = last.checked_add(1)?;
        }
        // Where so many were looked at there may be more.
        let (owner, to) = self.owner_from(row.network, family, next);
        let is_spare = owner.is_none() && next <= cidr.last();
        is_spare.then(|| self.for_hosts(row, next, to.min(cidr.last()))).flatten()
    }

    /// The part of a range that hosts may have: without edges, and up to the first gateway if one lies within.
    fn for_hosts(&self, subnet: &Subnet, mut first: u128, mut last: u128) -> Option<AddressRange> {
        let (network, family) = (subnet.network, Family::of(subnet.intention.cidr.addr()));
        let is_special = |at: u128| {
            State::is_special(&subnet.intention, family.address(at)).is_some()
                || self.gateway_stretch(network, family, at).0
        };
        while first < last && is_special(first) {
            first += 1;
        }
        while first < last && is_special(last) {
            last -= 1;
        }
        if is_special(first) {
            return None;
        }
        if let Some(gateway) = subnet.intention.gateway.map(number)
            && first < gateway
            && gateway <= last
        {
            last = gateway - 1;
        }
        last = last.min(self.gateway_stretch(network, family, first).1);
        AddressRange::new(family.address(first), family.address(last)).ok()
    }
}
