//! The grammar: noun verb, and the few verbs that people use at speed.

use std::io::IsTerminal as _;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ipam_api::{Name, ObjectName};

use crate::output::text::parse_duration;
use crate::{allocate, allocation, endpoint, network, pool, release, reservation, status, subnet, who_has};

/// Heading of the flags that every command has.
const GLOBAL: &str = "Global options (before or after the command)";

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

/// Flags that every command has.
#[derive(Debug, Args)]
pub(crate) struct GlobalArguments {
    /// Servers to ask; any member will do
    #[arg(
        long = "server",
        value_name = "URL,…",
        env = ipam_api::brand::SERVERS_ENV,
        default_value = "http://127.0.0.1:7440",
        value_delimiter = ',',
        global = true,
        help_heading = GLOBAL
    )]
    pub(crate) servers: Vec<String>,
    /// Network (address space); lists show all networks without it, other commands take `default`
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) network: Option<Name>,
    /// Realm of endpoints that don't say theirs: the cluster or site that named them
    #[arg(long, default_value = ipam_api::brand::DEFAULT, global = true, help_heading = GLOBAL)]
    pub(crate) realm: Name,
    /// Namespace of endpoints that don't say theirs
    #[arg(short, long, default_value = ipam_api::brand::DEFAULT, global = true, help_heading = GLOBAL)]
    pub(crate) namespace: ObjectName,
    /// How data is shown; `json` is the API's, byte for byte
    #[arg(short, long, value_enum, default_value = "table", global = true, help_heading = GLOBAL)]
    pub(crate) output: Format,
    /// How long to wait for an answer, as 500ms, 10s, 2m
    #[arg(long, default_value = "10s", value_parser = parse_duration, global = true, help_heading = GLOBAL)]
    pub(crate) timeout: Duration,
    /// Whether reads must see everything acknowledged before (`stale`: any member, also without a leader)
    #[arg(long, value_enum, default_value = "linearizable", global = true, help_heading = GLOBAL)]
    pub(crate) consistency: Consistency,
    /// Leave out the titles of tables
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) no_headers: bool,
    /// Say nothing but data and errors
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Answer questions with yes
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) yes: bool,
    /// Never ask, not even on a terminal
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) no_input: bool,
    /// When to use colours; NO_COLOR turns `auto` off
    #[arg(long, value_enum, default_value = "auto", global = true, help_heading = GLOBAL)]
    pub(crate) color: Color,
}

impl GlobalArguments {
    /// Whether what is said on standard error is coloured.
    pub(crate) fn color_on_errors(&self) -> bool {
        self.color.is_on(std::io::stderr().is_terminal())
    }
}

/// How data is shown. (Documented variants would spread every `--help` over three screens.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // Columns for people
    Table,
    // More columns
    Wide,
    // The API's JSON; lists are {"items": …}
    Json,
    // One name a line
    Name,
}

/// Which reads will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Consistency {
    // Everything acknowledged before is seen
    Linearizable,
    // What the member that answers knows
    Stale,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    // On a terminal
    Auto,
    // In pipes too
    Always,
    // Nowhere
    Never,
}

impl Color {
    /// Whether to use them on a stream that is a terminal, or isn't.
    pub(crate) fn is_on(self, terminal: bool) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            // no-color.org: set and not empty.
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Whether the cluster is well, on one screen; works with a single member and without a leader
    Status(status::StatusArguments),
    /// Who holds an address, or why nobody does
    #[command(alias = "whois", alias = "whohas")]
    WhoHas(who_has::WhoHasArguments),
    /// Take addresses for an endpoint, all or none
    Allocate(allocate::AllocateArguments),
    /// Give an address back, an allocation, or all of an endpoint
    Release(release::ReleaseArguments),
    /// Versions of this program and of the servers
    #[command(after_help = "Examples:\n  ipamctl version\n  ipamctl version -o json")]
    Version,
    /// Address spaces in which addresses are unique (VRFs)
    #[command(alias = "networks", after_help = network::EXAMPLES)]
    Network {
        #[command(subcommand)]
        verb: network::Verb,
    },
    /// CIDRs of a network with gateway, VLAN, routes and DNS
    #[command(alias = "subnets", after_help = subnet::EXAMPLES)]
    Subnet {
        #[command(subcommand)]
        verb: subnet::Verb,
    },
    /// Sets of addresses of a subnet that endpoints get theirs from
    #[command(alias = "pools", after_help = pool::EXAMPLES)]
    Pool {
        #[command(subcommand)]
        verb: pool::Verb,
    },
    /// Addresses that no pool ever gives out
    #[command(alias = "reservations", after_help = reservation::EXAMPLES)]
    Reservation {
        #[command(subcommand)]
        verb: reservation::Verb,
    },
    /// Workloads and machines that hold addresses
    #[command(alias = "endpoints", after_help = endpoint::EXAMPLES)]
    Endpoint {
        #[command(subcommand)]
        verb: endpoint::Verb,
    },
    /// Single addresses held by an interface of an endpoint
    #[command(alias = "allocations", after_help = allocation::EXAMPLES)]
    Allocation {
        #[command(subcommand)]
        verb: allocation::Verb,
    },
}
