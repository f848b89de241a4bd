//! Outcomes, events and rows as a scenario shows them.

mod probes;

use std::fmt::Write;

use ipam_api::Problem;
use ipam_api::address::parse_address;
use ipam_api::name::{Name, ObjectName, ResourceName};
use ipam_api::resource::Lifecycle;
use ipam_machine::change::FieldChange;
use ipam_machine::command::{
    AgentReadiness, AllocatedMany, Given, GivenPrefix, Kind, ListedPrefix, PendingPrefix, Renewed, Started,
    UnlistedPrefix,
};
use ipam_machine::event::{AwaitedPrefix, Delegation, Holding, Reason};
use ipam_machine::explain::{CandidateOutcome, Explanation};
use ipam_machine::model::{Automatic, Boot, Endpoint};
use ipam_machine::space::Counts;
use ipam_machine::state::Occupant;
use ipam_machine::{Answer, Applied, Event, EventKind, Outcome, State};

use crate::support::script::{EPOCH, attachment};

/// Outcome of a command, with its events.
pub(crate) fn outcome(outcome: &Outcome, events: &[Event]) -> String {
    let mut text = String::new();
    match outcome {
        Ok(Applied { revision, answer: said, .. }) => {
            let _ = writeln!(text, "revision {}: {}", id(*revision), answer(said, "  "));
        }
        Err(refusal) => {
            let _ = writeln!(text, "refused {}: {}", refusal.code(), short(&refusal.detail()));
            if let Some(help) = &refusal.help() {
                let _ = writeln!(text, "  help: {}", short(help));
            }
        }
    }
    for (number, event) in (0..).zip(events) {
        assert_eq!(event.number, number, "events are numbered from 0");
        let _ = writeln!(text, "  * {}", what(&event.kind));
    }
    text
}

/// Explanation of a request.
pub(crate) fn explanation(explanation: &Explanation) -> String {
    let mut text = String::new();
    match &explanation.outcome {
        Ok(applied) => {
            let _ = writeln!(text, "would be {}", answer(&applied.answer, "  "));
        }
        Err(refusal) => {
            let _ = writeln!(text, "would be refused, {}", refusal.code());
        }
    }
    for choice in &explanation.choices {
        let more = if choice.more { ", and more" } else { "" };
        let _ = writeln!(
            text,
            "  {} {}, pools by {}{more}",
            choice.interface,
            choice.family,
            choice.rule.as_str()
        );
        if let (true, Some((pool, address))) = (choice.kept, &choice.given) {
            let _ = writeln!(text, "  stays at {address} of {pool}");
        }
        for (number, one) in (1..).zip(&choice.candidates) {
            let outcome = match &one.outcome {
                CandidateOutcome::Rejected { why } => format!("falls, {}: {why}", why.code()),
                CandidateOutcome::Exhausted => {
                    let Counts { size, allocated, cooling, .. } = one.counts;
                    format!("exhausted, {allocated} of {size} held and {cooling} cooling")
                }
                CandidateOutcome::Unavailable => "can't give the address asked for".to_owned(),
                CandidateOutcome::Gives(address) => format!("gives {address}"),
            };
            let _ = write!(text, "  {number} {}: {outcome}", one.pool);
            if let Some(wait_ms) = one.next_free_ms {
                let _ = write!(text, "; next free in {wait_ms} ms");
            }
            if let Some(unassigned) = one.unassigned {
                let _ = write!(text, "; no pool has {unassigned}");
            }
            text.push('\n');
        }
        for one in &choice.skipped {
            let names: Vec<_> = one.pools.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "  {} skipped, {}: {}", one.count, one.why, names.join(", "));
        }
    }
    text
}

/// Error of parsing.
pub(crate) fn unreadable(problem: &Problem) -> String {
    format!("not readable, {}: {}\n", problem.code, problem.detail)
}

