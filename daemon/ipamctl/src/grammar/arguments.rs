//! Grammar of the command line: nouns with verbs, and frequent verbs without a noun.

use clap::{Arg, ArgAction, Parser, Subcommand};

use super::completion;
use crate::command::{
    allocate, allocation, apply, cluster, context, endpoint, events, explain, fsck, gc, host_policy,
    kubernetes, namespace, network, node, pool, prefix, quarantine, release, renew, reservation, status,
    subnet, support, task, token, who_has,
};
use crate::settings::flags::GlobalArguments;

/// Command-line client for ipamd.
#[derive(Debug, Parser)]
#[command(
    name = "ipamctl",
    version,
    about = "Command-line client for ipamd: networks, subnets, pools and allocations",
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_flag = true,
    arg = help_flag(),
    after_help = "Exit codes:
  0 done   1 refused   2 usage   3 not found   4 conflict
  5 unavailable, nothing changed   6 outcome unknown
  7 differences or problems found   130 interrupted

Examples:
  ipamctl status
  ipamctl who-has 10.10.0.77
  ipamctl pool list -o wide
  ipamctl --server http://n1:7440,http://n2:7440 pool show web"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: GlobalArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flag that prints help: `-h` without the flags of every command, `--help` with them.
fn help_flag() -> Arg {
    let help = "Print help; --help includes the flags of every command (--server, -o, --dry-run, …)";
    Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::Help)
        .global(true)
        .help(help)
        .help_heading(None::<&str>)
}

/// All commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the health of the cluster; works without a leader
    Status(status::StatusArguments),
    /// Show the holder of an address, or its state
    #[command(alias = "whois", alias = "whohas")]
    WhoHas(who_has::WhoHasArguments),
    /// Show past events, or follow new ones
    #[command(alias = "event", alias = "history", alias = "watch")]
    Events(events::EventsArguments),
    /// Allocate addresses for an endpoint, all or none
    Allocate(allocate::AllocateArguments),
    /// Release an address, an allocation, or all addresses of an endpoint
    Release(release::ReleaseArguments),
    /// Renew one lease, or all leases of an endpoint
    Renew(renew::RenewArguments),
    /// Reclaim allocations of silent nodes, or list them with the evidence
    Gc(gc::GcArguments),
    /// Compare the store with agents and hosts on the wire, and list differences
    Fsck(fsck::FsckArguments),
    /// Apply resources from files in one transaction
    Apply(apply::ApplyArguments),
    /// Compare resources in files with those of the cluster
    Diff(apply::DiffArguments),
    /// Show the versions of this program and of the servers
    #[command(after_help = "Examples:\n  ipamctl version\n  ipamctl version -o json")]
    Version,
    /// Explain an allocation request, or the fields of a resource
    Explain(explain::ExplainArguments),
    /// Collect a diagnostic bundle
    #[command(subcommand, after_help = support::EXAMPLES)]
    Support(support::Verb),
    /// Print the completion script of a shell
    Completion(completion::CompletionArguments),
    /// Write the manual pages of all commands
    #[command(hide = true, after_help = "Examples:\n  ipamctl man man1/")]
    Man {
        /// Directory to write to
        folder: std::path::PathBuf,
    },
    /// Members, leadership, certificates, and backups
    #[command(subcommand, after_help = cluster::EXAMPLES)]
    Cluster(cluster::Verb),
    /// Known clusters, and the current one
    #[command(subcommand, alias = "contexts", after_help = context::EXAMPLES)]
    Context(context::Verb),
    /// Address spaces in which addresses are unique (VRFs)
    #[command(subcommand, alias = "networks", after_help = network::EXAMPLES)]
    Network(network::Verb),
    /// CIDRs of a network with gateway, VLAN, routes and DNS
    #[command(subcommand, alias = "subnets", after_help = subnet::EXAMPLES)]
    Subnet(subnet::Verb),
    /// Address pools within a subnet
    #[command(subcommand, alias = "pools", after_help = pool::EXAMPLES)]
    Pool(pool::Verb),
    /// Addresses excluded from allocation in all pools
    #[command(subcommand, alias = "reservations", after_help = reservation::EXAMPLES)]
    Reservation(reservation::Verb),
    /// Hosts with labels that pools select
    #[command(subcommand, alias = "nodes", after_help = node::EXAMPLES)]
    Node(node::Verb),
    /// Templates of the network configuration of hosts
    #[command(subcommand, alias = "host-policies", alias = "hostpolicy", after_help = host_policy::EXAMPLES)]
    HostPolicy(host_policy::Verb),
    /// Addresses that foreign hosts use
    #[command(subcommand, alias = "quarantines", after_help = quarantine::EXAMPLES)]
    Quarantine(quarantine::Verb),
    /// Background tasks of the leader
    #[command(subcommand, alias = "tasks", after_help = task::EXAMPLES)]
    Task(task::Verb),
    /// Namespaces of endpoints: labels, default pools and quotas
    #[command(subcommand, alias = "namespaces", alias = "ns", after_help = namespace::EXAMPLES)]
    Namespace(namespace::Verb),
    /// Workloads and machines that hold addresses
    #[command(subcommand, alias = "endpoints", after_help = endpoint::EXAMPLES)]
    Endpoint(endpoint::Verb),
    /// Secrets of an installation in Kubernetes; its Jobs run these commands
    #[command(subcommand, alias = "k8s", after_help = kubernetes::EXAMPLES)]
    Kubernetes(kubernetes::Verb),
    /// API tokens
    #[command(subcommand, alias = "tokens", after_help = token::EXAMPLES)]
    Token(token::Verb),
    /// Single addresses, each held by an interface of an endpoint
    #[command(subcommand, alias = "allocations", after_help = allocation::EXAMPLES)]
    Allocation(allocation::Verb),
    /// Address blocks delegated to owners that subdivide them
    #[command(subcommand, alias = "prefixes", after_help = prefix::EXAMPLES)]
    Prefix(prefix::Verb),
}

impl Command {
    /// True if the command sends no request to a server.
    pub(crate) fn is_offline(&self) -> bool {
        match self {
            Command::Cluster(verb) => verb.is_offline(),
            Command::Explain(arguments) => arguments.is_offline(),
            Command::Kubernetes(verb) => verb.is_offline(),
            Command::Context(_) | Command::Completion(_) | Command::Man { .. } => true,
            _ => false,
        }
    }
}
