//! The model's own ADD and DEL.

use std::net::IpAddr;

use ipam_api::Selector;
use ipam_api::limits::ALLOCATIONS_PER_ENDPOINT_MAX;
use ipam_api::name::{Name, NamePattern, ResourceName};
use ipam_api::request::AttachmentKey;
use ipam_api::{Code, Family};
use ipam_raft::machine::command::{Allocate, InterfaceWish, PoolPatterns, Remarks, Started, Takers};

use crate::naive::{Held, Incarnation, Model, Pool, Said};
use crate::naive_waiting::Claim;

impl Model {
    pub(crate) fn release_in_order_of(&mut self, endpoints: &[u64]) -> Said {
        let mut addresses = Vec::new();
        for endpoint in endpoints {
            if let Said::Released(more) = self.release(|one| one.endpoint == *endpoint) {
                addresses.extend(more);
            }
        }
        Said::Released(addresses)
    }

    pub(crate) fn release_attachment(&mut self, key: &AttachmentKey, started: &Started) -> Said {
        if let Some((living, _)) = self.attachments.get(key)
            && self.began(key, started, living).is_lt()
        {
            return Said::Released(Vec::new());
        }
        self.bury(key, started);
        self.release(|one| one.attachment.as_ref() == Some(key))
    }

    pub(crate) fn allocate(&mut self, wish: &Allocate) -> Result<Said, Code> {
        let meant = self
            .endpoints
            .iter()
            .rev()
            .find(|one| one.key == wish.endpoint && (wish.uid.is_none() || wish.uid == one.uid));
        let meant = meant.map(|one| one.number);
        if let (Some(key), Some(started)) = (&wish.attachment, &wish.started)
            && let Some(grave) = self.buried.iter().find(|one| one.key == *key)
            && self.began(key, started, &grave.started).is_le()
        {
            return Err(Code::AttachmentReleased);
        }
        let before: Vec<Held> = match &wish.attachment {
            Some(key) => self.attached_before(wish, key)?,
            None => self.claimed_before(wish, meant)?,
        };
        if !before.is_empty() {
            if let (Some(key), Some(started)) = (&wish.attachment, &wish.started) {
                self.note_repeat(key, started);
            }
            self.renew_all(&before, wish.manner.ttl_ms);
            return Ok(said(true, &before));
        }
        let endpoint = meant.unwrap_or(self.incarnations + 1);
        let given = match self.plan(wish, endpoint) {
            Ok(given) => given,
            Err(code) if wish.manner.wait => return self.wait(wish, meant, code),
            Err(code) => return Err(code),
        };
        if let (Some(key), Some(started)) = (&wish.attachment, &wish.started) {
            self.note_boot(key, started);
            self.attachments.insert(key.clone(), (started.clone(), endpoint));
        }
        self.give(wish, meant, &given);
        Ok(said(false, &given))
    }

    /// An address for every interface and family.
    pub(crate) fn plan(&self, wish: &Allocate, endpoint: u64) -> Result<Vec<Held>, Code> {
        let mut given: Vec<Held> = Vec::new();
        for interface in &wish.interfaces {
            let more = self.choose(wish, interface, &given)?;
            given.extend(more.into_iter().map(|(pool, address)| Held {
                id: 0,
                network: self.subnet_of(&pool.intention).network.clone(),
                pool: pool.intention.name.clone(),
                address,
                endpoint,
                interface: interface.name.clone(),
                attachment: wish.attachment.clone(),
                lease: wish.manner.ttl_ms.map(|ttl_ms| (ttl_ms, self.now + ttl_ms)),
            }));
        }
        let held = self.held.iter().filter(|one| one.endpoint == endpoint).count();
        if held + given.len() > ALLOCATIONS_PER_ENDPOINT_MAX {
            return Err(Code::LimitExceeded);
        }
        Ok(given)
    }

