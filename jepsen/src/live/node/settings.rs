//! Settings of a node.

use std::path::PathBuf;

/// Settings of a node: its host, its programs and its servers.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// Name of the node, in the realm `default`.
    pub name: String,
    /// Number of the node in the network, for the MAC addresses of its containers.
    pub number: u8,
    /// File of the host's network namespace, with an interface `eth0`.
    pub netns: PathBuf,
    /// Directory of the node's files; [`super::LiveNode::new`] makes it.
    pub dir: PathBuf,
    /// Program `ipam-agent`.
    pub agent: PathBuf,
    /// Program `ipam-cni`.
    pub plugin: PathBuf,
    /// URLs of the members, as the host reaches them.
    pub servers: Vec<String>,
    /// CA certificates of members with TLS.
    pub ca_file: Option<PathBuf>,
    /// File with the node's token, if members require one: see [`super::create_token`].
    pub token_file: Option<PathBuf>,
    /// Further lines of `agent.toml`.
    pub more: String,
    /// Options of the test build of the agent, such as a seeded bug.
    pub test_options: Vec<String>,
}
