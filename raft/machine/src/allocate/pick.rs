//! Choice of an address in a pool, in time independent of the number of held addresses.

use crate::allocate::candidates::{Candidate, Candidates};
use crate::allocate::choosing::Choosing;
use crate::allocate::course::{Course, Courses};
use crate::allocate::selectors::Requester;
use crate::command::{Cause, Refusal};
use crate::space::Space;
use crate::state::id::{AllocationId, NetworkId, PoolId};
use crate::state::row::Pool;
use crate::state::row_key::RowKey;
use crate::state::table::Row as _;
use crate::state::table::hash;
use crate::state::{Occupant, State};
use crate::value::cause::{NamedPrefix, NeverGiven, RejectReason};
use ipam_api::address::number;
use ipam_api::limits::REASONS_MAX;
use ipam_api::name::InterfaceName;
use ipam_api::resource::Strategy;
use ipam_api::{Family, RangeSet};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// An address chosen for an interface, not yet allocated.
#[derive(Debug, Clone)]
pub(crate) struct Pick {
    pub(crate) interface: InterfaceName,
    pub(crate) pool: PoolId,
    pub(crate) address: IpAddr,
}

/// Addresses that an interface can't get, because other interfaces of the request have claimed them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claimed<'a> {
    /// Choices for the interfaces before this one.
    pub(crate) picked: &'a [Pick],
    /// Requested addresses with the indexes of the only interfaces that may get them.
    pub(crate) asked: &'a [(usize, Pick)],
    /// Index of the interface that gets an address.
    pub(crate) place: usize,
}

impl Claimed<'_> {
    /// Choices of interfaces before this one, and requested addresses of those after it.
    fn all(&self) -> impl Iterator<Item = &Pick> {
        let behind = self.asked.iter().filter(|(place, _)| *place > self.place).map(|(_, pick)| pick);
        self.picked.iter().chain(behind)
    }

    fn has(&self, pool: PoolId, address: IpAddr) -> bool {
        self.all().any(|pick| pick.pool == pool && pick.address == address)
    }

    /// Number of cooling addresses of a pool among these.
    fn cooling(&self, state: &State, candidate: &Candidate<'_>) -> usize {
        let network = state.subnets.named(candidate.pool.subnet).network;
        let picks = self.all().filter(|pick| pick.pool == candidate.id);
        let occupants = picks.map(|pick| state.occupant(network, pick.address));
        occupants.filter(|occupant| matches!(occupant, Some(Occupant::Cooling(_)))).count()
    }
}

/// Result of one interface in one family.
#[derive(Debug, Clone)]
pub(crate) enum Taken {
    /// An address that is new.
    New(Pick),
    /// An allocation that its endpoint has already.
    Reused(AllocationId),
}

/// Allocation that an endpoint may reuse, with its pool.
type Portable<'a> = (AllocationId, Candidate<'a>);

/// Candidate with its evaluation.
pub(crate) type Evaluated<'a> = (Candidate<'a>, Evaluation);

/// Result of a candidate's evaluation.
#[derive(Debug)]
pub(crate) enum Evaluation {
    /// Rejected for the caller.
    Rejected(RejectReason),
    /// The pool has no address left.
    Exhausted {
        /// Milliseconds of log time until its next cooling ends.
        next_free_ms: Option<u64>,
    },
    /// The pool doesn't have the requested address.
    Unavailable,
    /// The pool allocates this address.
    Gives(IpAddr),
}

/// Units for the evaluation of one pool.
pub(crate) const UNITS_PER_POOL_EVALUATED: u64 = 1;

impl<'a> Choosing<'a> {
    /// Chooses one address of each family of the interface, or finds it among those of its endpoint.
    /// `portable` are the allocations that the endpoint may reuse, in the order of preference.
    pub(super) fn pick_for(
        self,
        requester: Requester<'a>,
        portable: &[AllocationId],
        claimed: Claimed<'_>,
        courses: &mut Courses<'a>,
    ) -> Result<Vec<Taken>, Refusal> {
        let mut all = self.courses_for(&requester, portable, courses)?;
        let mut taken = Vec::with_capacity(all.len());
        for course in &mut all {
            taken.push(self.pick_from(&requester, course, portable, claimed)?);
        }
        if portable.is_empty() {
            courses.keep(requester, all);
        }
        Ok(taken)
    }

