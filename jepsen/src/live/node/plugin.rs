//! Runs the real plugin as a container runtime does, and kills or holds it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Child;

use super::script::inside;
use crate::live::lab::mark;
use crate::workload::{Plugin, PluginEnd};

/// Stops the process that becomes the plugin before the plugin's first instruction.
const HELD: &str = r#"kill -STOP $$; exec "$0""#;

/// Runs a plugin to its end.
pub(super) async fn run(program: &Path, netns: &Path, plugin: &Plugin) -> Result<PluginEnd> {
    let is_held = plugin.hold_before_start.is_some();
    let mut command = inside(netns, if is_held { Path::new("/bin/sh") } else { program });
    if is_held {
        command.args(["-c", HELD]).arg(program);
    }
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).envs(plugin.environment());
    // A stopped plugin would outlive a killed suite.
    mark(command.as_std_mut());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("can't start nsenter; the package util-linux has it")?;
    let id = child.id();
    if let Some(mut stdin) = child.stdin.take() {
        // A plugin that ends early reports the failure by its exit code. A pipe holds a whole configuration.
        let _written = stdin.write_all(plugin.config.to_string().as_bytes()).await;
    }
    if let Some(hold) = plugin.hold_before_start {
        let hold = hold.min(plugin.kill_after.unwrap_or(hold));
        tokio::time::sleep(hold).await;
        if plugin.kill_after.is_none_or(|limit| limit > hold) {
            signal(id, Signal::CONT)?;
        }
    }
    let rest =
        plugin.kill_after.map(|limit| limit.saturating_sub(plugin.hold_before_start.unwrap_or_default()));
    ended(child, rest).await
}

/// Waits for the end of a process, and kills it after a time.
async fn ended(child: Child, kill_after: Option<Duration>) -> Result<PluginEnd> {
    let id = child.id();
    let end = child.wait_with_output();
    tokio::pin!(end);
    let output = match kill_after {
        None => end.await?,
        Some(limit) => match tokio::time::timeout(limit, &mut end).await {
            Ok(output) => output?,
            Err(_) => {
                signal(id, Signal::KILL)?;
                end.await?
            }
        },
    };
    Ok(PluginEnd {
        code: output.status.code(),
        output: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Sends a signal to a child that wasn't waited for.
fn signal(id: Option<u32>, signal: Signal) -> Result<()> {
    if let Some(id) = id.and_then(|id| Pid::from_raw(id.cast_signed())) {
        kill_process(id, signal)?;
    }
    Ok(())
}
