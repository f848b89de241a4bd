//! Maps: `pool map`, `subnet map`, `network map`, and what `pool show` takes from them.

use std::net::IpAddr;

use clap::Args;
use ipam_api::Name;
use ipam_api::address::{number, parse_address};
use ipam_api::resource::{AddressMap, AddressRun, Counts, Holders, NetworkMap};

use crate::client::requests::with_all;
use crate::client::resource;
use crate::client::scope::Part;
use crate::client::session::Session;
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text::{self, Fields};

/// Free ranges and namespaces that `pool show` names.
const SHOWN: usize = 5;

/// States of addresses by which a map is narrowed.
const STATES: [&str; 7] =
    ["free", "allocated", "quarantined", "cooling", "reserved", "excluded", "unmanaged"];

/// Part of a map.
#[derive(Debug, Args)]
pub(crate) struct MapArguments {
    #[command(flatten)]
    part: NetworkMapArguments,
    /// Show only addresses in this state
    #[arg(long, value_parser = STATES)]
    state: Option<String>,
}

/// Part of a network's map.
#[derive(Debug, Args)]
pub(crate) struct NetworkMapArguments {
    /// Name
    name: Name,
    /// First address to show
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    from: Option<IpAddr>,
}

/// Shows a part of the map of a pool or of a subnet.
pub(crate) async fn run(session: &Session, plural: &str, arguments: &MapArguments) -> Result<(), Failure> {
    let NetworkMapArguments { name, from } = &arguments.part;
    let word = if plural == "pools" { "pool" } else { "subnet" };
    session.check_named(word, plural, name.as_str()).await?;
    let path = with_all(&of(session, plural, name, *from), [("state", arguments.state.clone())]);
    let answer = session.read(&path).await;
    let answer = resource::suggest(session, answer, plural, name.as_str()).await?;
    let map: AddressMap = answer.read()?;
    let with_pools = plural == "subnets";
    session.show_table(&answer.body, name.as_str(), || table(&map.items, with_pools))?;
    say_more(session, map.next, map.revision);
    Ok(())
}

/// Shows the subnets of a network by address.
pub(crate) async fn run_network(session: &Session, arguments: &NetworkMapArguments) -> Result<(), Failure> {
    session.without("networks", &[Part::Network])?;
    let answer = session.read(&of(session, "networks", &arguments.name, arguments.from)).await;
    let answer = resource::suggest(session, answer, "networks", arguments.name.as_str()).await?;
    let map: NetworkMap = answer.read()?;
    session.show_table(&answer.body, arguments.name.as_str(), || {
        Table::of(&map.items)
            .text("CIDR", |sums| sums.cidr)
            .text("SUBNET", |sums| &sums.subnet)
            .number("POOLS", |sums| text::count(sums.pools))
            .number("SIZE", |sums| text::count(sums.counts.size))
            .number("HELD", |sums| text::count(sums.counts.allocated))
            .number("FREE", |sums| text::count(sums.counts.free))
            .spare("USE", 1, |sums| text::use_bar(&sums.counts))
            .table()
    })?;
    say_more(session, map.next, map.revision);
    Ok(())
}

fn of(session: &Session, plural: &str, name: &Name, from: Option<IpAddr>) -> String {
    let most = ipam_api::limits::PAGE_ITEMS_MAX as u64;
    let limit = session.reading.limit.map_or(most, |limit| limit.min(most));
    let parameters = [("from", from.map(|from| from.to_string())), ("limit", Some(limit.to_string()))];
    with_all(&format!("/v1/{plural}/{name}/map"), parameters)
}

fn say_more(session: &Session, next: Option<IpAddr>, revision: u64) {
    let more = next.map(|next| format!(" · there is more: --from {next}")).unwrap_or_default();
    session.tell(&format!("revision {revision}{more}"));
}

