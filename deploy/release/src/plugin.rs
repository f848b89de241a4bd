//! Grammar of the plugin's command line, for its completions.
//!
//! The plugin parses its few words without clap, which would make each start slower. A test compares the
//! completions with the plugin's help text.

use clap::{Arg, ArgAction, Command, ValueHint};

/// Name of the program.
pub(crate) const NAME: &str = "ipam-cni";

/// Grammar with the commands and options of the plugin's help text.
pub(crate) fn grammar() -> Command {
    let check = path("check-config", "FILE", "Check a network configuration (.conf or .conflist)");
    let install = command("install", "Put the plugin or network configurations on a node").args([
        path("dir", "DIR", "Directory of CNI plugins"),
        path("networks", "DIR", "Directory with the network configurations to copy"),
        path("network-dir", "DIR", "Directory of the runtime's network configurations"),
        path("after-agent", "SOCKET", "Wait until the agent serves this socket"),
        stay(),
    ]);
    let uninstall = command("uninstall", "Remove the plugin and network configurations from a node").args([
        path("agent", "SOCKET", "Socket of the node's agent"),
        path("dir", "DIR", "Directory of CNI plugins"),
        path("networks", "DIR", "Directory with the network configurations that were copied"),
        path("network-dir", "DIR", "Directory of the runtime's network configurations"),
        stay(),
    ]);
    let ready = command("ready", "Exit with 0 if the node's agent can serve an ADD").arg(path(
        "socket",
        "SOCKET",
        "Socket of the node's agent",
    ));
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .arg(check)
        .subcommands([install, uninstall, ready])
}

/// Command without `--help`, which only the program itself has.
fn command(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about).disable_help_flag(true)
}

fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    let hint = if value == "DIR" { ValueHint::DirPath } else { ValueHint::FilePath };
    Arg::new(name).long(name).value_name(value).value_hint(hint).help(help)
}

fn stay() -> Arg {
    Arg::new("stay").long("stay").action(ArgAction::SetTrue).help("Run until a signal ends the command")
}
