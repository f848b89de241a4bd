//! Routes of the named resources: the same six for each kind.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::parameter;
use super::route::{Access, Body, Handled, OF_RULES, Route};
use crate::http::resource::named::{self, NamedResource};
use crate::http::resource::{namespace, network, node, pool, reservation, subnet};

pub(super) fn routes() -> Vec<Handled> {
    [
        of_kind::<network::Networks>("network", ["Network", "NetworkView", "NetworkPage"]),
        of_kind::<subnet::Subnets>("subnet", ["Subnet", "SubnetView", "SubnetPage"]),
        of_kind::<pool::Pools>("pool", ["Pool", "PoolView", "PoolPage"]),
        of_kind::<reservation::Reservations>(
            "reservation",
            ["Reservation", "ReservationView", "ReservationPage"],
        ),
        of_kind::<node::Nodes>("node", ["Node", "NodeView", "NodePage"]),
        of_kind::<namespace::Namespaces>("namespace", ["Namespace", "NamespaceView", "NamespacePage"]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Routes of one kind of resource; `types` are its spec, its view and a page of it.
fn of_kind<K: NamedResource>(one: &str, types: [&'static str; 3]) -> [Handled; 6] {
    let [spec, view, page] = types;
    let (all, target) = (<K as NamedResource>::SHAPE.path, K::KIND.target());
    let item = format!("{all}/{}", if K::KIND.is_in_realm() { "{realm}/{name}" } else { "{name}" });
    let write = Access::Permission(Verb::Write, target);
    let drain = match target {
        Target::Pool => "If it is in use, lets it end: it gives nothing more and goes once it is empty.",
        _ => "Pools only.",
    };
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
            .refuses(OF_RULES)
            .to(named::put::<K>),
        Route::new("PATCH", &item, write, format!("Changes some fields of a {one} (RFC 7396)."))
            .takes("MergePatch")
            .json(200, view)
            .gives(204, Body::Nothing)
            .refuses(OF_RULES)
            .to(named::patch::<K>),
        Route::delete(&item, (Verb::Delete, target), format!("Removes a {one}."))
            .query(vec![parameter("drain", "boolean", drain)])
            .json(202, view)
            .gives(204, Body::Nothing)
            .refuses(&[Code::NotFound, Code::InUse, Code::ManagedElsewhere, Code::RevisionMismatch])
            .to(named::delete::<K>),
    ]
}
