//! Client of a Kubernetes API server: few requests, bounded answers, and watches as lines.
//!
//! **Invariant:** this module interprets no objects and makes no decisions.

mod access;
mod bounded;
mod client;
mod error;
mod lines;
mod list;

pub use self::access::Access;
pub use self::bounded::First;
pub use self::client::Client;
pub use self::error::ApiError;
pub use self::lines::Lines;
pub use self::list::{List, WatchEvent};
