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

/// What the environment says of it.
#[derive(Debug, Default)]
pub(super) struct EnvironmentRaft {
    snapshot_every_entries: Option<String>,
    snapshot_every_mib: Option<String>,
    keep_entries_behind_snapshot: Option<String>,
    keep_mib_behind_snapshot: Option<String>,
    snapshot_mib_per_second: Option<String>,
}

impl EnvironmentRaft {
    /// Takes a setting, named without our prefix; whether it is one of these.
    pub(super) fn take(&mut self, setting: &str, value: &str) -> bool {
        let place = match setting {
            "RAFT_SNAPSHOT_EVERY_ENTRIES" => &mut self.snapshot_every_entries,
            "RAFT_SNAPSHOT_EVERY_MIB" => &mut self.snapshot_every_mib,
            "RAFT_KEEP_ENTRIES_BEHIND_SNAPSHOT" => &mut self.keep_entries_behind_snapshot,
            "RAFT_KEEP_MIB_BEHIND_SNAPSHOT" => &mut self.keep_mib_behind_snapshot,
            "RAFT_SNAPSHOT_MIB_PER_SECOND" => &mut self.snapshot_mib_per_second,
            _ => return false,
        };
        *place = Some(value.to_owned());
        true
    }
}

impl FileRaft {
    /// Complete and checked.
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

    /// Complete and checked; the environment wins.
    pub(super) fn snapshots(&self, environment: &EnvironmentRaft) -> Result<SnapshotPolicy, ConfigError> {
        let default = SnapshotPolicy::default();
        let every_entries = number(
            ("snapshot_every_entries", 1),
            environment.snapshot_every_entries.as_deref(),
            self.snapshot_every_entries,
            default.every_entries,
        )?;
        let mib = |key, said: &Option<String>, in_file: Option<u64>, default: u64| {
            let mib = number(key, said.as_deref(), in_file, default / MIB)?;
            Ok::<u64, ConfigError>(mib.saturating_mul(MIB))
        };
        let every_bytes = mib(
            ("snapshot_every_mib", 1),
            &environment.snapshot_every_mib,
            self.snapshot_every_mib,
            default.every_bytes,
        )?;
        // Whoever wants snapshots often wants a short log.
        let keep_entries = number(
            ("keep_entries_behind_snapshot", 0),
            environment.keep_entries_behind_snapshot.as_deref(),
            self.keep_entries_behind_snapshot,
            default.keep_entries.min(every_entries),
        )?;
        let keep_bytes = mib(
            ("keep_mib_behind_snapshot", 0),
            &environment.keep_mib_behind_snapshot,
            self.keep_mib_behind_snapshot,
            default.keep_bytes.min(every_bytes),
        )?;
        let bytes_per_second = mib(
            ("snapshot_mib_per_second", 1),
            &environment.snapshot_mib_per_second,
            self.snapshot_mib_per_second,
            default.bytes_per_second,
        )?;
        Ok(SnapshotPolicy { every_entries, every_bytes, keep_entries, keep_bytes, bytes_per_second })
    }
}

/// A number that is said in the environment, in the file, or nowhere; with its key and the least that it may be.
fn number(
    (key, least): (&str, u64),
    environment: Option<&str>,
    in_file: Option<u64>,
    default: u64,
) -> Result<u64, ConfigError> {
    let key = format!("raft.{key}");
    let said = match environment {
        Some(text) => Some(text.parse().map_err(|_| {
            let text = ipam_api::name::shown(text);
            wrong(
                &key,
                &format!("{text} in the environment is no whole number; write {default}, for example"),
            )
        })?),
        None => in_file,
    };
    match said.unwrap_or(default) {
        number if number < least => Err(wrong(&key, &format!("it must be at least {least}"))),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshots(file: &str, environment: &[(&str, &str)]) -> Result<SnapshotPolicy, ConfigError> {
        let file: FileRaft = toml::from_str(file).unwrap();
        let mut said = EnvironmentRaft::default();
        for (setting, value) in environment {
            assert!(said.take(setting, value), "{setting}");
        }
        file.snapshots(&said)
    }

    #[test]
    fn nothing_said_is_the_default_and_the_environment_wins() {
        assert_eq!(snapshots("", &[]).unwrap(), SnapshotPolicy::default());
        let file = "snapshot_every_entries = 7\nsnapshot_mib_per_second = 3";
        let policy = snapshots(file, &[("RAFT_SNAPSHOT_MIB_PER_SECOND", "5")]).unwrap();
        assert_eq!((policy.every_entries, policy.keep_entries), (7, 7));
        assert_eq!(policy.bytes_per_second, 5 * MIB);
        let policy =
            snapshots("keep_entries_behind_snapshot = 0\nkeep_mib_behind_snapshot = 0", &[]).unwrap();
        assert_eq!((policy.keep_entries, policy.keep_bytes), (0, 0));
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_key() {
        let file: FileRaft = toml::from_str("lease_grace_ms = 3600001").unwrap();
        let error = file.timing().unwrap_err().to_string();
        assert_eq!(error, "raft.lease_grace_ms: it must be at most 3600000");
        for key in ["snapshot_every_entries", "snapshot_every_mib", "snapshot_mib_per_second"] {
            let error = snapshots(&format!("{key} = 0"), &[]).unwrap_err().to_string();
            assert_eq!(error, format!("raft.{key}: it must be at least 1"));
        }
        let error = snapshots("", &[("RAFT_SNAPSHOT_EVERY_MIB", "1GiB")]).unwrap_err().to_string();
        assert!(
            error.contains("raft.snapshot_every_mib: \"1GiB\" in the environment is no whole"),
            "{error}"
        );
    }
}
