//! I14: gaps of availability, and the bounds on them.

mod definition;
mod gap;
mod majority;
mod target;
mod writes;

pub(super) use self::definition::Availability;
pub use self::gap::{FaultGap, gaps};
pub use self::majority::isolates;
pub use self::target::Target;
