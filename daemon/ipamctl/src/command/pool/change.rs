//! Arguments of `pool create` and `pool set`.

use std::net::IpAddr;
use std::time::Duration;

use clap::Args;
use ipam_api::address::{parse_address, parse_cidr};
use ipam_api::resource::{Pool, PoolStatus, Route, ScaleDown, Strategy};
use ipam_api::{AddressRange, Name, Selector};
use ipnet::IpNet;
use serde_json::json;

use super::selectors::SelectorArguments;
use crate::client::resource_type::with_defaults;
use crate::command::arguments::{one_of, replace};
use crate::command::metadata::{MetadataArguments, MetadataChanges, check_apart};
use crate::command::probing::ProbingArguments;
use crate::command::ranges;
use crate::command::routes::{add_routes, check_routes, parse_route};
use crate::output::error::Failure;
use crate::output::text::{milliseconds, parse_duration};

/// Names of the allocation strategies.
const STRATEGIES: [&str; 3] = ["next", "sequential", "random"];

/// A new pool.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Name
    name: Name,
    /// Subnet of the pool
    #[arg(long)]
    subnet: Name,
    /// Address, FIRST-LAST, or CIDR; may be repeated [default: the whole subnet]
    #[arg(long = "range", value_name = "RANGE")]
    ranges: Vec<AddressRange>,
    /// Addresses excluded from allocation; may be repeated
    #[arg(long, value_name = "RANGE")]
    exclude: Vec<AddressRange>,
    /// Address choice: next after the last one, lowest free (sequential), or random
    #[arg(long, value_parser = one_of::<Strategy, 3>(STRATEGIES), default_value = "next")]
    strategy: Strategy,
    /// Cooling period of released addresses, such as 40m [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    cooling: Option<Duration>,
    /// Never allocate a cooling address, even when no other is free
    #[arg(long)]
    strict_cooling: bool,
    /// Cooling addresses that stay cooling when no other address is free [default: 0]
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true)]
    cooling_reserve: u64,
    /// Also allocate the first and last address of the subnet
    #[arg(long)]
    allow_edges: bool,
    /// Gateway address, in place of the subnet's
    #[arg(long, value_parser = parse_address)]
    gateway: Option<IpAddr>,
    /// Additional route, overriding the subnet's; may be repeated
    #[arg(long = "route", value_name = "CIDR=GATEWAY", value_parser = parse_route)]
    routes: Vec<Route>,
    /// Make it a default pool, for requests that name no pool
    #[arg(long)]
    default: bool,
    /// Policy for addresses of sticky endpoints after scale-down: release or keep
    #[arg(long, value_name = "POLICY", default_value = "release")]
    scale_down: ScaleDown,
    /// Create the pool disabled: no allocations
    #[arg(long)]
    disabled: bool,
    #[command(flatten)]
    probing: ProbingArguments,
    #[command(flatten)]
    selectors: SelectorArguments,
    #[command(flatten)]
    metadata: MetadataArguments,
}

impl CreateArguments {
    /// Builds the new pool.
    pub(super) fn pool(self) -> Result<Pool, Failure> {
        let blank: Pool = with_defaults(json!({"name": self.name, "subnet": self.subnet}))?;
        let mut pool = Pool {
            ranges: self.ranges,
            exclude: self.exclude,
            strategy: self.strategy,
            cooling_ms: self.cooling.map_or(blank.cooling_ms, milliseconds),
            strict_cooling: self.strict_cooling,
            cooling_reserve: self.cooling_reserve,
            allow_edges: self.allow_edges,
            gateway: self.gateway,
            default: self.default,
            scale_down: self.scale_down,
            disabled: self.disabled,
            ..blank
        };
        add_routes(&mut pool.routes, &self.routes);
        self.probing.apply(&mut pool.probing);
        self.selectors.apply(&mut pool);
        self.metadata.apply(&mut pool)?;
        Ok(pool)
    }
}

