//! Faults of members and of the network, one file for each group of kinds.

mod clock;
mod costs;
mod cpu;
mod disks;
mod network;
mod power;
mod processes;
mod restore;

pub(super) use self::costs::CostClients;
pub(super) use self::cpu::prefix as group_prefix;
