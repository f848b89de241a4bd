//! Unix socket of the plugin: permitted users, and the routes.

mod attachments;
mod listener;
mod routes;

pub use self::listener::PermittedListener;
pub use self::routes::router;
