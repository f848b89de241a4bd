//! Nodes: hosts of the network with the real agent, the real plugin and containers that answer ARP and NDP.

mod agent;
mod agent_files;
mod containers;
mod faults;
mod live_node;
mod plugin;
mod power;
mod script;
mod settings;
mod station;
mod token;

pub(crate) use self::agent_files::AgentFiles;
pub use self::faults::{boot_nodes, kill_agents, lose_nodes, pause_agents, start_agents};
pub use self::live_node::LiveNode;
pub(crate) use self::power::Power;
pub use self::settings::NodeSettings;
pub use self::station::Station;
pub(crate) use self::station::free_addresses;
pub use self::token::create_token;
