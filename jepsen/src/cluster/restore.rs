//! Restores of all members from a backup.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ipam_api::client::Call;
use ipam_api::cluster::{ConfirmRequest, Epoch};

use super::{Cluster, administrator, ready};

/// Time limit of the founding by a restored member.
const FOUNDING: Duration = Duration::from_secs(60);
/// Time limit of one request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Backup file, and the revision that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackupFile {
    /// Path.
    pub(crate) path: PathBuf,
    /// Revision.
    pub(crate) revision: u64,
}

/// Kills all members and restores the backup; the evidence has its revision and the new epoch.
pub(crate) async fn restore<C: Cluster>(cluster: &mut C, backup: &BackupFile) -> Result<Vec<String>> {
    let names = cluster.names();
    cluster.kill(&names).await?;
    for name in &names {
        cluster.make_founder(name)?;
        cluster.standing_mut(name)?.must_rejoin = false;
    }
    let chosen = cluster.random().below(names.len());
    let restored = names.get(chosen).context("there is no member")?;
    cluster.write_data(restored, &backup.path).await?;
    ready(cluster, FOUNDING).await?;
    let epoch = confirm(cluster).await?;
    let _gone = std::fs::remove_file(&backup.path);
    Ok(vec![
        format!("backup-revision={}", backup.revision),
        format!("epoch={epoch}"),
        format!("restored-by={restored}"),
    ])
}

/// Confirms all pools, so that they allocate again; returns the epoch.
async fn confirm<C: Cluster>(cluster: &C) -> Result<u64> {
    let client = administrator(cluster)?;
    let epoch: Epoch = client.call(Call::get("/v1/cluster/epoch").within(PATIENCE)).await?;
    let request = ConfirmRequest { epoch: epoch.epoch, pools: None };
    let call = Call::post("/v1/cluster/epoch/confirm").json(&request)?.repeatable().within(PATIENCE);
    let confirmed: Epoch = client.call(call).await.context("the epoch can't be confirmed")?;
    if !confirmed.confirmed {
        bail!("epoch {} has pools that wait: {:?}", confirmed.epoch, confirmed.waiting);
    }
    Ok(confirmed.epoch)
}
