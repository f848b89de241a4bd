//! Explanations: the outcome of a request with its choices, computed on a draft by the allocating code.

use crate::allocate::candidates::Candidate;
use crate::allocate::choosing::Choosing;
use crate::allocate::course::Courses;
use crate::allocate::pick::{Claimed, Evaluated, Evaluation, Pick, Taken, UNITS_PER_POOL_EVALUATED};
use crate::allocate::preallocated::Needs;
use crate::apply::step::Step;
use crate::apply::work::{Search, Work};
use crate::command::{Action, Allocate, Command, OnLinks, Outcome, Refusal};
use crate::dispatch::carry_out_looking;
use crate::state::State;
use crate::state::id::SubnetId;
use crate::state::row::Subnet;
use crate::value::At;
use crate::value::cause::{RejectReason, Rule};
use crate::value::counts::Counts;
use crate::view::skipped::Skipped;
use ipam_api::Family;
use ipam_api::address::{AddressRange, number};
use ipam_api::limits::{CANDIDATES_EXPLAINED_MAX, GAPS_LOOKED_THROUGH_MAX};
use ipam_api::name::{InterfaceName, Name};
use std::net::IpAddr;

/// Outcome of a request on a draft, with the choices that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Answer that the request would get.
    pub outcome: Outcome,
    /// Candidates of each interface and family; empty where the endpoint already has an address.
    pub choices: Vec<Explained>,
}

/// Choice of one interface, for one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    pub interface: InterfaceName,
    pub family: Family,
    /// Rule that made pools candidates.
    pub rule: Rule,
    /// The pools, in the order in which they are tried; the first of very many.
    pub candidates: Vec<Considered>,
    /// True if there are more candidates or skipped pools.
    pub more: bool,
    /// Default pools that are not even tried, by reason.
    pub skipped: Vec<Skipped>,
    /// Pool and address that the interface would get.
    pub given: Option<(Name, IpAddr)>,
    /// True if the endpoint already holds the address and reuses it, in any order of pools.
    pub kept: bool,
    /// Refusal, if the interface would get no address.
    pub refused: Option<Refusal>,
}

/// Candidate pool with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Considered {
    pub pool: Name,
    pub outcome: CandidateOutcome,
    /// Counts of its addresses.
    pub counts: Counts,
    /// Milliseconds of log time until its next cooling ends.
    pub next_free_ms: Option<u64>,
    /// First range of the subnet's addresses that no pool owns.
    pub unassigned: Option<AddressRange>,
}

/// Outcome of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateOutcome {
    /// Rejected for the caller, or closed now.
    Rejected {
        /// Reason.
        why: RejectReason,
    },
    /// The pool has no address left.
    Exhausted,
    /// The pool doesn't have the requested address.
    Unavailable,
    /// Address that the pool would allocate if no pool came before it.
    Gives(IpAddr),
}

/// Returns the answer of [`crate::dispatch::apply`] with its choices. Only an allocation has choices.
#[must_use]
pub fn explain(state: &State, at: At, command: &Command) -> Explanation {
    let mut draft = state.clone();
    let (outcome, _, choices) =
        carry_out_looking(&mut draft, at, command, |step| match (&command.action, step.rights) {
            (Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)), Ok((grant, _))) => {
                // The choices have a work budget of their own: the request itself is refused only for its own
                // work.
                let work = Work::default();
                let search = Search { grant, work: &work };
                if step.state.check_machine(request, search).is_err() {
                    return Vec::new();
                }
                match step.with_machine_of(request) {
                    Some(draft) if draft.has_given(request, search) => Vec::new(),
                    Some(mut draft) => prepared_choices(&step.on(&mut draft), request, search),
                    None => prepared_choices(step, request, search),
                }
            }
            _ => Vec::new(),
        });
    // Existing allocations weren't chosen now.
    let chosen = !matches!(
        outcome.as_ref().map(|applied| &applied.answer),
        Ok(crate::command::Answer::Allocated { repeated: true, .. })
    );
    // What exists already isn't chosen at all.
    let adopts = match &command.action {
        Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) => request.options.adopt,
        _ => false,
    };
    let chosen = chosen && !adopts;
    Explanation { outcome, choices: if chosen { choices } else { Vec::new() } }
}

/// Choices among the present pools and those that the request makes.
fn prepared_choices(step: &Step<'_>, request: &Allocate, search: Search<'_>) -> Vec<Explained> {
    match step.with_pools_of(request, search) {
        Ok(Some(prepared)) => choices(&prepared, request, search),
        Ok(None) => choices(step.state, request, search),
        // Without choices the outcome has the reason.
        Err(_) => Vec::new(),
    }
}