    pub(crate) fn give(&mut self, wish: &Allocate, meant: Option<u64>, given: &[Held]) {
        if meant.is_none() {
            self.begin_incarnation(wish);
        }
        let endpoint = meant.unwrap_or(self.incarnations);
        for one in given {
            self.resting.retain(|rest| (&rest.network, rest.address) != (&one.network, one.address));
            self.pools.get_mut(&one.pool).expect("chosen from").cursor = Some(one.address);
        }
        self.held.extend(given.iter().cloned());
        let named = |claim: &mut Claim| {
            let mut waited = claim.wish.interfaces.iter();
            waited.any(|one| wish.interfaces.iter().any(|other| other.name == one.name))
        };
        let endpoint = self.endpoints.iter_mut().find(|one| one.number == endpoint).expect("it is there");
        if endpoint.claim.as_mut().is_some_and(named) {
            endpoint.claim = None;
        }
    }

    pub(crate) fn begin_incarnation(&mut self, wish: &Allocate) {
        self.incarnations += 1;
        let (number, key, uid) = (self.incarnations, wish.endpoint.clone(), wish.uid.clone());
        self.endpoints.push(Incarnation { number, key, uid, claim: None });
    }

    /// What this attachment has already, if it is the same endpoint's.
    fn attached_before(&self, wish: &Allocate, key: &AttachmentKey) -> Result<Vec<Held>, Code> {
        let Some((_, owner)) = self.attachments.get(key) else { return Ok(Vec::new()) };
        let owner = self.endpoints.iter().find(|one| one.number == *owner).expect("it has an owner");
        if owner.key != wish.endpoint || wish.uid.is_some() && wish.uid != owner.uid {
            return Err(Code::AlreadyExists);
        }
        Ok(self.held.iter().filter(|one| one.attachment.as_ref() == Some(key)).cloned().collect())
    }

    /// What this endpoint holds on these interfaces already: all of it as wished, or nothing at all.
    fn claimed_before(&self, wish: &Allocate, endpoint: Option<u64>) -> Result<Vec<Held>, Code> {
        let mut all = Vec::new();
        let mut missing = false;
        for interface in &wish.interfaces {
            let held: Vec<Held> = self
                .held
                .iter()
                .filter(|one| {
                    Some(one.endpoint) == endpoint
                        && one.attachment.is_none()
                        && one.interface == interface.name
                })
                .cloned()
                .collect();
            let otherwise = |one: &Held| Self::lifecycle(one) != wish.lifecycle;
            let fits = as_wished(&held, interface) && self.in_subnets(&held, interface);
            if !held.is_empty() && (held.iter().any(otherwise) || !fits) {
                return Err(Code::AlreadyExists);
            }
            missing |= held.is_empty();
            all.extend(held);
        }
        if missing && !all.is_empty() { Err(Code::AlreadyExists) } else { Ok(all) }
    }

    fn in_subnets(&self, held: &[Held], wish: &InterfaceWish) -> bool {
        let subnet = |one: &Held| self.pools.get(&one.pool).map(|pool| &pool.intention.subnet);
        wish.subnets.is_empty()
            || held.iter().all(|one| subnet(one).is_some_and(|subnet| wish.subnets.contains(subnet)))
    }

    fn note_repeat(&mut self, key: &AttachmentKey, started: &Started) {
        let (living, owner) = self.attachments.get(key).cloned().expect("it was found");
        if self.began(key, started, &living).is_gt() {
            self.note_boot(key, started);
            self.attachments.insert(key.clone(), (started.clone(), owner));
        }
    }

    /// One address of each family that the interface gets.
    fn choose(
        &self,
        all: &Allocate,
        wish: &InterfaceWish,
        taken: &[Held],
    ) -> Result<Vec<(&Pool, IpAddr)>, Code> {
        if all.manner.adopt {
            return self.choose_adopted(wish, taken);
        }
        let asked = |family| wish.addresses.iter().copied().find(|address| Family::of(*address) == family);
        let why_not = |pool: &Pool| self.why_not(pool, all, wish);
        let mut chosen = Vec::new();
        for (family, candidates) in self.candidates(all, wish)? {
            chosen.push(match asked(family) {
                Some(address) => self.choose_asked(address, &candidates, taken, why_not)?,
                None => self.choose_any(&candidates, taken, why_not)?,
            });
        }
        Ok(chosen)
    }

