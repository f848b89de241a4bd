//! Waiting claims: who asks with `wait` stays in line while pools can't give, and gets what it asked for in the
//! same `apply` that makes it possible.
//!
//! A claim waits for the pools of the first family that couldn't be given, or for what a quota leaves, and says of each
//! how many addresses it would have to have. So whatever frees an address finds the first that it helps without looking at the others;
//! whoever was looked at in vain waits for something else then, and isn't found again before that has come.
//! ADR 14 has the reasons.

use crate::allocate::carry_over::Comer;
use crate::allocate::course::{Course, Courses};
use crate::allocate::pick::{Pick, Spoken};
use crate::allocate::selectors::Taker;
use crate::apply::step::Step;
use crate::apply::work::Search;
use crate::broken::broken;
use crate::command::validate::within;
use crate::command::{
    Action, Allocate, Answer, Cause, Manager, NamespaceIntention, Origin, Pending, Refusal, Text, Via,
};
use crate::event::What;
use crate::invariant::CLAIM_OF_HEAD;
use crate::state::State;
use crate::state::id::{EndpointId, PoolId};
use crate::state::row::{Account, Pool, Scarce, Waiting};
use crate::value::cause::{Closed, Counted, WhyNot};
use crate::value::condition::Why;
use ipam_api::limits::{INTERFACES_MAX, WAITING_MAX, WAITING_POOLS_MAX};
use ipam_api::name::Name;
use ipam_api::resource::EndpointKey;
use ipam_api::{Code, Family};
use std::collections::BTreeSet;

impl State {
    /// How many addresses a pool could give now, as far as that matters to anybody who waits.
    fn room(&self, pool: PoolId) -> u32 {
        let most = INTERFACES_MAX as u128;
        let (Some(row), Some(space)) = (self.pools.get(pool), self.space(pool)) else { return 0 };
        let intention = &row.intention;
        if self.why_closed(pool).is_some() {
            return 0;
        }
        let free = space.counts().free.min(most);
        let resting = if intention.strict_cooling || free == most {
            0
        } else {
            let rows = space.cooling.iter().filter_map(|id| self.coolings.get(*id));
            let offered = rows.filter(|row| space.offered.contains(ipam_api::address::number(row.address)));
            offered.take(INTERFACES_MAX).count() as u128
        };
        u32::try_from((free + resting).min(most)).unwrap_or(0)
    }

    /// Why a pool gives nothing, whatever it has.
    fn why_closed(&self, pool: PoolId) -> Option<Closed> {
        let row = &self.pools.get(pool)?.intention;
        match () {
            () if row.terminating => Some(Closed::Terminating),
            () if row.disabled => Some(Closed::Disabled),
            () if row.drains_to.is_some() => Some(Closed::Drained),
            () if !self.is_confirmed(pool) => Some(Closed::Unconfirmed),
            () => None,
        }
    }

    /// Why somebody waits, as it is now: pools may have been opened or closed since they were tried.
    #[must_use]
    pub fn why_waiting(&self, waiting: &Waiting) -> (Why, Cause) {
        let as_it_was = || (waiting.why, Cause::clone(&waiting.cause));
        let pools = waiting.lacks.iter().filter_map(|(of, _)| match of {
            Scarce::Pool(pool) => Some((&self.pools.get(*pool)?.intention.name, self.why_closed(*pool))),
            Scarce::Quota(..) => None,
        });
        let pools: Vec<_> = pools.collect();
        let closed: Vec<(Name, Closed)> =
            pools.iter().filter_map(|(name, why)| Some((Name::clone(name), (*why)?))).collect();
        match waiting.why {
            _ if pools.is_empty() => as_it_was(),
            Why::PoolExhausted | Why::PoolNotReady if closed.len() == pools.len() => {
                (Why::PoolNotReady, Cause::PoolsClosed { pools: closed })
            }
            Why::PoolNotReady if closed.is_empty() => {
                let pools = pools.iter().map(|(name, _)| Name::clone(name)).collect();
                (Why::PoolExhausted, Cause::NothingFree { pools })
            }
            _ => as_it_was(),
        }
    }

