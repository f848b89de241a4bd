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
#[command(next_help_heading = "Where to ask")]
pub(crate) struct ConnectionArguments {
    /// Servers to ask; any member will do [env: IPAM_SERVERS] [default: http://127.0.0.1:7440]
    #[arg(long = "server", value_name = "URL,…", value_delimiter = ',', global = true)]
    pub(crate) servers: Vec<String>,
    /// Where `ipamctl context` says that the servers are [env: IPAM_CONTEXT]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) context: Option<Name>,
    /// File with the token that says who asks [env: IPAM_TOKEN_FILE]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) token_file: Option<PathBuf>,
    /// File with the certificates that servers are checked against [env: IPAM_CA_FILE]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) ca_file: Option<PathBuf>,
    /// File with the certificate that says who asks [env: IPAM_CERT_FILE]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) cert_file: Option<PathBuf>,
    /// File with that certificate's key [env: IPAM_KEY_FILE]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) key_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: PlaceArguments,
}

/// Place in which names are looked for, as far as the command line names it.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct PlaceArguments {
    /// Network (address space); lists show all networks without it, new things and bare addresses are of `default`;
    /// an object of another one is refused
    #[arg(long, global = true)]
    pub(crate) network: Option<Name>,
    /// Realm of names that don't say theirs: the cluster or site that gave them [default: default]; lists show all
    /// realms without it
    #[arg(long, global = true)]
    pub(crate) realm: Option<Name>,
    /// Namespace of endpoints that don't say theirs [default: default]; lists show all namespaces without it
    #[arg(short, long, global = true)]
    pub(crate) namespace: Option<ObjectName>,
}

/// Format of answers.
#[derive(Debug, Args)]
#[command(next_help_heading = "How it looks")]
pub(crate) struct OutputArguments {
    /// table, wide, json (the API's, byte for byte), yaml, name, csv or jsonpath={.a.b}
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table", global = true)]
    pub(crate) format: Format,
    /// Leave out the titles of tables
    #[arg(long, global = true)]
    pub(crate) no_headers: bool,
    /// Say nothing but data and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// When to use colours; NO_COLOR turns `auto` off
    #[arg(long, value_enum, default_value = "auto", global = true)]
    pub(crate) color: Color,
    /// Print each request as a curl command; the token reads $TOKEN
    #[arg(long, global = true)]
    pub(crate) debug: bool,
}

/// Flags of reads.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadingArguments {
    /// Only what has these labels, as team=web,tier!=db
    #[arg(short = 'l', long = "labels", value_name = "SELECTOR", global = true)]
    pub(crate) selector: Option<Selector>,
    /// Order of a list, as name, or -free for the largest first
    #[arg(long, value_name = "FIELD", global = true, allow_hyphen_values = true)]
    pub(crate) sort_by: Option<String>,
    /// Only these fields, as name,status.counts.free
    #[arg(long = "field", value_name = "FIELD,…", value_delimiter = ',', global = true)]
    pub(crate) fields: Vec<String>,
    /// At most so many items of a list
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), global = true)]
    pub(crate) limit: Option<u64>,
    /// All items, also on a terminal, where a table ends after 1000 of them
    #[arg(long, conflicts_with = "limit", global = true)]
    pub(crate) all: bool,
    /// Whether reads must see everything acknowledged before (`stale`: any member, also without a leader)
    #[arg(long, value_enum, default_value = "linearizable", global = true)]
    pub(crate) consistency: Consistency,
    /// Wait until the member that answers has seen this revision
    #[arg(long, value_name = "REVISION", global = true)]
    pub(crate) at_least_revision: Option<u64>,
    /// How long to wait for an answer, as 500ms, 10s, 2m
    #[arg(long, default_value = "10s", value_parser = parse_duration, global = true)]
    pub(crate) timeout: Duration,
}

/// Flags of writes.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Changing")]
pub(crate) struct WritingArguments {
    /// Change nothing; say what would change
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    /// Why, for the history
    #[arg(long, value_name = "TEXT", global = true, value_parser = crate::settings::idempotency::parse_comment)]
    pub(crate) comment: Option<String>,
    /// In whose name it is changed: what somebody manages, only they change
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) manager: Option<String>,
    /// Change also what somebody else manages
    #[arg(long, global = true)]
    pub(crate) take_over: bool,
    /// By which the servers know a repeated command again; made up without it
    #[arg(long, value_name = "KEY", global = true, value_parser = crate::settings::idempotency::parse_key)]
    pub(crate) idempotency_key: Option<String>,
    /// Answer questions with yes
    #[arg(long, global = true)]
    pub(crate) yes: bool,
    /// The name of what is to go, where deleting it can't be undone
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) confirm: Option<String>,
    /// Never ask, not even on a terminal
    #[arg(long, global = true)]
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
    // Everything acknowledged before is seen
    #[default]
    Linearizable,
    // What the member that answers knows
    Stale,
}

/// Use of colours.
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
    /// True if they are used on a stream that is a terminal, or isn't.
    pub(crate) fn is_on(self, terminal: bool) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            // no-color.org: set and not empty.
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}