    /// The pools that each family is taken from, in the order in which they are tried.
    pub(crate) fn candidates(
        &self,
        all: &Allocate,
        wish: &InterfaceWish,
    ) -> Result<Vec<(Family, Vec<&Pool>)>, Code> {
        let namespace = ResourceName::in_realm(&all.endpoint.realm, &all.endpoint.namespace);
        let nothing = PoolPatterns::default();
        let of_namespace = self.namespaces.get(&namespace).map_or(&nothing, |one| &one.default_pools);
        let by_subnet = !wish.subnets.is_empty();
        let mut said = [&wish.pools, of_namespace, &wish.default_pools].into_iter();
        let named = said.find(|pools| !by_subnet && !pools.is_empty());
        let asked = |family| wish.addresses.iter().copied().find(|address| Family::of(*address) == family);
        let family_of = |pool: &Pool| Family::of(self.subnet_of(&pool.intention).cidr.addr());
        let mut per_family = Vec::new();
        for family in Family::BOTH {
            let names = named.map_or(&[][..], |pools| pools.of(family));
            let mut candidates: Vec<&Pool> = Vec::new();
            for subnet in &wish.subnets {
                if !self.subnets.contains_key(subnet) {
                    return Err(Code::NotFound);
                }
                let inside = |pool: &&Pool| {
                    pool.intention.subnet == *subnet
                        && family_of(pool) == family
                        && candidates.iter().all(|known| known.intention.name != pool.intention.name)
                };
                let found: Vec<&Pool> = self.pools.values().filter(inside).collect();
                candidates.extend(found);
            }
            for pattern in names {
                let mut found: Vec<&Pool> =
                    self.pools.values().filter(|pool| stands_for(pattern, &pool.intention.name)).collect();
                if pattern.name().is_some() && found.iter().any(|pool| family_of(pool) != family) {
                    return Err(Code::FamilyMismatch);
                }
                found.retain(|pool| family_of(pool) == family);
                if found.is_empty() {
                    return Err(Code::NotFound);
                }
                found.retain(|pool| {
                    candidates.iter().all(|known| known.intention.name != pool.intention.name)
                });
                candidates.extend(found);
            }
            if named.is_none() && !by_subnet {
                let default = Name::default_name();
                candidates.extend(self.pools.values().filter(|pool| {
                    pool.intention.default
                        && family_of(pool) == family
                        && self.subnet_of(&pool.intention).network == default
                }));
            }
            if !wish.families.is_empty() {
                match (wish.families.contains(&family), candidates.is_empty()) {
                    (false, _) => continue,
                    (true, true) if asked(family).is_none() => return Err(Code::NoPoolSelected),
                    (true, _) => {}
                }
            }
            if candidates.is_empty() && asked(family).is_some() {
                return Err(Code::AddressOutsidePools);
            }
            if !candidates.is_empty() {
                per_family.push((family, candidates));
            }
        }
        if per_family.is_empty() {
            return Err(Code::NoPoolSelected);
        }
        for (_, candidates) in &mut per_family {
            candidates.sort_by_key(|pool| unspecific(&pool.intention.takers));
        }
        Ok(per_family)
    }

