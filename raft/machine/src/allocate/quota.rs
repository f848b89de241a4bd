//! Quotas: how many addresses a namespace and each of its applications may have.
//!
//! What they have is counted as it comes and goes, whether anybody has set a quota or not, so that setting one costs no
//! scan. An address is somebody's from when an endpoint of his gets it until it is taken back. Those of an application's
//! own pools are its from when the pool has them, since nobody else can take them; they aren't counted once more when
//! they are given.

use crate::allocate::candidates::Candidate;
use crate::allocate::pick::Pick;
use crate::command::validate::within;
use crate::command::{AddressLimits, Allocate, Cause, Controller, ControllerName, Quota, Refusal};
use crate::state::State;
use crate::state::id::{AllocationId, PoolId};
use crate::state::indexed::less;
use crate::state::key::Application;
pub use crate::state::key::Had;
use crate::state::row::{Account, Endpoint, Pool, Scarce, Subnet};
use crate::value::cause::{Counted, NamedController};
use crate::value::shape::owned;
use ipam_api::Family;
use ipam_api::limits::{
    ALLOCATIONS_PER_ENDPOINT_MAX, INTERFACES_MAX, JSON_INTEGER_MAX, QUOTA_APPLICATIONS_MAX,
};
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::EndpointKey;
use std::net::IpAddr;

/// The most that a claim can need of a quota: what it asks for, and what its endpoint brings along.
const NEED_MAX: u64 = (INTERFACES_MAX + ALLOCATIONS_PER_ENDPOINT_MAX) as u64;

impl Account {
    /// That of a namespace.
    pub(crate) fn of_namespace(realm: &Name, namespace: &ObjectName) -> Self {
        Self { realm: realm.clone(), namespace: namespace.clone(), application: None }
    }

    fn of_application(realm: &Name, namespace: &ObjectName, controller: &Controller) -> Self {
        let application = Some(ControllerName::of(controller));
        Self { application, ..Self::of_namespace(realm, namespace) }
    }

    /// Those that an endpoint's addresses are counted in.
    fn all_of(endpoint: &EndpointKey, controller: Option<&Controller>) -> impl Iterator<Item = Self> {
        let (realm, namespace) = (&endpoint.realm, &endpoint.namespace);
        let own = controller.map(|controller| Self::of_application(realm, namespace, controller));
        std::iter::once(Self::of_namespace(realm, namespace)).chain(own)
    }

    pub(crate) fn is_of(&self, realm: &Name, namespace: &ObjectName) -> bool {
        (&self.realm, &self.namespace) == (realm, namespace)
    }
}

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(application) = &self.application {
            write!(f, "{application} of ")?;
        }
        match self.realm == Name::default_name() {
            true => write!(f, "namespace {}", self.namespace),
            false => write!(f, "namespace {}/{}", self.realm, self.namespace),
        }
    }
}

impl Quota {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        within(Counted::QuotaApplications, self.applications.len(), QUOTA_APPLICATIONS_MAX)?;
        for (ControllerName { group, kind, name }, limits) in &self.applications {
            let controller =
                Controller { group: group.clone(), kind: kind.clone(), name: name.clone(), uid: None };
            controller.check()?;
            if *limits == AddressLimits::default() {
                let controller = NamedController::of(&controller);
                return Err(Cause::EmptyQuota { controller }.into());
            }
        }
        let all = [&self.whole, &self.per_application].into_iter().chain(self.applications.values());
        for limit in all.flat_map(|limits| [limits.ipv4, limits.ipv6]).flatten() {
            if limit > JSON_INTEGER_MAX {
                return Err(Cause::QuotaTooLarge { limit }.into());
            }
        }
        Ok(())
    }

    /// The limit of somebody's addresses of a family, and whether it is said of that application alone.
    fn limit(&self, account: &Account, family: Family) -> Option<(u64, bool)> {
        match &account.application {
            None => self.whole.of(family).map(|limit| (limit, false)),
            Some(application) => self.of_application(application, family),
        }
    }
}

/// What keeps somebody from having more.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    account: Account,
    family: Family,
    limit: u64,
    /// Whether that is said of this application alone.
    is_own: bool,
    had: u64,
}

impl Bound {
    fn room(&self) -> u64 {
        self.limit.saturating_sub(self.had)
    }

    /// The refusal of so many addresses more.
    fn refusal(&self, asked: u64) -> Refusal {
        let Self { account, family, limit, is_own, had } = self.clone();
        Cause::QuotaExceeded { account, family, limit, is_own, had, asked }.into()
    }
}

impl State {
    /// How many addresses the endpoints and applications of a namespace have.
    #[must_use]
    pub fn had_by_namespace(&self, realm: &Name, namespace: &ObjectName) -> Had {
        self.had(&Account::of_namespace(realm, namespace))
    }

