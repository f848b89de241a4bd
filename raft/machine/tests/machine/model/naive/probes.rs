//! The model's own probes: checks, quarantines, neighbors, and addresses of silent nodes.

use std::net::IpAddr;

use ipam_api::Code;
use ipam_api::access::NodeKey;
use ipam_api::limits::{
    COLLISION_MS, HEARD_BY_MAX, NODE_GRACE_MS_MIN, PROBE_VALID_MS_DEFAULT, PROBED_AHEAD_MAX,
    PROBER_SILENCE_MS_MAX, PROBER_TERM_MS, PROBERS_PER_SUBNET, QUARANTINE_RECHECK_MS,
    QUARANTINES_PER_NODE_MAX, SILENCE_VALID_MS, SILENT_ROUND_MS_MIN, SILENT_ROUNDS,
};
use ipam_api::mac::MacAddress;
use ipam_api::name::Name;
use ipam_api::resource::Lifecycle;
use ipam_machine::command::{
    EndQuarantine, PoolSpec, ProbeResult, Probing, Reclaim, ReclaimReason, ReportProbes,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::naive::agent::node_of;
use crate::model::naive::{Held, Model, Reply, Spot};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) network: Name,
    pub(crate) pool: Name,
    pub(crate) address: IpAddr,
    pub(crate) until_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Quarantined {
    pub(crate) network: Name,
    pub(crate) pool: Name,
    pub(crate) address: IpAddr,
    pub(crate) mac: MacAddress,
    pub(crate) reported_by: NodeKey,
    pub(crate) confirmed_by: Option<NodeKey>,
    pub(crate) heard_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Neighbor {
    /// Number of the attachment that was heard.
    pub(crate) tie: Option<u64>,
    pub(crate) mac: MacAddress,
    /// The other station, and when it was noted.
    pub(crate) other: Option<(MacAddress, u64)>,
    pub(crate) heard_by: Vec<NodeKey>,
    /// Rounds and time of the newest one, by node.
    pub(crate) silence: Vec<(NodeKey, u32, u64)>,
}

/// Result of one probe.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Recorded,
    Refused,
    Nothing,
}

impl Model {
    pub(crate) fn probing(&self, pool: &PoolSpec) -> Probing {
        let subnet = self.subnet_of(pool);
        let network = &self.networks[&subnet.network];
        let levels = [pool.probing, subnet.probing, network.probing];
        Probing {
            conflicts: levels.iter().find_map(|level| level.conflicts),
            gateway: levels.iter().find_map(|level| level.gateway),
            valid_ms: levels.iter().find_map(|level| level.valid_ms),
        }
    }

    fn needs_probes(&self, pool: &PoolSpec) -> bool {
        self.probing(pool).conflicts == Some(true)
    }

    pub(crate) fn quarantine(&self, network: &Name, address: IpAddr) -> Option<&Quarantined> {
        self.quarantines.iter().find(|one| one.network == *network && one.address == address)
    }

    /// Number of the newest attachment of an address.
    pub(crate) fn tie_of(&self, held: &Held) -> Option<u64> {
        held.attachments.last().map(|key| self.ties[key])
    }

    fn is_silent(&self, node: &NodeKey, grace_ms: u64) -> bool {
        self.reports.get(node).is_some_and(|report| report.heard_ms + grace_ms < self.now)
    }

    fn sees(&self, node: &NodeKey, network: &Name, address: IpAddr) -> bool {
        let links = self.reports.get(node).map(|report| report.links.as_slice()).unwrap_or_default();
        links.iter().any(|link| link.network == *network && link.cidr.contains(&address))
    }

    fn node_of_held(&self, held: &Held) -> Option<NodeKey> {
        let endpoint = self.endpoints.iter().find(|one| one.number == held.endpoint).expect("it has one");
        Some(NodeKey { realm: endpoint.key.realm.clone(), name: held.node.clone()? })
    }

    fn is_on(held: &Held, node: &NodeKey) -> bool {
        held.attachments.iter().any(|key| node_of(key) == *node)
    }

    // === Probers ===

