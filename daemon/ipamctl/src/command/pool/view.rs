//! Pools as text.

use ipam_api::resource::{Application, ApplicationStanding, Condition, Pool, Subnet};
use ipam_api::time::Timestamp;
use ipam_api::{AddressRange, Family, Name, RangeSet};

use super::selectors;
use crate::client::resource;
use crate::client::resource_type::Read;
use crate::command::controller;
use crate::command::map::{Parts, count_lines};
use crate::command::probing;
use crate::command::routes::route;
use crate::output::table::Table;
use crate::output::text;

/// The table of `pool list`.
pub(super) fn table(pools: &[Read<Pool>], wide: bool, _now: Timestamp) -> Table {
    Table::of(pools)
        .text("NAME", |found| &found.spec.name)
        .text("CIDR", |found| found.status.cidr)
        .spare("FAMILY", 2, |found| if found.status.family == Family::V4 { 4 } else { 6 })
        .number("FREE", free)
        .number("HELD", |found| text::count(found.status.counts.allocated))
        .number("SIZE", size)
        .spare("USE", 1, |found| text::use_bar(&found.status.counts))
        .text("CONDITION", condition)
        .only_if(wide)
        .spare("SUBNET", 3, |found| &found.spec.subnet)
        .spare("NETWORK", 6, |found| text::or_dash(found.spec.network.as_ref()))
        .spare("STRATEGY", 8, |found| found.spec.strategy)
        .spare("COOLING", 9, |found| text::duration(found.spec.cooling_ms))
        .spare("RANGES", 4, ranges)
        .spare("EXCLUDED", 5, |found| text::joined(&found.spec.exclude))
        .spare("LABELS", 7, |found| text::labels(&found.spec.labels))
        .table()
}

/// Number of free addresses; a dash for a terminating pool.
fn free(pool: &Read<Pool>) -> String {
    if pool.spec.terminating { "-".to_owned() } else { text::count(pool.status.counts.free) }
}

/// Ranges as text. A pool without ranges covers its whole subnet.
fn ranges(pool: &Read<Pool>) -> String {
    if pool.spec.ranges.is_empty() { "all of it".to_owned() } else { text::joined(&pool.spec.ranges) }
}

/// Number of addresses; computed from the ranges where JSON can't represent the count.
fn size(pool: &Read<Pool>) -> String {
    if !pool.status.counts.saturated {
        return pool.status.counts.size.to_string();
    }
    let set = if pool.spec.ranges.is_empty() {
        RangeSet::new(pool.status.family, &[AddressRange::of_cidr(pool.status.cidr)])
    } else {
        RangeSet::new(pool.status.family, &pool.spec.ranges)
    };
    text::size(set.size())
}

/// Condition in one or two words.
fn condition(pool: &Read<Pool>) -> String {
    if pool.spec.terminating {
        return format!("Terminating ({} left)", text::count(pool.status.counts.allocated));
    }
    let mut words = Vec::new();
    if pool.spec.disabled {
        words.push("Disabled");
    }
    for found in &pool.status.conditions {
        match (found.kind.as_str(), found.status.as_str()) {
            ("Ready", "True") => {}
            ("Ready", _) if found.reason == "Disabled" && pool.spec.disabled => {}
            ("Ready", _) if found.reason.is_empty() => words.push("NotReady"),
            ("Ready", _) => words.push(&found.reason),
            (kind, "True") => words.push(kind),
            _ => {}
        }
    }
    if words.is_empty() { "Ready".to_owned() } else { words.join(",") }
}

