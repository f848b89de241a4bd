//! The HTTP API: one file a resource, no logic beyond parse, ask, render.

mod address;
mod allocation;
mod ask;
mod asker;
mod attachment;
mod automatic;
mod backup;
mod body;
mod cluster;
mod controller;
mod convert;
mod docs;
mod endpoint;
mod event;
mod explain;
mod flights;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod generation;
mod head;
mod health;
mod last_word;
mod lease;
mod list;
mod map;
mod member;
mod merge;
mod namespace;
mod network;
mod node;
mod notes;
#[cfg(test)]
mod openapi;
pub mod peer;
mod pool;
mod pool_change;
mod prefix;
mod query;
mod reply;
mod reservation;
mod resource;
mod routes;
pub mod server;
mod stall;
pub mod starting;
mod subnet;
pub mod tls;
mod token;
mod trace;
mod transaction;
mod trial;
mod write;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use ipam_api::limits::{BODY_BYTES_MAX, EVENT_STREAMS_MAX, REQUESTS_IN_FLIGHT_PER_CALLER_MAX};
use ipam_raft::node::Node;
use tokio::sync::{Mutex, Semaphore};

use self::flights::Flights;
use self::trial::Trials;
use crate::access::Access;
use crate::metrics::Metrics;

/// What every handler has: the member that it asks, and the counters that it moves.
#[derive(Clone)]
pub struct App {
    pub(crate) node: Node,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access: Access,
    flights: Flights,
    trials: Trials,
    /// The states that lists are being read from.
    lists: list::Kept,
    /// Room for streams of events.
    pub(crate) streams: Arc<Semaphore>,
    /// Held while a backup is written: one at a time.
    backing_up: Arc<Mutex<()>>,
}

impl App {
    /// Handlers for a member.
    #[must_use]
    pub fn new(node: Node, metrics: Arc<Metrics>, access: Access) -> Self {
        let streams = Arc::new(Semaphore::new(EVENT_STREAMS_MAX));
        Self {
            node,
            metrics,
            access,
            flights: Flights::new(REQUESTS_IN_FLIGHT_PER_CALLER_MAX),
            trials: Trials::default(),
            lists: list::Kept::default(),
            streams,
            backing_up: Arc::default(),
        }
    }
}

/// Every route.
pub fn router(app: App) -> Router {
    Router::new()
        .merge(resource::routes::<network::Networks>())
        .merge(resource::routes::<subnet::Subnets>())
        .merge(resource::routes::<pool::Pools>())
        .merge(resource::routes::<reservation::Reservations>())
        .merge(resource::routes::<node::Nodes>())
        .merge(resource::routes::<namespace::Namespaces>())
        .merge(map::routes())
        .merge(pool_change::routes())
        .merge(endpoint::routes())
        .merge(allocation::routes())
        .merge(explain::routes())
        .merge(prefix::routes())
        .merge(attachment::routes())
        .merge(controller::routes())
        .merge(address::routes())
        .merge(event::routes())
        .merge(token::routes())
        .merge(transaction::routes())
        .merge(cluster::routes())
        .merge(backup::routes())
        .merge(member::routes())
        .merge(generation::routes())
        .merge(docs::routes())
        .merge(health::routes())
        .fallback(reply::no_such_path)
        .method_not_allowed_fallback(reply::no_such_method)
        .layer(axum::middleware::from_fn(head::strict))
        .layer(axum::middleware::from_fn_with_state(app.clone(), reply::around))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(app)
}
