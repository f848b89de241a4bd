//! Partitions of the members' network.

mod forms;
mod nemesis;

pub(super) use self::nemesis::Partition;
