//! Fault injection for ipamd: breaks clusters of real processes, and reports lost data.

pub mod powercut;
mod random;
pub mod slow_disks;
mod sync;
