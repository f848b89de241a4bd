//! Metrics for dashboards. Names are a contract; buckets begin at 100 µs.

mod catalogue;
mod elections;
mod labels;
mod number;
mod queue;
mod registry;
mod shown;

pub use self::catalogue::Described;
pub use self::registry::{Certificates, Metrics};
