//! The model's own counting of what a namespace and its applications have: everything, every time.

use std::net::IpAddr;

use ipam_api::name::{Name, ObjectName, ResourceName};
use ipam_api::{Code, Family};
use ipam_machine::command::{Allocate, Controller, ControllerName};

use crate::model::naive::{Held, Incarnation, Model, Pool, Spot, all_of};

/// Scope and family of a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    realm: Name,
    namespace: ObjectName,
    application: Option<ControllerName>,
    family: Family,
}

impl Bound {
    /// Those that could keep endpoints of a controller from having more.
    fn all(realm: &Name, namespace: &ObjectName, controller: Option<&Controller>) -> Vec<Self> {
        let own = controller.map(|own| Some(ControllerName::of(own)));
        let bound = |application: Option<ControllerName>, family| Self {
            realm: realm.clone(),
            namespace: namespace.clone(),
            application,
            family,
        };
        let of = |application: Option<ControllerName>| {
            Family::BOTH.map(|family| bound(application.clone(), family))
        };
        std::iter::once(None).chain(own).flat_map(of).collect()
    }

    fn is_of(&self, realm: &Name, namespace: &ObjectName, controller: Option<&Controller>) -> bool {
        (&self.realm, &self.namespace) == (realm, namespace)
            && (self.application.is_none() || self.application == controller.map(ControllerName::of))
    }
}

impl Model {
    pub(crate) fn owned_by(&self, pool: &Pool) -> Vec<IpAddr> {
        let cidr = self.subnet_of(&pool.spec).cidr;
        all_of(cidr).filter(|address| self.owns(&pool.spec, *address)).collect()
    }

    /// Number of addresses in the scope.
    pub(crate) fn used(&self, bound: &Bound) -> usize {
        let of_pools = self.pools.values().filter_map(|pool| {
            let own = pool.automatic.as_ref()?;
            let is_own = bound.is_of(&own.realm, &own.namespace, Some(&own.controller));
            let family = Family::of(self.subnet_of(&pool.spec).cidr.addr());
            (is_own && family == bound.family).then(|| self.owned_by(pool).len())
        });
        let given = self.held.iter().filter(|one| {
            let holder = self.endpoints.iter().find(|other| other.number == one.endpoint).expect("it holds");
            Family::of(one.address) == bound.family
                && self.pools[&one.pool].automatic.is_none()
                && bound.is_of(&holder.key.realm, &holder.key.namespace, holder.controller.as_ref())
        });
        of_pools.sum::<usize>() + given.count()
    }

    fn limit(&self, bound: &Bound) -> Option<u64> {
        let name = ResourceName::in_realm(&bound.realm, &bound.namespace);
        let quota = &self.namespaces.get(&name)?.quota;
        let Some(application) = &bound.application else { return quota.whole.of(bound.family) };
        let own = quota.applications.get(application).and_then(|limits| limits.of(bound.family));
        own.or(quota.per_application.of(bound.family))
    }

    /// Remaining quota; unlimited if there is none.
    pub(crate) fn room_of_quota(&self, bound: &Bound) -> usize {
        let limit = self.limit(bound).map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
        limit.saturating_sub(self.used(bound))
    }

    /// Number of addresses that an endpoint would bring to an application that it doesn't belong to yet.
    pub(crate) fn brought(&self, one: &Incarnation, bound: &Bound) -> usize {
        if bound.is_of(&one.key.realm, &one.key.namespace, one.controller.as_ref()) {
            return 0;
        }
        let brings = |held: &&Held| {
            held.endpoint == one.number
                && Family::of(held.address) == bound.family
                && self.pools[&held.pool].automatic.is_none()
        };
        self.held.iter().filter(brings).count()
    }

    /// Quota that limits an application's pools, and the addresses that it leaves.
    pub(crate) fn room_for_pools(
        &self,
        realm: &Name,
        namespace: &ObjectName,
        controller: &Controller,
        family: Family,
    ) -> usize {
        let all = Bound::all(realm, namespace, Some(controller)).into_iter();
        all.filter(|bound| bound.family == family)
            .map(|bound| self.room_of_quota(&bound))
            .min()
            .expect("some")
    }

    /// First quota that the allocations exceed, and the number of addresses requested from it.
    pub(crate) fn exceeded(
        &self,
        request: &Allocate,
        meant: Option<&Incarnation>,
        given: &[Held],
        left: &[Spot],
    ) -> Option<(Bound, usize)> {
        let mut after = self.clone();
        let endpoint = match meant {
            Some(meant) => {
                let row = after.endpoints.iter_mut().find(|one| one.number == meant.number).expect("meant");
                *row = Model::updated_endpoint(meant, request);
                row.clone()
            }
            None => {
                after.begin_incarnation(request);
                after.endpoints.last().expect("it has begun").clone()
            }
        };
        after.held.retain(|one| !left.contains(&one.spot()));
        after.held.extend(given.iter().map(|one| Held { endpoint: endpoint.number, ..one.clone() }));
        let all = Bound::all(&endpoint.key.realm, &endpoint.key.namespace, endpoint.controller.as_ref());
        all.into_iter().find_map(|bound| {
            let is_asked = |one: &&Held| {
                Family::of(one.address) == bound.family && self.pools[&one.pool].automatic.is_none()
            };
            let asked = given.iter().filter(is_asked).count();
            let limit = after.limit(&bound).map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
            (asked > 0 && after.used(&bound) > limit).then_some((bound, asked))
        })
    }

    /// The code for an application's own pool that has nothing left, since it couldn't grow.
    pub(crate) fn exhausted_reason(&self, pool: &Pool) -> Code {
        let Some(own) = &pool.automatic else { return Code::PoolExhausted };
        let family = Family::of(self.subnet_of(&pool.spec).cidr.addr());
        let room = self.room_for_pools(&own.realm, &own.namespace, &own.controller, family);
        if room == 0 && self.usable(&pool.spec) < crate::model::naive::automatic::wanted(own) {
            return Code::QuotaExceeded;
        }
        Code::PoolExhausted
    }
}
