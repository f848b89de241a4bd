//! `ipamctl prefix set`: declares the complete set of a realm's prefixes in a pool or parent prefix.

use std::time::Duration;

use clap::Args;
use ipam_api::client::Call;
use ipam_api::request::{PrefixLevel, PrefixesSet, ReleasedPrefix, SetPrefixesRequest};
use ipam_api::{Name, ObjectName};

use crate::client::confirm;
use crate::client::requests::Again;
use crate::client::session::Session;
use crate::command::prefix::view::table;
use crate::output::error::Failure;
use crate::output::text;

/// Maximum number of released prefixes that a prompt or a result names; the rest is counted.
const NAMED_MAX: usize = 8;

pub(super) const HELP: &str = "All in one step, or nothing. A listed owner keeps its prefix; \
     without a free block it waits. Other prefixes of the realm that were allocated from this pool or parent \
     itself end, with everything below them.

Examples:
  ipamctl prefix set conduit-a conduit-b --pool trench --length 20
  ipamctl prefix set conduit-a conduit-b --pool trench --length 20 --dry-run
  ipamctl prefix set node-1 node-2 --parent 48190230 --length 24 --keep-edges --ttl 40m --yes
  ipamctl prefix set --none --pool trench";

/// Arguments of `set`.
#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// Owners of the prefixes, in the order in which missing ones are allocated
    #[arg(value_name = "OWNER", required_unless_present = "none")]
    owners: Vec<ObjectName>,
    /// Release all prefixes of the realm there
    #[arg(long, conflicts_with = "owners")]
    none: bool,
    /// Pool of the prefixes
    #[arg(long, required_unless_present = "parent", conflicts_with = "parent")]
    pool: Option<Name>,
    /// Parent prefix, by ID
    #[arg(long, value_name = "PREFIX")]
    parent: Option<u64>,
    /// Prefix length of each; required unless all prefixes exist
    #[arg(long)]
    length: Option<u8>,
    /// Never allocate the first and last address of each prefix
    #[arg(long)]
    keep_edges: bool,
    /// Lifetime without renewal [default: as it is; for new prefixes: until released]
    #[arg(long, value_name = "DURATION", value_parser = text::parse_duration)]
    ttl: Option<Duration>,
    /// Realm of the owners
    #[arg(long, default_value = "default")]
    realm: Name,
}

/// Runs the verb. Without `--yes`, a dry run first determines which prefixes would be released.
pub(super) async fn set(session: &Session, arguments: &SetArguments) -> Result<(), Failure> {
    let level = |owner: &ObjectName| PrefixLevel {
        owner: owner.clone(),
        length: arguments.length,
        keep_edges: arguments.keep_edges,
        ttl_ms: arguments.ttl.map(text::milliseconds),
    };
    let request = SetPrefixesRequest {
        pool: arguments.pool.clone(),
        parent: arguments.parent,
        realm: arguments.realm.clone(),
        prefixes: arguments.owners.iter().map(level).collect(),
    };
    if let Some(pool) = &request.pool {
        session.check_named("pool", "pools", pool.as_str()).await?;
    }
    let call = Call::put("/v1/prefixes").json(&request)?;
    if !session.writing.yes && !session.writing.dry_run {
        let tried: PrefixesSet = session.preview(call.clone()).await?.read()?;
        if !tried.released.is_empty() {
            let summary = summary(&tried.released);
            confirm::moderate(session, &summary, "Release what is not listed?").await?;
        }
    }
    let answer = session.write(call, Again::ByKey).await?;
    let done: PrefixesSet = answer.read()?;
    let ids: Vec<String> = done.prefixes.iter().map(|prefix| prefix.id.to_string()).collect();
    session.show_table(&answer.body, &ids.join("\n"), || table(&done.prefixes, false, session.now()))?;
    session.tell(&conclusion(&done, session.writing.dry_run));
    Ok(())
}

fn summary(released: &[ReleasedPrefix]) -> [String; 2] {
    let count = text::plural(released.len() as u64, "prefix or request is", "prefixes and requests are");
    [format!("{count} not listed: {}.", named(released)), "They and all prefixes below them end.".to_owned()]
}

/// Describes the first released prefixes and requests, with their owners.
fn named(released: &[ReleasedPrefix]) -> String {
    let one = |one: &ReleasedPrefix| match one.cidr {
        Some(cidr) => format!("{cidr} of {}", one.owner),
        None => format!("the waiting request of {}", one.owner),
    };
    let mut all: Vec<String> = released.iter().take(NAMED_MAX).map(one).collect();
    let more = released.len().saturating_sub(NAMED_MAX);
    all.extend((more > 0).then(|| format!("{more} more")));
    all.join(", ")
}

fn conclusion(done: &PrefixesSet, dry_run: bool) -> String {
    let waiting = done.prefixes.iter().filter(|prefix| prefix.waiting.is_some()).count();
    let mut parts = Vec::new();
    if waiting > 0 {
        let waits = if dry_run { "would wait" } else { "waiting" };
        parts.push(format!("{waiting} of {} {waits} for a free block", done.prefixes.len()));
    }
    match (done.released.is_empty(), dry_run) {
        (true, _) => parts.push("nothing else was there".to_owned()),
        (false, true) => parts.push(format!("would be released: {}", named(&done.released))),
        (false, false) => parts.push(format!("released: {}", named(&done.released))),
    }
    if done.ending && !dry_run {
        parts.push("the remaining parts are released in the background".to_owned());
    }
    if dry_run {
        parts.push("a dry run: nothing was changed".to_owned());
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::prefix::view::sample;

    fn released(owner: &str, cidr: Option<&str>) -> ReleasedPrefix {
        let cidr = cidr.map(|cidr| cidr.parse().unwrap());
        ReleasedPrefix { id: 9, owner: owner.parse().unwrap(), cidr }
    }

    #[test]
    fn a_list_names_what_ends_and_counts_what_waits() {
        let mut waiting = sample();
        waiting.waiting = Some(
            serde_json::from_value(serde_json::json!({
                "type": "Ready", "status": "False", "reason": "PoolExhausted", "message": "full",
                "since": "2026-11-19T22:13:10Z"
            }))
            .unwrap(),
        );
        let mut done = PrefixesSet {
            prefixes: vec![sample(), waiting],
            released: vec![released("b", Some("172.16.16.0/20")), released("c", None)],
            ending: true,
            revision: 8,
        };
        assert_eq!(
            conclusion(&done, false),
            "1 of 2 waiting for a free block; released: 172.16.16.0/20 of b, the waiting request of c; the \
             remaining parts are released in the background"
        );
        let tried = conclusion(&done, true);
        assert!(tried.contains("would be released: ") && tried.ends_with("nothing was changed"), "{tried}");
        assert_eq!(
            summary(&done.released)[0],
            "2 prefixes and requests are not listed: 172.16.16.0/20 of b, the waiting request of c."
        );
        done.released = (0..NAMED_MAX + 3).map(|i| released(&format!("n{i}"), None)).collect();
        assert!(conclusion(&done, false).contains("of n7, 3 more;"), "{}", conclusion(&done, false));
        let nothing = PrefixesSet { prefixes: vec![sample()], released: vec![], ending: false, revision: 8 };
        assert_eq!(conclusion(&nothing, false), "nothing else was there");
    }
}