fn answer(answer: &Answer, indent: &str) -> String {
    match answer {
        Answer::Stored { created: true, revision, .. } => format!("created as {}", id(*revision)),
        Answer::Stored { created: false, revision, .. } => format!("stored, at {}", id(*revision)),
        Answer::Gone => "gone".to_owned(),
        Answer::Draining { held } => format!("draining, {held} held"),
        Answer::Released { late: true, .. } => "too late to release anything".to_owned(),
        Answer::Released { addresses, .. } if addresses.is_empty() => "nothing to release".to_owned(),
        Answer::Released { addresses, more: _, late: _ } => {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            format!("released {}", addresses.join(", "))
        }
        Answer::Heard { boot, inventory } => {
            format!("boot {} of {:?}, {} attachments", boot.number, &*boot.id, inventory.attachments())
        }
        Answer::OrphansReleased { addresses, stale } => {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            format!("released [{}], {stale} stale", addresses.join(", "))
        }
        Answer::Probed { recorded, refused } => format!("recorded {recorded}, refused {refused}"),
        Answer::Reclaimed { addresses, stale } => {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            format!("reclaimed [{}], {stale} stale", addresses.join(", "))
        }
        Answer::PodsReported => "noted the pods".to_owned(),
        Answer::Expired { rows } => format!("expired {rows} rows"),
        Answer::Members { ids } => format!("members {ids:?}"),
        Answer::Pending(pending) => {
            let still = if pending.repeated { "still waits" } else { "waits" };
            format!("{still}, {}: {}", pending.why.as_str(), short(&pending.cause.detail()))
        }
        Answer::PrefixPending { repeated, pending } => {
            let still = if *repeated { "still waits" } else { "waits" };
            let claim = id(pending.claim.get());
            format!("{still} as {claim}, {}: {}", pending.why.as_str(), short(&pending.cause.detail()))
        }
        Answer::Renewed { leases, more: _ } => {
            let until = |one: &Renewed| {
                let Renewed { allocation, address, lease } = one;
                format!("\n{indent}{address} as {} until {}", id((*allocation).get()), lease.until_ms)
            };
            format!("renewed{}", leases.iter().map(until).collect::<String>())
        }
        Answer::Trimmed { segments } => format!("gave up {segments} segments of the journal"),
        Answer::Level { level } => format!("the level is {level}"),
        Answer::Sealed { segment: Some(number) } => format!("sealed segment {number} of the journal"),
        Answer::Sealed { segment: None } => "nothing to seal".to_owned(),
        Answer::Confirmed { pools, waiting } => format!("confirmed {pools} pools; {waiting} wait"),
        Answer::Steps(answers) => {
            let mut text = "all steps".to_owned();
            for step in answers {
                let _ = write!(text, "\n{indent}{}", self::answer(step, &format!("{indent}  ")));
            }
            text
        }
        Answer::Delegated { repeated, prefixes } => {
            let mut text = if *repeated { "as before" } else { "delegated" }.to_owned();
            for GivenPrefix { id: own, cidr, path, pool, ends_in_ms, .. } in prefixes {
                let _ =
                    write!(text, "\n{indent}{cidr} of {pool} for {} as {}", joined(path), id((*own).get()));
                if let Some(left) = ends_in_ms {
                    let _ = write!(text, ", ends in {left} ms");
                }
            }
            text
        }
        Answer::PrefixesSet { prefixes, released, ending } => {
            prefixes_set(prefixes, released, *ending, indent)
        }
        Answer::PrefixReleased { cidrs, ending } => {
            let cidrs: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
            let rest = if *ending { ", and more to come" } else { "" };
            format!("released {}{rest}", cidrs.join(", "))
        }
        Answer::AllocatedMany(many) => allocated_many(many, indent),
        Answer::AllocationsReleased { addresses, gone } => {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            format!("released [{}], {gone} gone already", addresses.join(", "))
        }
        Answer::Allocated { repeated, interfaces } => {
            let mut text = if *repeated { "as before" } else { "given" }.to_owned();
            for interface in interfaces {
                for given in &interface.addresses {
                    let _ = write!(text, "\n{indent}{} {}", interface.name, self::given(given));
                }
            }
            text
        }
    }
}

fn allocated_many(many: &AllocatedMany, indent: &str) -> String {
    let mut text = format!("given to many, {} as before", many.repeated.len());
    for given in &many.addresses {
        let pool = &many.pools[usize::try_from(given.pool).unwrap()];
        let (own, length) = (id(given.allocation.get()), pool.cidr.prefix_len());
        let _ = write!(
            text,
            "\n{indent}[{}] {}/{length} from {} as {own}",
            given.endpoint, given.address, pool.name
        );
    }
    text
}

