//! Command line of `ipamd`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(feature = "kubernetes")]
use crate::watchers;
use crate::{check_journal, config, dev, hash_secret, recover, restore, serve};

/// Replicated IP address management, without an orchestrator.
#[derive(Debug, Parser)]
#[command(
    name = "ipamd",
    version,
    after_help = "Examples:
  ipamd dev                                  a demo cluster of three members on this machine
  ipamd serve --config /etc/ipamd/ipamd.toml  one member of a cluster
  ipamd check-config --config /etc/ipamd/ipamd.toml"
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

impl Arguments {
    /// Runs the command.
    #[must_use]
    pub fn run(self) -> ExitCode {
        match self.command {
            Command::Serve(flags) => serve::main(&flags),
            Command::Dev(arguments) => dev::main(&arguments),
            Command::CheckConfig(flags) => config::check::main(&flags),
            Command::CheckJournal(arguments) => check_journal::main(&arguments),
            Command::Restore(arguments) => restore::main(&arguments),
            Command::Recover(arguments) => recover::main(&arguments),
            #[cfg(feature = "kubernetes")]
            Command::Kubernetes(flags) => watchers::remote::main(flags),
            #[cfg(feature = "kubernetes")]
            Command::ClusterApi(flags) => watchers::cluster_api::main(flags),
            Command::HashSecret => hash_secret::main(),
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one member of a cluster until SIGTERM or Ctrl-C.
    Serve(Box<config::Flags>),
    /// Run a demo cluster of three members on this machine, with a real interface.
    Dev(dev::Arguments),
    /// Validate a configuration and the files that it names, and print the effective settings with their sources.
    CheckConfig(Box<config::Flags>),
    /// Verify the event journal of a stopped member.
    CheckJournal(check_journal::Arguments),
    /// Create a data directory from a backup.
    Restore(restore::Arguments),
    /// Write a backup from a stopped member, after the loss of the majority.
    Recover(recover::Arguments),
    /// Watch a Kubernetes cluster, and report to servers elsewhere.
    #[cfg(feature = "kubernetes")]
    Kubernetes(watchers::remote::Flags),
    /// Serve the IPAddressClaims of a management cluster of Cluster API with addresses of servers elsewhere.
    #[cfg(feature = "kubernetes")]
    ClusterApi(watchers::cluster_api::Flags),
    /// Read a secret from standard input, and print its hash for a tokens file.
    HashSecret,
}
