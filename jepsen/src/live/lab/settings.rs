//! Settings of the members.

use std::path::Path;

use anyhow::{Context as _, Result};

/// Elections take longer than by default, because a leader on a busy machine is slow, not dead. Snapshots and
/// garbage collection are frequent, so that faults coincide with them. Disks are small.
const SETTINGS: &str = r#"log = "info"
[raft]
heartbeat_ms = 100
election_min_ms = 300
election_max_ms = 500
lease_grace_ms = 2000
snapshot_every_entries = 500
keep_entries_behind_snapshot = 200
[gc]
node_grace_ms = 30000
[disk]
low_bytes = 8388608
ballast_bytes = 4194304
"#;

/// Writes the configuration file that all members share.
pub(super) fn write(path: &Path) -> Result<()> {
    std::fs::write(path, SETTINGS).with_context(|| path.display().to_string())
}
