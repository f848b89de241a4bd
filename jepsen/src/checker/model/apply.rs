//! Application of events: an event is legal in the state, or the model returns the broken rules.
//!
//! After an illegal event the model follows the journal, so that one defect doesn't bring about others.

use ipam_api::address::AddressRange;
use ipam_api::event::Event;

use super::state::{Held, Model};
use crate::checker::block::block;
use crate::history::endpoint_name;

/// Reasons of allocations that ignore closed pools and unconfirmed epochs.
const REGARDLESS: [&str; 2] = ["adopted", "conflict"];

impl<'a> Model<'a> {
    /// Applies an event, and returns the rules that it breaks.
    pub fn apply(&mut self, event: &'a Event) -> Vec<String> {
        let mut broken = Vec::new();
        self.take_position(event, &mut broken);
        match event.event_type.as_str() {
            "address.allocated" | "prefix.delegated" => self.take_grant(event, &mut broken),
            "address.released" | "prefix.released" => self.take_end(event, &mut broken),
            "address.attached" | "address.detached" => self.expect_held(event, &mut broken),
            "address.cooled" => self.expect_free(event, &mut broken),
            "address.quarantined" => {
                self.expect_free(event, &mut broken);
                if let Some(place) = place(event, false)
                    && !self.quarantined.insert(place)
                {
                    broken.push(format!("{} is quarantined twice", event.object));
                }
            }
            "address.unquarantined" => {
                let was = place(event, false).is_some_and(|place| self.quarantined.remove(&place));
                if !was && self.is_complete {
                    broken.push(format!("{} was not quarantined", event.object));
                }
            }
            "epoch.begun" => self.confirmed = Some(std::collections::BTreeSet::new()),
            "pool.confirmed" => {
                if let Some(confirmed) = &mut self.confirmed {
                    confirmed.insert(&event.object);
                }
            }
            "epoch.confirmed" => self.confirmed = None,
            name if name.starts_with("pool.") => self.take_pool(event, &mut broken),
            _ => {}
        }
        broken
    }

    fn take_position(&mut self, event: &Event, broken: &mut Vec<String>) {
        let is_new = event.revision > self.revision;
        let follows = if is_new {
            event.number == 0 || !self.is_complete
        } else {
            event.revision == self.revision && event.number == self.number.saturating_add(1)
        };
        if !follows {
            broken.push(format!(
                "event {} follows event {}.{}: not in order, or one is missing",
                event.id(),
                self.revision,
                self.number
            ));
        }
        if is_new {
            self.before = self.revision;
        }
        (self.revision, self.number) = (event.revision, event.number);
    }

    fn take_grant(&mut self, event: &'a Event, broken: &mut Vec<String>) {
        let is_prefix = event.event_type == "prefix.delegated";
        let (Some(id), Some((network, block))) = (event.allocation.or(event.prefix), place(event, is_prefix))
        else {
            broken.push(format!("event {} lacks an id, a network or an address", event.id()));
            return;
        };
        let object = &event.object;
        // An id is the revision that creates the object, and one command may raise several revisions.
        if id <= self.before || id > event.revision {
            broken.push(format!(
                "grant {id} of {object} has no revision of its command: {} to {}",
                self.before + 1,
                event.revision
            ));
        }
        if id <= self.id_max {
            broken.push(format!("id {id} of {object} is not above {}, the id before", self.id_max));
        }
        self.id_max = self.id_max.max(id);
        for other in self.occupants(network, block) {
            let Some(held) = self.held.get(&other) else { continue };
            let is_divided =
                is_prefix && held.is_prefix && held.block != block && held.block.contains(&block);
            if !is_divided {
                broken.push(format!(
                    "grant {id} of {object} overlaps grant {other}: {} is held by {}",
                    held.block, held.holder
                ));
            }
        }
        if !is_prefix && self.quarantined.contains(&(network, block)) {
            broken.push(format!("grant {id}: {object} is quarantined"));
        }
        let pool = event.pool.as_ref().map_or("", |pool| pool.as_str());
        self.check_pool(event, pool, &block, broken);
        let held = Held {
            network,
            block,
            pool,
            holder: holder(event),
            interface: event.interface.as_ref().map_or("", |interface| interface.as_str()),
            is_prefix,
        };
        if self.held.contains_key(&id) {
            broken.push(format!("id {id} of {object} is in use"));
            self.remove(id);
        }
        self.insert(id, held);
    }