    /// Probers of the present term and of the one before.
    fn is_prober_at(&self, node: &NodeKey, network: &Name, address: IpAddr) -> bool {
        let Some(name) = self.subnet_at(network, address) else { return false };
        let (id, cidr) = (self.subnet_ids[name], self.subnets[name].cidr);
        let is_seer = |one: &&NodeKey| {
            let mut links = self.reports[*one].links.iter();
            !self.is_silent(one, PROBER_SILENCE_MS_MAX)
                && links.any(|link| link.network == *network && link.cidr.contains(&cidr))
        };
        let seers: Vec<&NodeKey> = self.reports.keys().filter(is_seer).collect();
        let term = self.now / PROBER_TERM_MS;
        [term, term.saturating_sub(1)].into_iter().any(|term| {
            let mut ranked = seers.clone();
            ranked.sort_by_cached_key(|one| {
                let seed = xxh3_64_with_seed(one.name.as_str().as_bytes(), term ^ id);
                (xxh3_64_with_seed(one.realm.as_str().as_bytes(), seed), *one)
            });
            ranked.iter().take(PROBERS_PER_SUBNET).any(|one| *one == node)
        })
    }

    // === Checks ===

    pub(crate) fn is_checked(&self, pool: &PoolSpec, address: IpAddr) -> bool {
        let is_valid =
            |one: &Check| one.pool == pool.name && one.address == address && one.until_ms > self.now;
        self.needs_probes(pool) && self.checks.iter().any(is_valid)
    }

    pub(crate) fn use_check(&mut self, pool: &Name, address: IpAddr) -> bool {
        let is_own = |one: &Check| one.pool == *pool && one.address == address;
        let is_valid = self.checks.iter().any(|one| is_own(one) && one.until_ms > self.now);
        self.checks.retain(|one| !is_own(one));
        is_valid
    }

    pub(crate) fn first_ended_check(&self) -> Option<usize> {
        let ended = self.checks.iter().enumerate().filter(|(_, one)| one.until_ms <= self.now);
        ended.min_by_key(|(i, one)| (one.until_ms, *i)).map(|(i, _)| i)
    }

    pub(crate) fn forget_useless_checks(&mut self) {
        let checks = std::mem::take(&mut self.checks);
        let is_free = |one: &Check| {
            self.pools.get(&one.pool).is_some_and(|pool| self.state_of(&pool.spec, one.address) == "free")
        };
        self.checks = checks.into_iter().filter(is_free).collect();
    }

    // === Reports ===

    pub(crate) fn report_probes(&mut self, report: &ReportProbes) -> Reply {
        let node = &report.node;
        let proves = |result: &&ProbeResult| {
            let subnet = self.subnet_at(&result.network, result.address);
            let is_elsewhere = match self.holder(&result.network, result.address) {
                Some(held) => {
                    let of = self.node_of_held(held);
                    !held.attachments.is_empty()
                        && !Model::is_on(held, node)
                        && of.is_some_and(|of| !self.is_silent(&of, NODE_GRACE_MS_MIN))
                }
                None => {
                    subnet.is_some_and(|name| self.subnets[name].gateway == Some(result.address))
                        && self.quarantine(&result.network, result.address).is_none()
                }
            };
            !result.macs.is_empty() && is_elsewhere && self.sees(node, &result.network, result.address)
        };
        let alive = report.results.iter().filter(proves);
        let alive = alive.filter_map(|result| self.subnet_at(&result.network, result.address).cloned());
        let alive: Vec<Name> = alive.collect();
        let before = self.noticed;
        let effects: Vec<Effect> =
            report.results.iter().map(|result| self.take_result(node, &alive, result)).collect();
        if self.noticed > before {
            // Its events are counted in its row.
            self.boots.entry(node.clone()).or_default();
        }
        let count = |effect| effects.iter().filter(|one| **one == effect).count() as u64;
        Reply::Probed { recorded: count(Effect::Recorded), refused: count(Effect::Refused) }
    }

    fn subnet_at(&self, network: &Name, address: IpAddr) -> Option<&Name> {
        let is_it = |(_, row): &(&Name, &ipam_machine::command::SubnetSpec)| {
            row.network == *network && row.cidr.contains(&address)
        };
        self.subnets.iter().find(is_it).map(|(name, _)| name)
    }

    fn take_result(&mut self, node: &NodeKey, alive: &[Name], result: &ProbeResult) -> Effect {
        let (network, address) = (&result.network, result.address);
        if !self.networks.contains_key(network) {
            return Effect::Nothing;
        }
        if let Some(id) = result.allocation {
            return self.take_result_of_add(node, id.get(), result);
        }
        if !self.sees(node, network, address) {
            return Effect::Nothing;
        }
        if let Some(place) =
            self.held.iter().position(|one| (&one.network, one.address) == (network, address))
        {
            return self.see(node, alive, place, &result.macs);
        }
        if self.quarantine(network, address).is_some() {
            return self.probe_again(node, (network.clone(), address), !result.macs.is_empty());
        }
        let free = |spec: &PoolSpec| {
            self.subnet_of(spec).network == *network
                && self.has(spec, address)
                && self.state_of(spec, address) == "free"
                && self.needs_probes(spec)
        };
        let Some(pool) = self.pools.values().find(|pool| free(&pool.spec)) else { return Effect::Nothing };
        if !self.is_prober_at(node, network, address) {
            return Effect::Nothing;
        }
        let spec = pool.spec.clone();
        match result.macs.first() {
            Some(_) if !self.may_quarantine(node) => Effect::Refused,
            Some(mac) => {
                self.begin_quarantine(&spec.name, (network.clone(), address), *mac, node);
                Effect::Recorded
            }
            None => self.check(&spec, (network.clone(), address)),
        }
    }

