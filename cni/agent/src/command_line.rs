//! Command line of `ipam-agent`.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::{config, doctor, host, inventory, listing, probe, serve};

/// Agent of a node of an ipamd cluster.
#[derive(Debug, Parser)]
#[command(
    name = "ipam-agent",
    version,
    after_help = "Examples:
  ipam-agent serve                            with /etc/ipamd/agent.toml
  ipam-agent serve --config ./agent.toml
  ipam-agent doctor                           checks of this node, with remedies
  ipam-agent doctor -o json
  ipam-agent attachments                      attachments of this node
  ipam-agent inventory                        differences between the journal and the cluster
  ipam-agent probe 10.0.0.7                   does another host use the address?
  ipam-agent host status                      addresses of this host that the agent configures"
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

impl Arguments {
    /// Runs the command.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        match &self.command {
            Command::Serve(arguments) => arguments.run(),
            Command::Doctor(arguments) => doctor::main(arguments),
            Command::Attachments(arguments) => listing::main(arguments),
            Command::Inventory(arguments) => inventory::command::main(arguments),
            Command::Probe(arguments) => probe::main(arguments),
            Command::Host(arguments) => host::command::main(arguments),
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the plugin until SIGTERM or Ctrl-C.
    Serve(Serve),
    /// Check this node: servers, token, socket, journal, CNI configuration.
    Doctor(doctor::Arguments),
    /// List the attachments of this node, with or without a running agent.
    Attachments(listing::Arguments),
    /// Compare the journal of the running agent with the cluster.
    Inventory(inventory::command::Arguments),
    /// Ask the links of this host who uses addresses, by ARP and NDP. Needs CAP_NET_RAW.
    Probe(probe::Arguments),
    /// Show or release the addresses of this host's own interfaces.
    Host(host::command::Arguments),
}

#[derive(Debug, Args)]
struct Serve {
    #[command(flatten)]
    flags: config::Flags,
    /// Take over the addresses that a former installation of this host holds
    #[arg(long)]
    take_over: bool,
    /// Step at which a test kills this process.
    #[cfg(feature = "testing")]
    #[arg(long, hide = true, value_enum)]
    kill_at: Option<crate::testing::KillPoint>,
    /// Point before or after a change of the host's configuration at which a test kills this process.
    #[cfg(feature = "testing")]
    #[arg(long, hide = true)]
    kill_at_change: Option<u32>,
    /// Seeded bug of this process; repeat for each.
    #[cfg(feature = "testing")]
    #[arg(long = "test-option", hide = true, value_enum, value_name = "OPTION")]
    test_options: Vec<crate::seeded::SeededBug>,
}

impl Serve {
    fn run(&self) -> ExitCode {
        #[cfg(feature = "testing")]
        if let Some(point) = self.kill_at {
            point.arm();
        }
        #[cfg(feature = "testing")]
        if let Some(point) = self.kill_at_change {
            crate::testing::kill_at_change(point);
        }
        #[cfg(feature = "testing")]
        self.test_options.iter().for_each(|bug| bug.turn_on());
        serve::main(&self.flags, self.take_over)
    }
}
