//! Configuration: one TOML file, with a flag for its path.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ipam_api::access::NodeKey;
use ipam_api::brand::{AGENT_CONFIG_FILE, AGENT_SOCKET, AGENT_STATE_DIR};
use ipam_api::limits::{
    AGENT_CONFIG_BYTES_MAX, AGENT_INTERVAL_MS_MAX, AGENT_INTERVAL_MS_MIN, HEARTBEAT_INTERVAL_MS,
    LINKS_PER_NODE_MAX,
};
use ipam_api::name::{InterfaceName, Name, ObjectName};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::host_config::{HostConfig, HostSection, InterfaceSection};
use crate::kubernetes::Access;

/// Source of the node's name, unless the configuration has one.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Flags of all commands that read the configuration.
#[derive(Debug, Args)]
pub struct Flags {
    /// Configuration file
    #[arg(long, value_name = "FILE", default_value = AGENT_CONFIG_FILE)]
    pub config: PathBuf,
    /// Name of the node, instead of that of the configuration
    #[arg(long, value_name = "NAME")]
    pub node: Option<ObjectName>,
}

/// Condition under which STATUS reports the node as unable to serve ADD.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatusPolicy {
    /// No server has answered for `status_grace_ms`.
    #[default]
    Servers,
    /// The agent itself doesn't answer, or can't write its journal.
    Agent,
}

/// Treatment of an ADD whose pod the agent can't find.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownPod {
    /// The ADD is refused: the pod's labels could select another pool.
    #[default]
    Refuse,
    /// The ADD is served if its request names pools.
    Allow,
}

/// Section `[kubernetes]`: the API server whose pods the agent watches.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct KubernetesSection {
    server: Option<String>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    #[serde(default)]
    unknown_pod: UnknownPod,
}

/// Link of the node in the configuration: a section `[[link]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Interface of this host that is on the link.
    pub interface: InterfaceName,
    /// Network whose addresses the link has.
    #[serde(default = "Name::default_name")]
    pub network: Name,
    /// Addresses of the link; `None` for the prefixes of the interface.
    pub cidrs: Option<Vec<IpNet>>,
}

/// Configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    servers: Vec<String>,
    ca_file: Option<PathBuf>,
    #[serde(default = "Name::default_name")]
    realm: Name,
    node: Option<ObjectName>,
    token_file: Option<PathBuf>,
    join_token_file: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    socket: Option<PathBuf>,
    #[serde(default)]
    uids: Vec<u32>,
    #[serde(default = "heartbeat_interval_ms")]
    heartbeat_interval_ms: u64,
    #[serde(default = "inventory_interval_ms")]
    inventory_interval_ms: u64,
    #[serde(default = "orphan_grace_ms")]
    orphan_grace_ms: u64,
    #[serde(default)]
    status_policy: StatusPolicy,
    #[serde(default = "status_grace_ms")]
    status_grace_ms: u64,
    #[serde(default = "probes")]
    probes: bool,
    #[serde(default)]
    link: Vec<LinkConfig>,
    kubernetes: Option<KubernetesSection>,
    host: Option<HostSection>,
    #[serde(default)]
    interface: Vec<InterfaceSection>,
}

fn probes() -> bool {
    true
}

fn heartbeat_interval_ms() -> u64 {
    HEARTBEAT_INTERVAL_MS
}

fn inventory_interval_ms() -> u64 {
    15_000
}

fn orphan_grace_ms() -> u64 {
    30_000
}

fn status_grace_ms() -> u64 {
    60_000
}

/// Settings of the agent.
#[derive(Debug, Clone)]
pub struct Config {
    /// URLs of the members.
    pub servers: Vec<String>,
    /// CA certificates that verify `https://` servers; the system's by default.
    pub ca_file: Option<PathBuf>,
    /// Node that the agent represents.
    pub node: NodeKey,
    /// File with an administrator's token for the node. Without it, the agent joins.
    pub token_file: Option<PathBuf>,
    /// File with the join token of the node.
    pub join_token_file: Option<PathBuf>,
    /// Directory of the journal and of the token that the agent got by joining.
    pub state_dir: PathBuf,
    /// Unix socket for the plugin.
    pub socket: PathBuf,
    /// Users that may use the socket, besides root.
    pub uids: Vec<u32>,
    /// Longest time between two heartbeats.
    pub heartbeat_interval: Duration,
    /// Time between two inventories.
    pub inventory_interval: Duration,
    /// Least time between two observations of a missing container before its attachment counts as an orphan.
    pub orphan_grace: Duration,
    /// Condition under which STATUS fails.
    pub status_policy: StatusPolicy,
    /// Time without an answer of any server until STATUS fails.
    pub status_grace: Duration,
    /// True if the agent probes addresses.
    pub probes: bool,
    /// Links of the node; if empty, the agent detects them.
    pub links: Vec<LinkConfig>,
    /// API server whose pods the agent watches; none outside Kubernetes.
    pub kubernetes: Option<Access>,
    /// Treatment of an ADD whose pod the agent can't find.
    pub unknown_pod: UnknownPod,
    /// Interfaces of the host that the agent configures; none without sections `[[interface]]`.
    pub host: Option<HostConfig>,
}

