//! Routes of the named resources: the same six for each kind.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::parameter;
use super::route::{Access, Body, Condition, Handled, OF_RULES, Route};
use crate::http::resource::named::{self, NamedResource};
use crate::http::resource::{host_policy, namespace, network, node, pool, reservation, subnet};

pub(super) fn routes() -> Vec<Handled> {
    [
        of_kind::<network::Networks>("network", ["Network", "NetworkPatch", "NetworkView", "NetworkPage"]),
        of_kind::<subnet::Subnets>("subnet", ["Subnet", "SubnetPatch", "SubnetView", "SubnetPage"]),
        of_kind::<pool::Pools>("pool", ["Pool", "PoolPatch", "PoolView", "PoolPage"]),
        of_kind::<reservation::Reservations>(
            "reservation",
            ["Reservation", "ReservationPatch", "ReservationView", "ReservationPage"],
        ),
        of_kind::<node::Nodes>("node", ["Node", "NodePatch", "NodeView", "NodePage"]),
        of_kind::<namespace::Namespaces>(
            "namespace",
            ["Namespace", "NamespacePatch", "NamespaceView", "NamespacePage"],
        ),
        of_kind::<host_policy::HostPolicies>(
            "host policy",
            ["HostPolicy", "HostPolicyPatch", "HostPolicyView", "HostPolicyPage"],
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Routes of one kind of resource; `types` are its spec, a change of it, its view and a page of it.
fn of_kind<K: NamedResource>(one: &str, types: [&'static str; 4]) -> [Handled; 6] {
    let [spec, patch, view, page] = types;
    let (all, target) = (<K as NamedResource>::SHAPE.path, K::KIND.target());
    let item = format!("{all}/{}", if K::KIND.is_in_realm() { "{realm}/{name}" } else { "{name}" });
    let write = Access::Permission(Verb::Write, target);
    let drain = "Drains a pool in use: it allocates nothing, and is deleted when it is empty.";
    let drains = if target == Target::Pool { vec![parameter("drain", "boolean", drain)] } else { Vec::new() };
    [
        Route::list::<K>(format!("Lists {one}s."), page),
        Route::new("POST", all, write, format!("Creates a {one}."))
            .takes(spec)
            .json(201, view)
            .refuses(OF_RULES)
            .to(named::create::<K>),
        Route::one(&item, target, format!("Shows a {one}."), view).to(named::show::<K>),
        Route::new("PUT", &item, write, format!("Creates or replaces a {one}."))
            .takes(spec)
            .json(200, view)
            .json(201, view)
            .gives(204, Body::Nothing)
            .only(&[Condition::IfMatch, Condition::IfNoneMatch])
            .refuses(OF_RULES)
            .to(named::put::<K>),
        Route::new("PATCH", &item, write, format!("Changes some fields of a {one} (RFC 7396)."))
            .takes(patch)
            .json(200, view)
            .gives(204, Body::Nothing)
            .only(&[Condition::IfMatch])
            .refuses(OF_RULES)
            .to(named::patch::<K>),
        Route::delete(&item, (Verb::Delete, target), format!("Deletes a {one}."))
            .query(drains)
            .json(202, view)
            .gives(204, Body::Nothing)
            .only(&[Condition::IfMatch])
            .refuses(&[Code::NotFound, Code::InUse, Code::ManagedElsewhere])
            .to(named::delete::<K>),
    ]
}