fn prefixes_set(
    prefixes: &[ListedPrefix],
    released: &[UnlistedPrefix],
    ending: bool,
    indent: &str,
) -> String {
    let mut text = "exactly".to_owned();
    for prefix in prefixes {
        let _ = match prefix {
            ListedPrefix::Delegated(GivenPrefix { id: own, cidr, path, .. }) => {
                write!(text, "\n{indent}{cidr} for {} as {}", joined(path), id((*own).get()))
            }
            ListedPrefix::Waiting(PendingPrefix { claim, path, why, .. }) => {
                let (path, claim) = (joined(path), id((*claim).get()));
                write!(text, "\n{indent}{path} waits as {claim}, {}", why.as_str())
            }
        };
    }
    for UnlistedPrefix { id: own, owner, cidr } in released {
        let cidr = cidr.map_or_else(|| "the request".to_owned(), |cidr| cidr.to_string());
        let _ = write!(text, "\n{indent}ended {cidr} of {owner}, {}", id((*own).get()));
    }
    if ending {
        let _ = write!(text, "\n{indent}and more to come");
    }
    text
}

fn given(given: &Given) -> String {
    let mut text = format!("{} from {} as {}", given.address, given.pool, id(given.allocation.get()));
    if let Some(gateway) = given.gateway {
        let _ = write!(text, ", gateway {gateway}");
    }
    if given.clean_gateway {
        text.push_str(", no default route");
    }
    if let Some(mtu) = given.mtu {
        let _ = write!(text, ", MTU {mtu}");
    }
    if let Some(vlan) = given.vlan {
        let _ = write!(text, ", vlan {vlan}");
    }
    for route in &given.routes {
        let _ = write!(text, ", {} via {}", route.destination, route.gateway);
    }
    if let Some(mac) = &given.mac {
        let _ = write!(text, ", mac {mac}");
    }
    if let Some(hostname) = &given.metadata.hostname {
        let _ = write!(text, ", called {hostname}");
    }
    if !given.metadata.description.is_empty() {
        let _ = write!(text, ", {:?}", given.metadata.description);
    }
    if given.checked {
        text.push_str(", checked");
    }
    if given.probes_conflicts {
        text.push_str(", to be probed");
    }
    if given.probes_gateway {
        text.push_str(", gateway to be probed");
    }
    if let Some(lease) = &given.lease {
        let _ = write!(text, ", lease until {}", lease.until_ms);
    }
    for server in &given.dns.nameservers {
        let _ = write!(text, ", name server {server}");
    }
    text
}

