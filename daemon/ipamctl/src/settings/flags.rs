//! The flags that every command has, before it and after it.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ipam_api::selector::Selector;
use ipam_api::{Name, ObjectName};

use crate::output::format::Format;
use crate::output::text::parse_duration;

/// Flags that every command has.
#[derive(Debug, Args)]
pub(crate) struct GlobalArguments {
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
    #[command(flatten)]
    pub(crate) writing: WritingArguments,
}

/// Servers, credentials, and the place of names.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArguments {
    /// Server addresses; any member serves all requests [env: IPAM_SERVERS] [default: http://127.0.0.1:7440]
    #[arg(
        long = "server",
        value_name = "URL,…",
        value_delimiter = ',',
        global = true,
        hide_short_help = true
    )]
    pub(crate) servers: Vec<String>,
    /// Context with servers and credentials; see `ipamctl context` [env: IPAM_CONTEXT]
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub(crate) context: Option<Name>,
    /// File with the API token [env: IPAM_TOKEN_FILE]
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub(crate) token_file: Option<PathBuf>,
    /// File with the CA certificates of the servers [env: IPAM_CA_FILE]
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub(crate) ca_file: Option<PathBuf>,
    /// File with the client certificate [env: IPAM_CERT_FILE]
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub(crate) cert_file: Option<PathBuf>,
    /// File with the key of the client certificate [env: IPAM_KEY_FILE]
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub(crate) key_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArguments,
}

/// Place in which names are looked for, as far as the command line names it.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct PlaceArguments {
    /// Network of names and addresses [default: default; lists show all networks]. A resource of another network
    /// is rejected
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) network: Option<Name>,
    /// Realm of names without one, such as a cluster or site [default: default; lists show all realms]
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) realm: Option<Name>,
    /// Namespace of endpoints without one [default: default; lists show all namespaces]
    #[arg(short, long, global = true, hide_short_help = true)]
    pub(crate) namespace: Option<ObjectName>,
}

/// Format of answers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Output format: table, wide, json (the unmodified API response), yaml, name, csv or jsonpath={.a.b};
    /// `endpoint show` also has netplan, networkd, ifupdown, nmstate, networkmanager and cloud-init
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "table",
        global = true,
        hide_short_help = true
    )]
    pub(crate) format: Format,
    /// Omit table headers
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) no_headers: bool,
    /// Print only data and errors
    #[arg(short, long, global = true, hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Use of colours; NO_COLOR disables `auto`
    #[arg(long, value_enum, default_value = "auto", global = true, hide_short_help = true)]
    pub(crate) color: Color,
    /// Print each request as a curl command, with $TOKEN for the token
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) debug: bool,
}

/// Flags of reads.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Reads")]
pub(crate) struct ReadingArguments {
    /// Only resources with these labels, as team=web,tier!=db
    #[arg(short = 'l', long = "labels", value_name = "SELECTOR", global = true, hide_short_help = true)]
    pub(crate) selector: Option<Selector>,
    /// Sort a list by a column or field: name, or -free for descending order
    #[arg(long, value_name = "FIELD", global = true, hide_short_help = true, allow_hyphen_values = true)]
    pub(crate) sort_by: Option<String>,
    /// Fields to show, as name,status.counts.free
    #[arg(
        long = "field",
        value_name = "FIELD,…",
        value_delimiter = ',',
        global = true,
        hide_short_help = true
    )]
    pub(crate) fields: Vec<String>,
    /// Maximum number of list items
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), global = true, hide_short_help = true)]
    pub(crate) limit: Option<u64>,
    /// All list items; on a terminal the default is the first 1000
    #[arg(long, conflicts_with = "limit", global = true, hide_short_help = true)]
    pub(crate) all: bool,
    /// Consistency of reads; `stale` reads from any member, also without a leader
    #[arg(long, value_enum, default_value = "linearizable", global = true, hide_short_help = true)]
    pub(crate) consistency: Consistency,
    /// Minimum revision of reads; the member waits until it has applied it
    #[arg(long, value_name = "REVISION", global = true, hide_short_help = true)]
    pub(crate) at_least_revision: Option<u64>,
    /// Request timeout, such as 500ms, 10s or 2m
    #[arg(long, default_value = "10s", value_parser = parse_duration, global = true, hide_short_help = true)]
    pub(crate) timeout: Duration,
}

/// Flags of writes.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Writes")]
pub(crate) struct WritingArguments {
    /// Show the effect without changing anything
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) dry_run: bool,
    /// Reason for the change, recorded in the history
    #[arg(long, value_name = "TEXT", global = true, hide_short_help = true, value_parser = crate::settings::idempotency::parse_comment)]
    pub(crate) comment: Option<String>,
    /// Manager of the change; a managed resource accepts changes by its manager only
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub(crate) manager: Option<String>,
    /// Also change resources of another manager
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) take_over: bool,
    /// Key that makes repeating the command safe [default: random]
    #[arg(long, value_name = "KEY", global = true, hide_short_help = true, value_parser = crate::settings::idempotency::parse_key)]
    pub(crate) idempotency_key: Option<String>,
    /// Answer yes to confirmation prompts
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) yes: bool,
    /// Confirm an irreversible deletion by repeating the name
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub(crate) confirm: Option<String>,
    /// Never prompt, even on a terminal
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) no_input: bool,
}

impl GlobalArguments {
    /// True if text on standard error is coloured.
    pub(crate) fn color_on_errors(&self) -> bool {
        self.output.color.is_on(std::io::stderr().is_terminal())
    }
}

/// Required consistency of reads. (Documented variants would spread every `--help` over three screens.)
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Consistency {
    // A read sees all writes that were acknowledged before
    #[default]
    Linearizable,
    // A read sees the state of the member that answers
    Stale,
}

/// Use of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    // Colours on a terminal only
    Auto,
    // Colours in pipes, too
    Always,
    // No colours
    Never,
}

impl Color {
    /// True if colours are used on a stream; `terminal` is true for a terminal.
    pub(crate) fn is_on(self, terminal: bool) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            // no-color.org: NO_COLOR counts if it is set and not empty.
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}
