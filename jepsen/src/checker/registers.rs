//! Registers: the history of each address, and of each owner of one address, as a linearizable register.
//!
//! A register holds the id of an allocation or nothing, and ids only rise. Writes that no answer reports,
//! such as lost releases, expiry and reclaims, come from the journal with the bounds of their commit times.

use std::collections::BTreeMap;

use ipam_api::address::AddressRange;

use super::block::{block, is_single};
use super::intervals::Interval;
use super::journal::Lifetime;
use super::pairs::{Pairs, ended, figure, may_grant};
use super::wgl::{Found, Register, Timed, search};
use super::{Anomaly, Verdict};
use crate::history::{Function, Type};

/// Bound of configurations of one search.
const STATES_MAX: usize = 20_000;
/// Operations of the history before a violation that the anomaly shows.
const SHOWN: usize = 5;
const NETWORK: &str = "default";

/// Effect of an operation on a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// An allocation with this id is created or found.
    Take(u64),
    /// The allocation with this id ends.
    Free(u64),
    /// A read returns this id, or no allocation.
    See(Option<u64>),
}

/// Allocation of an address.
struct Holder;

impl Register for Holder {
    /// Present id, and the highest that was present.
    type State = (Option<u64>, u64);
    type Act = Act;

    fn step(&(present, highest): &Self::State, act: &Act) -> Option<Self::State> {
        match *act {
            Act::Take(id) if present == Some(id) => Some((present, highest)),
            Act::Take(id) => (present.is_none() && id > highest).then_some((Some(id), id)),
            Act::Free(id) => (present == Some(id)).then_some((None, highest)),
            Act::See(seen) => (seen == present).then_some((present, highest)),
        }
    }
}

/// Operations of one register, each with its call.
#[derive(Default)]
struct Operations {
    timed: Vec<Timed<Act>>,
    calls: Vec<Option<usize>>,
}

impl Operations {
    fn add(&mut self, begin_ns: u64, end_ns: u64, act: Act, call: Option<usize>) {
        self.timed.push(Timed { begin_ns, end_ns, is_optional: false, act });
        self.calls.push(call);
    }
}

/// Part of the history that no restore has undone: the operations that ended before the backup.
#[derive(Debug, Clone, Copy)]
struct Known {
    end_ns: u64,
    revision: u64,
}

impl Known {
    fn of(pairs: &Pairs<'_>) -> Self {
        match pairs.journal.restores.first() {
            None => Self { end_ns: u64::MAX, revision: u64::MAX },
            Some(restore) => {
                let end_ns = pairs.timeline.earliest_ns(restore.from.saturating_add(1));
                Self { end_ns, revision: restore.from }
            }
        }
    }

    /// Returns the call if it belongs to this part and its key is not repeated. The answer to a repeated call
    /// may be that of an earlier call.
    fn write<'p, 'a>(self, pairs: &'p Pairs<'a>, at: usize) -> Option<&'p Interval<'a>> {
        pairs.call(at).filter(|call| call.end_ns() <= self.end_ns && !pairs.is_repeated(call))
    }
}

/// Searches all registers.
pub(super) fn check_registers(pairs: &Pairs<'_>, verdict: &mut Verdict) {
    let (mut undecided, mut searched) = (0_u64, 0_u64);
    // Without a complete journal, writes are missing.
    if pairs.journal.is_complete {
        let known = Known::of(pairs);
        let addresses = by_address(pairs, known).into_iter();
        let addresses = addresses.map(|((network, address), ops)| (format!("{address} of {network}"), ops));
        let owners = by_owner(pairs, known).into_iter().map(|(owner, ops)| (owner.to_owned(), ops));
        for (name, operations) in addresses.chain(owners) {
            searched += 1;
            verdict.checked += operations.timed.len() as u64;
            match search::<Holder>((None, 0), &operations.timed, STATES_MAX) {
                Found::Linearizable => {}
                Found::Undecided => undecided += 1,
                Found::Violation(at) => verdict.add(anomaly(pairs, &name, &operations, at)),
            }
        }
    }
    figure(verdict, "registers searched", searched);
    figure(verdict, "registers undecided", undecided);
}

/// Operations of each address that a client named.
fn by_address<'a>(pairs: &Pairs<'a>, known: Known) -> BTreeMap<(&'a str, AddressRange), Operations> {
    let mut registers: BTreeMap<(&str, AddressRange), Operations> = BTreeMap::new();
    for ack in pairs.acks.iter().filter(|ack| ack.id != 0 && is_single(&ack.block)) {
        let Some(call) = known.write(pairs, ack.call) else { continue };
        let place = (ack.grant.network.as_str(), ack.block);
        let (begin_ns, end_ns) = (call.begin_ns(), call.end_ns());
        registers.entry(place).or_default().add(begin_ns, end_ns, Act::Take(ack.id), Some(ack.call));
    }
    for (at, call) in pairs.calls.iter().enumerate() {
        let (begin_ns, end_ns) = (call.begin_ns(), call.end_ns());
        if known.write(pairs, at).is_some() {
            for grant in ended(call) {
                let Some(address) = address_of(pairs, grant.id, &grant.address) else { continue };
                let register = registers.entry((&grant.network, address)).or_default();
                register.add(begin_ns, end_ns, Act::Free(grant.id), Some(at));
            }
        }
        let value = call.value();
        let is_read = call.begin.f == Function::Read && call.kind() == Type::Ok && !value.is_stale;
        let is_read = is_read && end_ns <= known.end_ns;
        if let Some(address) = call.begin.value.target.as_deref().filter(|_| is_read)
            && let Some(address) = block(address, false)
        {
            let seen = value.grants.first();
            let network = seen.map_or(NETWORK, |grant| grant.network.as_str());
            let register = registers.entry((network, address)).or_default();
            register.add(begin_ns, end_ns, Act::See(seen.map(|grant| grant.id)), Some(at));
        }
    }
    for lifetime in pairs.journal.lifetimes.values().filter(|lifetime| !lifetime.is_prefix) {
        if let Some(register) = registers.get_mut(&(lifetime.network, lifetime.block)) {
            add_untold(pairs, known, lifetime, register);
        }
    }
    registers
}