fn what(what: &EventKind) -> String {
    match what {
        EventKind::Created { kind, name } => format!("created {kind} {name}"),
        EventKind::Changed { kind, name, changes } => {
            let mut text = format!("changed {kind} {name}");
            for FieldChange { field, from, to } in changes {
                let _ = write!(text, "\n      {field}: {:?} -> {:?}", from.as_str(), to.as_str());
            }
            text
        }
        EventKind::Deleted { kind, name } => format!("deleted {kind} {name}"),
        EventKind::Allocated(Holding { address, pool, endpoint, interface, allocation, reason, .. }) => {
            let why = match reason {
                Reason::Moved => " (moved)",
                Reason::Adopted => ", adopted",
                Reason::Waited => ", waited for",
                Reason::Conflict => ", after a conflict",
                _ => "",
            };
            format!("{endpoint} holds {address} of {pool} on {interface} as {}{why}", id((*allocation).get()))
        }
        EventKind::Attached(Holding { address, endpoint, interface, node, allocation, reason, .. }) => {
            let (node, why) = (node.as_ref().map_or("nowhere", |node| node.as_str()), reason.as_str());
            let id = id((*allocation).get());
            format!("{endpoint} is attached on {node}: {address} on {interface}, still {id} ({why})")
        }
        EventKind::Detached(Holding { address, endpoint, node, allocation, reason, .. }) => {
            let (node, why) = (node.as_ref().map_or("nowhere", |node| node.as_str()), reason.as_str());
            format!("{endpoint} is detached on {node}: {address} stays, {} ({why})", id((*allocation).get()))
        }
        EventKind::Released { of: Holding { address, pool, endpoint, allocation, reason, .. }, .. } => {
            let reason = match reason {
                Reason::AttachmentReleased => "attachment released",
                Reason::AllocationReleased => "allocation released",
                Reason::EndpointReleased => "endpoint released",
                Reason::LeaseEnded => "lease ended",
                other => other.as_str(),
            };
            format!("{endpoint} no longer holds {address} of {pool}, {} ({reason})", id((*allocation).get()))
        }
        EventKind::Cooled { address, pool, .. } => format!("{address} of {pool} has rested"),
        EventKind::Quarantined { address, pool, mac, by, .. } => {
            format!("{address} of {pool} is quarantined: {by} found {mac}")
        }
        EventKind::QuarantineEnded { address, pool, by, .. } => {
            let by = by.as_ref().map_or_else(String::new, |node| format!(": {node} found it unused"));
            format!("{address} of {pool} is quarantined no longer{by}")
        }
        EventKind::Collided { of, mac, other, by } => {
            format!("{} of {} at {mac} collides with {other}: {by} found it", of.address, of.endpoint)
        }
        EventKind::ClaimMismatch { node, endpoint, claimed } => {
            format!("{node} claims {claimed} of {endpoint} that is not true")
        }
        EventKind::EndpointChanged { endpoint, changes } => {
            let fields = changes.iter().map(|one| format!("{} {} -> {}", one.field, one.from, one.to));
            format!("changed {endpoint}: {}", fields.collect::<Vec<_>>().join(", "))
        }
        EventKind::PoolReady { pool, readiness } => format!("pool {pool} is {}", readiness.as_str()),
        EventKind::JournalTrimmed { through, segments, .. } => {
            format!("gave up {segments} segments of the journal, through {through}")
        }
        EventKind::Waits { endpoint, why } => format!("{endpoint} waits, {}", why.as_str()),
        EventKind::NodeBooted { node, boot } => {
            format!("node {node} is in boot {} of {:?}", boot.number, &*boot.id)
        }
        EventKind::NodeReady { node, readiness: AgentReadiness { ready, problem } } => {
            let problem = problem.map(|problem| format!(", {}", problem.as_str())).unwrap_or_default();
            format!("node {node} is {}ready{problem}", if *ready { "" } else { "not " })
        }
        EventKind::PrefixWaits { of, why } => format!("{} waits, {}", awaited(of), why.as_str()),
        EventKind::PrefixWithdrawn { of } => format!("{} waits no longer", awaited(of)),
        EventKind::Withdrawn { endpoint } => format!("{endpoint} waits no longer"),
        EventKind::LevelRaised { level } => format!("the level is {level}"),
        EventKind::EpochBegun { epoch, from_revision } => {
            format!("epoch {epoch} begins, from {}", id(*from_revision))
        }
        EventKind::PoolConfirmed { pool, .. } => format!("pool {pool} is confirmed"),
        EventKind::EpochConfirmed { epoch } => format!("epoch {epoch} is confirmed"),
        EventKind::PoolSplit { pool, into, ranges } => {
            let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
            format!("{} of {pool} is {into} now", ranges.join(", "))
        }
        EventKind::Member { id, name, standing } => format!("member {id}, {name}, is {standing:?}"),
        EventKind::Delegated { of: Delegation { cidr, pool, owner, prefix, .. }, parent } => {
            let of = parent.map_or_else(|| pool.to_string(), |parent| id(parent.get()));
            format!("{}/{} has {cidr} of {of} as {}", owner.realm, owner.name, id((*prefix).get()))
        }
        EventKind::TakenBack { of: Delegation { cidr, owner, prefix, .. }, with, released } => {
            let why = if *released { "released" } else { "not refreshed" };
            let with = if with == prefix { String::new() } else { format!(" with {}", id((*with).get())) };
            format!(
                "{}/{} no longer has {cidr}, {} ({why}{with})",
                owner.realm,
                owner.name,
                id((*prefix).get())
            )
        }
    }
}