    fn check(&mut self, pool: &PoolSpec, (network, address): Spot) -> Effect {
        let valid_ms = self.probing(pool).valid_ms.unwrap_or(PROBE_VALID_MS_DEFAULT);
        let (now, until_ms) = (self.now, self.now + valid_ms);
        let name = &pool.name;
        if let Some(one) = self.checks.iter_mut().find(|one| one.pool == *name && one.address == address) {
            if one.until_ms > now + valid_ms / 2 {
                return Effect::Nothing;
            }
            one.until_ms = until_ms;
            return Effect::Recorded;
        }
        if self.checks.iter().filter(|one| one.pool == *name).count() >= 2 * PROBED_AHEAD_MAX {
            let over = self.checks.iter().filter(|one| one.pool == *name && one.until_ms <= now);
            let Some(lowest) = over.map(|one| one.address).min() else { return Effect::Nothing };
            self.checks.retain(|one| one.pool != *name || one.address != lowest);
        }
        self.checks.push(Check { network, pool: name.clone(), address, until_ms });
        Effect::Recorded
    }

    // === Quarantines ===

    fn may_quarantine(&self, node: &NodeKey) -> bool {
        let unconfirmed =
            self.quarantines.iter().filter(|one| one.reported_by == *node && one.confirmed_by.is_none());
        unconfirmed.count() < QUARANTINES_PER_NODE_MAX
    }

    fn begin_quarantine(&mut self, pool: &Name, (network, address): Spot, mac: MacAddress, by: &NodeKey) {
        self.noticed += 1;
        self.use_check(pool, address);
        self.quarantines.push(Quarantined {
            network,
            pool: pool.clone(),
            address,
            mac,
            reported_by: by.clone(),
            confirmed_by: None,
            heard_ms: self.now,
        });
    }

    fn end_quarantine(&mut self, (network, address): &Spot) {
        self.noticed += 1;
        let place =
            self.quarantines.iter().position(|one| (&one.network, &one.address) == (network, address));
        let ended = self.quarantines.remove(place.expect("it is quarantined"));
        self.shed(&ended.pool, *address);
    }

    pub(crate) fn end_quarantine_of(&mut self, of: &EndQuarantine) -> Result<Reply, Code> {
        self.quarantine(&of.network, of.address).ok_or(Code::NotFound)?;
        self.end_quarantine(&(of.network.clone(), of.address));
        Ok(Reply::Gone)
    }

    fn probe_again(&mut self, node: &NodeKey, spot: Spot, is_answered: bool) -> Effect {
        let row = self.quarantine(&spot.0, spot.1).expect("it is quarantined").clone();
        let is_due = row.heard_ms + QUARANTINE_RECHECK_MS <= self.now;
        let is_other = row.reported_by != *node;
        let is_prober = self.is_prober_at(node, &row.network, row.address);
        let is_news = is_other && row.confirmed_by.is_none() && is_prober;
        let is_gone = |witness: &NodeKey| {
            !self.reports.contains_key(witness) || self.is_silent(witness, PROBER_SILENCE_MS_MAX)
        };
        let mut witnesses = [&row.reported_by].into_iter().chain(&row.confirmed_by);
        let is_witness = witnesses.clone().any(|one| one == node);
        let may_judge = is_witness || witnesses.all(is_gone);
        if !is_prober && !is_witness {
            return Effect::Nothing;
        }
        match is_answered {
            true if is_news || is_due => {
                let (now, place) = (self.now, self.quarantines.iter().position(|one| *one == row));
                let row = &mut self.quarantines[place.expect("it is there")];
                row.confirmed_by = row.confirmed_by.take().or(is_other.then(|| node.clone()));
                row.heard_ms = now;
                Effect::Recorded
            }
            false if is_news || (is_due && may_judge) => {
                self.end_quarantine(&spot);
                Effect::Recorded
            }
            _ => Effect::Nothing,
        }
    }

    // === Conflicts ===

