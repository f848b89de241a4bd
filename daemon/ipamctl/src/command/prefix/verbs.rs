//! `ipamctl prefix`: blocks of addresses whose owners divide them further.

use std::time::Duration;

use clap::{Args, Subcommand};
use ipam_api::client::Call;
use ipam_api::limits::PREFIX_LEVELS_MAX;
use ipam_api::request::{DelegateRequest, Delegated, PrefixLevel, PrefixReleased};
use ipam_api::resource::Prefix;
use ipam_api::{Name, ObjectName};

use crate::client::confirm;
use crate::client::list::Listing;
use crate::client::requests::Again;
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::command::arguments::Numbered;
use crate::command::prefix::set;
use crate::command::prefix::view::{block, ends, shown, table};
use crate::output::error::Failure;
use crate::output::text;

pub(crate) const EXAMPLES: &str = "Examples:
  ipamctl prefix allocate rack-7 --pool blocks --length 28
  ipamctl prefix list --pool blocks";

/// Verbs of prefixes.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Allocate the lowest free aligned block, or return the existing block of the owner
    #[command(after_help = "Repeating the command returns the same prefix and renews it with its parents.

Examples:
  ipamctl prefix allocate rack-7 --pool blocks --length 28
  ipamctl prefix allocate conduit-a --pool trench --length 20
  ipamctl prefix allocate conduit-a/node-1 --pool trench --length 24 --keep-edges --ttl 40m
  ipamctl prefix allocate conn-1-src --parent 48190233 --length 32 --ttl 40m
  ipamctl prefix allocate rack-8 --pool blocks --length 28 --wait")]
    Allocate(AllocateArguments),
    /// Allocate exactly these prefixes, and release all others of the realm in the pool or parent prefix
    #[command(after_help = set::HELP)]
    Set(set::SetArguments),
    /// List prefixes, optionally of a pool, realm or parent prefix
    #[command(
        alias = "ls",
        after_help = "Examples:
  ipamctl prefix list
  ipamctl prefix list --pool trench -o wide
  ipamctl prefix list --parent 48190233"
    )]
    List(ListArguments),
    /// Show a prefix
    #[command(alias = "describe", after_help = "Examples:\n  ipamctl prefix show 48190233")]
    Show(Numbered),
    /// Release a prefix and everything below it, or withdraw a waiting request
    #[command(
        alias = "delete",
        alias = "rm",
        after_help = "Examples:\n  ipamctl prefix release 48190233\n  ipamctl prefix release 48190233 --yes"
    )]
    Release(Numbered),
}

/// Arguments of `allocate`.
#[derive(Debug, Args)]
pub(crate) struct AllocateArguments {
    /// Owner of the prefix, after the owners of its parents, if any: conduit-a/node-1
    #[arg(value_name = "OWNER|PATH", value_parser = parse_path)]
    path: Path,
    /// Pool of the first prefix in the path
    #[arg(long, required_unless_present = "parent", conflicts_with = "parent")]
    pool: Option<Name>,
    /// Parent prefix, by ID
    #[arg(long, value_name = "PREFIX")]
    parent: Option<u64>,
    /// Prefix length; required unless the prefix exists
    #[arg(long)]
    length: Option<u8>,
    /// Never allocate the first and last address of the prefix
    #[arg(long)]
    keep_edges: bool,
    /// Lifetime without renewal [default: until released]
    #[arg(long, value_name = "DURATION", value_parser = text::parse_duration)]
    ttl: Option<Duration>,
    /// Realm of the owner
    #[arg(long, default_value = "default")]
    realm: Name,
    /// Queue the request while no block is free; it is served as soon as possible
    #[arg(long)]
    wait: bool,
}

/// Owners, the highest first.
#[derive(Debug, Clone)]
struct Path {
    above: Vec<ObjectName>,
    owner: ObjectName,
}

fn parse_path(text: &str) -> Result<Path, String> {
    let names = text.split('/').map(ObjectName::new).collect::<Result<Vec<_>, _>>();
    let mut above = names.map_err(|problem| problem.detail)?;
    if above.len() > PREFIX_LEVELS_MAX {
        return Err(format!("a path has at most {PREFIX_LEVELS_MAX} owners"));
    }
    let owner = above.pop().ok_or("an owner is missing")?;
    Ok(Path { above, owner })
}

/// Filters of the list.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only prefixes of this pool, at any depth
    #[arg(long)]
    pool: Option<Name>,
    /// Only children of this prefix
    #[arg(long, value_name = "PREFIX")]
    parent: Option<u64>,
    /// Only prefixes of this realm
    #[arg(long)]
    realm: Option<Name>,
}

/// Runs a verb.
pub(crate) async fn run(session: &Session, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Allocate(arguments) => allocate(session, &arguments).await,
        Verb::Set(arguments) => set::set(session, &arguments).await,
        Verb::List(arguments) => list(session, &arguments).await,
        Verb::Show(Numbered { id }) => {
            let answer = session.read(&path_of(id)).await?;
            session.check_placed(&format!("prefix {id}"), "prefixes", &answer.body)?;
            session.show(&answer.body, &id.to_string(), || Ok(shown(&answer.read()?, session.now())))
        }
        Verb::Release(Numbered { id }) => release(session, id).await,
    }
}