/// The text of `pool show`.
pub(super) fn shown(
    pool: &Read<Pool>,
    subnet: Option<&Subnet>,
    parts: &Parts,
    now: Timestamp,
    width: Option<usize>,
) -> String {
    let (spec, status) = (&pool.spec, &pool.status);
    let counts = &status.counts;
    let mut fields = resource::heading(pool, spec.network.as_ref());
    let mut line = format!("{}  {}", spec.subnet, status.cidr);
    if let Some(vlan) = subnet.and_then(|subnet| subnet.vlan) {
        line = format!("{line}  vlan {vlan}");
    }
    if let Some(gateway) = subnet.and_then(|subnet| subnet.gateway) {
        line = format!("{line}  gateway {gateway}");
    }
    fields.line("subnet", line);
    let mut line = ranges(pool);
    if !spec.exclude.is_empty() {
        line = format!("{line}   excluded {}", text::joined(&spec.exclude));
    }
    fields.line("ranges", line);
    let strict = if spec.strict_cooling { " (strict)" } else { "" };
    let reserve = match spec.cooling_reserve {
        0 => String::new(),
        reserve => format!(" ({reserve} stay cooling)"),
    };
    let edges = if spec.allow_edges { "   edges allowed" } else { "" };
    let cooling = text::duration(spec.cooling_ms);
    fields.some("gateway", spec.gateway.map(|gateway| format!("{gateway}, in place of the subnet's")));
    fields.line_if("routes", &text::joined(spec.routes.iter().map(route)));
    fields.line("strategy", format!("{}   cooling {cooling}{strict}{reserve}{edges}", spec.strategy));
    fields.line_if("probes", &probing::shown(&spec.probing));
    let default = "yes: used for requests that name no pool";
    fields.some("default", spec.default.then_some(default));
    let keep = "keep: addresses of sticky endpoints are kept after scale-down";
    fields.some("scale-down", (!spec.scale_down.is_usual()).then_some(keep));
    fields.some("automatic", status.application.as_ref().map(|of| automatic(of, spec.reclaim)));
    selectors::lines(&mut fields, spec);
    resource::metadata_lines(&mut fields, pool);
    fields.raw("");
    let as_of = format!("   as of revision {}", status.revision);
    count_lines(&mut fields, counts, &size(pool), &as_of, !spec.terminating);
    if status.reserved_while_held > 0 {
        let held = text::plural(status.reserved_while_held, "address is", "addresses are");
        fields.line("", format!("{held} reserved while held or cooling, and not allocated again"));
    }
    if !spec.terminating {
        parts.free_line(&mut fields);
    }
    parts.holders_line(&mut fields);
    if spec.terminating {
        let left = text::plural(counts.allocated, "address is", "addresses are");
        fields.line("terminating", format!("deleted when the last address is released; {left} left"));
    }
    let drained = |to: &Name| format!("no new allocations; requests are redirected to {to}");
    fields.some("drained", spec.drains_to.as_ref().map(drained));
    fields.some("disabled", spec.disabled.then_some("no new allocations; releases continue"));
    if !status.conditions.is_empty() {
        fields.raw("");
        fields.raw(&conditions(&status.conditions, now).render(true, width));
    }
    fields.text()
}

/// Describes the application of an automatic pool, and the end of the pool.
fn automatic(of: &Application, reclaim: Option<bool>) -> String {
    let replicas = text::plural(of.replicas.into(), "replica", "replicas");
    let whose = format!("for {} of {}/{}", of.interface, of.namespace, controller::written(&of.controller));
    let standing = match of.standing {
        ApplicationStanding::Present => "",
        ApplicationStanding::Elsewhere => "   it uses another subnet now",
        ApplicationStanding::Ended => "   it has ended",
    };
    let end = if reclaim == Some(true) { "goes with it" } else { "stays after it" };
    format!("{whose}, {} for {replicas}; {end}{standing}", of.size)
}

fn conditions(conditions: &[Condition], now: Timestamp) -> Table {
    Table::of(conditions)
        .text("CONDITION", |found| &found.kind)
        .text("STATUS", |found| &found.status)
        .text("REASON", |found| text::dash(&found.reason))
        .spare("SINCE", 1, |found| text::age(found.since, now))
        .text("MESSAGE", |found| &found.message)
        .table()
}

