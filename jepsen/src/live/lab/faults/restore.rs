//! Backups by `ipamctl`, and data directories by `ipamd restore`.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::cluster::BackupFile;
use crate::live::lab::Lab;
use crate::live::lab::member::Member;

impl Lab {
    /// Writes a backup; the evidence has its revision.
    pub(in crate::live::lab) async fn back_up(&mut self) -> Result<Vec<String>> {
        let path = self.work_dir().join(format!("{}.ipamd", uuid::Uuid::new_v4()));
        let servers: Vec<String> = self.members.iter().map(Member::socket_url).collect();
        let servers = servers.join(",");
        let words = ["--server", &servers, "cluster", "backup", "-o", "json"].map(OsStr::new);
        let mut command = tokio::process::Command::new(&self.programs().ipamctl);
        command.env_clear().args(words).arg(&path).stdin(Stdio::null()).kill_on_drop(true);
        let printed = output(&mut command).await?;
        let printed: Value = serde_json::from_slice(&printed).context("the answer of ipamctl")?;
        let revision = printed.pointer("/backup/revision").and_then(Value::as_u64).context("no revision")?;
        self.backup = Some(BackupFile { path, revision });
        Ok(vec![format!("backup-revision={revision}")])
    }

    pub(in crate::live::lab) async fn restore_data(&self, member: &str, file: &Path) -> Result<()> {
        let member = self.member(member)?;
        let mut command = tokio::process::Command::new(&self.programs().ipamd);
        command.env_clear().arg("restore").arg(file).arg("--data-dir").arg(member.data_dir());
        command.stdin(Stdio::null()).kill_on_drop(true);
        output(&mut command).await.map(drop)
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
