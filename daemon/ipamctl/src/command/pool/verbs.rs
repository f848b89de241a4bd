//! Verbs of pools.

use clap::{Args, Subcommand};
use ipam_api::resource::{Pool, Subnet};
use ipam_api::{Code, Name};

use super::drain::{self, confirm_in_use};
use super::offset::{self, OffsetArguments};
use super::{change, view};
use crate::client::resource;
use crate::client::resource_type::Read;
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::arguments::Named;
use crate::command::gateway;
use crate::command::map::{self, MapArguments, Parts};
use crate::command::watch::{self, WatchArguments, Watched};
use crate::output::error::Failure;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl pool list
  ipamctl pool create web --subnet lan-10 --range 10.10.0.50-10.10.0.199
  ipamctl pool create db --subnet lan-10 --range 10.10.1.0/28 --for-namespace db
  ipamctl pool set web --add-range 10.10.0.200-10.10.0.229";

/// Verbs of pools.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List pools, optionally of one --network or --subnet
    #[command(
        alias = "ls",
        after_help = "Examples:
  ipamctl pool list
  ipamctl pool list --subnet lan-10 -o wide
  ipamctl pool list -o json"
    )]
    List(ListArguments),
    /// Show a pool with its counts, free ranges and top holders
    #[command(alias = "describe", after_help = "Examples:\n  ipamctl pool show web")]
    Show(Named),
    /// Show the address ranges of a pool by state
    #[command(after_help = "Examples:
  ipamctl pool map web
  ipamctl pool map web --state free
  ipamctl pool map web --from 10.10.0.128 --limit 20")]
    Map(MapArguments),
    /// Show the address of an offset, or the offset of an address
    #[command(after_help = "Offset 0 is the first address of the pool's ranges, in their order.
Excluded addresses keep their offset.
IPv4: addresses whose last octet is 0 or 255 have no offset and consume none.
IPv6: every address has an offset, so offsets are plain arithmetic.

Examples:
  ipamctl pool offset web 17
  ipamctl pool offset web 10.10.0.67
  ipamctl pool offset web 17 -o json")]
    Offset(OffsetArguments),
    /// Follow changes of pools, or of one pool and its addresses, until Ctrl-C
    #[command(after_help = "Examples:\n  ipamctl pool watch\n  ipamctl pool watch web -o json")]
    Watch(WatchArguments),
    /// Create a pool
    #[command(after_help = "Examples:
  ipamctl pool create web --subnet lan-10 --range 10.10.0.50-10.10.0.199 --exclude 10.10.0.100
  ipamctl pool create lab --subnet lan-11 --strategy sequential --cooling 5m --default --label team=lab")]
    Create(Box<change::CreateArguments>),
    /// Change a pool; its subnet is immutable
    #[command(after_help = "Examples:
  ipamctl pool set web --add-range 10.10.0.200-10.10.0.229
  ipamctl pool set web --remove-range 10.10.0.50-10.10.0.59
  ipamctl pool set web --exclude 10.10.0.77 --cooling 1m
  ipamctl pool set web --gateway 10.10.0.254 --route 10.99.0.0/16=10.10.0.2
  ipamctl pool set web --disable
  ipamctl pool set web --probe-conflicts true --probe-valid 10m
  ipamctl pool set web --cooling-reserve 8
  ipamctl pool set auto4-web-eth0-17 --reclaim true")]
    Set(Box<change::SetArguments>),
    /// Move ranges of a pool into a new pool, with the allocations in them
    #[command(after_help = "Examples:
  ipamctl pool split web --into web-b --range 10.10.0.128-10.10.0.199
  ipamctl pool split web --into web-b --range 10.10.0.128-10.10.0.199 --dry-run")]
    Split(drain::SplitArguments),
    /// Redirect new requests of a pool to another pool; endpoints move with their next request
    #[command(after_help = "Examples:
  ipamctl pool drain web --to web-b --dry-run
  ipamctl pool drain web --to web-b
  ipamctl pool set web --no-drain")]
    Drain(drain::DrainArguments),
    /// Delete a pool; a pool in use stops allocating and is deleted when its last address is released
    #[command(
        alias = "rm",
        after_help = "Examples:\n  ipamctl pool delete web\n  ipamctl pool delete web --yes"
    )]
    Delete {
        /// Name
        name: Name,
        /// Also accept a pool that is in use by then: it is deleted when its last address is released
        #[arg(long)]
        drain: bool,
    },
}

