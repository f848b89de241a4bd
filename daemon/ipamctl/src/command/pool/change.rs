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
use crate::command::ranges;
use crate::command::routes::{add_routes, check_routes, parse_route};
use crate::output::error::Failure;
use crate::output::text::{milliseconds, parse_duration};

/// Words for the ways in which a pool chooses.
const STRATEGIES: [&str; 3] = ["next", "sequential", "random"];

/// A new pool.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Its name
    name: Name,
    /// The subnet that it is cut from
    #[arg(long)]
    subnet: Name,
    /// An address, first-last, or a CIDR; may be repeated; all of the subnet without it
    #[arg(long = "range", value_name = "RANGE")]
    ranges: Vec<AddressRange>,
    /// Addresses that it doesn't give out; may be repeated
    #[arg(long, value_name = "RANGE")]
    exclude: Vec<AddressRange>,
    /// How it chooses: the next one behind the last that was given, the lowest free one, or any
    #[arg(long, value_parser = one_of::<Strategy, 3>(STRATEGIES), default_value = "next")]
    strategy: Strategy,
    /// How long a freed address rests, as 30s or 40m (30s unless said)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    cooling: Option<Duration>,
    /// A resting address stays at rest even when nothing else is free
    #[arg(long)]
    strict_cooling: bool,
    /// It gives out its subnet's first and last address too
    #[arg(long)]
    allow_edges: bool,
    /// The router's address, in place of the subnet's
    #[arg(long, value_parser = parse_address)]
    gateway: Option<IpAddr>,
    /// A further route, over the subnet's; may be repeated
    #[arg(long = "route", value_name = "CIDR=GATEWAY", value_parser = parse_route)]
    routes: Vec<Route>,
    /// Requests that name no pool may take from it
    #[arg(long)]
    default: bool,
    /// What becomes of the addresses of sticky endpoints that nobody wants any more: release or keep
    #[arg(long, value_name = "POLICY", default_value = "release")]
    scale_down: ScaleDown,
    /// It gives out nothing for now
    #[arg(long)]
    disabled: bool,
    #[command(flatten)]
    selectors: SelectorArguments,
    #[command(flatten)]
    metadata: MetadataArguments,
}

impl CreateArguments {
    /// The pool as it is sent.
    pub(super) fn pool(self) -> Result<Pool, Failure> {
        let blank: Pool = with_defaults(json!({"name": self.name, "subnet": self.subnet}))?;
        let mut pool = Pool {
            ranges: self.ranges,
            exclude: self.exclude,
            strategy: self.strategy,
            cooling_ms: self.cooling.map_or(blank.cooling_ms, milliseconds),
            strict_cooling: self.strict_cooling,
            allow_edges: self.allow_edges,
            gateway: self.gateway,
            default: self.default,
            scale_down: self.scale_down,
            disabled: self.disabled,
            ..blank
        };
        add_routes(&mut pool.routes, &self.routes);
        self.selectors.apply(&mut pool);
        self.metadata.apply(&mut pool)?;
        Ok(pool)
    }
}

