//! Events: changes that commands report, and their reasons.

mod by;
pub mod field_change;
mod kinds;
mod reason;

pub use self::by::By;
pub use self::kinds::*;
pub use crate::value::condition::{Readiness, WaitReason};
pub use reason::Reason;