/// Suggested next commands.
pub(super) fn next_steps(pool: &Read<Pool>) -> String {
    let name = &pool.spec.name;
    if pool.spec.terminating {
        format!("next: ipamctl allocation list --pool {name} · ipamctl pool set {name} --no-drain")
    } else if pool.spec.disabled {
        format!("next: ipamctl pool set {name} --enable")
    } else {
        format!(
            "next: ipamctl pool map {name} · ipamctl allocation list --pool {name} · ipamctl pool set {name} --add-range …"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// 2026-11-20 11:14:07 UTC.
    const NOW: Timestamp = Timestamp(1_795_173_247_000);

    fn pool(spec: Value, family: u8, cidr: &str, counts: [u64; 7], conditions: Value) -> Read<Pool> {
        let [size, allocated, cooling, quarantined, reserved, excluded, free] = counts;
        let saturated = counts.contains(&ipam_api::limits::JSON_INTEGER_MAX);
        let mut value = json!({
            "network": "default",
            "meta": {"id": 412, "revision": 1204, "created_at": "2026-11-08T00:00:00Z", "created_by": "admin",
                     "updated_at": "2026-11-19T08:00:00Z", "updated_by": "argocd"},
            "status": {"revision": 48_211_907, "family": family, "cidr": cidr, "conditions": conditions,
                       "counts": {"size": size, "allocated": allocated, "cooling": cooling,
                                  "quarantined": quarantined, "reserved": reserved, "excluded": excluded,
                                  "free": free, "saturated": saturated}}
        });
        value.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    fn web() -> Read<Pool> {
        pool(
            json!({"name": "web", "subnet": "lan-10", "ranges": ["10.10.0.50-10.10.0.199"],
                   "exclude": ["10.10.0.100-10.10.0.105"], "labels": {"env": "prod", "team": "web"},
                   "managed_by": "argocd/infra-pools"}),
            4,
            "10.10.0.0/24",
            [150, 125, 9, 1, 3, 6, 6],
            json!([
                {"type": "Ready", "status": "True", "reason": "Serving", "message": "",
                 "since": "2026-11-08T00:00:00Z"},
                {"type": "NearlyFull", "status": "True", "reason": "Utilization",
                 "message": "6 of 141 usable addresses left (96 %)", "since": "2026-11-20T08:14:00Z"}
            ]),
        )
    }

    fn pools() -> Vec<Read<Pool>> {
        let max = ipam_api::limits::JSON_INTEGER_MAX;
        vec![
            web(),
            pool(
                json!({"name": "web6", "subnet": "lan-10-v6"}),
                6,
                "2001:db8:1::/64",
                [max, 125, 0, 0, 0, 1, max],
                json!([]),
            ),
            pool(
                json!({"name": "build", "subnet": "lan-11", "disabled": true, "ranges": ["10.10.1.1-10.10.1.200"]}),
                4,
                "10.10.1.0/24",
                [200, 20, 0, 0, 0, 0, 180],
                json!([]),
            ),
            pool(
                json!({"name": "old", "subnet": "lan-9", "terminating": true, "ranges": ["10.9.0.1-10.9.0.11"]}),
                4,
                "10.9.0.0/24",
                [11, 11, 0, 0, 0, 0, 0],
                json!([]),
            ),
        ]
    }

    #[test]
    fn the_list_at_120_columns() {
        assert_eq!(
            table(&pools(), false, NOW).render(true, Some(120)),
            "\
NAME   CIDR             FAMILY   FREE  HELD  SIZE  USE             CONDITION
web    10.10.0.0/24     4           6   125   150  ███████▋  96 %  NearlyFull
web6   2001:db8:1::/64  6       >9e15   125  2^64  ▏          0 %  Ready
build  10.10.1.0/24     4         180    20   200  ▊         10 %  Disabled
old    10.9.0.0/24      4           -    11    11  ████████ 100 %  Terminating (11 left)
"
        );
    }

    #[test]
    fn the_list_at_80_columns() {
        let text = table(&pools(), true, NOW).render(true, Some(80));
        assert_eq!(
            text,
            "\
NAME   CIDR              FREE  HELD  SIZE  USE             CONDITION
web    10.10.0.0/24         6   125   150  ███████▋  96 %  NearlyFull
web6   2001:db8:1::/64  >9e15   125  2^64  ▏          0 %  Ready
build  10.10.1.0/24       180    20   200  ▊         10 %  Disabled
old    10.9.0.0/24          -    11    11  ████████ 100 %  Terminating (11 left)
"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn wide_shows_all_where_there_is_room() {
        let text = table(&pools(), true, NOW).render(true, None);
        assert!(
            text.contains("lan-10-v6") && text.contains("env=prod,team=web") && text.contains("all of it")
        );
    }

    #[test]
    fn one_pool() {
        let expected = "\
pool web                          id 412   revision 1204   network default
subnet       lan-10  10.10.0.0/24
ranges       10.10.0.50-10.10.0.199   excluded 10.10.0.100-10.10.0.105
strategy     next   cooling 30s
labels       env=prod,team=web
managed by   argocd/infra-pools
changed      2026-11-19T08:00:00Z by argocd

addresses    150 = allocated 125 + cooling 9 + quarantined 1 + reserved 3 + excluded 6 + free 6
use          96 %   (141 allocatable, 6 are free)   as of revision 48211907

CONDITION   STATUS  REASON       SINCE  MESSAGE
Ready       True    Serving      12d
NearlyFull  True    Utilization  3h     6 of 141 usable addresses left (96 %)
";
        assert_eq!(shown(&web(), None, &Parts::default(), NOW, Some(120)), expected);
        assert_eq!(shown(&web(), None, &Parts::default(), NOW, Some(80)), expected);
        assert_eq!(
            next_steps(&web()),
            "next: ipamctl pool map web · ipamctl allocation list --pool web · ipamctl pool set web --add-range …"
        );
    }

    #[test]
    fn a_pool_that_goes_away_says_what_is_left() {
        let old = pools().remove(3);
        assert!(
            shown(&old, None, &Parts::default(), NOW, None)
                .contains("deleted when the last address is released; 11 addresses are left")
        );
        let mut old = old;
        (old.status.counts.allocated, old.status.counts.free) = (8, 3);
        let text = shown(&old, None, &Parts::default(), NOW, None);
        assert!(text.contains("unassigned 3\n") && text.contains("(none allocatable)"), "{text}");
        assert!(!text.contains("free"), "{text}");
        let list = table(&[old], false, NOW).render(false, None);
        assert!(list.contains("  4  -  8  11  "), "{list}");
    }
}