/// Configuration that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", file.display())]
pub struct ConfigError {
    file: PathBuf,
    why: String,
}

impl Config {
    /// Reads and checks the file that the flags name.
    ///
    /// # Errors
    /// The reason, with the key.
    pub fn of(flags: &Flags) -> Result<Self, ConfigError> {
        Self::load(&flags.config, flags.node.clone())
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// The reason, with the key.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::load(path, None)
    }

    fn load(path: &Path, node: Option<ObjectName>) -> Result<Self, ConfigError> {
        let wrong = |why: &dyn fmt::Display| ConfigError { file: path.to_owned(), why: why.to_string() };
        let mut text = String::new();
        let file = std::fs::File::open(path)
            .map_err(|error| wrong(&format!("{error}; name another file with --config")))?;
        file.take(AGENT_CONFIG_BYTES_MAX).read_to_string(&mut text).map_err(|error| wrong(&error))?;
        let mut file: File = toml::from_str(&text).map_err(|error| wrong(&error))?;
        file.node = node.or(file.node);
        Self::check(file, |name| std::env::var(name).ok()).map_err(|why| wrong(&why))
    }

    fn check(file: File, environment: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        if file.servers.is_empty() {
            return Err("servers is empty; name the members, such as [\"https://10.0.0.1:7440\"]".to_owned());
        }
        let interval = |key: &str, ms: u64| {
            let is_usable = (AGENT_INTERVAL_MS_MIN..=AGENT_INTERVAL_MS_MAX).contains(&ms);
            let wrong = || {
                format!("{key} is {ms}; it must be from {AGENT_INTERVAL_MS_MIN} to {AGENT_INTERVAL_MS_MAX}")
            };
            is_usable.then(|| Duration::from_millis(ms)).ok_or_else(wrong)
        };
        check_links(&file.link)?;
        let name = file.node.map_or_else(host_name, Ok)?;
        // A directory has a file for each node.
        let own = |path: PathBuf| if path.is_dir() { path.join(name.as_str()) } else { path };
        let join_token_file = file.join_token_file.map(own);
        let unknown_pod = file.kubernetes.as_ref().map(|section| section.unknown_pod).unwrap_or_default();
        let access = |section: KubernetesSection| {
            let KubernetesSection { server, token_file, ca_file, .. } = section;
            Access::new(server, token_file, ca_file, &environment)
        };
        let kubernetes = file.kubernetes.map(access).transpose()?;
        let host = HostConfig::check(file.host, file.interface, interval)?;
        Ok(Self {
            host,
            node: NodeKey { realm: file.realm, name },
            state_dir: file.state_dir.unwrap_or_else(|| AGENT_STATE_DIR.into()),
            socket: file.socket.unwrap_or_else(|| AGENT_SOCKET.into()),
            heartbeat_interval: interval("heartbeat_interval_ms", file.heartbeat_interval_ms)?,
            inventory_interval: interval("inventory_interval_ms", file.inventory_interval_ms)?,
            orphan_grace: interval("orphan_grace_ms", file.orphan_grace_ms)?,
            status_grace: interval("status_grace_ms", file.status_grace_ms)?,
            status_policy: file.status_policy,
            servers: file.servers,
            ca_file: file.ca_file,
            token_file: file.token_file,
            join_token_file,
            uids: file.uids,
            probes: file.probes,
            links: file.link,
            kubernetes,
            unknown_pod,
        })
    }
}

/// Refuses links that the cluster would refuse, or that contradict each other.
fn check_links(links: &[LinkConfig]) -> Result<(), String> {
    let count: usize = links.iter().map(|link| link.cidrs.as_ref().map_or(1, Vec::len)).sum();
    if count > LINKS_PER_NODE_MAX {
        return Err(format!("link: {count} prefixes exceed the {LINKS_PER_NODE_MAX} of a node; name fewer"));
    }
    for (place, link) in links.iter().enumerate() {
        let LinkConfig { interface, network, cidrs } = link;
        let is_double = |other: &LinkConfig| (&other.interface, &other.network) == (interface, network);
        if links.iter().take(place).any(is_double) {
            return Err(format!("link: {interface} is twice in network {network}; merge their cidrs"));
        }
        if cidrs.as_ref().is_some_and(Vec::is_empty) {
            return Err(format!("link: the cidrs of {interface} are empty; name some, or omit the key"));
        }
        let with_host_bits = cidrs.iter().flatten().find(|cidr| cidr.addr() != cidr.network());
        if let Some(cidr) = with_host_bits {
            return Err(format!("link: cidrs of {interface}: {cidr} has host bits; write {}", cidr.trunc()));
        }
    }
    Ok(())
}