fn table(runs: &[AddressRun], with_pools: bool) -> Table {
    let size = |run: &AddressRun| number(run.last).saturating_sub(number(run.first)).saturating_add(1);
    Table::of(runs)
        .text("FIRST", |run| run.first)
        .text("LAST", |run| run.last)
        .number("SIZE", |run| text::size(size(run)))
        .text("STATE", |run| {
            format!("{}{}", run.state, if run.reserved_while_held { ", reserved" } else { "" })
        })
        .only_if(with_pools)
        .text("POOL", |run| text::or_dash(run.pool.as_ref()))
        .table()
}

/// Free ranges and top holders of a pool. A part whose read failed is omitted.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    free: Option<AddressMap>,
    holders: Option<Holders>,
}

impl Parts {
    /// Reads the parts of a pool.
    pub(crate) async fn of_pool(session: &Session, name: &Name) -> Self {
        let path = format!("/v1/pools/{name}");
        let free = session.read(&format!("{path}/map?state=free&limit={SHOWN}")).await;
        let holders = session.read(&format!("{path}/holders?limit={SHOWN}")).await;
        Self {
            free: free.ok().and_then(|answer| answer.read().ok()),
            holders: holders.ok().and_then(|answer| answer.read().ok()),
        }
    }

    /// Adds the line of the free ranges.
    pub(crate) fn free_line(&self, fields: &mut Fields) {
        let Some(free) = &self.free else { return };
        let mut ranges: Vec<String> = free.items.iter().map(range).collect();
        if free.next.is_some() {
            ranges.push("…".to_owned());
        }
        fields.line_if("free", &ranges.join("  "));
    }

    /// Adds the line of the namespaces with the most addresses.
    pub(crate) fn holders_line(&self, fields: &mut Fields) {
        let Some(holders) = self.holders.as_ref().filter(|holders| !holders.items.is_empty()) else {
            return;
        };
        let mut parts: Vec<String> = holders
            .items
            .iter()
            .map(|one| match one.realm.as_str() {
                "default" => format!("{} {}", one.namespace, one.allocated),
                realm => format!("{realm}/{} {}", one.namespace, one.allocated),
            })
            .collect();
        let others = holders.namespaces.saturating_sub(holders.items.len() as u64);
        if others > 0 {
            parts.push(format!("{} more", text::plural(others, "namespace", "namespaces")));
        }
        let which = if holders.complete {
            String::new()
        } else {
            format!("   (of the lowest {} held addresses)", holders.counted)
        };
        fields.line("top holders", format!("{}{which}", parts.join(" · ")));
    }
}

fn range(run: &AddressRun) -> String {
    if run.first == run.last { run.first.to_string() } else { format!("{}-{}", run.first, run.last) }
}

/// Adds the lines of all counts: the sum that gives `size`, and the share in use, followed by `since`.
/// If `open` is false, the pool allocates nothing any more, and no address counts as free.
pub(crate) fn count_lines(fields: &mut Fields, counts: &Counts, size: &str, since: &str, open: bool) {
    let states = [
        ("allocated", counts.allocated),
        ("cooling", counts.cooling),
        ("quarantined", counts.quarantined),
        ("reserved", counts.reserved),
        ("excluded", counts.excluded),
        (if open { "free" } else { "unassigned" }, counts.free),
    ];
    let sum: Vec<String> =
        states.iter().map(|(word, number)| format!("{word} {}", text::count(*number))).collect();
    fields.line("addresses", format!("{size} = {}", sum.join(" + ")));
    let part = match text::use_percent(counts) {
        Some(percent) if !open => format!("{percent} %   (none allocatable)"),
        Some(percent) => format!(
            "{percent} %   ({} allocatable, {} {} free)",
            text::count(text::usable(counts)),
            text::count(counts.free),
            if counts.free == 1 { "is" } else { "are" },
        ),
        None => "-   (none allocatable)".to_owned(),
    };
    fields.line("use", format!("{part}{since}"));
}