    /// What an interface has already: anything that a pool could give to anybody, unless somebody holds it.
    fn choose_adopted(&self, wish: &InterfaceWish, taken: &[Held]) -> Result<Vec<(&Pool, IpAddr)>, Code> {
        let mut addresses = wish.addresses.clone();
        addresses.sort_by_key(IpAddr::is_ipv6);
        let adopt = |address: IpAddr| {
            let family = Family::of(address);
            let names = wish.pools.of(family);
            let family_of = |pool: &Pool| Family::of(self.subnet_of(&pool.intention).cidr.addr());
            let mut pools: Vec<&Pool> = Vec::new();
            for pattern in names {
                let fit = |pool: &&Pool| stands_for(pattern, &pool.intention.name);
                let mut found: Vec<&Pool> = self.pools.values().filter(fit).collect();
                if pattern.name().is_some() && found.iter().any(|pool| family_of(pool) != family) {
                    return Err(Code::FamilyMismatch);
                }
                found.retain(|pool| family_of(pool) == family);
                if found.is_empty() {
                    return Err(Code::NotFound);
                }
                pools.extend(found);
            }
            pools.sort_by_key(|pool| unspecific(&pool.intention.takers));
            if names.is_empty() {
                let default = Name::default_name();
                pools = self.pools.values().collect();
                pools.retain(|pool| self.subnet_of(&pool.intention).network == default);
            }
            let pool = pools.iter().find(|pool| self.giveable(&pool.intention, address));
            let pool = pool.or_else(|| pools.iter().find(|pool| self.has(&pool.intention, address)));
            let pool = *pool.ok_or(Code::AddressOutsidePools)?;
            let network = &self.subnet_of(&pool.intention).network;
            if self.holder(network, address).is_some() {
                return Err(Code::AddressTaken);
            }
            if !self.giveable(&pool.intention, address) {
                return Err(Code::AddressReserved);
            }
            if pool.intention.terminating {
                return Err(Code::Terminating);
            }
            if taken.iter().any(|one| one.pool == pool.intention.name && one.address == address) {
                return Err(Code::AddressTaken);
            }
            Ok((pool, address))
        };
        addresses.into_iter().map(adopt).collect()
    }

    fn choose_any<'a>(
        &self,
        all: &[&'a Pool],
        taken: &[Held],
        why_not: impl Fn(&Pool) -> Option<Code>,
    ) -> Result<(&'a Pool, IpAddr), Code> {
        let fit: Vec<&'a Pool> = all.iter().copied().filter(|pool| why_not(pool).is_none()).collect();
        if fit.is_empty() {
            let meant = all.iter().filter_map(|pool| why_not(pool)).filter(|code| *code != Code::NoPoolFits);
            let meant: Vec<Code> = meant.collect();
            return Err(if let [only] = meant[..] { only } else { Code::NoPoolFits });
        }
        fit.into_iter().find_map(|pool| Some((pool, self.next_in(pool, taken)?))).ok_or(Code::PoolExhausted)
    }

    fn choose_asked<'a>(
        &self,
        address: IpAddr,
        all: &[&'a Pool],
        taken: &[Held],
        why_not: impl Fn(&Pool) -> Option<Code>,
    ) -> Result<(&'a Pool, IpAddr), Code> {
        let could_give = |pool: &Pool| self.giveable(&pool.intention, address);
        let pool = all.iter().copied().find(|pool| could_give(pool));
        let pool = pool.or_else(|| all.iter().copied().find(|pool| self.has(&pool.intention, address)));
        let pool = pool.ok_or(Code::AddressOutsidePools)?;
        if let Some(code) = why_not(pool) {
            return Err(code);
        }
        let network = &self.subnet_of(&pool.intention).network;
        if self.holder(network, address).is_some() {
            return Err(Code::AddressTaken);
        }
        if self.rest(network, address).is_some() && pool.intention.strict_cooling {
            return Err(Code::AddressCooling);
        }
        if self.is_reserved(network, address) || !could_give(pool) {
            return Err(Code::AddressReserved);
        }
        if taken.iter().any(|one| one.pool == pool.intention.name && one.address == address) {
            return Err(Code::AddressTaken);
        }
        Ok((pool, address))
    }
}

/// Whether a pattern of those that are tried here stands for a name.
fn stands_for(pattern: &NamePattern, name: &Name) -> bool {
    let (pattern, name) = (pattern.as_str(), name.as_str());
    match pattern.strip_suffix('*') {
        None => pattern == name,
        Some("") => true,
        Some(class) if class.ends_with("]?") => name.len() > 1 && name[..1] == class[1..2],
        Some(prefix) => name.starts_with(prefix),
    }
}

/// How little a pool asks for, in the order of what counts most.
fn unspecific(takers: &Takers) -> [bool; 7] {
    [
        takers.endpoint_selector.is_empty(),
        takers.node_names.is_empty(),
        takers.node_selector.is_empty() || !takers.node_names.is_empty(),
        takers.namespaces.is_empty(),
        takers.namespace_selector.is_empty() || !takers.namespaces.is_empty(),
        takers.network_attachments.is_empty(),
        takers.realms.is_empty(),
    ]
}

