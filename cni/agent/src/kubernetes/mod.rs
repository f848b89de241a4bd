//! Client of a Kubernetes API server: few requests, bounded answers, and watches as lines.
//!
//! **Invariant:** nothing here knows what an object means, and nothing here decides.

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