    /// Finds out again which claim a pool could help first.
    pub(crate) fn refresh_head(&mut self, of: &Scarce) {
        if self.index.waiting_for.is_empty() && self.index.head_of.is_empty() {
            return;
        }
        let old = self.index.head_of.get(of).copied();
        if old.is_none() && self.orders_for(of).next().is_none() {
            return;
        }
        let room = match of {
            Scarce::Pool(pool) => self.room(*pool),
            Scarce::Quota(account, family) => self.room_of_quota(account, *family),
        };
        // The first of all who need as much, for each number that anybody needs.
        let first_from = |need: u32| {
            let enough = (of.clone(), need, 0)..=(of.clone(), room, u64::MAX);
            let found = if need <= room { self.index.waiting_for.range(enough).next() } else { None };
            found.map(|(_, need, order)| (*need, *order))
        };
        let firsts = std::iter::successors(first_from(1), |(need, _)| first_from(need.saturating_add(1)));
        let new = firsts.map(|(_, order)| order).min();
        if old == new {
            return;
        }
        if let Some(order) = old {
            self.index.heads.remove(&(order, of.clone()));
            self.index.head_of.remove(of);
        }
        if let Some(order) = new {
            self.index.heads.insert((order, of.clone()));
            self.index.head_of.insert(of.clone(), order);
        }
    }

    /// The same for all that anybody waits for.
    pub(crate) fn refresh_all_heads(&mut self) {
        let all: BTreeSet<Scarce> = self.index.waiting_for.iter().map(|(of, ..)| of.clone()).collect();
        for of in all.iter().chain(&self.index.head_of.keys().cloned().collect::<Vec<_>>()) {
            self.refresh_head(of);
        }
    }

    /// The same for what a namespace's quota leaves, which has changed.
    pub(crate) fn refresh_heads_of(&mut self, namespace: &NamespaceIntention) {
        let (realm, name) = (&namespace.realm, &namespace.name);
        let whole = Account::of_namespace(realm, name);
        let from = (Scarce::Quota(whole, Family::V4), 0, 0);
        let behind = self.index.waiting_for.range(from..).map(|(of, ..)| of);
        let is_of = |of: &&Scarce| matches!(of, Scarce::Quota(account, _) if account.is_of(realm, name));
        let all: BTreeSet<Scarce> = behind.take_while(is_of).cloned().collect();
        for of in &all {
            self.refresh_head(of);
        }
    }

    /// The places in line of those who wait for something, those first who need least of it.
    fn orders_for(&self, of: &Scarce) -> impl Iterator<Item = u64> + use<'_> {
        let range = (of.clone(), 0, 0)..=(of.clone(), u32::MAX, u64::MAX);
        self.index.waiting_for.range(range).map(|(_, _, order)| *order)
    }

    /// What a wish lacks: the pools of the first family that can't be given, with how many addresses of each it
    /// would have to have; or what a quota leaves. None if nothing of that could ever help.
    fn lacks(&self, wish: &Allocate, endpoint: Option<EndpointId>, search: Search<'_>) -> Vec<(Scarce, u32)> {
        let lacks = self.lacks_of_pools(wish, endpoint, search);
        // What was cut short is no complete list of what may help.
        if search.work.is_exceeded() { Vec::new() } else { lacks }
    }

    fn lacks_of_pools(
        &self,
        wish: &Allocate,
        endpoint: Option<EndpointId>,
        search: Search<'_>,
    ) -> Vec<(Scarce, u32)> {
        let mut picks: Vec<Pick> = Vec::new();
        let mut courses = Courses::default();
        for interface in &wish.interfaces {
            let taker = Taker::of(self, wish, interface);
            let all = self.courses_for(interface, &taker, &[], search, &mut courses);
            let Ok(mut all) = all else { return Vec::new() };
            for course in &mut all {
                // Nothing is asked for by value.
                let spoken = Spoken { picked: &picks, behind: &[] };
                match self.pick_any(&interface.name, course, &taker, spoken, search) {
                    Some(pick) => picks.push(pick),
                    None => return lacking(course, &picks),
                }
            }
            courses.keep(interface, taker, all);
        }
        self.lacks_of_quota(wish, endpoint.and_then(|id| self.endpoints.get(id)), &picks)
    }

    /// Whether an endpoint has addresses on one of these interfaces: then it comes back, and asks for others.
    fn holds_some(&self, wish: &Allocate, endpoint: Option<EndpointId>) -> bool {
        let Some(row) = endpoint.and_then(|id| self.endpoints.get(id)) else { return false };
        let comer = Comer { wish, row: Some(row) };
        wish.interfaces.iter().any(|interface| !self.portable(&comer, interface).is_empty())
    }

    /// What an endpoint waits for.
    #[must_use]
    pub fn waiting(&self, endpoint: EndpointId) -> Option<&Waiting> {
        self.endpoints.get(endpoint)?.waiting.as_deref()
    }

    /// What of the quotas that an endpoint waits for it would use up itself, by what it would bring along.
    fn brought_by(&self, endpoint: EndpointId) -> Vec<u32> {
        let Some(row) = self.endpoints.get(endpoint) else { return Vec::new() };
        let Some(waiting) = &row.waiting else { return Vec::new() };
        let brought = waiting.lacks.iter().map(|(of, _)| match of {
            Scarce::Pool(_) => 0,
            Scarce::Quota(account, family) => {
                u32::try_from(self.brought(row, account, *family)).unwrap_or(u32::MAX)
            }
        });
        brought.collect()
    }

    /// Who waits for a pool, those first who need least of it.
    fn waiting_for(&self, pool: PoolId) -> Vec<(EndpointId, Waiting)> {
        let orders = self.orders_for(&Scarce::Pool(pool));
        let endpoints = orders.filter_map(|order| self.index.waiting.get(&order).copied());
        endpoints.filter_map(|endpoint| Some((endpoint, self.waiting(endpoint)?.clone()))).collect()
    }

    /// How many claims wait.
    #[must_use]
    pub fn waiting_count(&self) -> usize {
        self.index.waiting.len()
    }
}

