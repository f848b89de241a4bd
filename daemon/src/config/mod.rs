//! Configuration of a member: file, then environment, then flags; the later one wins.

mod access;
mod api_server;
pub mod check;
mod cluster;
mod cluster_api;
mod disk;
mod environment;
mod error;
mod file;
mod flags;
mod gc;
mod journal;
mod kubernetes;
mod members;
mod meridio;
mod metrics;
mod peers;
mod raft;
mod settings;
mod sources;
mod tls;

pub use self::cluster::JoinConfig;
pub use self::cluster_api::{ClusterApiSettings, check_label_value};
pub use self::environment::NAMES as ENVIRONMENT_NAMES;
pub use self::error::ConfigError;
pub use self::flags::Flags;
pub use self::kubernetes::KubernetesSettings;
#[cfg(feature = "meridio")]
pub use self::meridio::MeridioSettings;
pub use self::meridio::NAMES as MERIDIO_ENVIRONMENT_NAMES;
pub use self::peers::PeerListen;
pub use self::settings::{Config, KUBE_DIRECTIVES, client_url, data_dir};
pub use self::tls::{ClientTlsFiles, PeerTlsFiles};