/// Returns the choices of each interface. A refusal of one family doesn't stop the others.
fn choices(state: &State, request: &Allocate, search: Search<'_>) -> Vec<Explained> {
    let mut all = Vec::new();
    let mut picked: Vec<Pick> = Vec::new();
    let choosing = Choosing::of(state, request, state.incarnation_for(request, search.work), search);
    let asked_by_value = choosing.asked_by_value();
    let mut courses = Courses::default();
    for (place, interface) in request.interfaces.iter().enumerate() {
        // Existing and preallocated allocations aren't chosen now.
        let Needs::Addresses(portable) = choosing.needs(interface) else { continue };
        let requester = choosing.requester(interface);
        // Without candidates the explanation ends; the outcome has the reason.
        let Ok(mut all_courses) = choosing.courses_for(&requester, &portable, &mut courses) else { break };
        let mut taken = Vec::new();
        let claimed = Claimed { picked: &picked, asked: &asked_by_value, place };
        for course in &mut all_courses {
            let (family, rule) = (course.family, course.rule);
            let asked = interface.asked(family);
            let mut evaluated: Vec<Evaluated<'_>> =
                course.evaluated_before().take(CANDIDATES_EXPLAINED_MAX + 1).collect();
            let next = course.peek(CANDIDATES_EXPLAINED_MAX + 1 - evaluated.len());
            let next = next.take_while(|_| search.work.take(UNITS_PER_POOL_EVALUATED));
            evaluated.extend(next.map(|candidate| choosing.evaluated(candidate, asked, &requester, claimed)));
            let more = evaluated.len() > CANDIDATES_EXPLAINED_MAX;
            evaluated.truncate(CANDIDATES_EXPLAINED_MAX);
            let (skipped, more_skipped) = match (rule, asked) {
                (Rule::Default, None) => choosing.skipped(family, &requester, &evaluated),
                _ => (Vec::new(), false),
            };
            let pick = choosing.pick_from(&requester, course, &portable, claimed);
            if search.work.is_exceeded() {
                // An aborted search explains nothing; the outcome has the reason.
                return all;
            }
            let kept = matches!(pick, Ok(Taken::Reused(_)));
            let (given, refused) = match pick {
                Ok(Taken::Reused(id)) => {
                    let row = state.allocations.get(id);
                    (row.map(|row| (state.name_of_pool(row.pool), row.address)), None)
                }
                Ok(Taken::New(pick)) => {
                    let given = (state.name_of_pool(pick.pool), pick.address);
                    taken.push(pick);
                    (Some(given), None)
                }
                Err(refusal) => (None, Some(refusal)),
            };
            all.push(Explained {
                interface: interface.name.clone(),
                family,
                rule,
                candidates: evaluated.iter().map(|one| considered(state, one)).collect(),
                more: more || more_skipped,
                skipped,
                given,
                kept,
                refused,
            });
        }
        picked.extend(taken);
        if portable.is_empty() {
            courses.keep(requester, all_courses);
        }
    }
    all
}

fn considered(state: &State, evaluated: &Evaluated<'_>) -> Considered {
    let (Candidate { id, pool }, evaluation) = evaluated;
    let outcome = match evaluation {
        Evaluation::Rejected(why) => CandidateOutcome::Rejected { why: *why },
        Evaluation::Exhausted { .. } => CandidateOutcome::Exhausted,
        Evaluation::Unavailable => CandidateOutcome::Unavailable,
        Evaluation::Gives(address) => CandidateOutcome::Gives(*address),
    };
    // No operator adds a range to a pool that follows its application.
    let may_grow = matches!(outcome, CandidateOutcome::Exhausted) && pool.automatic.is_none();
    let unassigned = may_grow.then(|| state.unassigned_range(pool.subnet)).flatten();
    Considered {
        pool: pool.spec.name.clone(),
        outcome,
        counts: state.space_of(*id).counts(),
        next_free_ms: state.space(*id).and_then(|space| state.next_free_ms(space)),
        unassigned,
    }
}

impl State {
    /// The first range of a subnet that no pool has and that hosts may have, if one is near its beginning.
    fn unassigned_range(&self, subnet: SubnetId) -> Option<AddressRange> {
        let row = self.subnets.named(subnet);
        let cidr = AddressRange::of_cidr(row.spec.cidr);
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
        // After this many examined entries there may be more.
        let (owner, to) = self.owner_from(row.network, family, next);
        let is_unassigned = owner.is_none() && next <= cidr.last();
        is_unassigned.then(|| self.for_hosts(row, next, to.min(cidr.last()))).flatten()
    }

    /// Part of a range that hosts may have: without edge addresses, and up to the first gateway in it.
    fn for_hosts(&self, subnet: &Subnet, mut first: u128, mut last: u128) -> Option<AddressRange> {
        let (network, family) = (subnet.network, Family::of(subnet.spec.cidr.addr()));
        let is_special = |at: u128| {
            State::is_special(&subnet.spec, family.address(at)).is_some()
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
        if let Some(gateway) = subnet.spec.gateway.map(number)
            && first < gateway
            && gateway <= last
        {
            last = gateway - 1;
        }
        last = last.min(self.gateway_stretch(network, family, first).1);
        AddressRange::new(family.address(first), family.address(last)).ok()
    }
}