    fn take_result_of_add(&mut self, node: &NodeKey, id: u64, result: &ProbeResult) -> Effect {
        let Some(held) = self.held.iter().find(|one| one.id == id).cloned() else { return Effect::Nothing };
        let is_own = (&held.network, held.address) == (&result.network, result.address)
            && held.lifecycle == Lifecycle::Attached
            && !held.checked
            && Model::is_on(&held, node);
        if !is_own || !self.needs_probes(&self.pools[&held.pool].spec) {
            return Effect::Nothing;
        }
        let of_endpoint = self.held.iter().filter(|one| one.endpoint == held.endpoint);
        let own: Vec<MacAddress> =
            of_endpoint.filter_map(|one| one.mac.as_ref()).filter_map(|mac| mac.parse().ok()).collect();
        match result.macs.iter().find(|mac| !own.contains(mac)) {
            None => {
                self.held.iter_mut().filter(|one| one.id == id).for_each(|one| one.checked = true);
                Effect::Recorded
            }
            Some(_) if held.attachments.len() > 1 => Effect::Nothing,
            Some(_) if self.held.iter().position(|one| one.id == id).is_some_and(|at| self.kept(at)) => {
                Effect::Refused
            }
            Some(_) if !self.may_quarantine(node) => Effect::Refused,
            Some(mac) => {
                self.replace(&held, *mac, node);
                Effect::Recorded
            }
        }
    }

    fn replace(&mut self, held: &Held, mac: MacAddress, by: &NodeKey) {
        self.noticed += 1;
        let pool = self.pools[&held.pool].clone();
        let is_closed = pool.spec.terminating || pool.spec.disabled || pool.spec.drains_to.is_some();
        let next = if is_closed { None } else { self.fresh_in(&pool, &[]) };
        if let Some(address) = next {
            let checked = self.use_check(&held.pool, address);
            self.held.push(Held { id: 0, address, checked, neighbor: None, ..held.clone() });
            self.pools.get_mut(&held.pool).expect("it is there").cursor = Some(address);
        }
        self.held.retain(|one| one.spot() != held.spot());
        self.forget_empty();
        self.forget_attachments();
        if !self.drop_if_drained(&held.pool) {
            self.begin_quarantine(&held.pool, held.spot(), mac, by);
        }
        if let (None, Some(key)) = (next, held.attachments.last()) {
            self.detach_all(key);
        }
        self.give_up_preallocated(Reply::Released(Vec::new()));
    }

    // === Neighbors ===

    fn see(&mut self, node: &NodeKey, alive: &[Name], place: usize, macs: &[MacAddress]) -> Effect {
        let held = self.held[place].clone();
        let tie = self.tie_of(&held);
        let old = held.neighbor.clone();
        let new = match macs.first() {
            Some(mac) => {
                let old = old.as_ref().filter(|old| old.tie == tie);
                let own = held.mac.as_ref().and_then(|mac| mac.parse().ok());
                let own = own.or(old.map(|old| old.mac)).unwrap_or(*mac);
                let mut heard_by = old.map(|old| old.heard_by.clone()).unwrap_or_default();
                if !heard_by.contains(node) && !Model::is_on(&held, node) {
                    let gone = |one: &NodeKey| self.is_silent(one, PROBER_SILENCE_MS_MAX);
                    if let (true, Some(i)) = (heard_by.len() >= HEARD_BY_MAX, heard_by.iter().position(gone))
                    {
                        heard_by.remove(i);
                    }
                    if heard_by.len() < HEARD_BY_MAX {
                        heard_by.push(node.clone());
                    }
                }
                let other = self.other_of(old.and_then(|old| old.other), macs, own);
                Some(Box::new(Neighbor { tie, mac: own, other, heard_by, silence: Vec::new() }))
            }
            None => {
                let subnet = &self.pools[&held.pool].spec.subnet;
                old.clone()
                    .filter(|_| alive.contains(subnet))
                    .and_then(|old| self.silent_once_more(&held, old, node))
            }
        };
        if new.is_none() || new == old {
            return Effect::Nothing;
        }
        let other = new.as_ref().and_then(|new| new.other);
        let before = old.filter(|old| old.tie == tie).and_then(|old| old.other);
        self.noticed += u64::from(!macs.is_empty() && other.is_some() && before.is_none());
        self.held[place].neighbor = new;
        Effect::Recorded
    }

