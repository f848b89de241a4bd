//! State of the interfaces of the host that the agent configures.

use ipam_api::agent::DoctorCheck;

use super::{failed, ok, warning};
use crate::config::Config;
use crate::host::{HostState, HostStatus};

/// Checks the state that the agent wrote last; none if it configures no interface.
pub(super) fn check(config: &Config) -> Option<DoctorCheck> {
    let name = "host";
    config.host.as_ref()?;
    let status = match HostStatus::load(&config.state_dir) {
        Ok(status) => status,
        Err(error) => {
            let detail = format!("the state of the host's interfaces can't be read: {error}");
            return Some(warning(name, detail, "Start the agent: systemctl start ipam-agent."));
        }
    };
    let count: usize = status.interfaces.iter().map(|interface| interface.addresses.len()).sum();
    let detail = |text: &str| {
        let reason = if status.detail.is_empty() { String::new() } else { format!(": {}", status.detail) };
        format!("{text}{reason}")
    };
    let refused = status.interfaces.iter().find_map(|interface| interface.refused.clone());
    let help = "See ipam-agent host status.";
    Some(match (status.state, refused) {
        (HostState::Applied, None) => ok(name, format!("{count} addresses, source: {}", status.source)),
        (HostState::Applied, Some(refused)) => warning(name, refused, help),
        (HostState::Waiting | HostState::Unconfirmed, _) => {
            warning(name, detail(status.state.as_str()), "See the servers below.")
        }
        (HostState::RolledBack, _) => failed(name, detail("rolled back"), "Correct the gateway or routes."),
        (HostState::Reinstalled, _) => {
            failed(name, detail("reinstalled"), "If this is the same host: ipam-agent serve --take-over.")
        }
        (HostState::Failed, _) => failed(name, detail("failed"), help),
    })
}