impl Step<'_> {
    /// Lets a request wait that was refused; or the refusal, if waiting wouldn't help.
    pub(crate) fn wait(
        &mut self,
        wish: &Allocate,
        endpoint: Option<EndpointId>,
        refusal: Refusal,
    ) -> Result<Answer, Refusal> {
        // What could help is looked for among the pools that gave nothing, once more and on an account of its own.
        let search = Search { work: &self.serving.lacks, ..self.search()? };
        if self.state.holds_some(wish, endpoint) {
            // What it has stays as it is, and is nothing to wait with.
            return Err(refusal);
        }
        let lacks = self.state.lacks(wish, endpoint, search);
        search.work.check()?;
        if let Some((endpoint, waiting)) = endpoint.and_then(|id| Some((id, self.state.waiting(id)?))) {
            if waiting.wish != *wish {
                return Err(Cause::WaitsAlready { endpoint: wish.endpoint.clone() }.into());
            }
            let why = why(&refusal, &lacks);
            self.note_waiting(endpoint, lacks, why, refusal.cause);
            return Ok(self.pending(endpoint, true));
        }
        if lacks.is_empty() {
            return Err(refusal);
        }
        within(Counted::WaitingClaims, self.state.waiting_count() + 1, WAITING_MAX)?;
        self.state.check_waiting_of(search.grant)?;
        let endpoint = match endpoint {
            Some(id) => id,
            None => {
                let id = self.state.new_id();
                let row = self.new_endpoint(id, wish);
                self.put_endpoint(id, row);
                id
            }
        };
        let order = self.state.tick();
        let waiting = Waiting {
            order,
            wish: wish.clone(),
            credential: self.credential.clone(),
            principal: Text::clone(&self.origin.principal),
            request_id: Text::clone(&self.origin.request_id),
            since_wall_ms: self.at.wall_ms,
            why: why(&refusal, &lacks),
            cause: refusal.cause,
            lacks,
        };
        self.emit(What::Waits { endpoint: wish.endpoint.clone(), why: waiting.why });
        self.put_waiting(endpoint, Some(waiting));
        Ok(self.pending(endpoint, false))
    }

    fn pending(&self, endpoint: EndpointId, repeated: bool) -> Answer {
        let waiting = self.state.waiting(endpoint);
        Answer::Pending(Pending {
            repeated,
            why: waiting.map_or(Why::AllocationFailed, |waiting| waiting.why),
            cause: waiting.map_or_else(|| Box::new(Cause::AwaitedPoolsGone), |waiting| waiting.cause.clone()),
            since_wall_ms: waiting.map_or(0, |waiting| waiting.since_wall_ms),
        })
    }

    /// Writes what an endpoint waits for, or that it waits no longer.
    pub(crate) fn put_waiting(&mut self, endpoint: EndpointId, waiting: Option<Waiting>) {
        let Some(mut row) = self.state.endpoints.get(endpoint).cloned() else { return };
        let mut touched = Vec::new();
        if let Some(old) = &row.waiting {
            touched.extend(old.lacks.iter().map(|(of, _)| of.clone()));
        }
        if let Some(new) = &waiting {
            touched.extend(new.lacks.iter().map(|(of, _)| of.clone()));
        }
        row.waiting = waiting.map(Box::new);
        self.state.write(endpoint, row);
        for of in &touched {
            self.state.refresh_head(of);
        }
    }

    /// Changes what an endpoint is or has, and with it how much of a quota it would have to get.
    pub(crate) fn with_its_needs(&mut self, endpoint: EndpointId, change: impl FnOnce(&mut Self)) {
        if self.state.index.waiting.is_empty() {
            return change(self);
        }
        let before = self.state.brought_by(endpoint);
        change(self);
        let after = self.state.brought_by(endpoint);
        if before != after
            && let Some(mut waiting) = self.state.waiting(endpoint).cloned()
        {
            for ((_, need), (before, after)) in waiting.lacks.iter_mut().zip(before.iter().zip(&after)) {
                *need = need.saturating_sub(*before).saturating_add(*after);
            }
            self.put_waiting(endpoint, Some(waiting));
        }
    }

    /// Takes note of what a claim waits for now, and says so if the reason has changed.
    fn note_waiting(&mut self, endpoint: EndpointId, lacks: Vec<(Scarce, u32)>, why: Why, cause: Box<Cause>) {
        let Some(old) = self.state.waiting(endpoint).cloned() else { return };
        // The cause alone, with its counts, is no reason to write anything.
        if (&lacks, why) == (&old.lacks, old.why) {
            return;
        }
        let new = Waiting { lacks, why, cause, ..old.clone() };
        self.state.tick();
        if new.why != old.why {
            self.emit(What::Waits { endpoint: old.wish.endpoint.clone(), why });
        }
        self.put_waiting(endpoint, Some(new));
    }

    /// Gives to those who have waited longest what can be given now; a bounded number at once, the rest with the
    /// next commands.
    pub(crate) fn serve_waiting(&mut self) {
        while let Some((order, _)) = self.state.index.heads.get_min() {
            let Some(endpoint) = self.state.index.waiting.get(order).copied() else {
                broken(CLAIM_OF_HEAD, format!("place {order}"))
            };
            if !self.serving.begin_try() {
                return;
            }
            self.serve(endpoint);
        }
    }

    fn serve(&mut self, endpoint: EndpointId) {
        let Some(waiting) = self.state.waiting(endpoint).cloned() else { return };
        let rights = self.state.grant(&waiting.credential);
        let origin = Origin {
            principal: Text::clone(&waiting.principal),
            via: Via::Http,
            request_id: Text::clone(&waiting.request_id),
            comment: None,
            not_after_ms: None,
        };
        // Given as if the one who waits had asked just now.
        let mut step = Step {
            state: &mut *self.state,
            at: self.at,
            origin: &origin,
            credential: &waiting.credential,
            manager: &Manager::Nobody,
            rights: &rights,
            work: &self.serving.work,
            serving: self.serving,
            events: std::mem::take(&mut self.events),
        };
        let spent = step.work.spent();
        let refused = step.try_waiting(endpoint, &waiting).err();
        self.events = step.events;
        let Some(refusal) = refused else { return };
        let search = |grant| Search { grant, work: &self.serving.work };
        let lacks =
            rights.as_ref().map(|(grant, _)| self.state.lacks(&waiting.wish, Some(endpoint), search(grant)));
        let lacks = lacks.unwrap_or_default();
        if self.serving.work.is_exceeded() && spent > 0 {
            // The others before it used up what there was; the next command begins with it.
            return;
        }
        let why = why(&refusal, &lacks);
        self.note_waiting(endpoint, lacks, why, refusal.cause);
    }

    fn try_waiting(&mut self, endpoint: EndpointId, waiting: &Waiting) -> Result<(), Refusal> {
        let wish = &waiting.wish;
        self.permitted(&Action::Allocate(wish.clone()))?;
        let plan = self.state.plan(wish, Some(endpoint), self.search()?)?;
        self.give(wish, plan);
        Ok(())
    }

    /// Whoever holds something on an interface that it waited for waits no longer.
    pub(crate) fn stop_waiting(&mut self, endpoint: EndpointId, wish: &Allocate) {
        let Some(waiting) = self.state.waiting(endpoint) else { return };
        let names =
            |interfaces: &Allocate| interfaces.interfaces.iter().map(|one| one.name.clone()).collect();
        let (given, waited): (Vec<_>, Vec<_>) = (names(wish), names(&waiting.wish));
        if given.iter().any(|name| waited.contains(name)) {
            self.put_waiting(endpoint, None);
        }
    }

    /// Ends the waiting of all incarnations of an endpoint.
    pub(crate) fn withdraw(&mut self, key: &EndpointKey) {
        let ids: Vec<EndpointId> = self.state.incarnations(key).collect();
        for id in ids {
            if self.state.waiting(id).is_none() {
                continue;
            }
            self.state.tick();
            self.emit(What::Withdrawn { endpoint: key.clone() });
            self.put_waiting(id, None);
            self.remove_if_empty(id);
        }
    }

    /// Whoever waits for a pool that is drained to another one waits for that one, too.
    pub(crate) fn wait_for_stand_in(&mut self, drained: PoolId) {
        let to = self.state.pools.get(drained).and_then(|pool| pool.intention.drains_to.as_ref());
        let Some(to) = to.and_then(|to| self.state.find::<Pool>(to)) else { return };
        self.wait_for_both(drained, to);
    }

    /// Whoever waits for one pool waits for another one, too.
    pub(crate) fn wait_for_both(&mut self, one: PoolId, other: PoolId) {
        for (endpoint, waiting) in self.state.waiting_for(one) {
            let mut lacks = waiting.lacks.clone();
            let need = lacks.iter().find(|(of, _)| *of == Scarce::Pool(one)).map_or(1, |(_, need)| *need);
            let more = (Scarce::Pool(other), need);
            if lacks.len() < WAITING_POOLS_MAX && !lacks.contains(&more) {
                lacks.push(more);
            }
            self.note_waiting(endpoint, lacks, waiting.why, waiting.cause);
        }
    }

    /// Nobody waits for a pool that is gone.
    pub(crate) fn forget_waiting_for(&mut self, pool: PoolId) {
        for (endpoint, waiting) in self.state.waiting_for(pool) {
            let lacks: Vec<(Scarce, u32)> =
                waiting.lacks.iter().filter(|(of, _)| *of != Scarce::Pool(pool)).cloned().collect();
            let (why, cause) = if lacks.is_empty() {
                (Why::AllocationFailed, Box::new(Cause::AwaitedPoolsGone))
            } else {
                (waiting.why, waiting.cause)
            };
            self.note_waiting(endpoint, lacks, why, cause);
        }
        self.state.refresh_head(&Scarce::Pool(pool));
    }
}

/// The pools of a course that gave nothing and may give later, with how many addresses of each a request needs that
/// has picked these already.
fn lacking(course: &Course<'_>, picks: &[Pick]) -> Vec<(Scarce, u32)> {
    let may_come = |why: &Option<WhyNot>| {
        let code = why.map(WhyNot::code);
        matches!(code, None | Some(Code::PoolDisabled | Code::Terminating | Code::GenerationUnconfirmed))
    };
    let waits = course.passed.iter().filter(|(_, why)| may_come(why)).take(WAITING_POOLS_MAX);
    let need = |pool: PoolId| {
        let taken = picks.iter().filter(|pick| pick.pool == pool).count();
        u32::try_from(taken + 1).unwrap_or(u32::MAX)
    };
    waits.map(|(candidate, _)| (Scarce::Pool(candidate.id), need(candidate.id))).collect()
}

fn why(refusal: &Refusal, lacks: &[(Scarce, u32)]) -> Why {
    match refusal.code() {
        _ if lacks.is_empty() => Why::AllocationFailed,
        Code::PoolExhausted => Why::PoolExhausted,
        Code::QuotaExceeded => Why::QuotaExceeded,
        _ => Why::PoolNotReady,
    }
}
