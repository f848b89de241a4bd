//! Registry of all nemeses.

use super::Nemesis;
use super::agents::Agents;
use super::clock::Clock;
use super::corruption::Corruption;
use super::costly::Costly;
use super::cpu::Cpu;
use super::failing_disk::FailingDisk;
use super::full_disk::FullDisk;
use super::isolate_client::IsolateClient;
use super::kill::Kill;
use super::membership::Membership;
use super::nodes::Nodes;
use super::packets::PacketFaults;
use super::partition::Partition;
use super::pause::Pause;
use super::power::Power;
use super::probes::Probes;
use super::restore::Restore;
use super::rolling_kill::RollingKill;
use super::slow_disk::SlowDisk;
use super::stalled_disk::StalledDisk;
use super::transfer::Transfer;
use super::upgrade::Upgrade;
use super::wipe::Wipe;

/// Returns all nemeses, in the order in which `ipam-jepsen list` shows them.
#[must_use]
pub fn all() -> Vec<Box<dyn Nemesis>> {
    vec![
        Box::new(Partition),
        Box::new(IsolateClient),
        Box::new(PacketFaults),
        Box::new(Kill),
        Box::new(RollingKill),
        Box::new(Pause),
        Box::new(Power),
        Box::new(FullDisk),
        Box::new(FailingDisk),
        Box::new(SlowDisk),
        Box::new(StalledDisk),
        Box::new(Clock),
        Box::new(Cpu),
        Box::new(Corruption),
        Box::new(Wipe),
        Box::new(Membership),
        Box::new(Transfer),
        Box::new(Upgrade),
        Box::new(Restore),
        Box::new(Probes),
        Box::new(Agents),
        Box::new(Nodes),
        Box::new(Costly),
    ]
}
