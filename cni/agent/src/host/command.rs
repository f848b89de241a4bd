//! `ipam-agent host`: shows or releases the addresses of this host's own interfaces.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ipam_api::problem::exit;
use ipam_api::screen::clean;

use super::release::release;
use super::status::{AddressStatus, HostState, HostStatus};
use crate::config::Flags;
use crate::output::{Output, run_with_config};

/// Flags of the command.
#[derive(Debug, Args)]
#[command(after_help = "Exit code of status: 0 if the addresses are configured, otherwise 7.

Examples:
  ipam-agent host status                addresses, their source and state
  ipam-agent host status -o json
  ipam-agent host release               give the addresses back; stop the agent first")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the interfaces, their addresses and the state of the configuration.
    Status(Status),
    /// Release the addresses in the cluster, and remove what the agent has added to this host.
    Release(Release),
}

#[derive(Debug, Args)]
struct Status {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
struct Release {
    #[command(flatten)]
    flags: Flags,
}

/// Runs the command.
#[must_use]
pub fn main(arguments: &Arguments) -> ExitCode {
    match &arguments.command {
        Command::Status(arguments) => status(arguments),
        Command::Release(arguments) => run_with_config(&arguments.flags, async |config| {
            let released = release(config).await.map_err(unavailable)?;
            println!("{}", clean(&released));
            Ok(exit::DONE)
        }),
    }
}

fn status(arguments: &Status) -> ExitCode {
    run_with_config(&arguments.flags, async |config| {
        if config.host.is_none() {
            let why = "the configuration has no [[interface]], so the agent configures none";
            return Err(unavailable(why.to_owned()));
        }
        let status = HostStatus::load(&config.state_dir).map_err(|error| {
            unavailable(format!("{}: {error}; is the agent running?", config.state_dir.display()))
        })?;
        arguments.output.print(&status, table);
        Ok(if status.state == HostState::Applied { exit::DONE } else { exit::FOUND })
    })
}

fn unavailable(why: String) -> (u8, String) {
    (exit::UNAVAILABLE, why)
}

fn table(status: &HostStatus) -> String {
    let mut rows = vec![["INTERFACE", "ADDRESS", "GATEWAY", "POOL"].map(str::to_owned)];
    for interface in &status.interfaces {
        if interface.addresses.is_empty() {
            rows.push([interface.device.clone(), "-".to_owned(), "-".to_owned(), "-".to_owned()]);
        }
        for AddressStatus { address, device, pool, gateway } in &interface.addresses {
            let gateway = gateway.map_or_else(|| "-".to_owned(), |gateway| gateway.to_string());
            rows.push([device.clone(), address.to_string(), gateway, pool.clone()]);
        }
    }
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(String::len).max();
    let widths: Vec<usize> = (0..4).map(|column| width(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    let _ = writeln!(text, "state: {} (source: {})", status.state, status.source);
    if !status.detail.is_empty() {
        let _ = writeln!(text, "detail: {}", status.detail);
    }
    let refusals = status.interfaces.iter().filter_map(|one| one.refused.as_ref());
    for warning in refusals.chain(&status.warnings) {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::status::{InterfaceStatus, Source};
    use super::*;

    #[test]
    fn the_table_has_addresses_state_and_warnings() {
        let address = AddressStatus {
            address: "10.20.12.7/24".parse().unwrap(),
            device: "eth1.100".to_owned(),
            pool: "rack-12".to_owned(),
            gateway: "10.20.12.1".parse().ok(),
        };
        let one = |device: &str, refused: Option<&str>, addresses| InterfaceStatus {
            device: device.to_owned(),
            refused: refused.map(str::to_owned),
            addresses,
        };
        let status = HostStatus {
            state: HostState::RolledBack,
            source: Source::Server,
            detail: "no server answered".to_owned(),
            interfaces: vec![
                one("eth1", None, vec![address]),
                one("eth2", Some("eth2 is managed by NetworkManager"), Vec::new()),
            ],
            warnings: Vec::new(),
        };
        let expected = "\
INTERFACE  ADDRESS        GATEWAY     POOL
eth1.100   10.20.12.7/24  10.20.12.1  rack-12
eth2       -              -           -
state: rolled-back (source: server)
detail: no server answered
warning: eth2 is managed by NetworkManager
";
        assert_eq!(table(&status), expected);
    }
}