/// Changes of a pool.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct SetArguments {
    /// Name
    pub(super) name: Name,
    /// Range to add; may be repeated
    #[arg(long = "add-range", value_name = "RANGE")]
    add_ranges: Vec<AddressRange>,
    /// Only says what to write instead
    #[arg(long, value_name = "RANGE", hide = true, value_parser = other_flags)]
    range: Option<AddressRange>,
    /// Range to remove; may be repeated
    #[arg(long = "remove-range", value_name = "RANGE")]
    remove_ranges: Vec<AddressRange>,
    /// Range to exclude from allocation; may be repeated
    #[arg(long, value_name = "RANGE")]
    exclude: Vec<AddressRange>,
    /// Exclusion to remove; may be repeated
    #[arg(long, value_name = "RANGE")]
    remove_exclude: Vec<AddressRange>,
    /// Address choice: next after the last one, lowest free (sequential), or random
    #[arg(long, value_parser = one_of::<Strategy, 3>(STRATEGIES))]
    strategy: Option<Strategy>,
    /// Cooling period of released addresses, such as 30s or 40m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    cooling: Option<Duration>,
    /// Cooling addresses that stay cooling when no other address is free
    #[arg(long, value_name = "COUNT")]
    cooling_reserve: Option<u64>,
    /// Policy for addresses of sticky endpoints after scale-down: release or keep
    #[arg(long, value_name = "POLICY")]
    scale_down: Option<ScaleDown>,
    /// Gateway address, in place of the subnet's
    #[arg(long, value_parser = parse_address, conflicts_with = "no_gateway")]
    gateway: Option<IpAddr>,
    /// Use the gateway of the subnet
    #[arg(long)]
    no_gateway: bool,
    /// Additional route, overriding the subnet's; may be repeated
    #[arg(long = "route", value_name = "CIDR=GATEWAY", value_parser = parse_route)]
    routes: Vec<Route>,
    /// Route to remove, by destination; may be repeated
    #[arg(long = "remove-route", value_name = "CIDR", value_parser = parse_cidr)]
    remove_routes: Vec<IpNet>,
    /// Delete an empty automatic pool after its application ends: true or false
    #[arg(long, value_name = "BOOL")]
    reclaim: Option<bool>,
    #[command(flatten)]
    switches: SwitchArguments,
    #[command(flatten)]
    probing: ProbingArguments,
    #[command(flatten)]
    selectors: SelectorArguments,
    /// Remove all restrictions, before those given with this command are added
    #[arg(long)]
    for_all: bool,
    #[command(flatten)]
    metadata: MetadataChanges,
}

/// Refuses `--range`: a replaced list could omit ranges by mistake, so ranges are added and removed.
fn other_flags(_: &str) -> Result<AddressRange, String> {
    Err("use --add-range RANGE and --remove-range RANGE to change the ranges of an existing pool".to_owned())
}

/// Switches of a pool.
#[derive(Debug, Args)]
struct SwitchArguments {
    /// Enable allocation
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
    /// Disable allocation; releases continue
    #[arg(long)]
    disable: bool,
    /// Make it a default pool, for requests that name no pool
    #[arg(long, conflicts_with = "no_default")]
    default: bool,
    /// Make it no default pool: only requests that name it use it
    #[arg(long)]
    no_default: bool,
    /// Never allocate a cooling address, even when no other is free
    #[arg(long, conflicts_with = "no_strict_cooling")]
    strict_cooling: bool,
    /// Allocate cooling addresses when no other is free
    #[arg(long)]
    no_strict_cooling: bool,
    /// Also allocate the first and last address of the subnet
    #[arg(long, conflicts_with = "no_allow_edges")]
    allow_edges: bool,
    /// Never allocate the first and last address of the subnet
    #[arg(long)]
    no_allow_edges: bool,
    /// Stop allocating, and delete the pool when its last address is released
    #[arg(long, conflicts_with = "no_drain")]
    drain: bool,
    /// Cancel a pending deletion or drain; the pool allocates again
    #[arg(long)]
    no_drain: bool,
}

