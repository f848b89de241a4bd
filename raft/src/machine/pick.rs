//! Which address of a pool is given. In time that doesn't depend on how many are taken.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipam_api::address::number;
use ipam_api::limits::REASONS_MAX;
use ipam_api::name::InterfaceName;
use ipam_api::resource::Strategy;

use super::candidates::{Candidate, Candidates, Choice, Fallen};
use super::command::cause::WhyNot;
use super::command::cause::{NamedPrefix, NeverGiven};
use super::command::{Allocate, Cause, Grant, InterfaceWish, Refusal};
use super::course::{Course, Courses};
use super::model::Pool;
use super::row::RowKey;
use super::space::Space;
use super::state::{Occupant, State};
use super::table::{Row as _, hash};
use super::takers::Taker;
use super::work::{Search, Work};
use ipam_api::{Family, RangeSet};

/// An address chosen for an interface, not yet taken.
#[derive(Debug, Clone)]
pub(super) struct Pick {
    pub(super) interface: InterfaceName,
    pub(super) pool: u64,
    pub(super) address: IpAddr,
}

/// Addresses of a request that none of its other interfaces gets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spoken<'a> {
    /// What its interfaces before this one have chosen.
    pub(super) picked: &'a [Pick],
    /// What those behind it ask for by value: whoever takes any address leaves it to them.
    pub(super) behind: &'a [Pick],
}

impl Spoken<'_> {
    fn has(&self, pool: u64, address: IpAddr) -> bool {
        let mut all = self.picked.iter().chain(self.behind);
        all.any(|pick| pick.pool == pool && pick.address == address)
    }
}

/// What an interface gets in one family.
#[derive(Debug, Clone)]
pub(super) enum Taken {
    /// An address that is new.
    New(Pick),
    /// An allocation that its endpoint has already.
    Along(u64),
}

/// A candidate, and what becomes of it.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    pub(super) candidate: Candidate<'a>,
    pub(super) judgement: Judgement,
}

/// What becomes of a candidate at its turn.
#[derive(Debug)]
pub(super) enum Judgement {
    /// It gives nothing to the asker.
    Falls(WhyNot),
    /// It has nothing left.
    Exhausted {
        /// In how many milliseconds of log time its next address has rested.
        next_free_ms: Option<u64>,
    },
    /// It can't give the address that is asked for by value.
    Lacks,
    /// It gives this address.
    Gives(IpAddr),
}

/// Units for one pool whose selectors and free addresses are looked at.
pub(super) const UNITS_PER_POOL_JUDGED: u64 = 1;

/// Of what is asked for by value, that of interfaces behind a place.
pub(super) fn behind(asked: &[(usize, Pick)], place: usize) -> Vec<Pick> {
    asked.iter().filter(|(other, _)| *other > place).map(|(_, pick)| pick.clone()).collect()
}

