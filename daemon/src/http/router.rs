//! All routes, and the layers around them.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use ipam_api::limits::BODY_BYTES_MAX;

use super::admission::{self, AccessRules};
use super::connection::head;
use super::describe::routes::handlers;
use super::request::{App, response};

/// Every route.
pub fn router(app: App) -> Router {
    handlers()
        .fallback(response::no_such_path)
        .method_not_allowed_fallback(response::no_such_method)
        .layer(from_fn_with_state((app.clone(), AccessRules::default()), admission::admit))
        .layer(from_fn(head::strict))
        .layer(from_fn_with_state(app.clone(), response::around))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(app)
}