    /// Requested addresses of the interfaces, each with its candidate and the interface's index.
    pub(crate) fn asked_by_value(self) -> Vec<(usize, Pick)> {
        let request = self.request;
        // All adopted addresses are requested by value.
        if request.interfaces.len() < 2 || request.options.adopt {
            return Vec::new();
        }
        let mut all: Vec<(usize, Pick)> = Vec::new();
        for (place, interface) in
            request.interfaces.iter().enumerate().filter(|(_, one)| !one.addresses.is_empty())
        {
            let requester = self.requester(interface);
            // An interface whose candidates can't be determined is refused later, in its turn.
            let Ok(courses) = self.candidates(&requester) else { continue };
            for course in courses {
                let Some(address) = interface.asked(course.family) else { continue };
                let picked: Vec<Pick> = all.iter().map(|(_, pick)| pick.clone()).collect();
                let pick = self.first_with(address, course.candidates, &requester, &picked);
                all.extend(pick.ok().map(|pick| (place, pick)));
            }
        }
        all
    }

    /// First of these allocations whose pool is still a candidate for its endpoint. The pool may be exhausted
    /// or disabled; of a drained pool the endpoint moves to the replacement as soon as possible.
    ///
    /// Returns the allocation that the endpoint keeps, and one that it keeps only while no candidate has
    /// another address.
    fn take_along(
        self,
        portable: &[AllocationId],
        course: &mut Course<'a>,
        requester: &Requester<'_>,
    ) -> (Option<Portable<'a>>, Option<Portable<'a>>) {
        let mut places = BTreeMap::new();
        for (place, id) in portable.iter().enumerate() {
            if let Some(row) = self.state.allocations.get(*id) {
                places.entry(row.pool).or_insert(place);
            }
        }
        let (mut kept, mut drained, mut passed) = (None, None, Vec::new());
        for candidate in course.rest().take_while(|_| self.work.take(1)) {
            let place = places.get(&candidate.id).copied();
            if let Some(place) = place.filter(|_| candidate.pool.reject_reason(requester).is_none()) {
                let is_drained = candidate.pool.spec.drains_to.is_some();
                let first = if is_drained { &mut drained } else { &mut kept };
                if first.is_none_or(|(before, _)| place < before) {
                    *first = Some((place, candidate));
                }
                if place == 0 && !is_drained {
                    break;
                }
            }
            passed.push(candidate);
        }
        let at = |(place, candidate)| Some((*portable.get(place)?, candidate));
        course.candidates = Box::new(passed.into_iter());
        (kept.and_then(at), drained.and_then(at))
    }

    /// Chooses an address of one family, or reuses one of the endpoint's.
    pub(crate) fn pick_from(
        self,
        requester: &Requester<'_>,
        course: &mut Course<'a>,
        portable: &[AllocationId],
        claimed: Claimed<'_>,
    ) -> Result<Taken, Refusal> {
        let (request, family) = (requester.interface, course.family);
        let asked = request.asked(family);
        let fits = |id: &&AllocationId| {
            self.state.allocations.get(**id).is_some_and(|row| {
                Family::of(row.address) == family && asked.is_none_or(|asked| asked == row.address)
            })
        };
        let portable: Vec<AllocationId> = portable.iter().filter(fits).copied().collect();
        let (kept, of_drained) = match portable.is_empty() {
            true => (None, None),
            false => self.take_along(&portable, course, requester),
        };
        if let Some(kept) = kept {
            return self.keep((&request.name, family), kept);
        }
        let pick = match asked {
            Some(address) => {
                let candidates = course.rest();
                self.first_with(address, candidates, requester, claimed.picked)
                    .map_err(|passed| self.asked_in_vain((&request.name, address), course, &passed, claimed))
            }
            None => self
                .pick_any(course, requester, claimed)
                .ok_or_else(|| self.unserved_by(&request.name, course)),
        };
        match (pick, of_drained) {
            (Ok(pick), _) => Ok(Taken::New(pick)),
            // The endpoint stays in the drained pool until another pool has an address.
            (Err(_), Some(drained)) => self.keep((&request.name, family), drained),
            (Err(refusal), None) => Err(refusal),
        }
    }

    /// Reuses an allocation; refuses one that may have been reassigned since the backup of a restore.
    fn keep(
        self,
        (interface, family): (&InterfaceName, Family),
        (id, candidate): Portable<'_>,
    ) -> Result<Taken, Refusal> {
        match self.state.is_confirmed(candidate.id) {
            true => Ok(Taken::Reused(id)),
            false => Err(self.nothing_fits(interface, family, &[(candidate, RejectReason::Unconfirmed)])),
        }
    }

