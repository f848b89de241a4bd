//! Backups, and restores of all members.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ipam_api::client::Call;
use ipam_api::cluster::{ConfirmRequest, Epoch};
use serde_json::Value;

use crate::cluster::Cluster as _;
use crate::live::lab::Lab;
use crate::live::lab::member::{Member, Origin};

/// Time limit of the founding by a restored member.
const FOUNDING: Duration = Duration::from_secs(60);
/// Time limit of one request.
const PATIENCE: Duration = Duration::from_secs(20);

impl Lab {
    /// Writes a backup; the evidence has its revision.
    pub(in crate::live::lab) async fn back_up(&mut self) -> Result<Vec<String>> {
        let file = self.work_dir().join(format!("{}.ipamd", uuid::Uuid::new_v4()));
        let servers: Vec<String> = self.members.iter().map(Member::socket_url).collect();
        let servers = servers.join(",");
        let words = ["--server", &servers, "cluster", "backup", "-o", "json"].map(OsStr::new);
        let mut command = tokio::process::Command::new(&self.programs().ipamctl);
        command.env_clear().args(words).arg(&file).stdin(Stdio::null()).kill_on_drop(true);
        let printed = output(&mut command).await?;
        let printed: Value = serde_json::from_slice(&printed).context("the answer of ipamctl")?;
        let revision = printed.pointer("/backup/revision").and_then(Value::as_u64).context("no revision")?;
        self.backup = Some((file, revision));
        Ok(vec![format!("backup-revision={revision}")])
    }

    /// Kills all members and restores the backup; the evidence has its revision and the new epoch.
    pub(in crate::live::lab) async fn restore(&mut self) -> Result<Vec<String>> {
        let (file, revision) = self.backup.take().context("there is no backup")?;
        let names = self.member_names();
        self.kill(&names).await?;
        for name in &names {
            let member = self.member_mut(name)?;
            member.wipe()?;
            member.origin = Origin::Founder;
            member.standing.must_rejoin = false;
        }
        let chosen = self.random.below(names.len());
        let restored = names.get(chosen).context("there is no member")?.clone();
        self.write_data(&restored, &file).await?;
        self.ready(FOUNDING).await?;
        let epoch = self.confirm().await?;
        let _gone = std::fs::remove_file(&file);
        Ok(vec![
            format!("backup-revision={revision}"),
            format!("epoch={epoch}"),
            format!("restored-by={restored}"),
        ])
    }

    async fn write_data(&self, member: &str, file: &Path) -> Result<()> {
        let member = self.member(member)?;
        let mut command = tokio::process::Command::new(&self.programs().ipamd);
        command.env_clear().arg("restore").arg(file).arg("--data-dir").arg(member.data_dir());
        command.stdin(Stdio::null()).kill_on_drop(true);
        output(&mut command).await.map(drop)
    }

    /// Confirms all pools, so that they allocate again; returns the epoch.
    async fn confirm(&self) -> Result<u64> {
        let client = self.administrator()?;
        let epoch: Epoch = client.call(Call::get("/v1/cluster/epoch").within(PATIENCE)).await?;
        let request = ConfirmRequest { epoch: epoch.epoch, pools: None };
        let call = Call::post("/v1/cluster/epoch/confirm").json(&request)?.repeatable().within(PATIENCE);
        let confirmed: Epoch = client.call(call).await.context("the epoch can't be confirmed")?;
        if !confirmed.confirmed {
            bail!("epoch {} has pools that wait: {:?}", confirmed.epoch, confirmed.waiting);
        }
        Ok(confirmed.epoch)
    }
}

/// Runs a program to its end.
async fn output(command: &mut tokio::process::Command) -> Result<Vec<u8>> {
    let output = command.output().await.with_context(|| format!("{:?}", command.as_std()))?;
    if !output.status.success() {
        bail!("{:?} failed: {}", command.as_std(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