    fn had(&self, account: &Account) -> Had {
        self.index.had.get(account).copied().unwrap_or_default()
    }

    /// Counts addresses that somebody has from now on, or no longer.
    fn count_for(&mut self, account: Account, family: Family, has: bool, number: u64) {
        if number == 0 {
            return;
        }
        let had = self.index.had.entry(account.clone()).or_default();
        let of_family = had.of_mut(family);
        match has {
            true => *of_family = of_family.saturating_add(number),
            false => less(of_family, number),
        }
        if *had == Had::default() {
            self.index.had.remove(&account);
        }
        if !self.index.waiting_for.is_empty() {
            self.refresh_head(&Scarce::Quota(account, family));
        }
    }

    /// Counts an address that somebody has from now on, or no longer.
    pub(crate) fn count_address(&mut self, accounts: Vec<Account>, address: IpAddr, has: bool) {
        for account in accounts {
            self.count_for(account, Family::of(address), has, 1);
        }
    }

    /// In what an endpoint's address of a pool is counted when it is given.
    pub(crate) fn accounts(&self, endpoint: &Endpoint, pool: PoolId) -> Vec<Account> {
        match self.counts_given(pool) {
            true => Account::all_of(&endpoint.key, endpoint.controller.as_deref()).collect(),
            false => Vec::new(),
        }
    }

    /// Counts the addresses of an automatic pool as its application's.
    pub(crate) fn count_pool(&mut self, pool: &Pool, subnet: &Subnet, has: bool) {
        let Some(automatic) = pool.automatic.as_deref() else { return };
        let (family, number) = (Family::of(subnet.intention.cidr.addr()), size(pool, subnet));
        let (realm, namespace) = (&automatic.realm, &automatic.namespace);
        let own = Account::of_application(realm, namespace, &automatic.controller);
        self.count_for(own, family, has, number);
        self.count_for(Account::of_namespace(realm, namespace), family, has, number);
    }

    /// Whether the addresses of a pool are counted when they are given.
    fn counts_given(&self, pool: PoolId) -> bool {
        self.pools.get(pool).is_some_and(|pool| pool.automatic.is_none())
    }

    /// What an endpoint has of a family, as far as it is counted when it is given.
    fn given_to(&self, allocations: &[AllocationId], family: Family) -> u64 {
        let rows = allocations.iter().filter_map(|id| self.allocations.get(*id));
        let counted = rows.filter(|row| Family::of(row.address) == family && self.counts_given(row.pool));
        counted.count() as u64
    }

    /// Counts what an endpoint has as that of the application that it is of now.
    pub(crate) fn count_for_another(&mut self, old: &Endpoint, new: &Endpoint) {
        let (realm, namespace) = (&old.key.realm, &old.key.namespace);
        let account = |row: &Endpoint| {
            row.controller.as_deref().map(|own| Account::of_application(realm, namespace, own))
        };
        let (before, after) = (account(old), account(new));
        if before == after {
            return;
        }
        for family in Family::BOTH {
            let number = self.given_to(&old.allocations, family);
            for (account, has) in [(&before, false), (&after, true)] {
                if let Some(account) = account {
                    self.count_for(account.clone(), family, has, number);
                }
            }
        }
    }

    /// What bounds a namespace and its applications, if anything does.
    fn quota_of(&self, realm: &Name, namespace: &ObjectName) -> Option<&Quota> {
        let quota = &self.namespace(realm, namespace)?.intention.quota;
        (!quota.is_empty()).then_some(quota)
    }

    fn bound(&self, quota: &Quota, account: Account, family: Family) -> Option<Bound> {
        let (limit, is_own) = quota.limit(&account, family)?;
        let had = self.had(&account).of(family);
        Some(Bound { account, family, limit, is_own, had })
    }

    /// How many addresses a quota leaves to somebody, as far as that matters to anybody who waits.
    pub(crate) fn room_of_quota(&self, account: &Account, family: Family) -> u32 {
        let quota = self.quota_of(&account.realm, &account.namespace);
        let bound = quota.and_then(|quota| self.bound(quota, account.clone(), family));
        let room = bound.map_or(NEED_MAX, |bound| bound.room().min(NEED_MAX));
        u32::try_from(room).unwrap_or(0)
    }

