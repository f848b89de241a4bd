//! Counters of frames, as evidence that a fault took hold.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::Instant;

use serde::Serialize;

/// Numbers of frames since the start of the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Frames that were sent, whether or not they arrived; a copy for each receiver of a broadcast.
    pub sent: u64,
    /// Frames that were written to a receiver, with duplicates.
    pub forwarded: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Frames dropped by a cut, also those that were in flight when it began.
    pub cut: u64,
    /// Frames dropped by loss.
    pub lost: u64,
    /// Frames held back by a delay.
    pub delayed: u64,
    /// Frames forwarded twice.
    pub duplicated: u64,
    /// Frames held back so that later ones overtake them.
    pub reordered: u64,
    /// Frames with a flipped bit; those of ARP, which has no checksum, are dropped instead.
    pub corrupted: u64,
    /// Frames of ARP and NDP dropped by blindness.
    pub blinded: u64,
    /// Frames that the receiving device refused, or that exceeded the limit of held frames.
    pub refused: u64,
}

impl Count {
    /// Number of frames since an earlier state of the same counter.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(earlier.sent),
            forwarded: self.forwarded.saturating_sub(earlier.forwarded),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            cut: self.cut.saturating_sub(earlier.cut),
            lost: self.lost.saturating_sub(earlier.lost),
            delayed: self.delayed.saturating_sub(earlier.delayed),
            duplicated: self.duplicated.saturating_sub(earlier.duplicated),
            reordered: self.reordered.saturating_sub(earlier.reordered),
            corrupted: self.corrupted.saturating_sub(earlier.corrupted),
            blinded: self.blinded.saturating_sub(earlier.blinded),
            refused: self.refused.saturating_sub(earlier.refused),
        }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.forwarded += other.forwarded;
        self.bytes += other.bytes;
        self.cut += other.cut;
        self.lost += other.lost;
        self.delayed += other.delayed;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
        self.blinded += other.blinded;
        self.refused += other.refused;
    }
}

/// Counters of the network and of each sending host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Sum over all hosts.
    pub total: Count,
    /// Frames that a host sent, by its name; removed hosts remain.
    pub hosts: BTreeMap<String, Count>,
}

/// Traffic of one ordered pair of hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Numbers of frames.
    pub count: Count,
    /// Time of the last forwarded frame.
    pub last: Option<Instant>,
}
