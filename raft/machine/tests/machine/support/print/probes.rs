//! Checks, neighbors, jobs of probes and inventories, as a scenario shows them.

use std::fmt::Write;

use ipam_api::access::NodeKey;
use ipam_api::name::Name;
use ipam_api::node_report::{Inventory, InventoryDigest};
use ipam_machine::command::Kind;
use ipam_machine::model::Silence;
use ipam_machine::{State, Sweep};

use super::id;
use crate::support::script::EPOCH;

/// `checks POOL`, `neighbor ALLOCATION`, `collisions POOL`, `jobs NODE LIMIT [SUBNET AFTER]`,
/// `inventory NODE`.
pub(super) fn show(state: &State, what: &str, which: &str) -> String {
    let pool = || state.id_of(Kind::Pool, &Name::new(which).unwrap()).unwrap();
    match what {
        "checks" => {
            let pool = pool();
            let checks = state.checks.iter().filter(|(_, row)| row.pool == pool.into());
            let lines = checks.map(|(_, row)| format!("{} checked until {}\n", row.address, row.until_ms));
            some(lines.collect(), "no checks")
        }
        "collisions" => {
            let ids =
                state.collisions_of(pool().into()).map(|one| format!("collision of {}\n", id(one.get())));
            some(ids.collect(), "no collisions")
        }
        "neighbor" => neighbor(state, EPOCH + which.parse::<u64>().unwrap()),
        "jobs" => jobs(state, which),
        "inventory" => inventory(state, which),
        other => panic!("can't show {other}"),
    }
}

fn some(text: String, none: &str) -> String {
    if text.is_empty() { format!("{none}\n") } else { text }
}

fn neighbor(state: &State, allocation: u64) -> String {
    let Some(row) = state.neighbors.get(allocation.into()) else { return "never heard\n".to_owned() };
    let mut text = format!("{}", row.mac);
    if let Some(other) = row.other {
        let _ = write!(text, " and {other}");
    }
    let names: Vec<String> = row.heard_by.iter().map(|node| node.name.to_string()).collect();
    let _ = write!(text, ", heard by {}", names.join(" "));
    for Silence { node, rounds, last_ms } in &row.silence {
        let _ = write!(text, "; silent for {} {rounds} times, last at {last_ms}", node.name);
    }
    text + "\n"
}

fn inventory(state: &State, which: &str) -> String {
    let node = NodeKey { realm: Name::default_name(), name: which.parse().unwrap() };
    let (_, report) = state.report_of(&node).unwrap();
    let text = |inventory: Inventory| {
        let InventoryDigest { attachments, digest } = inventory.digest();
        format!("{attachments}:{digest}")
    };
    let matched = if report.inventory_matched { "matched" } else { "did not match" };
    let (agent, cluster) = (text(report.inventory), text(state.inventory(&node)));
    format!("agent {agent}, {matched}; cluster {cluster}\n")
}

fn jobs(state: &State, which: &str) -> String {
    let words: Vec<&str> = which.split_whitespace().collect();
    let node = NodeKey { realm: Name::default_name(), name: words[0].parse().unwrap() };
    let sweep = words.get(2).map(|subnet| match *subnet {
        "start" => Sweep::START,
        subnet => Sweep {
            subnet: state.id_of(Kind::Subnet, &Name::new(subnet).unwrap()).unwrap().into(),
            after: words.get(3).map(|address| address.parse().unwrap()),
        },
    });
    let jobs = state.probe_jobs(&node, sweep, words[1].parse().unwrap());
    let mut text: String = jobs.addresses.iter().map(|(_, address)| format!("probe {address}\n")).collect();
    if let Some(Sweep { subnet, after }) = jobs.next {
        let subnet = &state.subnets.get(subnet).unwrap().spec.name;
        let _ = writeln!(
            text,
            "next in {subnet} behind {}",
            after.map(|one| one.to_string()).unwrap_or_default()
        );
    }
    let _ = writeln!(text, "{}", if state.has_probes(&node) { "has probes" } else { "has no probes" });
    text
}