/// A look at the state.
pub(crate) fn show(state: &State, what: &str, which: &str) -> String {
    let named = |kind: Kind| state.id_of(kind, &Name::new(which).unwrap());
    match what {
        "pool" => named(Kind::Pool).map_or_else(|| "no such pool\n".to_owned(), |id| pool(state, id)),
        "address" => address(state, which),
        "prefixes" => match named(Kind::Pool) {
            Some(pool) => prefixes(state, pool, ""),
            None => "no such pool\n".to_owned(),
        },
        "endpoint" => {
            let mut text = String::new();
            for endpoint in state.incarnations(&which.parse().unwrap()) {
                let row = state.endpoints.get(endpoint).unwrap();
                let ids: Vec<String> = row
                    .allocations
                    .iter()
                    .map(|one| format!("{}{}", id((*one).get()), ties(state, (*one).get())))
                    .collect();
                let _ = writeln!(
                    text,
                    "incarnation {}{}{}: allocations {}",
                    id(endpoint.get()),
                    row.uid.as_deref().map(|uid| format!(" (uid {uid})")).unwrap_or_default(),
                    comes_back(row),
                    ids.join(", ")
                );
            }
            for one in state.incarnations(&which.parse().unwrap()).filter_map(|one| state.waiting(one)) {
                let (why, cause) = state.why_waiting(one);
                let _ = writeln!(text, "waits, {}: {}", why.as_str(), short(&cause.detail()));
            }
            if text.is_empty() { "no such endpoint\n".to_owned() } else { text }
        }
        "attachment" => match state.attachment(&attachment(which).unwrap()) {
            Some((own, row)) => format!(
                "attachment {} of endpoint {}, started {}\n",
                id(own.get()),
                id(row.endpoint.get()),
                start(&row.started)
            ),
            None => "no such attachment\n".to_owned(),
        },
        "namespace" => {
            let name: ResourceName = which.parse().unwrap();
            let (realm, namespace) = name.parts().unwrap();
            let used = state.used_by_namespace(&realm, &namespace);
            format!("has {} IPv4 and {} IPv6 addresses\n", used.ipv4, used.ipv6)
        }
        "node" => {
            let row = state.boots.iter().map(|(_, row)| row).find(|row| row.name.as_str() == which).unwrap();
            row.boots.iter().map(boot).collect()
        }
        "checks" | "neighbor" | "collisions" | "jobs" | "inventory" => probes::show(state, what, which),
        "state" => format!(
            "revision {}, {} endpoints, {} attachments, {} allocations, {} tombstones, {} cooling, next expiry {:?}\n",
            id(state.revision()),
            state.endpoints.len(),
            state.attachments.len(),
            state.allocations.len(),
            state.tombstones.len(),
            state.coolings.len(),
            state.next_expiry_ms()
        ),
        other => panic!("can't show {other}"),
    }
}

fn start(Started { boot_id, at_us, start_ticks }: &Started) -> String {
    let ticks = start_ticks.map(|ticks| format!("/{ticks}")).unwrap_or_default();
    format!("{boot_id}:{at_us}{ticks}")
}

fn boot(Boot { earliest, is_confirmed, has_released }: &Boot) -> String {
    let confirmed =
        if *is_confirmed { format!("heard from {}", start(earliest)) } else { "not heard".to_owned() };
    let released = if *has_released { ", has released" } else { "" };
    format!("{}: {confirmed} since another boot released{released}\n", earliest.boot_id)
}

fn comes_back(row: &Endpoint) -> String {
    let of = row.controller.as_ref().map(|controller| format!(" of {} {}", controller.kind, controller.name));
    let Some(sticky) = &row.sticky else { return of.unwrap_or_default() };
    let mut text = " sticky".to_owned();
    if let Some(of) = of {
        let _ = write!(text, ",{of}");
    }
    if let Some(scale_down) = sticky.scale_down {
        let _ = write!(text, ", to {scale_down}");
    }
    if !sticky.wanted {
        text.push_str(", not wanted");
    }
    text
}

fn is_attached(state: &State, endpoint: u64) -> bool {
    let mut ids = state.endpoints.get(endpoint.into()).unwrap().allocations.iter();
    ids.any(|one| state.allocations.get(*one).unwrap().attachment.is_some())
}

/// Attachments of an allocation, unless it is a claim or attached once.
fn ties(state: &State, allocation: u64) -> String {
    let row = state.allocations.get(allocation.into()).unwrap();
    let keys: Vec<String> = row
        .also_attached
        .iter()
        .chain(&row.attachment)
        .map(|one| state.attachments.get(*one).unwrap())
        .map(|attachment| format!("{}/{}", attachment.key.node, attachment.key.container_id))
        .collect();
    match (keys.len(), row.lifecycle) {
        (0, Lifecycle::Attached) if is_attached(state, row.endpoint.get()) => " (preallocated)".to_owned(),
        (0, Lifecycle::Attached) => " (kept)".to_owned(),
        (0 | 1, _) => String::new(),
        _ => format!(" (attached as {})", keys.join(" and ")),
    }
}

fn pool(state: &State, pool: u64) -> String {
    let space = state.space(pool.into()).unwrap();
    let Counts { size, allocated, cooling, quarantined, reserved, excluded, free } = space.counts();
    assert_eq!(size, allocated + cooling + quarantined + reserved + excluded + free, "conservation");
    let use_of = state.pool_states.get(pool.into()).unwrap();
    let cursor = use_of.cursor.map_or_else(|| "nothing given yet".to_owned(), |last| format!("last {last}"));
    let quarantined = if quarantined > 0 { format!("{quarantined} quarantined, ") } else { String::new() };
    format!(
        "{size}: {free} free, {allocated} held, {quarantined}{cooling} cooling, {reserved} reserved, \
         {excluded} excluded; {}; {cursor}\n",
        use_of.readiness.as_str()
    ) + &automatic(state, pool)
}

