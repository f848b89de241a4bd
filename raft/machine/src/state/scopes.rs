//! Accounts: numbers of addresses of each namespace and application, for quotas and other limits.
//!
//! Addresses are counted with a quota or without one, so that setting a quota needs no scan. An address
//! counts from its allocation until its release. Addresses of an automatic pool count while the pool contains
//! them, since only its application can use them; they don't count again when they are allocated.

use crate::command::{Cause, ControllerName, Quota, Refusal, Text};
use crate::state::State;
use crate::state::id::{AllocationId, PoolId};
use crate::state::index::Index;
use crate::state::indexed::less;
use crate::state::key::{Application, QuotaUsage, ReplayUsage};
use crate::state::row::{Automatic, Endpoint, Pool, Subnet, WaitTarget};
use crate::value::Controller;
use crate::value::quota::QuotaScope;
use crate::value::shape::owned;
use ipam_api::Family;
use ipam_api::limits::{ALLOCATIONS_PER_ENDPOINT_MAX, INTERFACES_MAX};
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::EndpointKey;
use std::net::IpAddr;

/// Maximum quota that a claim can need: its request and the addresses that its endpoint brings along.
const NEED_MAX: u64 = (INTERFACES_MAX + ALLOCATIONS_PER_ENDPOINT_MAX) as u64;

impl QuotaScope {
    /// Account of a namespace.
    pub(crate) fn of_namespace(realm: &Name, namespace: &ObjectName) -> Self {
        Self { realm: realm.clone(), namespace: namespace.clone(), application: None }
    }

    fn of_application(realm: &Name, namespace: &ObjectName, controller: &Controller) -> Self {
        let application = Some(ControllerName::of(controller));
        Self { application, ..Self::of_namespace(realm, namespace) }
    }

    /// Accounts that count an endpoint's addresses.
    pub(crate) fn all_of(
        endpoint: &EndpointKey,
        controller: Option<&Controller>,
    ) -> impl Iterator<Item = Self> {
        let (realm, namespace) = (&endpoint.realm, &endpoint.namespace);
        let own = controller.map(|controller| Self::of_application(realm, namespace, controller));
        std::iter::once(Self::of_namespace(realm, namespace)).chain(own)
    }

    pub(crate) fn is_of(&self, realm: &Name, namespace: &ObjectName) -> bool {
        (&self.realm, &self.namespace) == (realm, namespace)
    }
}

impl std::fmt::Display for QuotaScope {
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

/// Bound of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) scope: QuotaScope,
    pub(crate) family: Family,
    pub(crate) limit: u64,
    /// True if the quota names this application.
    is_own: bool,
    pub(crate) used: u64,
}

impl Bound {
    pub(crate) fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Refusal of this many additional addresses.
    pub(crate) fn refusal(&self, asked: u64) -> Refusal {
        let Self { scope, family, limit, is_own, used } = self.clone();
        Cause::QuotaExceeded { scope, family, limit, is_own, used, asked }.into()
    }
}

impl Quota {
    /// The limit of an account's addresses of a family, and true if the quota names that application.
    fn limit(&self, scope: &QuotaScope, family: Family) -> Option<(u64, bool)> {
        match &scope.application {
            None => self.whole.of(family).map(|limit| (limit, false)),
            Some(application) => self.of_application(application, family),
        }
    }
}

impl State {
    /// Number of addresses of a namespace's endpoints and applications.
    #[must_use]
    pub fn used_by_namespace(&self, realm: &Name, namespace: &ObjectName) -> QuotaUsage {
        self.used(&QuotaScope::of_namespace(realm, namespace))
    }

    fn used(&self, scope: &QuotaScope) -> QuotaUsage {
        self.index.used.get(scope).copied().unwrap_or_default()
    }

    /// Adds addresses to an account, or subtracts them if `has` is false.
    fn count_for(&mut self, scope: QuotaScope, family: Family, has: bool, number: u64) {
        if number == 0 {
            return;
        }
        let used = self.index.used.change(scope.clone(), |used| {
            let of_family = used.of_mut(family);
            match has {
                true => *of_family = of_family.saturating_add(number),
                false => less(of_family, number),
            }
            *used
        });
        if used == QuotaUsage::default() {
            self.index.used.remove(&scope);
        }
        if !self.index.waiting_for.is_empty() {
            self.refresh_waiter(&WaitTarget::Quota(scope, family));
        }
    }

    /// Adds an address to accounts, or subtracts it if `has` is false.
    pub(crate) fn count_address(&mut self, scopes: Vec<QuotaScope>, address: IpAddr, has: bool) {
        for scope in scopes {
            self.count_for(scope, Family::of(address), has, 1);
        }
    }

    /// Accounts that count an address of a pool from its allocation to an endpoint.
    pub(crate) fn scopes(&self, endpoint: &Endpoint, pool: PoolId) -> Vec<QuotaScope> {
        match self.counts_given(pool) {
            true => QuotaScope::all_of(&endpoint.key, endpoint.controller.as_deref()).collect(),
            false => Vec::new(),
        }
    }

