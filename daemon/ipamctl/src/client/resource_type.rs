//! Named resources: networks, subnets, pools, reservations, nodes, namespaces, host policies.

use ipam_api::host_policy::{HostPolicy, HostPolicyStatus};
use ipam_api::name::ResourceName;
use ipam_api::resource::{
    Labels, Namespace, NamespaceStatus, Network, NetworkStatus, Node, NodeStatus, Pool, PoolStatus,
    Reservation, ReservationStatus, Resource, Subnet, SubnetStatus,
};
use ipam_api::{Code, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::output::error::Failure;

/// Part of a resource that clients write.
pub(crate) trait ResourceType: Serialize + DeserializeOwned + Clone + 'static {
    /// Part of the resource that the servers add.
    type Status: DeserializeOwned;
    const WORD: &'static str;
    const PLURAL: &'static str;
    const PATH: &'static str;
    fn name(&self) -> ResourceName;
    /// Description, labels and manager.
    fn metadata(&self) -> (&str, &Labels, Option<&str>);
    fn metadata_mut(&mut self) -> MetadataMut<'_>;
}

/// Resource as the servers show it.
pub(crate) type Read<N> = Resource<N, <N as ResourceType>::Status>;

/// Fields that all named resources have.
pub(crate) struct MetadataMut<'a> {
    pub(crate) description: &'a mut String,
    pub(crate) labels: &'a mut Labels,
    pub(crate) annotations: &'a mut Labels,
    pub(crate) managed_by: &'a mut Option<String>,
}

/// Builds a resource from these fields, with the defaults of the API for all others.
pub(crate) fn with_defaults<N: ResourceType>(fields: Value) -> Result<N, Failure> {
    serde_json::from_value(fields).map_err(|error| Problem::new(Code::Internal, error.to_string()).into())
}

macro_rules! resource_type {
    ($resource_type:ty, $status:ty, $word:literal, |$this:ident| $name:expr) => {
        resource_type!(
            $resource_type,
            $status,
            $word,
            concat!($word, "s"),
            concat!("/v1/", $word, "s"),
            |$this| $name
        );
    };
    ($resource_type:ty, $status:ty, $word:literal, $plural:expr, $path:expr, |$this:ident| $name:expr) => {
        impl ResourceType for $resource_type {
            type Status = $status;
            const WORD: &'static str = $word;
            const PLURAL: &'static str = $plural;
            const PATH: &'static str = $path;

            fn name(&self) -> ResourceName {
                let $this = self;
                $name
            }

            fn metadata(&self) -> (&str, &Labels, Option<&str>) {
                (&self.description, &self.labels, self.managed_by.as_deref())
            }

            fn metadata_mut(&mut self) -> MetadataMut<'_> {
                let Self { description, labels, annotations, managed_by, .. } = self;
                MetadataMut { description, labels, annotations, managed_by }
            }
        }
    };
}

resource_type!(Network, NetworkStatus, "network", |network| (&network.name).into());
resource_type!(Subnet, SubnetStatus, "subnet", |subnet| (&subnet.name).into());
resource_type!(Pool, PoolStatus, "pool", |pool| (&pool.name).into());
resource_type!(Reservation, ReservationStatus, "reservation", |reservation| (&reservation.name).into());
resource_type!(Node, NodeStatus, "node", |node| ResourceName::in_realm(&node.realm, &node.name));
resource_type!(Namespace, NamespaceStatus, "namespace", |one| ResourceName::in_realm(&one.realm, &one.name));
resource_type!(HostPolicy, HostPolicyStatus, "host-policy", "host-policies", "/v1/host-policies", |one| {
    (&one.name).into()
});
