//! `/v1/namespaces`.

use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::name::ResourceName;
use ipam_api::resource::{
    self as shown, ApplicationQuota, HeldAddresses, Namespace, NamespaceStatus, Resource,
};
use ipam_machine::State;
use ipam_machine::command::{AddressLimits, ControllerName, NamespaceSpec, PoolPatterns, Quota, Text};
use ipam_machine::quota::QuotaUsage;

use super::named::{NamedResource, View, of_kind};
use crate::http::convert::{conversions, meta};
use crate::http::list::{Row, Shape};

pub(in crate::http) struct Namespaces;

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/namespaces",
    own: &[
        Row::text("realm", "realm"),
        Row::text("name", "name"),
        Row::text("managed_by", "managed_by").unshown(),
        Row::shown(&[
            "default_ipv4_pools",
            "default_ipv6_pools",
            "quota",
            "quota.ipv4",
            "quota.ipv6",
            "quota.per_application",
            "quota.applications",
            "status",
            "status.held",
        ]),
        Row::number("ipv4", "status.held.ipv4"),
        Row::number("ipv6", "status.held.ipv6"),
    ],
    named: true,
    addressed: false,
};

conversions! {
    Namespace <=> NamespaceSpec { realm, name, quota(quota_in, quota_out) }
    default_pools: PoolPatterns { ipv4: default_ipv4_pools, ipv6: default_ipv6_pools }
}

impl NamedResource for Namespaces {
    of_kind!(Namespace, NamespaceStatus, namespaces, PutNamespace, |own| ResourceName::in_realm(
        &own.realm, &own.name
    ));

    fn view(state: &State, row: &Self::Row) -> View<Self> {
        let QuotaUsage { ipv4, ipv6 } = state.used_by_namespace(&row.spec.realm, &row.spec.name);
        let held = HeldAddresses { ipv4: ipv4.min(JSON_INTEGER_MAX), ipv6: ipv6.min(JSON_INTEGER_MAX) };
        let spec = to_json(row.spec.clone());
        Resource { spec, meta: meta(&row.meta), status: NamespaceStatus { held } }
    }
}

fn quota_in(quota: shown::Quota) -> Quota {
    let shown::Quota { ipv4, ipv6, per_application, applications } = quota;
    let shown::AddressLimits { ipv4: each_ipv4, ipv6: each_ipv6 } = per_application;
    let own = applications.into_iter().map(|one| {
        let ApplicationQuota { group, kind, name, ipv4, ipv6 } = one;
        let application = ControllerName { group: Text::given(group), kind: Text::given(kind), name };
        (application, AddressLimits { ipv4, ipv6 })
    });
    Quota {
        whole: AddressLimits { ipv4, ipv6 },
        per_application: AddressLimits { ipv4: each_ipv4, ipv6: each_ipv6 },
        applications: own.collect(),
    }
}

fn quota_out(quota: Quota) -> shown::Quota {
    let Quota { whole, per_application, applications } = quota;
    let AddressLimits { ipv4, ipv6 } = per_application;
    let own = applications.into_iter().map(|(application, limits)| ApplicationQuota {
        group: application.group.to_string(),
        kind: application.kind.to_string(),
        name: application.name,
        ipv4: limits.ipv4,
        ipv6: limits.ipv6,
    });
    shown::Quota {
        ipv4: whole.ipv4,
        ipv6: whole.ipv6,
        per_application: shown::AddressLimits { ipv4, ipv6 },
        applications: own.collect(),
    }
}
