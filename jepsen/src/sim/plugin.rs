//! Plugin: a run of its operation in place of its process, which can be held and killed.

use std::path::Path;

use ipam_api::request::Started;
use ipam_cni::config::Network;
use ipam_cni::environment::Environment;
use ipam_cni::fail::Failure;
use ipam_cni::verbs;
use ipam_cni::version::CniVersion;
use serde_json::Value as Json;
use tokio::time::{sleep, timeout};

use super::machines;
use crate::workload::{Plugin, PluginEnd};

/// Microseconds of a tick of the kernel, which counts the starts of processes.
const TICK_US: u64 = 10_000;

/// Runs the plugin on the host with this directory. Dropping the future kills the plugin.
pub(super) async fn run_process(dir: &Path, plugin: &Plugin) -> PluginEnd {
    // The kernel counts the start of the process, not that of its first instruction.
    let start_ticks = machines::boot_us() / TICK_US;
    let killed = PluginEnd { code: None, output: Json::Null, stderr: String::new() };
    let life = async {
        if let Some(hold) = plugin.hold_before_start {
            sleep(hold).await;
        }
        run_operation(dir, plugin, start_ticks).await
    };
    match (plugin.kill_after, plugin.hold_before_start) {
        (None, _) => life.await,
        // Killed while it is held, the process executes no instruction.
        (Some(limit), Some(hold)) if limit <= hold => {
            sleep(limit).await;
            killed
        }
        (Some(limit), _) => timeout(limit, life).await.unwrap_or(killed),
    }
}

/// Runs the operation to its end, as the program of the plugin does.
async fn run_operation(dir: &Path, plugin: &Plugin, start_ticks: u64) -> PluginEnd {
    let boot_id = machines::boot_id(dir);
    let started = Started { boot_id, at_us: machines::boot_us(), start_ticks: Some(start_ticks) };
    let mut version = CniVersion::LATEST;
    let done = match read_operation(plugin, &mut version) {
        Ok((environment, network)) => verbs::serve(&environment, &network, Some(started)).await,
        Err(failure) => Err(failure),
    };
    let (code, output) = match done {
        Ok(output) => (0, output),
        Err(failure) => (1, failure.to_json(version)),
    };
    let output = serde_json::from_slice(&output).unwrap_or(Json::Null);
    PluginEnd { code: Some(code), output, stderr: String::new() }
}

/// Reads the operation with its configuration, and the version of its result.
fn read_operation(plugin: &Plugin, version: &mut CniVersion) -> Result<(Environment, Network), Failure> {
    let variables = plugin.environment();
    let value = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone())
    };
    let environment = Environment::read(&value)?;
    let network = ipam_cni::read(&environment, plugin.config.to_string().as_bytes(), version)?;
    Ok((environment, network))
}