    /// Checks that a pool may allocate a block now.
    fn check_pool(&self, event: &Event, pool: &str, block: &AddressRange, broken: &mut Vec<String>) {
        let object = &event.object;
        let is_regardless = event.reason.as_deref().is_some_and(|reason| REGARDLESS.contains(&reason));
        match self.pools.get(pool).or_else(|| self.specs.before.get(pool)) {
            None if self.is_complete => {
                broken.push(format!("{object} is allocated by {pool}, which is absent"))
            }
            Some(spec) if !spec.may_allocate(block) => {
                broken.push(format!("{object} is not one of the addresses of {pool}"));
            }
            Some(spec) if spec.is_closed && !is_regardless => {
                broken.push(format!("{object} is allocated by {pool}, which is disabled or terminating"));
            }
            _ => {}
        }
        let unconfirmed = self.confirmed.as_ref().is_some_and(|confirmed| !confirmed.contains(pool));
        if unconfirmed && !is_regardless {
            broken.push(format!("{object} is allocated by {pool}, which is unconfirmed after a restore"));
        }
    }

    fn take_end(&mut self, event: &'a Event, broken: &mut Vec<String>) {
        self.expect_held(event, broken);
        let Some(id) = event.allocation.or(event.prefix) else { return };
        let Some(held) = self.remove(id) else { return };
        // A prefix must not end before the prefixes inside it.
        if held.is_prefix && self.space.inside(held.network, held.block).next().is_some() {
            broken.push(format!("prefix {id} ends before the prefixes in it: {}", event.object));
        }
    }

    /// Checks that an event names a present grant with its address and holder.
    fn expect_held(&self, event: &'a Event, broken: &mut Vec<String>) {
        let (name, object) = (&event.event_type, &event.object);
        let Some(id) = event.allocation.or(event.prefix) else {
            broken.push(format!("event {} lacks an id", event.id()));
            return;
        };
        let Some(held) = self.held.get(&id) else {
            if self.is_complete {
                broken.push(format!("{name} names grant {id} of {object}, which is absent"));
            }
            return;
        };
        let same = place(event, held.is_prefix) == Some((held.network, held.block));
        if !same || holder(event) != held.holder {
            broken.push(format!(
                "{name} has {object} and {} for grant {id}, which is {} of {}",
                holder(event),
                held.block,
                held.holder
            ));
        }
    }

    /// Checks that an address is not allocated.
    fn expect_free(&self, event: &'a Event, broken: &mut Vec<String>) {
        let Some((network, address)) = place(event, false) else { return };
        if let Some(id) = self.allocation_at(network, address) {
            broken.push(format!("{} of {}, which grant {id} holds", event.event_type, event.object));
        }
    }

    fn take_pool(&mut self, event: &'a Event, broken: &mut Vec<String>) {
        let pool = event.object.as_str();
        match event.event_type.as_str() {
            "pool.created" => {
                let known = self.pools.insert(pool, self.specs.at_creation(event));
                broken.extend(known.map(|_| format!("pool {pool} is created twice")));
            }
            "pool.changed" => {
                let before = self.specs.before.get(pool).cloned();
                let spec = self.pools.entry(pool).or_insert_with(|| before.unwrap_or_default());
                for change in &event.changes {
                    spec.change(&change.field, &change.to);
                    if matches!(change.field.as_str(), "disabled" | "terminating") {
                        spec.is_closed = change.to == "true";
                    }
                }
            }
            "pool.deleted" => {
                self.pools.remove(pool);
                self.specs.before.remove(pool);
                let is_split = self.split.contains(pool);
                let mut held = self.held.iter().filter(|(_, held)| held.pool == pool && !is_split);
                if let Some((id, held)) = held.next() {
                    broken.push(format!("pool {pool} is deleted while grant {id} holds {}", held.block));
                }
            }
            "pool.split" => {
                self.split.insert(pool);
                // `N of its ranges are NAME now`
                let words = event.reason.as_deref().unwrap_or_default().split(' ');
                self.split.extend(words.rev().nth(1));
            }
            _ => {}
        }
    }
}

fn place(event: &Event, is_prefix: bool) -> Option<(&str, AddressRange)> {
    Some((event.network.as_ref()?.as_str(), block(&event.object, is_prefix)?))
}

fn holder(event: &Event) -> String {
    match &event.endpoint {
        Some(endpoint) => endpoint_name(endpoint),
        None => event.owner.clone().unwrap_or_default(),
    }
}
