//! Lookups of rows by name and by application.

use crate::command::{
    InterfaceRequest, Kind, Metadata, NetworkSpec, Probing, Refusal, ScaleController, Text,
};
use crate::space::Space;
use crate::state::State;
use crate::state::id::{Id, NetworkId, PoolId, SubnetId};
use crate::state::key::{Application, ControllerKey};
use crate::state::refuse::not_found;
use crate::state::row::{Automatic, AutomaticStanding, Epoch, Meta, Namespace, Network, Node, Pool, Subnet};
use crate::value::RareList;
use ipam_api::Family;
use ipam_api::name::{InterfaceName, Name, ObjectName, ResourceName};

impl State {
    /// Writes the network `default`, which applies where a request names no network.
    pub(crate) fn put_default_network(&mut self) {
        let revision = self.revision();
        let founder = Text::identifier("founding");
        let meta = Meta {
            id: revision,
            revision,
            created_wall_ms: 0,
            created_by: Text::clone(&founder),
            updated_wall_ms: 0,
            updated_by: founder,
            updated_fields: RareList::default(),
        };
        let spec = NetworkSpec {
            name: Name::default_name(),
            probing: Probing::default(),
            metadata: Metadata::default(),
        };
        self.write(Id::new(revision), Network { meta, spec });
    }

    pub(crate) fn name_of_network(&self, id: NetworkId) -> Name {
        self.networks.named(id).spec.name.clone()
    }

    /// The id of a network that a request names.
    pub(crate) fn network_named(&self, name: &Name) -> Result<NetworkId, Refusal> {
        self.find::<Network>(name).ok_or_else(|| not_found(Kind::Network, name))
    }

    /// Description of a namespace.
    #[must_use]
    pub fn namespace(&self, realm: &Name, name: &ObjectName) -> Option<&Namespace> {
        if self.namespaces.is_empty() {
            return None;
        }
        let id = self.find::<Namespace>(ResourceName::in_realm(realm, name))?;
        self.namespaces.get(id)
    }

    /// Description of a node.
    #[must_use]
    pub fn node(&self, realm: &Name, name: &ObjectName) -> Option<&Node> {
        if self.nodes.is_empty() {
            return None;
        }
        let id = self.find::<Node>(ResourceName::in_realm(realm, name))?;
        self.nodes.get(id)
    }

    pub(crate) fn name_of_pool(&self, id: PoolId) -> Name {
        self.pools.named(id).spec.name.clone()
    }

    /// The pools of an application, the oldest first.
    pub(crate) fn pools_of_application(
        &self,
        key: &ControllerKey,
    ) -> impl Iterator<Item = (PoolId, &Pool, &Automatic)> {
        let all = self.index.applications.range((key.clone(), Id::MIN)..=(key.clone(), Id::MAX));
        all.filter_map(|(_, id)| {
            let pool = self.pools.named(*id);
            Some((*id, pool, pool.automatic.as_deref()?))
        })
    }

    /// Pools of an application for one of its interfaces and families.
    pub(crate) fn pools_of_interface(
        &self,
        key: &ControllerKey,
        interface: &InterfaceName,
        family: Family,
    ) -> impl Iterator<Item = (PoolId, &Pool, &Automatic)> {
        self.pools_of_application(key).filter(move |(id, _, automatic)| {
            automatic.interface == *interface && self.space_of(*id).family == family
        })
    }

    /// Automatic pool to use in a subnet: one that is not being deleted, else the newest.
    pub(crate) fn present_pool(
        &self,
        key: &ControllerKey,
        interface: &InterfaceName,
        family: Family,
        subnet: SubnetId,
    ) -> Option<(PoolId, &Pool, &Automatic)> {
        self.pools_of_interface(key, interface, family)
            .filter(|(_, pool, automatic)| {
                pool.subnet == subnet
                    && (!pool.spec.terminating || automatic.standing == AutomaticStanding::Elsewhere)
            })
            .max_by_key(|(id, pool, _)| (!pool.spec.terminating, *id))
    }

    /// First subnet of a family among those that an interface names. All of them must exist.
    pub(crate) fn subnet_of_family(
        &self,
        family: Family,
        request: &InterfaceRequest,
    ) -> Result<Option<SubnetId>, Refusal> {
        let mut first = None;
        for name in &request.subnets {
            let id = self.find::<Subnet>(name).ok_or_else(|| not_found(Kind::Subnet, name))?;
            let is_of_family = |row: &Subnet| Family::of(row.spec.cidr.addr()) == family;
            if first.is_none() && is_of_family(self.subnets.named(id)) {
                first = Some(id);
            }
        }
        Ok(first)
    }

    /// Pools of a controller, in the named incarnation.
    pub(crate) fn pools_touched_by(&self, scale: &ScaleController) -> Vec<PoolId> {
        let ScaleController { realm, namespace, controller, .. } = scale;
        let key: ControllerKey = Application { realm, namespace, controller }.key();
        let same = self.pools_of_application(&key);
        let same = same.filter(|(_, _, automatic)| automatic.controller.may_be(controller));
        same.map(|(id, ..)| id).collect()
    }

    /// Returns the present epoch, unless it is confirmed already.
    #[must_use]
    pub fn unconfirmed(&self) -> Option<&Epoch> {
        self.epochs.last().map(|(_, row)| row).filter(|row| row.ended_wall_ms.is_none())
    }

    /// Returns true unless a pool waits for confirmation after a restore.
    pub(crate) fn is_confirmed(&self, pool: PoolId) -> bool {
        self.unconfirmed().is_none_or(|row| row.confirmed.contains(&pool))
    }

    /// Returns the log time up to which leases and prefixes have ended: 0 during the grace of a leadership.
    /// Only released prefixes count as ended then.
    pub(crate) fn ended_until_ms(&self) -> u64 {
        let now = self.header.log_time_ms;
        if now < self.header.no_lease_ends_before_ms { 0 } else { now }
    }

    /// Returns the log time at which a lease or prefix ends unless it is renewed.
    pub(crate) fn end_of_lease_ms(&self, until_ms: u64) -> u64 {
        until_ms.max(self.header.no_lease_ends_before_ms)
    }
}

impl Automatic {
    pub(crate) fn application(&self) -> Application<'_> {
        Application { realm: &self.realm, namespace: &self.namespace, controller: &self.controller }
    }

    /// Key under which the index lists the pool.
    pub(crate) fn key(&self) -> ControllerKey {
        ControllerKey::new(&self.realm, &self.namespace, &self.controller)
    }

    /// Desired number of addresses of the pool.
    pub(crate) fn wanted(&self) -> u128 {
        self.size.of(self.replicas).into()
    }
}

impl Space {
    /// Number of addresses that the pool can allocate or has allocated.
    pub(crate) fn usable(&self) -> u128 {
        let counts = self.counts();
        counts.allocated + counts.cooling + counts.quarantined + counts.free
    }
}
