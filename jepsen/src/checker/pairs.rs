//! Pairs: operations of a run with an index by grant, endpoint and key, and their outcomes by the journal.
//!
//! Checkers I1 to I9 share this index. A grant that an answer names without an id, as CNI results do, gets
//! its id from the journal by address and time.

use std::collections::BTreeMap;

use ipam_api::address::AddressRange;

use super::block::block;
use super::intervals::{FaultInterval, Interval, faults, operations};
use super::journal::Journal;
use super::timeline::Timeline;
use super::{Record, Verdict};
use crate::history::{Function, Grant, Type};

/// Member of `value.detail` of a transaction: endpoints to which its steps allocate.
const ALLOCATES: &str = "allocates";

/// Prepared run.
pub struct Pairs<'a> {
    /// The run.
    pub record: &'a Record,
    /// Operations of clients in the order of their begins.
    pub calls: Vec<Interval<'a>>,
    /// Faults in the order of their begins.
    pub faults: Vec<FaultInterval<'a>>,
    /// Journal by grant.
    pub journal: Journal<'a>,
    /// Bounds of commit times.
    pub timeline: Timeline,
    /// Acknowledged grants in the order of their calls.
    pub acks: Vec<Ack<'a>>,
    /// Calls by id of a grant that they name in any role.
    pub by_id: BTreeMap<u64, Vec<usize>>,
    /// Calls by endpoint, in order.
    pub by_endpoint: BTreeMap<&'a str, Vec<usize>>,
    /// Calls by key, in order.
    pub by_key: BTreeMap<&'a str, Vec<usize>>,
    /// Ids of the journal by network and address, if there are grants without an id.
    places: BTreeMap<(&'a str, AddressRange), Vec<u64>>,
}

/// Grant that an answer acknowledged.
#[derive(Debug, Clone, Copy)]
pub struct Ack<'a> {
    /// Index of the call.
    pub call: usize,
    /// Id; 0 if neither the answer nor the journal states one.
    pub id: u64,
    /// Grant as stated in the answer.
    pub grant: &'a Grant,
    /// Addresses of the grant.
    pub block: AddressRange,
    /// Holder: the grant's endpoint, else the operation's.
    pub holder: &'a str,
}

/// Returns true for a function that may grant addresses or prefixes.
#[must_use]
pub fn may_grant(f: Function) -> bool {
    use Function::{Add, Allocate, Claim, Delegate, Transaction};
    matches!(f, Allocate | Add | Claim | Delegate | Transaction)
}

/// Returns true for a function that may end grants.
#[must_use]
pub fn may_release(f: Function) -> bool {
    use Function::{Del, Release, Return, Transaction};
    matches!(f, Release | Del | Return | Transaction)
}

/// `Idempotency-Key` of a call; none if its key is that of an attachment or of a claim. The key of an
/// attachment is `config/container/interface@node`.
#[must_use]
pub fn idempotency_key<'a>(call: &Interval<'a>) -> Option<&'a str> {
    use Function::{Allocate, Delegate, Delete, Put, Release, Return, Transaction};
    let is_keyed =
        matches!(call.begin.f, Allocate | Delegate | Delete | Put | Release | Return | Transaction);
    call.begin.value.key.as_deref().filter(|key| is_keyed && !key.contains('@'))
}

/// Grants that a successful call made, without the grants that it ended.
pub fn granted<'a>(call: &Interval<'a>) -> impl Iterator<Item = &'a Grant> + use<'a> {
    let is_grant = may_grant(call.begin.f) && call.kind() == Type::Ok;
    let meant = call.begin.value.grants.as_slice();
    let meant = if call.begin.f == Function::Transaction { meant } else { &[] };
    let grants = call.value().grants.iter().filter(move |_| is_grant);
    grants.filter(move |grant| grant.id == 0 || !meant.iter().any(|other| other.id == grant.id))
}

