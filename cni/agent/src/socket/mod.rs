//! Unix socket of the plugin: permitted users, and the routes.

mod attachments;
mod listener;
mod routes;

pub(crate) use self::attachments::node_attachments;
pub use self::listener::PermittedListener;
pub use self::routes::router;
