//! `[raft]`: how fast the absence of a leader is noticed, and when snapshots are made.

use ipam_api::limits::LEASE_GRACE_MS_MAX;
use ipam_raft::node::{SnapshotPolicy, Timing};
use serde::{Deserialize, Serialize};

use super::error::{ConfigError, wrong};

const MIB: u64 = 1 << 20;

/// The section of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRaft {
    pub(super) heartbeat_ms: Option<u64>,
    pub(super) election_min_ms: Option<u64>,
    pub(super) election_max_ms: Option<u64>,
    pub(super) lease_grace_ms: Option<u64>,
    pub(super) snapshot_every_entries: Option<u64>,
    pub(super) snapshot_every_mib: Option<u64>,
    pub(super) keep_entries_behind_snapshot: Option<u64>,
    pub(super) keep_mib_behind_snapshot: Option<u64>,
    pub(super) snapshot_mib_per_second: Option<u64>,
}

impl FileRaft {
    /// Completes and checks the times.
    pub(super) fn timing(&self) -> Result<Timing, ConfigError> {
        let default = Timing::default();
        let timing = Timing {
            heartbeat_ms: self.heartbeat_ms.unwrap_or(default.heartbeat_ms),
            election_min_ms: self.election_min_ms.unwrap_or(default.election_min_ms),
            election_max_ms: self.election_max_ms.unwrap_or(default.election_max_ms),
            lease_grace_ms: self.lease_grace_ms.unwrap_or(default.lease_grace_ms),
        };
        if timing.lease_grace_ms > LEASE_GRACE_MS_MAX {
            return Err(wrong("raft.lease_grace_ms", &format!("it must be at most {LEASE_GRACE_MS_MAX}")));
        }
        if !(1..timing.election_min_ms).contains(&timing.heartbeat_ms)
            || timing.election_min_ms >= timing.election_max_ms
        {
            return Err(wrong("raft", "heartbeat_ms < election_min_ms < election_max_ms must hold"));
        }
        Ok(timing)
    }

    /// Completes and checks the snapshot policy.
    pub(super) fn snapshots(&self) -> Result<SnapshotPolicy, ConfigError> {
        let default = SnapshotPolicy::default();
        let mib = |key, least, given: Option<u64>, default: u64| {
            Ok::<u64, ConfigError>(at_least(key, least, given, default / MIB)?.saturating_mul(MIB))
        };
        let every = self.snapshot_every_entries;
        let every_entries = at_least("snapshot_every_entries", 1, every, default.every_entries)?;
        let every_bytes = mib("snapshot_every_mib", 1, self.snapshot_every_mib, default.every_bytes)?;
        // By default, the log behind a snapshot is no longer than the interval of snapshots.
        let (entries, bytes) = (default.keep_entries.min(every_entries), default.keep_bytes.min(every_bytes));
        let keep = self.keep_entries_behind_snapshot;
        let keep_entries = at_least("keep_entries_behind_snapshot", 0, keep, entries)?;
        let keep_bytes = mib("keep_mib_behind_snapshot", 0, self.keep_mib_behind_snapshot, bytes)?;
        let rate = self.snapshot_mib_per_second;
        let bytes_per_second = mib("snapshot_mib_per_second", 1, rate, default.bytes_per_second)?;
        Ok(SnapshotPolicy { every_entries, every_bytes, keep_entries, keep_bytes, bytes_per_second })
    }
}

/// Returns an optional number or its default, and refuses one below its minimum.
fn at_least(key: &str, least: u64, given: Option<u64>, default: u64) -> Result<u64, ConfigError> {
    match given.unwrap_or(default) {
        number if number < least => {
            Err(wrong(&format!("raft.{key}"), &format!("it must be at least {least}")))
        }
        number => Ok(number),
    }
}

/// Default of a `[raft]` setting that an environment variable can set.
pub(super) fn default_of(key: &str) -> u64 {
    let default = SnapshotPolicy::default();
    match key {
        "raft.snapshot_every_entries" => default.every_entries,
        "raft.snapshot_every_mib" => default.every_bytes / MIB,
        "raft.keep_entries_behind_snapshot" => default.keep_entries,
        "raft.keep_mib_behind_snapshot" => default.keep_bytes / MIB,
        _ => default.bytes_per_second / MIB,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Flags;
    use crate::config::settings::tests::load;

    fn snapshots(file: &str, environment: &[(&str, &str)]) -> Result<SnapshotPolicy, ConfigError> {
        let file = format!("name = \"n1\"\n[raft]\n{file}");
        Ok(load(&file, &Flags::default(), environment)?.snapshots)
    }

    #[test]
    fn nothing_said_is_the_default_and_the_environment_wins() {
        assert_eq!(snapshots("", &[]).unwrap(), SnapshotPolicy::default());
        let file = "snapshot_every_entries = 7\nsnapshot_mib_per_second = 3";
        let policy = snapshots(file, &[("IPAMD_RAFT_SNAPSHOT_MIB_PER_SECOND", "5")]).unwrap();
        assert_eq!((policy.every_entries, policy.keep_entries), (7, 7));
        assert_eq!(policy.bytes_per_second, 5 * MIB);
        let policy =
            snapshots("keep_entries_behind_snapshot = 0\nkeep_mib_behind_snapshot = 0", &[]).unwrap();
        assert_eq!((policy.keep_entries, policy.keep_bytes), (0, 0));
    }

    #[test]
    fn an_unworkable_setting_is_refused_with_its_key() {
        let file: FileRaft = toml::from_str("lease_grace_ms = 3600001").unwrap();
        let error = file.timing().unwrap_err().to_string();
        assert_eq!(error, "raft.lease_grace_ms: it must be at most 3600000");
        for key in ["snapshot_every_entries", "snapshot_every_mib", "snapshot_mib_per_second"] {
            let error = snapshots(&format!("{key} = 0"), &[]).unwrap_err().to_string();
            assert_eq!(error, format!("raft.{key}: it must be at least 1"));
        }
        let error = snapshots("", &[("IPAMD_RAFT_SNAPSHOT_EVERY_MIB", "1GiB")]).unwrap_err().to_string();
        assert!(
            error.contains("raft.snapshot_every_mib: \"1GiB\" in the environment is not a whole"),
            "{error}"
        );
    }
}
