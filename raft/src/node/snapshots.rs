//! Schedule of snapshots, and the log kept after a snapshot.
//!
//! openraft counts entries only, but an entry may carry one allocation or ten thousand: the replay of a start
//! and the space on a disk depend on bytes. Members that count the same entries would also build snapshots at
//! the same time, so each member has its own turn.

use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver;
use tokio::time::{MissedTickBehavior, interval};

use super::raft::RaftHandle;
use crate::store::EntrySizes;

/// Interval between two checks for a due snapshot.
const LOOK: Duration = Duration::from_millis(100);

/// Snapshot policy: triggers, write rate, and the log kept after a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotPolicy {
    /// Maximum number of log entries between two snapshots.
    pub every_entries: u64,
    /// Maximum bytes of the log between two snapshots.
    pub every_bytes: u64,
    /// Maximum number of log entries kept after a snapshot; a member that lacks fewer needs no snapshot.
    pub keep_entries: u64,
    /// Maximum bytes of the log kept after a snapshot.
    pub keep_bytes: u64,
    /// Rate limit for writing and sending a snapshot.
    pub bytes_per_second: u64,
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        Self {
            every_entries: 100_000,
            every_bytes: 128 << 20,
            keep_entries: 50_000,
            keep_bytes: 128 << 20,
            bytes_per_second: 32 << 20,
        }
    }
}

/// Position in the log, as an entry index and as a number of bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    entry: u64,
    byte: u64,
}

/// Turn of a member: its position among all members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    place: u64,
    members: u64,
}

impl Turn {
    /// Returns true if a boundary lies between two points. Boundaries are `every` apart, and each member has
    /// its own, between those of the other members. Within half of `every` after a snapshot none is due.
    fn has_come(self, every: u64, then: u64, now: u64) -> bool {
        let every = every.max(1);
        let offset = every / self.members.max(1) * self.place;
        let line = |at: u64| (at.saturating_add(offset)) / every;
        line(now) > line(then) && now.saturating_sub(then) >= every / 2
    }
}

impl SnapshotPolicy {
    fn is_due(&self, turn: Turn, snapshot: Place, now: Place) -> bool {
        turn.has_come(self.every_entries, snapshot.entry, now.entry)
            || turn.has_come(self.every_bytes, snapshot.byte, now.byte)
    }
}

/// Triggers snapshots and purges the log while the member runs.
pub(super) async fn run(raft: RaftHandle, mut reach: EntrySizes, policy: SnapshotPolicy) {
    let metrics = raft.metrics();
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Requests made so far: openraft refuses a repeated request, but only after some work.
    let (mut asked, mut purge_to) = (None, 0);
    loop {
        looks.tick().await;
        reach.look();
        let (turn, snapshot, applied, purged) = {
            let metrics = metrics.borrow_watched();
            let members = metrics.membership_config.membership();
            let turn = Turn {
                place: members.nodes().filter(|(id, _)| **id < metrics.id).count() as u64,
                members: members.nodes().count() as u64,
            };
            let index = |log_id: Option<crate::types::LogId>| log_id.map(|log_id| log_id.index);
            (turn, index(metrics.snapshot), index(metrics.last_applied), index(metrics.purged))
        };
        let place = |entry: u64| Place { entry, byte: reach.marks.byte_at(entry) };
        let (then, now) = (place(snapshot.unwrap_or(0)), place(applied.unwrap_or(0)));
        // A requested snapshot that is missing is in progress or fails: it is requested again when the next
        // one is due.
        let since = match asked {
            Some((of, at)) if of == snapshot => place(at),
            _ => then,
        };
        if policy.is_due(turn, since, now) {
            asked = Some((snapshot, now.entry));
            if raft.trigger().snapshot().await.is_err() {
                return;
            }
        }
        if let Some(snapshot) = snapshot {
            let by_entries = snapshot.saturating_sub(policy.keep_entries);
            let by_bytes = reach.marks.index_at(then.byte.saturating_sub(policy.keep_bytes));
            let upto = by_entries.max(by_bytes).min(snapshot);
            if upto > purged.unwrap_or(0).max(purge_to) {
                purge_to = upto;
                if raft.trigger().purge_log(upto).await.is_err() {
                    return;
                }
            }
        }
        reach.marks.forget(purged.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(place: u64) -> Turn {
        Turn { place, members: 3 }
    }

    #[test]
    fn members_take_turns_and_none_waits_for_long() {
        let every = 900;
        // A builder that builds as soon as it is due, as all members do.
        let built_by = |place: u64| {
            let mut snapshots = vec![0];
            for now in 0..10_000 {
                let then = *snapshots.last().unwrap();
                if turn(place).has_come(every, then, now) {
                    snapshots.push(now);
                }
            }
            snapshots
        };
        let all = [0, 1, 2].map(built_by);
        for snapshots in &all {
            assert!(snapshots.windows(2).all(|two| two[1] - two[0] <= every), "{snapshots:?}");
            assert!(snapshots[2..].windows(2).all(|two| two[1] - two[0] == every), "{snapshots:?}");
        }
        for one in &all[0][2..] {
            for other in all[1][2..].iter().chain(&all[2][2..]) {
                assert!(one.abs_diff(*other) >= every / 4, "{one} and {other}");
            }
        }
    }

    #[test]
    fn a_few_large_entries_are_as_good_a_reason_as_many_small_ones() {
        let policy =
            SnapshotPolicy { every_entries: 1000, every_bytes: 1 << 20, ..SnapshotPolicy::default() };
        let (none, small) = (Place::default(), Place { entry: 1000, byte: 10_000 });
        let large = Place { entry: 3, byte: 1 << 20 };
        assert!(policy.is_due(turn(0), none, small));
        assert!(policy.is_due(turn(0), none, large));
        assert!(!policy.is_due(turn(0), none, Place { entry: 999, byte: (1 << 20) - 1 }));
        assert!(!policy.is_due(turn(0), small, Place { entry: 1001, byte: 20_000 }));
    }
}
