//! Fault: a value that names what breaks, where and for how long.

use serde::{Deserialize, Serialize};

/// One fault. Members and hosts are named; a list of members has no duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Name of the nemesis that chose the fault.
    pub nemesis: String,
    /// Milliseconds until the fault is healed; 0 for a fault that ends by itself.
    pub lasts_ms: u64,
    /// Kind with its targets.
    #[serde(flatten)]
    pub kind: Kind,
}

/// Kind of a fault with its targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// Frames from one host to another are dropped, for each link.
    Partition { links: Vec<Link> },
    /// Frames of all links of these hosts are impaired.
    Packets {
        hosts: Vec<String>,
        delay_ms: u64,
        jitter_ms: u64,
        loss_percent: u8,
        duplicate_percent: u8,
        reorder_percent: u8,
        corrupt_percent: u8,
    },
    /// SIGKILL, and a start when healed.
    Kill { members: Vec<String> },
    /// SIGSTOP, and SIGCONT when healed.
    Pause { members: Vec<String> },
    /// SIGTERM, the end of the process, and a start, one member after another.
    Restart { members: Vec<String> },
    /// Restart with the program of the next feature level (`--test-option next-level`), permanently.
    Upgrade { members: Vec<String> },
    /// Power cut of the machines at once; a start with another boot id when healed.
    Power { members: Vec<String>, cut: Cut, moment: Moment },
    /// No space is left on the disk.
    FullDisk { members: Vec<String> },
    /// Each fsync and its like fails with EIO. A member ends by itself, and starts when healed.
    FailingDisk { members: Vec<String> },
    /// Each fsync and its like takes longer.
    SlowDisk { members: Vec<String>, fsync_ms: u64 },
    /// Writes block until healed (FIFREEZE).
    StalledDisk { members: Vec<String> },
    /// Wall clock of members: a shift, and a rate in parts per million on top of the true one.
    Clock { members: Vec<String>, shift_ms: i64, drift_ppm: i64 },
    /// Share of one CPU that remains, in percent.
    Cpu { members: Vec<String>, percent: u8 },
    /// Kill, damage of files, and start.
    Corrupt { members: Vec<String>, corruption: Corruption },
    /// Kill, loss of the data directory, and a new member in its place.
    Wipe { members: Vec<String> },
    /// Change of the membership.
    Membership { change: Change },
    /// Leadership goes to another member.
    TransferLeader { to: String },
    /// A backup, and after `lasts_ms` a restore of all members from it.
    Restore,
    /// SIGKILL of the agents of these hosts, and a start when healed.
    Agents { hosts: Vec<String> },
    /// Loss of hosts with their agents and containers; when healed they boot without containers.
    Nodes { hosts: Vec<String> },
    /// ARP and NDP from and to these hosts are dropped; other frames pass.
    BlindProbes { hosts: Vec<String> },
    /// A foreign station answers probes of this many free addresses.
    ForeignStation { addresses: u16 },
    /// The largest and most expensive requests that limits allow.
    Costly { cost: Cost, clients: u8 },
}

impl Kind {
    /// Members that the fault names in a list; none for faults of links, hosts, or the whole cluster.
    #[must_use]
    pub fn members(&self) -> Option<&[String]> {
        match self {
            Self::Kill { members }
            | Self::Pause { members }
            | Self::Restart { members }
            | Self::Upgrade { members }
            | Self::Power { members, .. }
            | Self::FullDisk { members }
            | Self::FailingDisk { members }
            | Self::SlowDisk { members, .. }
            | Self::StalledDisk { members }
            | Self::Clock { members, .. }
            | Self::Cpu { members, .. }
            | Self::Corrupt { members, .. }
            | Self::Wipe { members } => Some(members),
            Self::Partition { .. }
            | Self::Packets { .. }
            | Self::Membership { .. }
            | Self::TransferLeader { .. }
            | Self::Restore
            | Self::Agents { .. }
            | Self::Nodes { .. }
            | Self::BlindProbes { .. }
            | Self::ForeignStation { .. }
            | Self::Costly { .. } => None,
        }
    }

    /// Members and hosts that the fault affects.
    #[must_use]
    pub fn touched(&self) -> Vec<String> {
        match self {
            Self::Partition { links } => {
                links.iter().flat_map(|link| [link.from.clone(), link.to.clone()]).collect()
            }
            Self::Packets { hosts, .. } => hosts.clone(),
            Self::Membership { change: Change::Remove { member } | Change::Replace { member } } => {
                vec![member.clone()]
            }
            other => other.members().unwrap_or_default().to_vec(),
        }
    }

    /// True for a fault that keeps this member from running.
    #[must_use]
    pub fn holds_down(&self, name: &str) -> bool {
        match self {
            Self::Kill { members }
            | Self::Power { members, .. }
            | Self::Wipe { members }
            | Self::Corrupt { members, .. }
            | Self::FailingDisk { members }
            | Self::FullDisk { members }
            | Self::StalledDisk { members } => members.iter().any(|member| member == name),
            _ => false,
        }
    }

    /// True for a kind that is complete when its injection returns.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        matches!(
            self,
            Self::Restart { .. }
                | Self::Upgrade { .. }
                | Self::Membership { .. }
                | Self::TransferLeader { .. }
        )
    }
}

/// Direction between two hosts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Link {
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
}

impl Link {
    /// Both directions between two hosts.
    #[must_use]
    pub fn both(one: &str, other: &str) -> [Self; 2] {
        let link = |from: &str, to: &str| Self { from: from.to_owned(), to: to.to_owned() };
        [link(one, other), link(other, one)]
    }
}

/// Mode of a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// Nothing more is written.
    Hard,
    /// The journal of the file system is written: names and sizes without contents.
    Journal,
    /// All is written, and the process sees its disk fail for some milliseconds.
    Flushed,
}

/// Moment of a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// At once.
    Now,
    /// While one of the members writes or receives a snapshot; at the latest after some seconds.
    Snapshot,
    /// At once, and again while the members start.
    Starting,
}

/// Damage of a stopped member's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Corruption {
    /// One flipped bit in a file of the log.
    LogFlip,
    /// Log that lacks its last bytes.
    LogTruncate,
    /// One flipped bit in the snapshot, or in the row store of a member without a snapshot.
    SnapshotFlip,
    /// One flipped bit in the row store.
    RowsFlip,
}

/// Change of the membership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A new member joins.
    Add,
    /// A member is removed and stopped.
    Remove { member: String },
    /// A member is killed and replaced by a new one.
    Replace { member: String },
}

/// Kind of expensive requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Transactions of the maximum size.
    Transactions,
    /// Full lists, maps and metrics.
    Reads,
    /// Dry runs and explanations.
    DryRuns,
    /// Event streams from the first revision, read slowly.
    Streams,
}