    /// One collision lasts until no other station has answered for some time.
    fn other_of(
        &self,
        known: Option<(MacAddress, u64)>,
        macs: &[MacAddress],
        own: MacAddress,
    ) -> Option<(MacAddress, u64)> {
        let heard = macs.iter().copied().find(|mac| *mac != own);
        let Some((first, at_ms)) = known else { return heard.map(|mac| (mac, self.now)) };
        let age_ms = self.now - at_ms;
        match heard {
            Some(_) if age_ms >= COLLISION_MS / 2 => Some((first, self.now)),
            Some(_) => known,
            None => known.filter(|_| age_ms < COLLISION_MS),
        }
    }

    fn silent_once_more(&self, held: &Held, mut row: Box<Neighbor>, node: &NodeKey) -> Option<Box<Neighbor>> {
        let of = self.node_of_held(held)?;
        let is_witness = row.tie == self.tie_of(held) && row.heard_by.contains(node);
        if !is_witness || !self.is_silent(&of, NODE_GRACE_MS_MIN) {
            return None;
        }
        let (now, since_ms) = (self.now, self.reports[&of].heard_ms);
        match row.silence.iter_mut().find(|(one, ..)| one == node) {
            Some((_, _, last_ms)) if now < *last_ms + SILENT_ROUND_MS_MIN => return None,
            Some((_, rounds, last_ms)) => {
                let continues = *last_ms + SILENCE_VALID_MS >= now && *last_ms >= since_ms;
                *rounds = if continues { SILENT_ROUNDS.min(*rounds + 1) } else { 1 };
                *last_ms = now;
            }
            None => row.silence.push((node.clone(), 1, now)),
        }
        Some(row)
    }

    fn is_silent_on_wire(&self, held: &Held, node: &NodeKey) -> bool {
        let seen = held.neighbor.as_ref().filter(|seen| seen.tie == self.tie_of(held));
        let Some(seen) = seen else { return false };
        let is_witness = |one: &&NodeKey| {
            *one != node
                && !self.is_silent(one, PROBER_SILENCE_MS_MAX)
                && self.sees(one, &held.network, held.address)
        };
        let witnesses: Vec<&NodeKey> = seen.heard_by.iter().filter(is_witness).collect();
        let since_ms = self.reports[node].heard_ms;
        let agrees = |witness: &&NodeKey| {
            seen.silence.iter().any(|(one, rounds, last_ms)| {
                one == *witness
                    && *rounds >= SILENT_ROUNDS
                    && last_ms + SILENCE_VALID_MS >= self.now
                    && *last_ms >= since_ms
            })
        };
        !witnesses.is_empty() && witnesses.iter().all(agrees)
    }

    // === Reclaim ===

    pub(crate) fn reclaim(&mut self, request: &Reclaim) -> Result<Reply, Code> {
        let Reclaim { node, reason, allocations } = request;
        let is_alive = self.reports.contains_key(node) && !self.is_silent(node, PROBER_SILENCE_MS_MAX);
        if *reason == ReclaimReason::NodeGone && is_alive {
            return Err(Code::InUse);
        }
        let (mut addresses, mut stale) = (Vec::new(), 0);
        for id in allocations {
            let is_due = |held: &&Held| {
                held.id == id.get()
                    && held.lifecycle == Lifecycle::Attached
                    && Model::is_on(held, node)
                    && match reason {
                        ReclaimReason::NodeGone => true,
                        ReclaimReason::NodeSilent { grace_ms } => {
                            self.is_silent(node, *grace_ms) && self.is_silent_on_wire(held, node)
                        }
                    }
            };
            match self.held.iter().find(is_due).map(Held::spot) {
                Some(spot) => addresses.extend(self.leave_node(&spot, node)),
                None => stale += 1,
            }
        }
        Ok(Reply::Reclaimed { addresses, stale })
    }

    fn leave_node(&mut self, spot: &Spot, node: &NodeKey) -> Vec<IpAddr> {
        let mut addresses = Vec::new();
        let place = |model: &Self| model.held.iter().position(|one| one.spot() == *spot);
        while let Some(at) = place(self) {
            let here = |key: &&ipam_api::request::AttachmentKey| node_of(key) == *node;
            let Some(key) = self.held[at].attachments.iter().rev().find(here).cloned() else { break };
            if self.kept(at) {
                let one = &mut self.held[at];
                one.attachments.retain(|other| *other != key);
                one.node = one.attachments.last().map(|key| key.node.clone());
                self.forget_attachments();
            } else if let Reply::Released(more) = self.release(|one| one.spot() == *spot) {
                addresses.extend(more);
            }
        }
        match self.give_up_preallocated(Reply::Released(addresses)) {
            Reply::Released(addresses) => addresses,
            other => panic!("released: {other:?}"),
        }
    }
}