/// Grants that a call requests to end, or has ended.
pub fn to_end<'a>(call: &Interval<'a>) -> impl Iterator<Item = &'a Grant> + use<'a> {
    let f = call.begin.f;
    let meant = call.begin.value.grants.iter().filter(move |grant| may_release(f) && grant.id != 0);
    meant.chain(ended(call))
}

/// Grants that the answer of a call reports as ended.
pub fn ended<'a>(call: &Interval<'a>) -> impl Iterator<Item = &'a Grant> + use<'a> {
    let is_end = may_release(call.begin.f) && call.kind() == Type::Ok;
    let meant = call.begin.value.grants.as_slice();
    let is_transaction = call.begin.f == Function::Transaction;
    let ended = call.value().grants.iter().filter(move |grant| is_end && grant.id != 0);
    ended.filter(move |grant| !is_transaction || meant.iter().any(|other| other.id == grant.id))
}

impl<'a> Pairs<'a> {
    /// Prepares a run.
    #[must_use]
    pub fn of(record: &'a Record) -> Self {
        let mut pairs = Self {
            record,
            calls: operations(&record.history),
            faults: faults(&record.history),
            journal: Journal::of(&record.journal),
            timeline: Timeline::default(),
            acks: Vec::new(),
            by_id: BTreeMap::new(),
            by_endpoint: BTreeMap::new(),
            by_key: BTreeMap::new(),
            places: BTreeMap::new(),
        };
        pairs.index_names();
        // Ids of the journal need times, and times need ids that answers state.
        pairs.collect_acks();
        pairs.timeline = pairs.facts();
        pairs.resolve_ids();
        pairs.index_ids();
        pairs
    }

