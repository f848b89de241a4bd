//! The grammar: noun verb, and the few verbs that people use at speed.

use clap::{Parser, Subcommand};

use super::completion;
use crate::command::{
    allocate, allocation, apply, cluster, context, endpoint, events, explain, namespace, network, node, pool,
    prefix, release, renew, reservation, status, subnet, support, token, who_has,
};
use crate::settings::flags::GlobalArguments;

/// Asks and changes ipamd.
#[derive(Debug, Parser)]
#[command(
    name = "ipamctl",
    version,
    about = "Asks and changes ipamd: networks, subnets, pools, and who has which address",
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Exit codes:
  0 done   1 refused   2 usage   3 not found   4 somebody else was faster
  5 unavailable, nothing changed   6 outcome unknown   7 found something   130 interrupted

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

/// All commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Whether the cluster is well, on one screen; works with a single member and without a leader
    Status(status::StatusArguments),
    /// Who holds an address, or why nobody does
    #[command(alias = "whois", alias = "whohas")]
    WhoHas(who_has::WhoHasArguments),
    /// What has happened, and what happens now
    #[command(alias = "event", alias = "history", alias = "watch")]
    Events(events::EventsArguments),
    /// Take addresses for an endpoint, all or none
    Allocate(allocate::AllocateArguments),
    /// Give an address back, an allocation, or all of an endpoint
    Release(release::ReleaseArguments),
    /// Let a lease last longer, or all of an endpoint
    Renew(renew::RenewArguments),
    /// Make it as files say, in one step, all or none
    Apply(apply::ApplyArguments),
    /// How files differ from what there is
    Diff(apply::DiffArguments),
    /// Versions of this program and of the servers
    #[command(after_help = "Examples:\n  ipamctl version\n  ipamctl version -o json")]
    Version,
    /// Which address a request would get, and why; or what a resource's fields mean, as pool.ranges
    Explain(explain::ExplainArguments),
    /// One file with what all servers say of themselves, for whoever helps
    #[command(subcommand, after_help = support::EXAMPLES)]
    Support(support::Verb),
    /// What a shell needs to complete commands, flags, and names that the servers know
    Completion(completion::CompletionArguments),
    /// Write the manual pages of all commands
    #[command(hide = true, after_help = "Examples:\n  ipamctl man man1/")]
    Man {
        /// The folder for them
        folder: std::path::PathBuf,
    },
    /// The members, who leads them, their certificates, and backups of what they keep
    #[command(subcommand, after_help = cluster::EXAMPLES)]
    Cluster(cluster::Verb),
    /// The clusters that this command line knows, and which one it asks
    #[command(subcommand, alias = "contexts", after_help = context::EXAMPLES)]
    Context(context::Verb),
    /// Address spaces in which addresses are unique (VRFs)
    #[command(subcommand, alias = "networks", after_help = network::EXAMPLES)]
    Network(network::Verb),
    /// CIDRs of a network with gateway, VLAN, routes and DNS
    #[command(subcommand, alias = "subnets", after_help = subnet::EXAMPLES)]
    Subnet(subnet::Verb),
    /// Sets of addresses of a subnet that endpoints get theirs from
    #[command(subcommand, alias = "pools", after_help = pool::EXAMPLES)]
    Pool(pool::Verb),
    /// Addresses that no pool ever gives out
    #[command(subcommand, alias = "reservations", after_help = reservation::EXAMPLES)]
    Reservation(reservation::Verb),
    /// Hosts, by whose labels pools say which they are for
    #[command(subcommand, alias = "nodes", after_help = node::EXAMPLES)]
    Node(node::Verb),
    /// Groups of endpoints: their labels, and what they take from where nobody names pools
    #[command(subcommand, alias = "namespaces", alias = "ns", after_help = namespace::EXAMPLES)]
    Namespace(namespace::Verb),
    /// Workloads and machines that hold addresses
    #[command(subcommand, alias = "endpoints", after_help = endpoint::EXAMPLES)]
    Endpoint(endpoint::Verb),
    /// What callers show to say who they are
    #[command(subcommand, alias = "tokens", after_help = token::EXAMPLES)]
    Token(token::Verb),
    /// Single addresses held by an interface of an endpoint
    #[command(subcommand, alias = "allocations", after_help = allocation::EXAMPLES)]
    Allocation(allocation::Verb),
    /// Blocks of addresses for those who divide them further
    #[command(subcommand, alias = "prefixes", after_help = prefix::EXAMPLES)]
    Prefix(prefix::Verb),
}

impl Command {
    /// True if no server is asked.
    pub(crate) fn asks_nobody(&self) -> bool {
        match self {
            Command::Cluster(verb) => verb.asks_nobody(),
            Command::Explain(arguments) => arguments.asks_nobody(),
            Command::Context(_) | Command::Completion(_) | Command::Man { .. } => true,
            _ => false,
        }
    }
}
