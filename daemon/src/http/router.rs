//! All routes, and the layers around them.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use ipam_api::limits::BODY_BYTES_MAX;

use super::admission::{self, AccessRules};
use super::allocation::{address, allocate, attachment, controller, endpoint, explain, prefix};
use super::cluster::{backup, generation, health, member, status, token};
use super::connection::head;
use super::describe::docs;
use super::request::{App, response};
use super::resource::{map, named, namespace, network, node, pool, pool_change, reservation, subnet};
use super::{event, transaction};

/// Every route.
pub fn router(app: App) -> Router {
    Router::new()
        .merge(named::routes::<network::Networks>())
        .merge(named::routes::<subnet::Subnets>())
        .merge(named::routes::<pool::Pools>())
        .merge(named::routes::<reservation::Reservations>())
        .merge(named::routes::<node::Nodes>())
        .merge(named::routes::<namespace::Namespaces>())
        .merge(map::routes())
        .merge(pool_change::routes())
        .merge(endpoint::routes())
        .merge(allocate::routes())
        .merge(explain::routes())
        .merge(prefix::routes())
        .merge(attachment::routes())
        .merge(controller::routes())
        .merge(address::routes())
        .merge(event::routes::routes())
        .merge(token::routes())
        .merge(transaction::transact::routes())
        .merge(status::routes())
        .merge(backup::routes())
        .merge(member::routes())
        .merge(generation::routes())
        .merge(docs::routes())
        .merge(health::routes())
        .fallback(response::no_such_path)
        .method_not_allowed_fallback(response::no_such_method)
        .layer(from_fn_with_state((app.clone(), AccessRules::default()), admission::admit))
        .layer(from_fn(head::strict))
        .layer(from_fn_with_state(app.clone(), response::around))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(app)
}