/// Filters of the list.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only pools of this subnet
    #[arg(long)]
    subnet: Option<Name>,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Watch(arguments) => watch::run(session, Watched::Pool, &arguments).await,
        Verb::Split(arguments) => drain::split(session, arguments).await,
        Verb::Drain(arguments) => drain::drain(session, arguments).await,
        Verb::Map(arguments) => map::run(session, "pools", &arguments).await,
        Verb::Offset(arguments) => offset::run(session, &arguments).await,
        Verb::List(arguments) => list(session, &arguments).await,
        Verb::Show(Named { name }) => {
            let (pool, answer) = resource::fetch::<Pool>(session, &name).await?;
            // VLAN and gateway are those of the subnet. The pool is shown without them if the read fails.
            let (mut subnet, mut parts) = (None, Parts::default());
            if session.format.is_for_people() {
                subnet = resource::fetch::<Subnet>(session, &pool.spec.subnet).await.ok();
                parts = Parts::of_pool(session, &name).await;
            }
            let subnet = subnet.map(|(subnet, _)| subnet.spec);
            session.show(&answer.body, name.as_str(), || {
                Ok(view::shown(&pool, subnet.as_ref(), &parts, session.now(), session.environment.width))
            })?;
            session.tell(&view::next_steps(&pool));
            Ok(())
        }
        Verb::Create(arguments) => {
            let mut pool = arguments.pool()?;
            // The servers refuse a network other than that of the subnet.
            pool.network.clone_from(&session.said.network);
            let created = resource::create(session, &pool).await;
            resource::suggest(session, created, "subnets", pool.subnet.as_str()).await
        }
        Verb::Set(arguments) => set(session, &arguments).await,
        Verb::Delete { name, drain } => delete(session, &name, drain).await,
    }
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<(), Failure> {
    let keep = |pool: &Read<Pool>| {
        let spec = &pool.spec;
        arguments.subnet.as_ref().is_none_or(|subnet| *subnet == spec.subnet)
            && spec.network.as_ref().is_none_or(|network| session.fits_network(network))
    };
    let mut filters = session.narrowed("pools", &[Part::Network])?;
    filters.extend(arguments.subnet.iter().map(|subnet| ("subnet", subnet.to_string())));
    resource::show_list(session, filters, keep, view::table).await
}

async fn set(session: &Session, arguments: &change::SetArguments) -> Result<(), Failure> {
    let name = &arguments.name;
    if arguments.drains() {
        let (mut pool, _) = resource::fetch::<Pool>(session, name).await?;
        let goes_already = pool.spec.terminating;
        // Contradictory options are refused before any call.
        arguments.apply(&mut pool.spec, &pool.status)?;
        if !goes_already {
            confirm_draining(session, &pool, "Drain it anyway?").await?;
        }
    }
    let mut before = None;
    if arguments.new_gateway().is_some() {
        before = Some(resource::fetch::<Pool>(session, name).await?.0.spec.gateway);
    }
    let edited = resource::edit::<Pool>(session, name, |pool, status| arguments.apply(pool, status)).await;
    // No confirmation is needed, because the servers refuse to remove held addresses in any case.
    edited.map_err(|failure| match failure.code() {
        Some(Code::InUse) if arguments.shrinks() => failure.helped_by(format!(
            "Nothing was changed. Who holds them: ipamctl allocation list --pool {name}. Give them back first \
             (ipamctl release ADDRESS), or make them a pool of their own that drains (ipamctl pool split {name} \
             --into NAME --range RANGE, ipamctl pool drain NAME --to OTHER)."
        )),
        _ => failure,
    })?;
    if let Some(old) = before.filter(|old| Some(*old) != arguments.new_gateway()) {
        gateway::tell_of_pool(session, name, old).await;
    }
    Ok(())
}

/// Asks for confirmation before a pool in use is deleted.
async fn confirm_draining(session: &Session, pool: &Read<Pool>, question: &str) -> Result<(), Failure> {
    let then = "It stops allocating, and is deleted when its last address is released.";
    confirm_in_use(session, pool, then, question).await
}

async fn delete(session: &Session, name: &Name, drain: bool) -> Result<(), Failure> {
    let (pool, _) = resource::fetch::<Pool>(session, name).await?;
    confirm_draining(session, &pool, "Drain and delete it anyway?").await?;
    let held = pool.status.counts.allocated;
    resource::delete::<Pool>(session, name, drain || held > 0).await
}