impl SwitchArguments {
    fn apply(&self, pool: &mut Pool) {
        for (field, on, off) in [
            (&mut pool.disabled, self.disable, self.enable),
            (&mut pool.default, self.default, self.no_default),
            (&mut pool.strict_cooling, self.strict_cooling, self.no_strict_cooling),
            (&mut pool.allow_edges, self.allow_edges, self.no_allow_edges),
            (&mut pool.terminating, self.drain, self.no_drain),
        ] {
            *field = (*field || on) && !off;
        }
        if self.no_drain {
            pool.drains_to = None;
        }
    }
}

impl SetArguments {
    /// True if the change removes addresses from the pool.
    pub(super) fn shrinks(&self) -> bool {
        !self.remove_ranges.is_empty() || !self.exclude.is_empty()
    }

    /// True if the pool is to be deleted when its last address is released.
    pub(super) fn drains(&self) -> bool {
        self.switches.drain
    }

    /// New gateway, if the gateway changes; the inner `None` selects the gateway of the subnet.
    pub(super) fn new_gateway(&self) -> Option<Option<IpAddr>> {
        (self.gateway.is_some() || self.no_gateway).then_some(self.gateway)
    }

    /// Writes the changes into a pool.
    pub(super) fn apply(&self, pool: &mut Pool, status: &PoolStatus) -> Result<(), Failure> {
        let (ranges, exclude) = (&self.add_ranges, &self.exclude);
        check_apart(("--add-range", ranges), ("--remove-range", &self.remove_ranges), ranges::meet)?;
        check_apart(("--exclude", exclude), ("--remove-exclude", &self.remove_exclude), ranges::meet)?;
        check_routes(&self.routes, &self.remove_routes)?;
        self.change_ranges(pool, status)?;
        pool.exclude = ranges::with(ranges::without(&pool.exclude, &self.remove_exclude), &self.exclude);
        pool.strategy = self.strategy.unwrap_or(pool.strategy);
        pool.cooling_ms = self.cooling.map_or(pool.cooling_ms, milliseconds);
        pool.cooling_reserve = self.cooling_reserve.unwrap_or(pool.cooling_reserve);
        pool.scale_down = self.scale_down.unwrap_or(pool.scale_down);
        replace(&mut pool.gateway, self.gateway, self.no_gateway);
        pool.routes.retain(|route| !self.remove_routes.contains(&route.destination));
        add_routes(&mut pool.routes, &self.routes);
        pool.reclaim = self.reclaim.or(pool.reclaim);
        self.switches.apply(pool);
        self.probing.apply(&mut pool.probing);
        if self.for_all {
            pool.realms.clear();
            pool.node_names.clear();
            pool.node_selector = Selector::default();
            pool.namespace_selector = Selector::default();
            pool.namespaces.clear();
            pool.network_attachments.clear();
            pool.endpoint_selector = Selector::default();
        }
        self.selectors.apply(pool);
        self.metadata.apply(pool)
    }

    /// Changes the ranges. A pool without ranges covers its whole subnet: an added range must not shrink the
    /// pool to that range, and the removal of the last range must not extend it to the whole subnet.
    fn change_ranges(&self, pool: &mut Pool, status: &PoolStatus) -> Result<(), Failure> {
        let all = [AddressRange::of_cidr(status.cidr)];
        let whole = pool.ranges.is_empty();
        if whole && self.remove_ranges.is_empty() {
            return match self.add_ranges.iter().find(|range| !all.iter().any(|all| all.contains(range))) {
                // The server reports the error.
                Some(_) => {
                    pool.ranges = ranges::with(all.to_vec(), &self.add_ranges);
                    Ok(())
                }
                None => Ok(()),
            };
        }
        let before = if whole { &all[..] } else { &pool.ranges };
        let after = ranges::with(ranges::without(before, &self.remove_ranges), &self.add_ranges);
        if after.is_empty() {
            return Err(Failure::usage(
                format!(
                    "pool {} would have no ranges, and a pool without ranges covers its whole subnet",
                    self.name
                ),
                format!(
                    "Disable it (ipamctl pool set {0} --disable) or delete it (ipamctl pool delete {0}).",
                    self.name
                ),
            ));
        }
        if self.add_ranges.is_empty() && self.remove_ranges.is_empty() {
            return Ok(());
        }
        pool.ranges = after;
        Ok(())
    }
}