    /// The first quota that a request would exceed, by how much it asks for.
    fn exceeded(
        &self,
        wish: &Allocate,
        row: Option<&Endpoint>,
        picks: &[Pick],
        left: &[AllocationId],
    ) -> Option<(Bound, u64)> {
        if picks.is_empty() {
            return None;
        }
        let quota = self.quota_of(&wish.endpoint.realm, &wish.endpoint.namespace)?;
        let before = row.and_then(|row| row.controller.as_deref());
        let controller = wish.stickiness.controller.as_ref().or(before);
        for account in Account::all_of(&wish.endpoint, controller) {
            for family in Family::BOTH {
                let is_new =
                    |pick: &&Pick| Family::of(pick.address) == family && self.counts_given(pick.pool);
                let asked = picks.iter().filter(is_new).count() as u64;
                if asked == 0 {
                    continue;
                }
                let Some(mut bound) = self.bound(quota, account.clone(), family) else { continue };
                // Whoever is of another application now takes along to it what he has.
                bound.had += row.map_or(0, |row| self.brought(row, &account, family));
                if (bound.had + asked).saturating_sub(self.given_to(left, family)) > bound.limit {
                    return Some((bound, asked));
                }
            }
        }
        None
    }

    /// Refuses to give more than a quota allows.
    pub(crate) fn check_quota(
        &self,
        wish: &Allocate,
        row: Option<&Endpoint>,
        picks: &[Pick],
        left: &[AllocationId],
    ) -> Result<(), Refusal> {
        match self.exceeded(wish, row, picks, left) {
            None => Ok(()),
            Some((bound, asked)) => Err(bound.refusal(asked)),
        }
    }

    /// What of a quota a request that waits lacks, if its pools could give all of it.
    pub(crate) fn lacks_of_quota(
        &self,
        wish: &Allocate,
        row: Option<&Endpoint>,
        picks: &[Pick],
    ) -> Vec<(Scarce, u32)> {
        let exceeded = self.exceeded(wish, row, picks, &[]);
        let lacking = exceeded.map(|(Bound { account, family, .. }, asked)| {
            let brought = row.map_or(0, |row| self.brought(row, &account, family));
            (Scarce::Quota(account, family), u32::try_from(asked + brought).unwrap_or(u32::MAX))
        });
        lacking.into_iter().collect()
    }

    /// What an endpoint has of a family and would bring along to an application, were it of that one: nothing if it
    /// is already, or if a whole namespace is counted.
    pub(crate) fn brought(&self, row: &Endpoint, account: &Account, family: Family) -> u64 {
        let Some(application) = &account.application else { return 0 };
        match row.controller.as_deref().map(ControllerName::of) {
            Some(own) if own == *application => 0,
            _ => self.given_to(&row.allocations, family),
        }
    }

    /// The quotas that bound the pools of an application.
    fn bounds(&self, application: &Application<'_>, family: Family) -> impl Iterator<Item = Bound> + use<'_> {
        let Application { realm, namespace, controller } = application;
        let quota = self.quota_of(realm, namespace);
        let accounts = quota.map(|quota| {
            let of_both = [
                Account::of_namespace(realm, namespace),
                Account::of_application(realm, namespace, controller),
            ];
            of_both.map(|account| self.bound(quota, account, family))
        });
        accounts.into_iter().flatten().flatten()
    }

    /// How many addresses more an application's pools may have.
    pub(crate) fn room_for_pools(&self, application: &Application<'_>, family: Family) -> Option<u64> {
        self.bounds(application, family).map(|bound| bound.room()).min()
    }

    /// How many addresses an application has less once it has left a pool: all, if nothing of it is held.
    pub(crate) fn freed_by_leaving(&self, id: PoolId, pool: &Pool) -> u64 {
        let subnet = self.subnets.named(pool.subnet);
        let is_empty = self.space(id).is_some_and(|space| space.held() == 0);
        if is_empty { size(pool, subnet) } else { 0 }
    }

    /// The refusal of an address of an application's own pool that is smaller than it shall be, since a quota leaves
    /// nothing.
    pub(crate) fn stunted(&self, exhausted: &[Candidate<'_>], family: Family) -> Option<Refusal> {
        let candidate = exhausted.first()?;
        let automatic = candidate.pool.automatic.as_deref()?;
        let lacking = automatic.wanted().checked_sub(self.space(candidate.id)?.usable())?;
        let mut used_up = self.bounds(&automatic.application(), family).filter(|bound| bound.room() == 0);
        let bound = used_up.next().filter(|_| lacking > 0)?;
        Some(bound.refusal(u64::try_from(lacking).unwrap_or(u64::MAX)))
    }

    /// Refuses a new pool that is larger than what a quota leaves to its application.
    pub(crate) fn check_pool_quota(
        &self,
        application: &Application<'_>,
        family: Family,
        wanted: u128,
        room: u64,
    ) -> Result<(), Refusal> {
        let tightest = self.bounds(application, family).min_by_key(Bound::room);
        match tightest {
            Some(bound) if wanted > room.into() => {
                Err(bound.refusal(u64::try_from(wanted).unwrap_or(u64::MAX)))
            }
            _ => Ok(()),
        }
    }
}

/// Addresses that a pool has, whatever their state.
fn size(pool: &Pool, subnet: &Subnet) -> u64 {
    u64::try_from(owned(&pool.intention, subnet.intention.cidr).size()).unwrap_or(u64::MAX)
}
