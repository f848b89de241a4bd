//! `ipamd`: serves a member of a cluster, or shows a whole cluster on this machine.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ipamd::{check_journal, config, dev, hash_secret, recover, restore, screen, serve};
use rustix::fs::Mode;
use rustix::process::umask;

/// Allocator of the whole program: the state is millions of small rows, which several threads make and free.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Replicated IP address management, without an orchestrator.
#[derive(Debug, Parser)]
#[command(
    name = "ipamd",
    version,
    after_help = "Examples:\n  ipamd dev                                  a demo cluster of three members on this machine\n  ipamd serve --config /etc/ipamd/ipamd.toml  one member of a cluster\n  ipamd check-config --config /etc/ipamd/ipamd.toml"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
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
    Kubernetes(ipamd::watchers::remote::Flags),
    /// Serve the IPAddressClaims of a management cluster of Cluster API with addresses of servers elsewhere.
    #[cfg(feature = "kubernetes")]
    ClusterApi(ipamd::watchers::cluster_api::Flags),
    /// Read a secret from standard input, and print its hash for a tokens file.
    HashSecret,
}

/// Permission bits that no file of this program gets by itself: those of all users but the owner.
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

fn main() -> ExitCode {
    umask(OTHERS);
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            if error.use_stderr() {
                // The error repeats words of the command line.
                screen::err(&error.render().to_string());
            } else {
                error.print().ok();
            }
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    match arguments.command {
        Command::Serve(flags) => serve::main(&flags),
        Command::Dev(arguments) => dev::main(&arguments),
        Command::CheckConfig(flags) => config::check::main(&flags),
        Command::CheckJournal(arguments) => check_journal::main(&arguments),
        Command::Restore(arguments) => restore::main(&arguments),
        Command::Recover(arguments) => recover::main(&arguments),
        #[cfg(feature = "kubernetes")]
        Command::Kubernetes(flags) => ipamd::watchers::remote::main(flags),
        #[cfg(feature = "kubernetes")]
        Command::ClusterApi(flags) => ipamd::watchers::cluster_api::main(flags),
        Command::HashSecret => hash_secret::main(),
    }
}
