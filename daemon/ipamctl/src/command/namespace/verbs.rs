//! Verbs of namespaces.

use clap::{Args, Subcommand};
use ipam_api::name::NamePattern;
use ipam_api::resource::{Namespace, NamespaceStatus, Quota};
use ipam_api::time::Timestamp;
use serde_json::json;

use super::quota::{self, QuotaArguments, of_limit};
use crate::client::resource;
use crate::client::resource_type::{Read, with_defaults};
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::arguments::{NamedInRealm, replace_list};
use crate::command::metadata::{MetadataArguments, MetadataChanges};
use crate::command::watch::{self, WatchArguments, Watched};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl namespace list
  ipamctl namespace create web --label team=web --ipv4-pool web-a --ipv4-pool web-?";

/// Verbs of namespaces.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List namespaces, optionally of one --realm
    #[command(
        alias = "ls",
        after_help = "Examples:\n  ipamctl namespace list\n  ipamctl namespace list --realm prod-eu -o json"
    )]
    List,
    /// Show a namespace
    #[command(
        alias = "describe",
        after_help = "Examples:\n  ipamctl namespace show web\n  ipamctl namespace show prod-eu/web"
    )]
    Show(NamedInRealm),
    /// Follow changes of namespaces until Ctrl-C
    #[command(after_help = "Examples:\n  ipamctl namespace watch\n  ipamctl namespace watch web")]
    Watch(WatchArguments),
    /// Create the description of a namespace
    #[command(after_help = "Examples:
  ipamctl namespace create web --label team=web
  ipamctl namespace create prod-eu/web --ipv4-pool web-a --ipv4-pool web-? --ipv6-pool web6
  ipamctl namespace create shop --quota ipv4=500 --quota-per-application ipv4=50,ipv6=50")]
    Create(CreateArguments),
    /// Change the description of a namespace
    #[command(after_help = "Examples:
  ipamctl namespace set web --label team=shop --ipv4-pool shop
  ipamctl namespace set web --no-pools
  ipamctl namespace set shop --quota ipv4=800 --quota-of apps/StatefulSet/db,ipv4=120")]
    Set(SetArguments),
    /// Delete the description of a namespace; its allocations remain
    #[command(alias = "rm", after_help = "Examples:\n  ipamctl namespace delete web")]
    Delete(NamedInRealm),
}

/// Pools that its endpoints take from.
#[derive(Debug, Default, Args)]
pub(crate) struct PoolArguments {
    /// Default IPv4 pool of the namespace, tried in this order; takes wildcards; may be repeated
    #[arg(long = "ipv4-pool", value_name = "POOL")]
    ipv4_pools: Vec<NamePattern>,
    /// Default IPv6 pool, in the same way
    #[arg(long = "ipv6-pool", value_name = "POOL")]
    ipv6_pools: Vec<NamePattern>,
}

impl PoolArguments {
    /// Writes the specified pools into a namespace. Other pools stay.
    fn apply(&self, namespace: &mut Namespace) {
        replace_list(&mut namespace.default_ipv4_pools, &self.ipv4_pools);
        replace_list(&mut namespace.default_ipv6_pools, &self.ipv6_pools);
    }
}

/// Arguments of `create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Name, or realm/name
    name: String,
    #[command(flatten)]
    pools: PoolArguments,
    #[command(flatten)]
    quota: QuotaArguments,
    #[command(flatten)]
    metadata: MetadataArguments,
}

/// Arguments of `set`.
#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// Name, or realm/name
    name: String,
    #[command(flatten)]
    pools: PoolArguments,
    /// Remove the default pools
    #[arg(long, conflicts_with_all = ["ipv4_pools", "ipv6_pools"])]
    no_pools: bool,
    #[command(flatten)]
    quota: QuotaArguments,
    /// Remove all quotas
    #[arg(long, conflicts_with_all = ["quota", "quota_per_application", "quotas_of"])]
    no_quota: bool,
    #[command(flatten)]
    metadata: MetadataChanges,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Named("namespace"), &arguments).await,
        Verb::List => {
            let filters = session.narrowed("namespaces", &[Part::Realm])?;
            let keep = |found: &Read<Namespace>| session.said.fits_realm(&found.spec.realm);
            resource::show_list(session, filters, keep, table).await
        }
        Verb::Show(NamedInRealm { name }) => resource::show(session, session.in_realm(&name)?, shown).await,
        Verb::Create(arguments) => {
            let Some((realm, name)) = session.in_realm(&arguments.name)?.parts() else { return Ok(()) };
            let mut namespace: Namespace = with_defaults(json!({"realm": realm, "name": name}))?;
            arguments.pools.apply(&mut namespace);
            arguments.quota.apply(&mut namespace)?;
            arguments.metadata.apply(&mut namespace)?;
            resource::create(session, &namespace).await
        }
        Verb::Set(arguments) => {
            let change = |namespace: &mut Namespace, _: &NamespaceStatus| {
                if arguments.no_pools {
                    namespace.default_ipv4_pools.clear();
                    namespace.default_ipv6_pools.clear();
                }
                arguments.pools.apply(namespace);
                if arguments.no_quota {
                    namespace.quota = Quota::default();
                }
                arguments.quota.apply(namespace)?;
                arguments.metadata.apply(namespace)
            };
            resource::edit::<Namespace>(session, &session.in_realm(&arguments.name)?, change).await
        }
        Verb::Delete(NamedInRealm { name }) => {
            resource::delete::<Namespace>(session, &session.in_realm(&name)?, false).await
        }
    }
}

fn table(namespaces: &[Read<Namespace>], _wide: bool, _now: Timestamp) -> Table {
    Table::of(namespaces)
        .text("NAME", |found| &found.spec.name)
        .spare("REALM", 1, |found| &found.spec.realm)
        .text("IPV4 POOLS", |found| text::joined(&found.spec.default_ipv4_pools))
        .text("IPV6 POOLS", |found| text::joined(&found.spec.default_ipv6_pools))
        .text("IPV4", |found| of_limit(found.status.held.ipv4, found.spec.quota.ipv4))
        .text("IPV6", |found| of_limit(found.status.held.ipv6, found.spec.quota.ipv6))
        .spare("LABELS", 3, |found| text::labels(&found.spec.labels))
        .spare("DESCRIPTION", 2, |found| text::dash(&found.spec.description))
        .table()
}

fn shown(namespace: &Read<Namespace>) -> String {
    let spec = &namespace.spec;
    let mut fields = resource::heading(namespace, None);
    fields.line("IPv4 pools", text::joined(&spec.default_ipv4_pools));
    fields.line("IPv6 pools", text::joined(&spec.default_ipv6_pools));
    quota::lines(&mut fields, &spec.quota, &namespace.status.held);
    resource::metadata_lines(&mut fields, namespace);
    fields.text()
}