    /// Counts the addresses of an automatic pool as its application's.
    pub(crate) fn count_pool(&mut self, pool: &Pool, subnet: &Subnet, has: bool) {
        let Some(automatic) = pool.automatic.as_deref() else { return };
        let (family, number) = (Family::of(subnet.spec.cidr.addr()), size(pool, subnet));
        let (realm, namespace) = (&automatic.realm, &automatic.namespace);
        let own = QuotaScope::of_application(realm, namespace, &automatic.controller);
        self.count_for(own, family, has, number);
        self.count_for(QuotaScope::of_namespace(realm, namespace), family, has, number);
    }

    /// Returns true if the addresses of a pool count from their allocation.
    pub(crate) fn counts_given(&self, pool: PoolId) -> bool {
        self.pools.named(pool).automatic.is_none()
    }

    /// Number of addresses of a family that count from their allocation.
    pub(crate) fn given_to(&self, allocations: &[AllocationId], family: Family) -> u64 {
        let rows = allocations.iter().map(|id| self.allocations.named(*id));
        let counted = rows.filter(|row| Family::of(row.address) == family && self.counts_given(row.pool));
        counted.count() as u64
    }

    /// Moves the count of an endpoint's addresses to its present application.
    pub(crate) fn count_for_another(&mut self, old: &Endpoint, new: &Endpoint) {
        let (realm, namespace) = (&old.key.realm, &old.key.namespace);
        let scope = |row: &Endpoint| {
            row.controller.as_deref().map(|own| QuotaScope::of_application(realm, namespace, own))
        };
        let (before, after) = (scope(old), scope(new));
        if before == after {
            return;
        }
        for family in Family::BOTH {
            let number = self.given_to(&old.allocations, family);
            for (scope, has) in [(&before, false), (&after, true)] {
                if let Some(scope) = scope {
                    self.count_for(scope.clone(), family, has, number);
                }
            }
        }
    }

    /// Quota of a namespace and its applications, if any.
    pub(crate) fn quota_of(&self, realm: &Name, namespace: &ObjectName) -> Option<&Quota> {
        let quota = &self.namespace(realm, namespace)?.spec.quota;
        (!quota.is_empty()).then_some(quota)
    }

    pub(crate) fn bound(&self, quota: &Quota, scope: QuotaScope, family: Family) -> Option<Bound> {
        let (limit, is_own) = quota.limit(&scope, family)?;
        let used = self.used(&scope).of(family);
        Some(Bound { scope, family, limit, is_own, used })
    }

    /// Number of addresses that a quota leaves to an account, up to the largest need of a claim.
    pub(crate) fn room_of_quota(&self, scope: &QuotaScope, family: Family) -> u32 {
        let quota = self.quota_of(&scope.realm, &scope.namespace);
        let bound = quota.and_then(|quota| self.bound(quota, scope.clone(), family));
        let room = bound.map_or(NEED_MAX, |bound| bound.room().min(NEED_MAX));
        u32::try_from(room).unwrap_or(0)
    }

    /// Number of addresses of a family that an endpoint would bring to an application. None if it belongs to
    /// that application already, or if the account is a whole namespace.
    pub(crate) fn brought(&self, row: &Endpoint, scope: &QuotaScope, family: Family) -> u64 {
        let Some(application) = &scope.application else { return 0 };
        match row.controller.as_deref().map(ControllerName::of) {
            Some(own) if own == *application => 0,
            _ => self.given_to(&row.allocations, family),
        }
    }

    /// The quotas that bound the pools of an application.
    pub(crate) fn bounds(
        &self,
        application: &Application<'_>,
        family: Family,
    ) -> impl Iterator<Item = Bound> + use<'_> {
        let Application { realm, namespace, controller } = application;
        let quota = self.quota_of(realm, namespace);
        let scopes = quota.map(|quota| {
            let of_both = [
                QuotaScope::of_namespace(realm, namespace),
                QuotaScope::of_application(realm, namespace, controller),
            ];
            of_both.map(|scope| self.bound(quota, scope, family))
        });
        scopes.into_iter().flatten().flatten()
    }
}

/// Number of addresses of a pool in any state.
pub(crate) fn size(pool: &Pool, subnet: &Subnet) -> u64 {
    u64::try_from(owned(&pool.spec, subnet.spec.cidr).size()).unwrap_or(u64::MAX)
}

impl Index {
    /// Adds an automatic pool to the count of its node, or subtracts it if `is_present` is false.
    pub(crate) fn count_automatic(&mut self, automatic: &Automatic, is_present: bool) {
        let Some(node) = &automatic.created_by else { return };
        let mut count = self.automatic_of_node.get(node).copied().unwrap_or(0);
        match is_present {
            true => count += 1,
            false => less(&mut count, 1),
        }
        match count {
            0 => self.automatic_of_node.remove(node),
            _ => self.automatic_of_node.insert(node.clone(), count),
        };
    }

    /// Changes the bytes kept for a principal, and its rank among all of them.
    pub(crate) fn use_for_replays(&mut self, principal: &Text, change: impl FnOnce(&mut ReplayUsage)) {
        let before = self.replay_usage.get(principal).copied().unwrap_or_default();
        let mut after = before;
        change(&mut after);
        self.replay_bytes_of.remove(&(before.bytes, Text::clone(principal)));
        if after.keys == 0 {
            self.replay_usage.remove(principal);
        } else {
            self.replay_usage.insert(Text::clone(principal), after);
            self.replay_bytes_of.insert((after.bytes, Text::clone(principal)));
        }
    }
}