    /// The call with this index.
    #[must_use]
    pub fn call(&self, at: usize) -> Option<&Interval<'a>> {
        self.calls.get(at)
    }

    /// Calls of an endpoint, in order.
    pub fn calls_of(&self, endpoint: &str) -> impl Iterator<Item = (usize, &Interval<'a>)> {
        self.listed(self.by_endpoint.get(endpoint))
    }

    /// Calls that name a grant, in order.
    pub fn calls_naming(&self, id: u64) -> impl Iterator<Item = (usize, &Interval<'a>)> {
        self.listed(self.by_id.get(&id))
    }

    /// Calls with a key, in order.
    pub fn calls_with(&self, key: &str) -> impl Iterator<Item = (usize, &Interval<'a>)> {
        self.listed(self.by_key.get(key))
    }

    fn listed(&self, list: Option<&Vec<usize>>) -> impl Iterator<Item = (usize, &Interval<'a>)> {
        let indexes = list.map(Vec::as_slice).unwrap_or_default();
        indexes.iter().filter_map(|at| Some((*at, self.calls.get(*at)?)))
    }

    /// Acknowledged grants of a call.
    pub fn acks_of(&self, call: usize) -> impl Iterator<Item = &Ack<'a>> {
        let from = self.acks.partition_point(|ack| ack.call < call);
        self.acks.get(from..).unwrap_or_default().iter().take_while(move |ack| ack.call == call)
    }

    /// Returns true if several calls share the `Idempotency-Key` of this one: repetitions of one request.
    #[must_use]
    pub fn is_repeated(&self, call: &Interval<'a>) -> bool {
        self.repetitions(call).nth(1).is_some()
    }

    /// Returns true if the answer of a call may be that of an earlier one with the same key.
    #[must_use]
    pub fn is_replayed(&self, call: &Interval<'a>) -> bool {
        self.repetitions(call).next().is_some_and(|first| first.begin.index != call.begin.index)
    }

    /// Calls with the `Idempotency-Key` of a call, itself among them; none without a key.
    fn repetitions(&self, call: &Interval<'a>) -> impl Iterator<Item = &Interval<'a>> {
        let same = idempotency_key(call).and_then(|key| self.by_key.get(key)).into_iter().flatten();
        same.filter_map(|at| self.calls.get(*at)).filter(|call| idempotency_key(call).is_some())
    }

    fn index_names(&mut self) {
        for (at, call) in self.calls.iter().enumerate() {
            let begin = &call.begin.value;
            if let Some(key) = begin.key.as_deref() {
                self.by_key.entry(key).or_default().push(at);
            }
            let grants = begin.grants.iter().chain(&call.value().grants);
            let of_grants = grants.filter_map(|grant| grant.endpoint.as_deref());
            // Reads and lists also show endpoints of other clients.
            let is_write =
                may_grant(call.begin.f) || may_release(call.begin.f) || call.begin.f == Function::Renew;
            let of_grants = of_grants.filter(|_| is_write);
            let of_steps = begin.detail.get(ALLOCATES).and_then(serde_json::Value::as_array);
            let of_steps = of_steps.into_iter().flatten().filter_map(serde_json::Value::as_str);
            for endpoint in begin.endpoint.as_deref().into_iter().chain(of_grants).chain(of_steps) {
                let calls = self.by_endpoint.entry(endpoint).or_default();
                if calls.last() != Some(&at) {
                    calls.push(at);
                }
            }
        }
    }

    fn collect_acks(&mut self) {
        for (at, call) in self.calls.iter().enumerate() {
            for grant in granted(call) {
                let known = self.journal.lifetimes.get(&grant.id).map(|known| known.is_prefix);
                let is_prefix = known.unwrap_or_else(|| match call.begin.f {
                    Function::Delegate => true,
                    Function::Transaction => grant.address.contains('/'),
                    _ => false,
                });
                let Some(block) = block(&grant.address, is_prefix) else { continue };
                let holder = grant.endpoint.as_deref().or(call.begin.value.endpoint.as_deref());
                let holder = holder.unwrap_or_default();
                self.acks.push(Ack { call: at, id: grant.id, grant, block, holder });
            }
        }
    }

    /// Facts about commit times.
    fn facts(&self) -> Timeline {
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for call in self.calls.iter().filter(|call| call.kind() == Type::Ok) {
            let Some(revision) = call.value().revision else { continue };
            upper.push((revision, call.end_ns()));
            let is_read = matches!(call.begin.f, Function::Read | Function::List);
            if is_read && !call.value().is_stale {
                lower.push((revision, call.begin_ns()));
            }
        }
        upper.extend(self.acks.iter().filter(|ack| ack.id != 0).filter_map(|ack| {
            let call = self.calls.get(ack.call)?;
            Some((ack.id, call.end_ns()))
        }));
        for calls in self.by_endpoint.values() {
            self.fresh_ids(calls, &mut lower);
        }
        Timeline::of(lower, upper)
    }

    /// Lower bounds from ids that only one call of their endpoint can have made.
    fn fresh_ids(&self, calls: &[usize], lower: &mut Vec<(u64, u64)>) {
        let (mut known_max, mut ended_ns) = (0, 0);
        for at in calls {
            let Some(call) = self.calls.get(*at) else { continue };
            if !may_grant(call.begin.f) || call.kind() == Type::Fail {
                continue;
            }
            let ids = || self.acks_of(*at).map(|ack| ack.id);
            let is_known = call.kind() == Type::Ok && ids().all(|id| id != 0) && ids().next().is_some();
            if !is_known || self.is_repeated(call) || call.begin.f == Function::Claim {
                // An indeterminate or repeated call may take effect at any later time.
                return;
            }
            if call.begin_ns() > ended_ns {
                let fresh = ids().filter(|id| *id > known_max);
                lower.extend(fresh.map(|id| (id.saturating_sub(1), call.begin_ns())));
            }
            known_max = ids().fold(known_max, u64::max);
            ended_ns = ended_ns.max(call.end_ns());
        }
    }

    /// Sets the ids of grants without one, by address and time.
    fn resolve_ids(&mut self) {
        if self.acks.iter().all(|ack| ack.id != 0) {
            return;
        }
        for lifetime in self.journal.lifetimes.values() {
            self.places.entry((lifetime.network, lifetime.block)).or_default().push(lifetime.id);
        }
        let only = |ack: &Ack<'a>| {
            let mut ids = self.candidates(ack);
            ids.next().filter(|_| ids.next().is_none()).unwrap_or(ack.id)
        };
        let ids: Vec<u64> = self.acks.iter().map(only).collect();
        for (ack, id) in self.acks.iter_mut().zip(ids) {
            ack.id = id;
        }
    }

    /// Ids that a grant without one may have. They are ids of allocations of its address to its holder at the
    /// time of its call.
    pub fn candidates(&self, ack: &Ack<'a>) -> impl Iterator<Item = u64> {
        let place =
            (ack.id == 0).then(|| self.places.get(&(ack.grant.network.as_str(), ack.block))).flatten();
        let alive = place.into_iter().flatten().filter_map(|id| self.journal.lifetimes.get(id));
        let (begin_ns, end_ns) =
            self.calls.get(ack.call).map_or((0, u64::MAX), |call| (call.begin_ns(), call.end_ns()));
        let holder = ack.holder;
        let alive = alive.filter(move |lifetime| {
            let ended = lifetime.ended.map(|end| self.timeline.latest_ns(end.revision));
            self.timeline.earliest_ns(lifetime.begun.revision) <= end_ns
                && ended.is_none_or(|ended_ns| ended_ns >= begin_ns)
                && (holder.is_empty() || holder == lifetime.holder)
        });
        alive.map(|lifetime| lifetime.id)
    }

    fn index_ids(&mut self) {
        let mut named: Vec<(u64, usize)> = self.acks.iter().map(|ack| (ack.id, ack.call)).collect();
        for (at, call) in self.calls.iter().enumerate() {
            if may_release(call.begin.f) || call.begin.f == Function::Renew {
                let grants = call.begin.value.grants.iter().chain(&call.value().grants);
                named.extend(grants.map(|grant| (grant.id, at)));
            }
        }
        named.retain(|(id, _)| *id != 0);
        named.sort_unstable();
        named.dedup();
        for (id, at) in named {
            self.by_id.entry(id).or_default().push(at);
        }
    }
}