/// Application of an automatic pool, and its size.
fn automatic(state: &State, pool: u64) -> String {
    let row = state.pools.get(pool.into()).unwrap();
    let Some(automatic) = &row.automatic else { return String::new() };
    let ranges: Vec<String> = row.spec.ranges.iter().map(ToString::to_string).collect();
    let Automatic { namespace, controller, interface, size, replicas, standing, .. } = &**automatic;
    let uid = controller.uid.as_deref().map(|uid| format!(" (uid {uid})")).unwrap_or_default();
    let reclaim = if row.spec.reclaim == Some(true) { "" } else { ", to be kept" };
    format!(
        "  {} in {} for {interface} of {namespace}/{}/{}{uid}: {size} for {replicas} replicas, {standing:?}{reclaim}\n",
        ranges.join(","),
        row.spec.subnet,
        controller.kind,
        controller.name
    )
}

/// A tree.
fn prefixes(state: &State, parent: u64, indent: &str) -> String {
    let mut text = String::new();
    for own in state.prefixes_below(parent.into()) {
        let row = state.prefixes.get(own).unwrap();
        let _ =
            writeln!(text, "{indent}{} {}/{} ({})", row.cidr, row.owner.realm, row.owner.name, id(own.get()));
        text.push_str(&prefixes(state, own.get(), &format!("{indent}  ")));
    }
    for own in state.prefix_coolings_of(parent.into()) {
        let row = state.prefix_coolings.get(own).unwrap();
        let _ = writeln!(text, "{indent}{} cooling until {}", row.address, row.until_ms);
    }
    if text.is_empty() && indent.is_empty() { "none\n".to_owned() } else { text }
}

fn joined(path: &[ObjectName]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}

/// `ADDRESS` or `ADDRESS NETWORK`.
fn address(state: &State, which: &str) -> String {
    let (address, network) = which.split_once(' ').unwrap_or((which, "default"));
    let address = parse_address(address).unwrap();
    let network = state.id_of(Kind::Network, &Name::new(network).unwrap()).unwrap();
    let occupant = match state.occupant(network.into(), address) {
        Some(Occupant::Allocation(one)) => {
            let row = state.allocations.get(one).unwrap();
            let holder = state.endpoints.get(row.endpoint).unwrap();
            format!("held by {} as {}", holder.key, id(one.get()))
        }
        Some(Occupant::Quarantine(one)) => {
            let row = state.quarantines.get(one).unwrap();
            let confirmed = row.confirmed_by.as_ref().map(|node| format!(", confirmed by {node}"));
            let confirmed = confirmed.unwrap_or_default();
            format!(
                "quarantined for {} by {}{confirmed}, heard at {}",
                row.mac, row.reported_by, row.heard_ms
            )
        }
        Some(Occupant::Cooling(one)) => {
            format!("cooling until {}", state.coolings.get(one).unwrap().until_ms)
        }
        None => match state.prefix_at(network.into(), address) {
            Some((own, row)) => format!("in {} of {} ({})", row.cidr, row.owner.name, id(own.get())),
            None => "not occupied".to_owned(),
        },
    };
    let pool = state.pool_at(network.into(), address).and_then(|pool| state.pools.get(pool));
    let pool = pool.map_or_else(|| "no pool".to_owned(), |row| format!("pool {}", row.spec.name));
    let reserved = if state.is_reserved(network.into(), address) { ", reserved" } else { "" };
    format!("{occupant}, {pool}{reserved}\n")
}

pub(crate) fn id(revision: u64) -> String {
    short(&revision.to_string())
}

/// Revisions without their epoch.
fn short(text: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        match digits.parse::<u64>() {
            Ok(number) if (EPOCH..2 * EPOCH).contains(&number) => {
                let _ = write!(out, "{}", number - EPOCH);
            }
            _ => out.push_str(&digits),
        }
        digits.clear();
        out.push(c);
    }
    out.pop();
    out
}

/// Owner and pool of an awaited prefix, and its claim.
fn awaited(of: &AwaitedPrefix) -> String {
    format!("{}/{} of {} as {}", of.owner.realm, of.owner.name, of.pool, id(of.claim.get()))
}