fn may_take(takers: &Takers, wish: &Allocate, interface: &InterfaceWish) -> bool {
    let node = wish.node.as_ref().or(wish.attachment.as_ref().map(|key| &key.node));
    let config = wish.attachment.as_ref().filter(|key| key.interface == interface.name);
    let by = interface.network_attachment.as_ref().map(|by| by.as_str());
    let by = by.or(config.map(|key| key.config.as_str()));
    let among =
        |names: Vec<&str>, one: Option<&str>| names.is_empty() || one.is_some_and(|one| names.contains(&one));
    among(takers.realms.iter().map(|name| name.as_str()).collect(), Some(wish.endpoint.realm.as_str()))
        && among(takers.node_names.iter().map(|name| name.as_str()).collect(), node.map(|name| name.as_str()))
        && among(
            takers.namespaces.iter().map(|name| name.as_str()).collect(),
            Some(wish.endpoint.namespace.as_str()),
        )
        && among(takers.network_attachments.iter().map(|name| name.as_str()).collect(), by)
        && takers.endpoint_selector.fits(|key| wish.labels.get(key).map(|value| &**value))
}

impl Model {
    /// Why a pool gives nothing at all now, or not to this one.
    pub(crate) fn why_not(&self, pool: &Pool, wish: &Allocate, interface: &InterfaceWish) -> Option<Code> {
        let takers = &pool.intention.takers;
        if !may_take(takers, wish, interface) || !self.is_selected(takers, wish) {
            Some(Code::NoPoolFits)
        } else if pool.intention.terminating {
            Some(Code::Terminating)
        } else if pool.intention.disabled {
            Some(Code::PoolDisabled)
        } else {
            None
        }
    }

    /// Whether the labels of node and namespace are those that a pool asks for, where it names none.
    fn is_selected(&self, takers: &Takers, wish: &Allocate) -> bool {
        let selects = |selector: &Selector, remarks: Option<&Remarks>| {
            selector.is_empty()
                || remarks.is_some_and(|one| selector.fits(|key| one.labels.get(key).map(|value| &**value)))
        };
        let node = wish.node.as_ref().or(wish.attachment.as_ref().map(|key| &key.node));
        let realm = wish.attachment.as_ref().map_or(&wish.endpoint.realm, |key| &key.realm);
        let node = node.and_then(|node| self.nodes.get(&ResourceName::in_realm(realm, node)));
        let namespace = ResourceName::in_realm(&wish.endpoint.realm, &wish.endpoint.namespace);
        let namespace = self.namespaces.get(&namespace);
        (!takers.node_names.is_empty() || selects(&takers.node_selector, node.map(|one| &one.remarks)))
            && (!takers.namespaces.is_empty()
                || selects(&takers.namespace_selector, namespace.map(|one| &one.remarks)))
    }
}

/// Whether a claim's addresses are what an interface wishes for.
fn as_wished(held: &[Held], wish: &InterfaceWish) -> bool {
    let needs = |family| wish.families.is_empty() || wish.families.contains(&family);
    let has = |family| held.iter().any(|one| Family::of(one.address) == family);
    let families_fit =
        wish.families.is_empty() || Family::BOTH.iter().all(|family| needs(*family) == has(*family));
    let none_named = wish.pools.is_empty() || !wish.subnets.is_empty();
    let from = |names: &[NamePattern], v4| {
        let mut of_family = held.iter().filter(|one| one.address.is_ipv4() == v4).peekable();
        let present = of_family.peek().is_some();
        let family = if v4 { Family::V4 } else { Family::V6 };
        present == (!names.is_empty() && needs(family))
            && of_family.all(|one| names.iter().any(|name| stands_for(name, &one.pool)))
    };
    families_fit
        && (none_named || from(&wish.pools.ipv4, true) && from(&wish.pools.ipv6, false))
        && wish.addresses.iter().all(|address| held.iter().any(|one| one.address == *address))
}

fn said(repeated: bool, held: &[Held]) -> Said {
    Said::Given { repeated, addresses: held.iter().map(|one| (one.interface.clone(), one.address)).collect() }
}