/// Adds a figure to a verdict.
pub fn figure(verdict: &mut Verdict, name: &str, value: impl ToString) {
    verdict.figures.push((name.to_owned(), value.to_string()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::testing::{Run, grant};

    #[test]
    fn a_grant_without_an_id_gets_it_from_the_journal() {
        let mut run = Run::default();
        run.allocated(7, "10.0.0.1", "pod/default/default/a");
        run.call(1, Function::Add).endpoint("pod/default/default/a").ok(&[grant(0, "10.0.0.1")]);
        let record = run.record();
        let pairs = Pairs::of(&record);
        assert_eq!(pairs.acks[0].id, 7);
        assert_eq!(pairs.by_id[&7], [0]);
    }

    #[test]
    fn a_transaction_tells_grants_from_releases() {
        let mut run = Run::default();
        run.call(1, Function::Transaction)
            .grants(&[grant(3, "10.0.0.1")])
            .ok(&[grant(3, "10.0.0.1"), grant(9, "10.0.0.2")]);
        let record = run.record();
        let pairs = Pairs::of(&record);
        let call = pairs.call(0).unwrap();
        assert_eq!(granted(call).map(|grant| grant.id).collect::<Vec<_>>(), [9]);
        assert_eq!(ended(call).map(|grant| grant.id).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn commit_times_lie_within_the_only_call_that_can_have_made_an_id() {
        let mut run = Run::default();
        run.at(10).call(1, Function::Allocate).endpoint("host/default/default/a").ok(&[grant(5, "10.0.0.1")]);
        run.at(20).call(1, Function::Allocate).endpoint("host/default/default/b").info();
        run.at(30).call(2, Function::Allocate).endpoint("host/default/default/b").ok(&[grant(8, "10.0.0.2")]);
        let record = run.record();
        let timeline = Pairs::of(&record).timeline;
        assert_eq!((timeline.earliest_ns(5), timeline.latest_ns(5)), (10_000_000, 11_000_000));
        // The lost call may have made the grant before.
        assert_eq!((timeline.earliest_ns(8), timeline.latest_ns(8)), (10_000_000, 31_000_000));
    }
}
