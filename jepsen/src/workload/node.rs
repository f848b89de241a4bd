//! Node: a host with an agent, plugins, containers and a wire.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use futures::future::BoxFuture;
use serde_json::Value;

/// Time limit of an operation that the plugin sets itself.
const DEADLINE_MS: u64 = 8_000;

/// Host on which a session runs.
pub trait Node: Send + Sync {
    /// Name of the node, in the realm `default`.
    fn name(&self) -> &str;

    /// Socket of the node's agent, for the network configuration.
    fn agent_socket(&self) -> &str;

    /// Runs the plugin to its end, or kills it.
    fn run_plugin(&self, plugin: Plugin) -> BoxFuture<'_, Result<PluginEnd>>;

    /// Lets the endpoint farm answer ARP and NDP at addresses of a container, from now on. The kernel
    /// answers, with the MAC address of the container's station. The list replaces an earlier one; an empty
    /// list silences the container.
    fn plug_in<'a>(&'a self, container: &'a str, addresses: &'a [IpAddr]) -> BoxFuture<'a, Result<()>>;

    /// Ends the container: its addresses no longer answer, and its network namespace is deleted.
    fn unplug<'a>(&'a self, container: &'a str) -> BoxFuture<'a, Result<()>>;

    /// Network namespace of a container, made on the first call.
    fn namespace<'a>(&'a self, container: &'a str) -> BoxFuture<'a, Result<String>>;

    /// Number of losses of power so far. Each ends plugins and all containers; until the next boot, all other
    /// functions fail.
    fn losses(&self) -> u64 {
        0
    }
}

/// One run of the real plugin `ipam-cni`.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// `ADD`, `DEL`, `CHECK`, `GC` or `STATUS`.
    pub verb: &'static str,
    /// `CNI_CONTAINERID`.
    pub container: String,
    /// `CNI_IFNAME`.
    pub interface: String,
    /// `CNI_NETNS`.
    pub netns: String,
    /// `CNI_ARGS`.
    pub arguments: String,
    /// Network configuration, on standard input.
    pub config: Value,
    /// Time after which the plugin gets SIGKILL.
    pub kill_after: Option<Duration>,
    /// Time for which the plugin is stopped between `exec` and its first instruction.
    pub hold_before_start: Option<Duration>,
}

impl Plugin {
    /// Environment variables of the plugin's process.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("CNI_COMMAND", self.verb.to_owned()),
            ("CNI_CONTAINERID", self.container.clone()),
            ("CNI_NETNS", self.netns.clone()),
            ("CNI_IFNAME", self.interface.clone()),
            ("CNI_PATH", "/opt/cni/bin".to_owned()),
            ("CNI_ARGS", self.arguments.clone()),
            ("IPAM_CNI_DEADLINE_MS", DEADLINE_MS.to_string()),
        ]
    }
}

/// End of a run of the plugin.
#[derive(Debug, Clone)]
pub struct PluginEnd {
    /// Exit code; none if a signal ended the plugin.
    pub code: Option<i32>,
    /// Standard output: a result or an error of CNI; null if it is no JSON.
    pub output: Value,
    /// Standard error.
    pub stderr: String,
}
