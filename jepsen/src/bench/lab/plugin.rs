//! CNI plugin from exec to exit, as a container runtime runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::agent::Agent;

/// host-local of Debian's package `containernetworking-plugins`.
pub(in crate::bench) const HOST_LOCAL: &str = "/usr/lib/cni/host-local";

/// Plugin with its network configuration.
#[derive(Debug, Clone)]
pub(in crate::bench) struct Plugin {
    program: PathBuf,
    config: String,
    /// Directory of files that replace network namespaces: each path has an inode of its own.
    namespaces: PathBuf,
}

impl Plugin {
    /// The plugin of this project through an agent, dual-stack.
    pub(in crate::bench) fn ipam_cni(
        program: &Path,
        agent: &Agent,
        dir: &Path,
        pools: [&str; 2],
    ) -> Result<Self> {
        let [four, six] = pools;
        let config = json!({
            "cniVersion": "1.0.0", "name": "bench", "type": "bridge",
            "ipam": {
                "type": "ipam-cni", "socket": agent.socket(), "ipv4_pools": [four], "ipv6_pools": [six],
            },
        });
        Self::new(program, &config, dir)
    }

    /// host-local, dual-stack.
    pub(in crate::bench) fn host_local(dir: &Path) -> Result<Self> {
        let config = json!({
            "cniVersion": "1.0.0", "name": "bench", "type": "bridge",
            "ipam": {
                "type": "host-local", "dataDir": dir.join("host-local"),
                "ranges": [[{"subnet": "10.8.0.0/16"}], [{"subnet": "2001:db8:8::/64"}]],
            },
        });
        Self::new(Path::new(HOST_LOCAL), &config, dir)
    }

    fn new(program: &Path, config: &Value, dir: &Path) -> Result<Self> {
        let namespaces = dir.join("namespaces");
        fs::create_dir_all(&namespaces)?;
        Ok(Self { program: program.to_owned(), config: config.to_string(), namespaces })
    }
}

/// Runs a command for one container, from exec to exit.
pub(in crate::bench) async fn run(plugin: &Plugin, verb: &str, container: &str) -> Result<Duration> {
    let netns = plugin.namespaces.join(container);
    fs::write(&netns, "")?;
    let mut command = Command::new(&plugin.program);
    command.env_clear().env("CNI_COMMAND", verb).env("CNI_CONTAINERID", container);
    command.env("CNI_NETNS", netns).env("CNI_IFNAME", "eth0").env("CNI_PATH", "/usr/lib/cni");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let begun = Instant::now();
    let mut child = command.spawn().with_context(|| format!("no {}", plugin.program.display()))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    stdin.write_all(plugin.config.as_bytes()).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let took = begun.elapsed();
    if !output.status.success() {
        bail!("{}: {}", plugin.program.display(), String::from_utf8_lossy(&output.stdout));
    }
    Ok(took)
}