fn host_name() -> Result<ObjectName, String> {
    let text = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
    let wrong = |problem: ipam_api::Problem| format!("node is missing, and {}", problem.detail);
    ObjectName::new(text.trim()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        let file = toml::from_str(text).map_err(|error| error.to_string());
        file.and_then(|file| Config::check(file, |_| None))
    }

    #[test]
    fn defaults_need_only_servers() {
        let config = parse("servers = [\"http://127.0.0.1:7440\"]").unwrap();
        assert_eq!(config.socket, Path::new(AGENT_SOCKET));
        assert_eq!(config.status_policy, StatusPolicy::Servers);
        assert!(!config.node.name.as_str().is_empty());
        assert!(config.probes && config.links.is_empty());
    }

    #[test]
    fn the_flag_names_the_node_and_a_directory_has_a_join_token_for_each() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("agent.toml");
        let of = |place: &Path, node: Option<&str>| {
            let text = format!("servers = [\"x\"]\nnode = \"file\"\njoin_token_file = {place:?}");
            std::fs::write(&config, text).unwrap();
            let node = node.map(|name| ObjectName::new(name).unwrap());
            Config::of(&Flags { config: config.clone(), node }).unwrap()
        };
        let named = of(dir.path(), Some("w1.example"));
        assert_eq!(named.node.name.as_str(), "w1.example");
        assert_eq!(named.join_token_file, Some(dir.path().join("w1.example")));
        let file = dir.path().join("join.token");
        let plain = of(&file, None);
        assert_eq!((plain.node.name.as_str(), plain.join_token_file), ("file", Some(file)));
    }

    #[test]
    fn a_link_has_an_interface_and_perhaps_a_network_and_prefixes() {
        let text = "servers = [\"x\"]\n[[link]]\ninterface = \"eth1\"\n[[link]]\ninterface = \"eth2\"\n\
                    network = \"blue\"\ncidrs = [\"10.0.0.0/24\", \"2001:db8::/64\"]";
        let config = parse(text).unwrap();
        let [plain, full] = config.links.as_slice() else { panic!("{:?}", config.links) };
        assert_eq!((plain.network.as_str(), &plain.cidrs), ("default", &None));
        assert_eq!((full.network.as_str(), full.cidrs.as_ref().unwrap().len()), ("blue", 2));
    }

    #[test]
    fn wrong_settings_name_their_key() {
        for (text, key) in [
            ("servers = []", "servers"),
            ("server = []", "server"),
            ("servers = [\"x\"]\norphan_grace_ms = 0", "orphan_grace_ms"),
            ("servers = [\"x\"]\nstatus_policy = \"never\"", "status_policy"),
            ("servers = [\"x\"]\nnode = \"a/b\"", "node"),
            ("servers = [\"x\"]\nprobes = 1", "probes"),
            ("servers = [\"x\"]\n[host]\nmode = \"apply\"", "[[interface]]"),
            ("servers = [\"x\"]\n[[interface]]\nname = \"eth1\"\nipv4_pool = [\"p\"]", "ipv4_pool"),
            ("servers = [\"x\"]\n[kubernetes]\nserver = \"http://10.0.0.1\"", "kubernetes.server"),
            ("servers = [\"x\"]\n[kubernetes]\nunknown_pod = \"maybe\"", "unknown_pod"),
            ("servers = [\"x\"]\n[kubernetes]\ntoken = \"x\"", "token"),
            ("servers = [\"x\"]\n[[link]]\nnetwork = \"blue\"", "interface"),
            ("servers = [\"x\"]\n[[link]]\ninterface = \"a/b\"", "interface"),
            ("servers = [\"x\"]\n[[link]]\ninterface = \"eth1\"\nnet = \"blue\"", "net"),
            ("servers = [\"x\"]\n[[link]]\ninterface = \"eth1\"\ncidrs = []", "cidrs"),
            (
                "servers = [\"x\"]\n[[link]]\ninterface = \"eth1\"\ncidrs = [\"10.0.0.1/24\"]",
                "write 10.0.0.0/24",
            ),
            (
                "servers = [\"x\"]\n[[link]]\ninterface = \"eth1\"\n[[link]]\ninterface = \"eth1\"",
                "eth1 is twice in network default",
            ),
        ] {
            assert!(parse(text).unwrap_err().contains(key), "{text}");
        }
    }
}
