//! Chaos for ipamd: what breaks clusters of real processes on purpose, and says what they lost.

pub mod powercut;
mod random;
pub mod slow_disks;
mod sync;