/// Changes of a pool.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct SetArguments {
    /// Its name
    pub(super) name: Name,
    /// Addresses to give out as well; may be repeated
    #[arg(long = "add-range", value_name = "RANGE")]
    add_ranges: Vec<AddressRange>,
    /// Only says what to write instead
    #[arg(long, value_name = "RANGE", hide = true, value_parser = other_flags)]
    range: Option<AddressRange>,
    /// Addresses that are no longer its own; may be repeated
    #[arg(long = "remove-range", value_name = "RANGE")]
    remove_ranges: Vec<AddressRange>,
    /// Addresses not to give out any more; may be repeated
    #[arg(long, value_name = "RANGE")]
    exclude: Vec<AddressRange>,
    /// Excluded addresses to give out again; may be repeated
    #[arg(long, value_name = "RANGE")]
    remove_exclude: Vec<AddressRange>,
    /// How it chooses: the next one behind the last that was given, the lowest free one, or any
    #[arg(long, value_parser = one_of::<Strategy, 3>(STRATEGIES))]
    strategy: Option<Strategy>,
    /// How long a freed address rests, as 30s or 40m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    cooling: Option<Duration>,
    /// What becomes of the addresses of sticky endpoints that nobody wants any more: release or keep
    #[arg(long, value_name = "POLICY")]
    scale_down: Option<ScaleDown>,
    /// The router's address, in place of the subnet's
    #[arg(long, value_parser = parse_address, conflicts_with = "no_gateway")]
    gateway: Option<IpAddr>,
    /// Its router is its subnet's
    #[arg(long)]
    no_gateway: bool,
    /// A further route, over the subnet's; may be repeated
    #[arg(long = "route", value_name = "CIDR=GATEWAY", value_parser = parse_route)]
    routes: Vec<Route>,
    /// A route to take away, by its destination; may be repeated
    #[arg(long = "remove-route", value_name = "CIDR", value_parser = parse_cidr)]
    remove_routes: Vec<IpNet>,
    /// Whether an automatic pool goes with its application, once it is empty: true or false
    #[arg(long, value_name = "BOOL")]
    reclaim: Option<bool>,
    #[command(flatten)]
    switches: SwitchArguments,
    #[command(flatten)]
    selectors: SelectorArguments,
    /// Anybody may take from it, or only those that are named beside this
    #[arg(long)]
    for_anybody: bool,
    #[command(flatten)]
    metadata: MetadataChanges,
}

/// Refuses `--range`. Ranges of an existing pool are added and removed, so that none goes by omission.
fn other_flags(_: &str) -> Result<AddressRange, String> {
    Err("a pool has ranges already; say which ones to add and which to take away: --add-range RANGE, \
         --remove-range RANGE"
        .to_owned())
}

/// Switches of a pool.
#[derive(Debug, Args)]
struct SwitchArguments {
    /// Give out addresses
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
    /// Give out nothing for now; releases go on
    #[arg(long)]
    disable: bool,
    /// Requests that name no pool may take from it
    #[arg(long, conflicts_with = "no_default")]
    default: bool,
    /// Only requests that name it may take from it
    #[arg(long)]
    no_default: bool,
    /// A resting address stays at rest even when nothing else is free
    #[arg(long, conflicts_with = "no_strict_cooling")]
    strict_cooling: bool,
    /// A resting address is given when nothing else is free
    #[arg(long)]
    no_strict_cooling: bool,
    /// Give out the subnet's first and last address too
    #[arg(long, conflicts_with = "no_allow_edges")]
    allow_edges: bool,
    /// Keep the subnet's first and last address
    #[arg(long)]
    no_allow_edges: bool,
    /// Go away once nothing is held
    #[arg(long, conflicts_with = "no_drain")]
    drain: bool,
    /// Stay after all, while anything is left, and give again if it was drained to another pool
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
    /// True if addresses are taken out of the pool.
    pub(super) fn shrinks(&self) -> bool {
        !self.remove_ranges.is_empty() || !self.exclude.is_empty()
    }

    /// True if it shall go away with its last address.
    pub(super) fn drains(&self) -> bool {
        self.switches.drain
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
        pool.scale_down = self.scale_down.unwrap_or(pool.scale_down);
        replace(&mut pool.gateway, self.gateway, self.no_gateway);
        pool.routes.retain(|route| !self.remove_routes.contains(&route.destination));
        add_routes(&mut pool.routes, &self.routes);
        pool.reclaim = self.reclaim.or(pool.reclaim);
        self.switches.apply(pool);
        if self.for_anybody {
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

    /// Changes the ranges. A pool without ranges has all of its subnet: a range that is added must not shrink
    /// it to that range, and without the last one it must not give out the whole subnet.
    fn change_ranges(&self, pool: &mut Pool, status: &PoolStatus) -> Result<(), Failure> {
        let all = [AddressRange::of_cidr(status.cidr)];
        let whole = pool.ranges.is_empty();
        if whole && self.remove_ranges.is_empty() {
            return match self.add_ranges.iter().find(|range| !all.iter().any(|all| all.contains(range))) {
                // The server says what is wrong with it.
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
                    "nothing would be left of pool {}; without ranges it would have all of its subnet",
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