/// Address of a grant that a release names; none for a prefix.
fn address_of(pairs: &Pairs<'_>, id: u64, text: &str) -> Option<AddressRange> {
    match pairs.journal.lifetimes.get(&id) {
        Some(known) => (!known.is_prefix).then_some(known.block),
        None => block(text, true).filter(is_single),
    }
}

/// Adds the begin and the end of an allocation unless an answer reports them.
fn add_untold(pairs: &Pairs<'_>, known: Known, lifetime: &Lifetime<'_>, register: &mut Operations) {
    if lifetime.begun.revision > known.revision {
        return;
    }
    let bounds = |revision| (pairs.timeline.earliest_ns(revision), pairs.timeline.latest_ns(revision));
    let tells = |act: Act| register.timed.iter().any(|operation| operation.act == act);
    let (taken, freed) = (tells(Act::Take(lifetime.id)), tells(Act::Free(lifetime.id)));
    if !taken {
        let (begin_ns, end_ns) = bounds(lifetime.begun.revision);
        register.add(begin_ns, end_ns, Act::Take(lifetime.id), None);
    }
    if let Some(end) = lifetime.ended.filter(|end| !freed && end.revision <= known.revision) {
        let (begin_ns, end_ns) = bounds(end.revision);
        register.add(begin_ns, end_ns, Act::Free(lifetime.id), None);
    }
}

/// Operations of each endpoint that requests one address only, with the same arguments each time.
fn by_owner<'a>(pairs: &Pairs<'a>, known: Known) -> BTreeMap<&'a str, Operations> {
    let mut lifetimes: BTreeMap<&str, Vec<&Lifetime<'_>>> = BTreeMap::new();
    for lifetime in pairs.journal.lifetimes.values() {
        lifetimes.entry(&lifetime.holder).or_default().push(lifetime);
    }
    let mut registers = BTreeMap::new();
    for (owner, calls) in &pairs.by_endpoint {
        if !asks_for_one(pairs, calls) {
            continue;
        }
        let mut register = Operations::default();
        for at in calls {
            let Some(call) = known.write(pairs, *at) else { continue };
            let (begin_ns, end_ns) = (call.begin_ns(), call.end_ns());
            for ack in pairs.acks_of(*at).filter(|ack| ack.id != 0) {
                register.add(begin_ns, end_ns, Act::Take(ack.id), Some(*at));
            }
            for grant in ended(call) {
                register.add(begin_ns, end_ns, Act::Free(grant.id), Some(*at));
            }
        }
        for lifetime in lifetimes.get(owner).into_iter().flatten() {
            add_untold(pairs, known, lifetime, &mut register);
        }
        registers.insert(*owner, register);
    }
    registers
}

/// Returns true if all calls of an endpoint request the same single address.
fn asks_for_one(pairs: &Pairs<'_>, calls: &[usize]) -> bool {
    let mut arguments = None;
    for at in calls {
        let Some(call) = pairs.call(*at) else { return false };
        let begin = &call.begin.value;
        if matches!(call.begin.f, Function::Release | Function::Renew | Function::Read | Function::Farm) {
            continue;
        }
        let is_plain = matches!(call.begin.f, Function::Allocate | Function::Claim);
        let same = *arguments.get_or_insert((&begin.pools, &begin.target)) == (&begin.pools, &begin.target);
        let has_families = begin.detail.get("families").is_some();
        if !may_grant(call.begin.f) || !is_plain || !same || has_families || pairs.acks_of(*at).count() > 1 {
            return false;
        }
    }
    arguments.is_some_and(|(pools, _)| pools.len() == 1)
}

fn anomaly(pairs: &Pairs<'_>, name: &str, operations: &Operations, at: usize) -> Anomaly {
    let index = |call: &Option<usize>| call.and_then(|call| pairs.call(call)).map(|call| call.begin.index);
    let end_ns = operations.timed.get(at).map_or(u64::MAX, |operation| operation.end_ns);
    let mut before: Vec<(u64, u64)> = Vec::new();
    for (operation, call) in operations.timed.iter().zip(&operations.calls) {
        if let Some(index) = index(call).filter(|_| operation.begin_ns <= end_ns) {
            before.push((operation.end_ns, index));
        }
    }
    before.sort_unstable();
    let from = before.len().saturating_sub(SHOWN);
    let mut shown: Vec<u64> = before.split_off(from).into_iter().map(|(_, index)| index).collect();
    if let Some(own) = operations.calls.get(at).and_then(index).filter(|own| !shown.contains(own)) {
        shown.push(own);
    }
    let act = operations.timed.get(at).map(|operation| operation.act);
    let message = match act {
        Some(Act::Take(id)) => format!("{name} is not linearizable: grant {id} can't begin here"),
        Some(Act::Free(id)) => format!("{name} is not linearizable: grant {id} can't end here"),
        Some(Act::See(Some(id))) => format!("{name} is not linearizable: a read can't see grant {id} here"),
        _ => format!("{name} is not linearizable: a read can't see it free here"),
    };
    Anomaly { message, operations: shown, events: Vec::new() }
}
