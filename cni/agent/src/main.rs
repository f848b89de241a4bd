//! `ipam-agent`: serves the CNI plugin of a node.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use ipam_agent::{config, doctor, host, inventory, probe, serve};

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
  ipam-agent inventory                        differences between the journal and the cluster
  ipam-agent probe 10.0.0.7                   does another host use the address?
  ipam-agent host status                      addresses of this host that the agent configures"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the plugin until SIGTERM or Ctrl-C.
    Serve(Serve),
    /// Check this node: servers, token, socket, journal, CNI configuration.
    Doctor(doctor::Arguments),
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
    kill_at: Option<ipam_agent::testing::KillPoint>,
    /// Point before or after a change of the host's configuration at which a test kills this process.
    #[cfg(feature = "testing")]
    #[arg(long, hide = true)]
    kill_at_change: Option<u32>,
    /// Seeded bug of this process; repeat for each.
    #[cfg(feature = "testing")]
    #[arg(long = "test-option", hide = true, value_enum, value_name = "OPTION")]
    test_options: Vec<ipam_agent::seeded::SeededBug>,
}

impl Serve {
    fn run(&self) -> ExitCode {
        #[cfg(feature = "testing")]
        if let Some(point) = self.kill_at {
            point.arm();
        }
        #[cfg(feature = "testing")]
        if let Some(point) = self.kill_at_change {
            ipam_agent::testing::kill_at_change(point);
        }
        #[cfg(feature = "testing")]
        self.test_options.iter().for_each(|bug| bug.turn_on());
        serve::main(&self.flags, self.take_over)
    }
}

fn main() -> ExitCode {
    // Other users have no access to the journal and the token.
    rustix::process::umask(rustix::fs::Mode::RWXG.union(rustix::fs::Mode::RWXO));
    match Arguments::parse().command {
        Command::Serve(arguments) => arguments.run(),
        Command::Doctor(arguments) => doctor::main(&arguments),
        Command::Inventory(arguments) => inventory::command::main(&arguments),
        Command::Probe(arguments) => probe::main(&arguments),
        Command::Host(arguments) => host::command::main(&arguments),
    }
}
