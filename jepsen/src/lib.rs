//! Fault injection for ipamd: breaks clusters of real processes and simulated ones, and reports broken
//! promises. Also measures load and failover.

pub mod bench;
pub mod checker;
mod cluster;
pub mod command;
mod cores;
pub mod failover;
pub mod history;
pub mod live;
mod loopback;
pub mod nemesis;
pub mod powercut;
mod random;
pub mod report;
pub mod seeded;
pub mod sim;
pub mod slow_disks;
pub mod store;
mod sync;
pub mod workload;

pub use self::random::Random;