impl State {
    /// Chooses one address of each family that the interface gets, or finds it among what its endpoint has.
    /// `portable` are allocations that the endpoint may take along, those first that it rather takes.
    pub(super) fn pick_for<'a>(
        &'a self,
        (wish, taker): (&'a InterfaceWish, &Taker<'a>),
        portable: &[u64],
        spoken: Spoken<'_>,
        search: Search<'a>,
        courses: &mut Courses<'a>,
    ) -> Result<Vec<Taken>, Refusal> {
        let mut all = self.courses_for(wish, taker, portable, search, courses)?;
        let mut taken = Vec::with_capacity(all.len());
        for course in &mut all {
            taken.push(self.pick_from((wish, taker), course, portable, spoken, search)?);
        }
        if portable.is_empty() {
            courses.keep(wish, *taker, all);
        }
        Ok(taken)
    }

    /// What interfaces of a request ask for by value, and the pools that could give it; each with the interface's place.
    pub(super) fn asked_by_value(&self, wish: &Allocate, work: &Work) -> Vec<(usize, Pick)> {
        // What exists already is all asked for by value.
        if wish.interfaces.len() < 2 || wish.manner.adopt {
            return Vec::new();
        }
        let mut all = Vec::new();
        for (place, interface) in
            wish.interfaces.iter().enumerate().filter(|(_, one)| !one.addresses.is_empty())
        {
            let taker = Taker::of(self, wish, interface);
            // What can't be looked for is refused in its turn.
            let Ok(choices) = self.candidates(interface, &taker, work) else { continue };
            for Choice { family, candidates, .. } in choices {
                let Some(address) = interface.asked(family) else { continue };
                let gives = |candidate: &Candidate<'_>| self.could_give(address, candidate);
                let pick = candidates.take_while(|_| work.take(1)).find(gives).map(|candidate| Pick {
                    interface: interface.name.clone(),
                    pool: candidate.id,
                    address,
                });
                all.extend(pick.map(|pick| (place, pick)));
            }
        }
        all
    }

    /// Whether an address is one that a pool may ever give.
    fn could_give(&self, address: IpAddr, candidate: &Candidate<'_>) -> bool {
        self.space(candidate.id).is_some_and(|space| space.giveable.contains(number(address)))
    }

    /// The first of these allocations whose pool is still a candidate for its endpoint, with the pool; and the
    /// candidates, if there is none. Whether a pool gives anything new makes no difference, unless it is drained to
    /// another one: then those that it had move there.
    fn take_along<'a>(
        &self,
        portable: &[u64],
        candidates: Candidates<'a>,
        taker: &Taker<'_>,
        work: &Work,
    ) -> (Option<(u64, Candidate<'a>)>, Candidates<'a>) {
        let mut places = BTreeMap::new();
        for (place, id) in portable.iter().enumerate() {
            if let Some(row) = self.allocations.get(*id) {
                places.entry(row.pool).or_insert(place);
            }
        }
        let (mut first, mut passed) = (None, Vec::new());
        for candidate in candidates.take_while(|_| work.take(1)) {
            let place = places.get(&candidate.id).copied();
            if let Some(place) = place.filter(|_| candidate.pool.keeps(taker))
                && first.is_none_or(|(before, _)| place < before)
            {
                first = Some((place, candidate));
                if place == 0 {
                    break;
                }
            }
            passed.push(candidate);
        }
        let along = first.and_then(|(place, candidate)| Some((*portable.get(place)?, candidate)));
        (along, Box::new(passed.into_iter()))
    }

    /// Chooses an address of one family, or finds it among what the endpoint has.
    pub(super) fn pick_from<'a>(
        &'a self,
        (wish, taker): (&InterfaceWish, &Taker<'_>),
        course: &mut Course<'a>,
        portable: &[u64],
        spoken: Spoken<'_>,
        search: Search<'_>,
    ) -> Result<Taken, Refusal> {
        let family = course.family;
        let asked = wish.asked(family);
        let fits = |id: &&u64| {
            self.allocations.get(**id).is_some_and(|row| {
                Family::of(row.address) == family && asked.is_none_or(|asked| asked == row.address)
            })
        };
        let portable: Vec<u64> = portable.iter().filter(fits).copied().collect();
        if !portable.is_empty() {
            let (along, candidates) = self.take_along(&portable, course.rest(), taker, search.work);
            if let Some((id, pool)) = along {
                self.check_confirmed(&wish.name, family, pool)?;
                return Ok(Taken::Along(id));
            }
            course.candidates = candidates;
        }
        let pick = match asked {
            Some(address) => {
                let candidates: Vec<Candidate<'_>> =
                    course.rest().take_while(|_| search.work.take(1)).collect();
                self.pick_asked(&wish.name, address, &candidates, taker, spoken.picked, search.grant)
            }
            None => self
                .pick_any(&wish.name, course, taker, spoken, search)
                .ok_or_else(|| self.unserved_by(&wish.name, course)),
        };
        pick.map(Taken::New)
    }

    /// What becomes of a candidate at its turn. Only the first that gives is taken from.
    pub(super) fn judged<'a>(
        &self,
        candidate: Candidate<'a>,
        asked: Option<IpAddr>,
        taker: &Taker<'_>,
        spoken: Spoken<'_>,
        search: Search<'_>,
    ) -> Judged<'a> {
        let judgement = match (self.why_not(&candidate, taker, search.grant), asked) {
            (Some(why), _) => Judgement::Falls(why),
            (None, None) => {
                let space = self.space(candidate.id);
                match space.and_then(|space| self.pick_in((&candidate, space), spoken, search.work)) {
                    Some(address) => Judgement::Gives(address),
                    None => Judgement::Exhausted {
                        next_free_ms: space.and_then(|space| self.next_free_ms(space)),
                    },
                }
            }
            (None, Some(address)) if self.has_to_give(address, &candidate) => Judgement::Gives(address),
            (None, Some(_)) => Judgement::Lacks,
        };
        Judged { candidate, judgement }
    }

    fn has_to_give(&self, address: IpAddr, candidate: &Candidate<'_>) -> bool {
        self.could_give(address, candidate) && self.check_givable(address, candidate).is_ok()
    }

    /// Takes from the first candidate that gives.
    pub(super) fn pick_any<'a>(
        &'a self,
        interface: &InterfaceName,
        course: &mut Course<'a>,
        taker: &Taker<'_>,
        spoken: Spoken<'_>,
        search: Search<'_>,
    ) -> Option<Pick> {
        while let Some(candidate) = course.next() {
            if !search.work.take(UNITS_PER_POOL_JUDGED) {
                return None;
            }
            match self.judged(candidate, None, taker, spoken, search).judgement {
                Judgement::Falls(why) => course.passed.push((candidate, Some(why))),
                Judgement::Exhausted { next_free_ms } => {
                    course.next_free_ms = [course.next_free_ms, next_free_ms].into_iter().flatten().min();
                    course.passed.push((candidate, None));
                }
                Judgement::Lacks => course.passed.push((candidate, None)),
                Judgement::Gives(address) => {
                    course.ahead.push_front(candidate);
                    return Some(Pick { interface: interface.clone(), pool: candidate.id, address });
                }
            }
        }
        None
    }

    /// The pool's next address by its strategy; else, where the pool allows it, the one that has rested
    /// longest.
    pub(super) fn pick_in(
        &self,
        (candidate, space): (&Candidate<'_>, &Space),
        spoken: Spoken<'_>,
        work: &Work,
    ) -> Option<IpAddr> {
        let intention = &candidate.pool.intention;
        let is_picked = |address: IpAddr| spoken.has(candidate.id, address);
        let from = |start: u128| {
            let mut next = space.free.lowest_from(start)?;
            while is_picked(space.family.address(next)) {
                if !work.take(1) {
                    return None;
                }
                next = space.free.lowest_from(next.checked_add(1)?)?;
            }
            Some(space.family.address(next))
        };
        let behind_cursor = || {
            let cursor = self.pool_states.get(candidate.id)?.cursor?;
            from(number(cursor).checked_add(1)?)
        };
        let fresh = match intention.strategy {
            _ if space.counts().free == 0 => None,
            Strategy::Sequential => from(0),
            Strategy::Next => behind_cursor().or_else(|| from(0)),
            Strategy::Random => {
                self.drawn(candidate.id, space, spoken.picked).and_then(from).or_else(|| from(0))
            }
        };
        if fresh.is_some() || intention.strict_cooling {
            return fresh;
        }
        space
            .cooling
            .iter()
            .take_while(|_| work.take(1))
            .filter_map(|id| self.coolings.get(*id))
            .map(|row| row.address)
            .find(|address| space.offered.contains(number(*address)) && !is_picked(*address))
    }

    /// One of the pool's addresses, drawn by lot: the same on every member, and another one each time.
    fn drawn(&self, pool: u64, space: &Space, picked: &[Pick]) -> Option<u128> {
        let size = space.offered.size();
        let lot = self.revision() + picked.len() as u64;
        let drawn = hash(RowKey { table: Pool::TABLE, id: pool }, &lot.to_be_bytes()).checked_rem(size)?;
        space.offered.nth(drawn)
    }

    fn pick_asked(
        &self,
        interface: &InterfaceName,
        address: IpAddr,
        candidates: &[Candidate<'_>],
        taker: &Taker<'_>,
        picked: &[Pick],
        grant: &Grant,
    ) -> Result<Pick, Refusal> {
        // What one pool excludes may be another's: first who could give it, then who at least can say why not.
        let has = |of: fn(&Space) -> &RangeSet| {
            candidates.iter().find(|candidate| {
                self.space(candidate.id).is_some_and(|space| of(space).contains(number(address)))
            })
        };
        let inside = has(|space| &space.giveable).or_else(|| has(|space| &space.ranges));
        let Some(candidate) = inside else {
            let names = candidates.iter().map(|candidate| candidate.pool.intention.name.clone());
            return Err(Cause::InNoPool {
                address,
                interface: interface.clone(),
                pools: names.take(REASONS_MAX).collect(),
                count: candidates.len() as u64,
            }
            .into());
        };
        if let Some(why) = self.why_not(candidate, taker, grant) {
            let fallen = Fallen { id: candidate.id, pool: candidate.pool.intention.name.clone(), why };
            return Err(self.nothing_fits(interface, Family::of(address), &[fallen]));
        }
        self.check_givable(address, candidate)?;
        if picked.iter().any(|pick| pick.pool == candidate.id && pick.address == address) {
            return Err(Cause::AskedTwice { address }.into());
        }
        Ok(Pick { interface: interface.clone(), pool: candidate.id, address })
    }

    /// Refuses an address that its pool can't give, with the reason.
    fn check_givable(&self, address: IpAddr, candidate: &Candidate<'_>) -> Result<(), Refusal> {
        self.check_not_held(address, candidate)?;
        let pool = &candidate.pool.intention;
        if let Some(Occupant::Cooling(id)) = self.occupant(self.network_of(candidate), address)
            && pool.strict_cooling
        {
            let until = self.coolings.get(id).map_or(0, |row| row.until_ms);
            let left = until.saturating_sub(self.log_time_ms());
            return Err(Cause::Resting { address, pool: pool.name.clone(), left_ms: left }.into());
        }
        self.check_not_in_prefix(address, candidate)?;
        let is_reserved =
            self.space(candidate.id).is_some_and(|space| space.reserved.contains(number(address)));
        let why =
            if is_reserved { Some(NeverGiven::Reserved) } else { self.why_never_given(address, candidate) };
        match why {
            None => Ok(()),
            Some(why) => Err(Cause::NeverGiven { address, pool: pool.name.clone(), why }.into()),
        }
    }

    pub(super) fn network_of(&self, candidate: &Candidate<'_>) -> u64 {
        self.subnets.get(candidate.pool.subnet).map_or(0, |row| row.network)
    }

    /// Refuses an address that somebody holds.
    pub(super) fn check_not_held(&self, address: IpAddr, candidate: &Candidate<'_>) -> Result<(), Refusal> {
        let Some((id, row)) = self.allocation_at(self.network_of(candidate), address) else { return Ok(()) };
        Err(Cause::Held {
            address,
            pool: candidate.pool.intention.name.clone(),
            holder: self.holder(row.endpoint),
            allocation: id,
        }
        .into())
    }

    /// Refuses an address that belongs to a prefix.
    pub(super) fn check_not_in_prefix(
        &self,
        address: IpAddr,
        candidate: &Candidate<'_>,
    ) -> Result<(), Refusal> {
        let Some((prefix, row)) = self.prefix_at(self.network_of(candidate), address) else { return Ok(()) };
        let (pool, prefix) = (candidate.pool.intention.name.clone(), NamedPrefix::of(prefix, row));
        Err(Cause::InPrefix { address, pool, prefix }.into())
    }

    /// Why a pool never gives an address that is in its ranges, if so; reservations aside.
    pub(super) fn why_never_given(&self, address: IpAddr, candidate: &Candidate<'_>) -> Option<NeverGiven> {
        if self.space(candidate.id)?.giveable.contains(number(address)) {
            return None;
        }
        if candidate.pool.intention.gateway == Some(address) {
            return Some(NeverGiven::Gateway);
        }
        let subnet = self.subnets.get(candidate.pool.subnet);
        Some(
            subnet.and_then(|row| State::is_special(&row.intention, address)).unwrap_or(NeverGiven::Excluded),
        )
    }
}