fn path_of(id: u64) -> String {
    format!("/v1/prefixes/{id}")
}

async fn allocate(session: &Session, arguments: &AllocateArguments) -> Result<(), Failure> {
    let there = |owner: &ObjectName| PrefixLevel {
        owner: owner.clone(),
        length: None,
        keep_edges: false,
        ttl_ms: None,
    };
    let request = DelegateRequest {
        pool: arguments.pool.clone(),
        parent: arguments.parent,
        realm: arguments.realm.clone(),
        through: arguments.path.above.iter().map(there).collect(),
        owner: arguments.path.owner.clone(),
        length: arguments.length,
        keep_edges: arguments.keep_edges,
        ttl_ms: arguments.ttl.map(text::milliseconds),
        wait: arguments.wait,
    };
    if let Some(pool) = &request.pool {
        session.check_named("pool", "pools", pool.as_str()).await?;
    }
    let repeat = format!("run the same command again; it shows an existing prefix of {}", request.owner);
    // Owner and parent identify the request, so a repetition gets the same answer.
    let call = Call::post("/v1/prefixes").json(&request)?.repeatable();
    let answer = session.write(call, Again::Same(repeat)).await?;
    let delegated: Delegated = answer.read()?;
    let Prefix { id, path, .. } = &delegated.prefix;
    let block = block(&delegated.prefix);
    session.show(&answer.body, &block, || Ok(format!("{block}   for {path}   prefix {id}\n")))?;
    session.tell(&conclusion(&delegated, session.writing.dry_run));
    Ok(())
}

fn conclusion(delegated: &Delegated, dry_run: bool) -> String {
    let Prefix { id, path, waiting, .. } = &delegated.prefix;
    if let Some(why) = waiting {
        let would = if dry_run { "would wait" } else { "waits" };
        return format!(
            "{path} {would}: {} ({}).   withdraw: ipamctl prefix release {id}",
            why.message, why.reason
        );
    }
    let ends = ends(&delegated.prefix);
    match (dry_run, delegated.repeated) {
        (true, _) => "a dry run: nothing was delegated, and the block is not held".to_owned(),
        (false, true) => format!("{path} had that already; {ends}."),
        (false, false) => format!("delegated; {ends}.   undo: ipamctl prefix release {id}"),
    }
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<(), Failure> {
    let keep = |prefix: &Prefix| {
        arguments.pool.as_ref().is_none_or(|pool| *pool == prefix.pool)
            && arguments.parent.is_none_or(|parent| prefix.parent == Some(parent))
            && arguments.realm.as_ref().is_none_or(|realm| *realm == prefix.realm)
            && session.fits_network(&prefix.network)
    };
    let mut filters = session.narrowed("prefixes", &[Part::Network, Part::Realm])?;
    filters.extend(arguments.pool.iter().map(|pool| ("pool", pool.to_string())));
    filters.extend(arguments.parent.iter().map(|parent| ("parent", parent.to_string())));
    let name = |prefix: &Prefix| prefix.id.to_string();
    session.show_list(Listing { words: ("prefix", "prefixes"), filters, name, table }, keep).await
}

async fn release(session: &Session, id: u64) -> Result<(), Failure> {
    let found: Prefix = session.read(&path_of(id)).await?.read()?;
    session.check_network(&format!("prefix {id}"), &found.network)?;
    if found.children > 0 {
        let below = text::plural(found.children, "prefix is", "prefixes are");
        let summary = [
            format!("{} of {} is divided: {below} cut from it.", block(&found), found.path),
            "They and all prefixes below them end with it.".to_owned(),
        ];
        confirm::moderate(session, &summary, &format!("Release prefix {id} anyway?")).await?;
    }
    let answer = session.write(Call::delete(path_of(id)), Again::ByKey).await?;
    let released: PrefixReleased = answer.read()?;
    let more = if released.ending { "; the remaining parts are released in the background" } else { "" };
    let sentence = match found.waiting {
        Some(_) => format!("the waiting request of {} {}", found.path, session.tense("withdrawn")),
        None => {
            format!("{} of {} {}{more}", text::joined(&released.cidrs), found.path, session.tense("released"))
        }
    };
    session.done(&answer, &block(&found), &sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::prefix::view::sample;

    #[test]
    fn a_repetition_is_reported() {
        let mut delegated = Delegated { prefix: sample(), through: vec![], repeated: false, revision: 8 };
        assert!(conclusion(&delegated, false).ends_with("undo: ipamctl prefix release 7"));
        assert!(conclusion(&delegated, true).starts_with("a dry run"));
        delegated.repeated = true;
        assert!(conclusion(&delegated, false).contains("had that already"));
        delegated.prefix.ends_in_ms = None;
        assert!(conclusion(&delegated, false).contains("until released"));
    }

    #[test]
    fn a_path_is_owners_with_slashes() {
        let path = parse_path("conduit-a/node-1/c1").unwrap();
        assert_eq!((path.above.len(), path.owner.as_str()), (2, "c1"));
        assert!(parse_path("a//b").is_err());
        assert!(parse_path("").is_err());
        assert!(parse_path(&["a"; 17].join("/")).unwrap_err().contains("16"));
    }
}
