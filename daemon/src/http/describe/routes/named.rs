//! Routes of the named resources: the same six for each kind.

use ipam_api::Code;
use ipam_api::access::{Target, Verb};

use super::parameters::{fresh, of_list, parameter};
use super::route::{Access, Body, OF_LISTS, OF_READS, OF_RULES, Route};
use crate::http::list::Shape;
use crate::http::resource::{namespace, network, node, pool, reservation, subnet};

pub(super) fn routes() -> impl Iterator<Item = Route> {
    [
        named(Target::Network, "network", &network::SHAPE, ["Network", "NetworkView", "NetworkPage"]),
        named(Target::Subnet, "subnet", &subnet::SHAPE, ["Subnet", "SubnetView", "SubnetPage"]),
        named(Target::Pool, "pool", &pool::SHAPE, ["Pool", "PoolView", "PoolPage"]),
        named(
            Target::Reservation,
            "reservation",
            &reservation::SHAPE,
            ["Reservation", "ReservationView", "ReservationPage"],
        ),
        named(Target::Node, "node", &node::SHAPE, ["Node", "NodeView", "NodePage"]),
        named(
            Target::Namespace,
            "namespace",
            &namespace::SHAPE,
            ["Namespace", "NamespaceView", "NamespacePage"],
        ),
    ]
    .into_iter()
    .flatten()
}

/// Routes of one kind of resource; `types` are its intention, its view and a page of it.
fn named(target: Target, one: &str, shape: &'static Shape, types: [&'static str; 3]) -> [Route; 6] {
    let [intention, view, page] = types;
    let place = if matches!(target, Target::Node | Target::Namespace) { "{realm}/{name}" } else { "{name}" };
    let (all, item) = (shape.path, format!("{}/{place}", shape.path));
    let write = Access::Deed(Verb::Write, target);
    let drain = match target {
        Target::Pool => {
            vec![parameter(
                "drain",
                "boolean",
                "If it is in use, lets it end: it gives nothing more and goes once it is empty.",
            )]
        }
        _ => vec![parameter("drain", "boolean", "Pools only.")],
    };
    [
        Route::get(all, target, format!("Lists {one}s."))
            .query(of_list(shape))
            .json(200, page)
            .refuses(OF_LISTS),
        Route::new("POST", all, write, format!("Creates a {one}."))
            .takes(intention)
            .json(201, view)
            .refuses(OF_RULES),
        Route::get(&item, target, format!("Shows a {one}.")).query(fresh()).json(200, view).refuses(OF_READS),
        Route::new("PUT", &item, write, format!("Creates or replaces a {one}."))
            .takes(intention)
            .json(200, view)
            .json(201, view)
            .gives(204, Body::Nothing)
            .refuses(OF_RULES),
        Route::new("PATCH", &item, write, format!("Changes some fields of a {one} (RFC 7396)."))
            .takes("MergePatch")
            .json(200, view)
            .gives(204, Body::Nothing)
            .refuses(OF_RULES),
        Route::new("DELETE", &item, Access::Deed(Verb::Delete, target), format!("Removes a {one}."))
            .query(drain)
            .json(202, view)
            .gives(204, Body::Nothing)
            .refuses(&[Code::NotFound, Code::InUse, Code::ManagedElsewhere, Code::RevisionMismatch]),
    ]
}