    /// Evaluates a candidate at its turn. Only the first match is used.
    pub(crate) fn evaluated(
        self,
        candidate: Candidate<'a>,
        asked: Option<IpAddr>,
        requester: &Requester<'_>,
        claimed: Claimed<'_>,
    ) -> Evaluated<'a> {
        let evaluation = match (self.reject_reason(&candidate, requester), asked) {
            (Some(why), _) => Evaluation::Rejected(why),
            (None, None) => {
                let space = self.state.space(candidate.id);
                match space.and_then(|space| self.pick_in((&candidate, space), claimed)) {
                    Some(address) => Evaluation::Gives(address),
                    None => Evaluation::Exhausted {
                        next_free_ms: space.and_then(|space| self.state.next_free_ms(space)),
                    },
                }
            }
            (None, Some(address)) if self.has_to_give(address, &candidate, claimed.picked) => {
                Evaluation::Gives(address)
            }
            (None, Some(_)) => Evaluation::Unavailable,
        };
        (candidate, evaluation)
    }

    fn has_to_give(self, address: IpAddr, candidate: &Candidate<'_>, picked: &[Pick]) -> bool {
        let space = self.state.space(candidate.id);
        space.is_some_and(|space| space.allocatable.contains(number(address)))
            && self.check_givable(address, candidate, picked).is_ok()
    }

    /// Takes an address from the first matching candidate.
    pub(super) fn pick_any(
        self,
        course: &mut Course<'a>,
        requester: &Requester<'_>,
        claimed: Claimed<'_>,
    ) -> Option<Pick> {
        while let Some(candidate) = course.next() {
            if !self.work.take(UNITS_PER_POOL_EVALUATED) {
                return None;
            }
            match self.evaluated(candidate, None, requester, claimed).1 {
                Evaluation::Rejected(why) => course.passed.push((candidate, why)),
                Evaluation::Exhausted { next_free_ms } => {
                    course.next_free_ms = [course.next_free_ms, next_free_ms].into_iter().flatten().min();
                    course.passed.push((candidate, RejectReason::Exhausted));
                }
                Evaluation::Unavailable => course.passed.push((candidate, RejectReason::Exhausted)),
                Evaluation::Gives(address) => {
                    course.ahead.push_front(candidate);
                    let interface = requester.interface.name.clone();
                    return Some(Pick { interface, pool: candidate.id, address });
                }
            }
        }
        None
    }

    /// Next address of the pool by its strategy. If none is free, the one that cooled longest, where the pool
    /// permits it.
    fn pick_in(self, (candidate, space): (&Candidate<'_>, &Space), claimed: Claimed<'_>) -> Option<IpAddr> {
        let spec = &candidate.pool.spec;
        let is_picked = |address: IpAddr| claimed.has(candidate.id, address);
        let from = |start: u128| {
            let mut next = space.free.lowest_from(start)?;
            while is_picked(space.family.address(next)) {
                if !self.work.take(1) {
                    return None;
                }
                next = space.free.lowest_from(next.checked_add(1)?)?;
            }
            Some(space.family.address(next))
        };
        let behind_cursor = || {
            let cursor = self.state.pool_states.get(candidate.id)?.cursor?;
            from(number(cursor).checked_add(1)?)
        };
        let checked = || self.state.next_checked(candidate.id, space, |address| !is_picked(address));
        let fresh = match spec.strategy {
            _ if space.counts().free == 0 => None,
            _ if let Some(checked) = checked() => Some(checked),
            Strategy::Sequential => from(0),
            Strategy::Next => behind_cursor().or_else(|| from(0)),
            Strategy::Random => {
                self.drawn(candidate.id, space, claimed.picked).and_then(from).or_else(|| from(0))
            }
        };
        let spare = self.state.cooling_to_spare(spec, space);
        if fresh.is_some() || claimed.cooling(self.state, candidate) >= spare {
            return fresh;
        }
        self.state.cooling_offered(space, self.work).find(|address| !is_picked(*address))
    }

    /// Draws one of the pool's addresses pseudo-randomly: the same on every member, and another each time.
    fn drawn(self, pool: PoolId, space: &Space, picked: &[Pick]) -> Option<u128> {
        let size = space.offered.size();
        let lot = self.state.revision() + picked.len() as u64;
        let drawn =
            hash(RowKey { table: Pool::TABLE, id: pool.get() }, &lot.to_be_bytes()).checked_rem(size)?;
        space.offered.nth(drawn)
    }

    /// Takes a requested address from the first candidate that has it; else returns the rejections.
    fn first_with(
        self,
        address: IpAddr,
        candidates: Candidates<'a>,
        requester: &Requester<'_>,
        picked: &[Pick],
    ) -> Result<Pick, Vec<Evaluated<'a>>> {
        let claimed = Claimed { picked, asked: &[], place: 0 };
        let mut passed = Vec::new();
        for candidate in candidates.take_while(|_| self.work.take(UNITS_PER_POOL_EVALUATED)) {
            let evaluated = self.evaluated(candidate, Some(address), requester, claimed);
            if let Evaluation::Gives(address) = evaluated.1 {
                let interface = requester.interface.name.clone();
                return Ok(Pick { interface, pool: candidate.id, address });
            }
            passed.push(evaluated);
        }
        Err(passed)
    }

    /// Refusal when no candidate allocates the requested address. The reason is that of the first eligible
    /// pool that contains it, else of the first pool that contains it.
    fn asked_in_vain(
        self,
        (interface, address): (&InterfaceName, IpAddr),
        course: &Course<'_>,
        passed: &[Evaluated<'_>],
        claimed: Claimed<'_>,
    ) -> Refusal {
        let first = |of: fn(&Space) -> &RangeSet| {
            let has = |one: &&Evaluated<'_>| {
                self.state.space(one.0.id).is_some_and(|space| of(space).contains(number(address)))
            };
            let is_meant = |one: &&Evaluated<'_>| !matches!(one.1, Evaluation::Rejected(_));
            passed.iter().filter(has).find(is_meant).or_else(|| passed.iter().find(has))
        };
        // An address that one pool excludes may be another's: pools that could allocate it come first, then
        // those with a reason.
        let inside = first(|space| &space.allocatable).or_else(|| first(|space| &space.ranges));
        let refusal = inside.and_then(|(candidate, evaluation)| match evaluation {
            Evaluation::Rejected(why) => {
                Some(self.nothing_fits(interface, course.family, &[(*candidate, *why)]))
            }
            _ => self.check_givable(address, candidate, claimed.picked).err(),
        });
        refusal.unwrap_or_else(|| {
            if passed.is_empty() && !course.passed.is_empty() {
                return self.unserved_by(interface, course);
            }
            let names = passed.iter().map(|(one, _)| one.pool.spec.name.clone());
            let (interface, pools) = (interface.clone(), names.take(REASONS_MAX).collect());
            Cause::InNoPool { address, interface, pools, count: passed.len() as u64 }.into()
        })
    }

    /// Refuses an address that its pool can't allocate, or that another interface of the request got.
    fn check_givable(
        self,
        address: IpAddr,
        candidate: &Candidate<'_>,
        picked: &[Pick],
    ) -> Result<(), Refusal> {
        self.check_not_held(address, candidate)?;
        let pool = &candidate.pool.spec;
        match self.state.occupant(self.network_of(candidate), address) {
            Some(Occupant::Cooling(id)) if pool.strict_cooling => {
                let left = self.state.coolings.named(id).until_ms.saturating_sub(self.state.log_time_ms());
                return Err(Cause::Cooling { address, pool: pool.name.clone(), left_ms: left }.into());
            }
            Some(Occupant::Quarantine(id)) => {
                let mac = self.state.quarantines.named(id).mac;
                return Err(Cause::Quarantined { address, pool: pool.name.clone(), mac }.into());
            }
            _ => {}
        }
        self.check_not_in_prefix(address, candidate)?;
        let is_reserved =
            self.state.space(candidate.id).is_some_and(|space| space.reserved.contains(number(address)));
        let why = if is_reserved {
            Some(NeverGiven::Reserved)
        } else {
            self.never_given_reason(address, candidate)
        };
        if let Some(why) = why {
            return Err(Cause::NeverGiven { address, pool: pool.name.clone(), why }.into());
        }
        match picked.iter().any(|pick| pick.pool == candidate.id && pick.address == address) {
            true => Err(Cause::AskedTwice { address }.into()),
            false => Ok(()),
        }
    }

    pub(super) fn network_of(self, candidate: &Candidate<'_>) -> NetworkId {
        self.state.subnets.named(candidate.pool.subnet).network
    }

    /// Refuses an address that an endpoint holds.
    pub(super) fn check_not_held(self, address: IpAddr, candidate: &Candidate<'_>) -> Result<(), Refusal> {
        let Some((id, row)) = self.state.allocation_at(self.network_of(candidate), address) else {
            return Ok(());
        };
        Err(Cause::Held {
            address,
            pool: candidate.pool.spec.name.clone(),
            holder: self.state.holder(row.endpoint),
            allocation: id.get(),
        }
        .into())
    }

    /// Refuses an address that belongs to a prefix.
    pub(super) fn check_not_in_prefix(
        self,
        address: IpAddr,
        candidate: &Candidate<'_>,
    ) -> Result<(), Refusal> {
        let Some((prefix, row)) = self.state.prefix_at(self.network_of(candidate), address) else {
            return Ok(());
        };
        let (pool, prefix) = (candidate.pool.spec.name.clone(), NamedPrefix::of(prefix, row));
        Err(Cause::InPrefix { address, pool, prefix }.into())
    }

    /// Reason for which a pool never allocates an address of its ranges, reservations aside.
    pub(super) fn never_given_reason(self, address: IpAddr, candidate: &Candidate<'_>) -> Option<NeverGiven> {
        if self.state.space(candidate.id)?.allocatable.contains(number(address)) {
            return None;
        }
        if candidate.pool.spec.gateway == Some(address) {
            return Some(NeverGiven::Gateway);
        }
        let subnet = self.state.subnets.get(candidate.pool.subnet);
        Some(subnet.and_then(|row| State::is_special(&row.spec, address)).unwrap_or(NeverGiven::Excluded))
    }
}
