//! Comparison of the model with the final state of a member.

use std::collections::BTreeMap;

use ipam_api::address::AddressRange;

use super::state::{Held, Model};
use crate::checker::Final;
use crate::checker::block::block;
use crate::history::endpoint_name;

/// Difference between the model and a final state, by id of the grant.
pub type Differences = BTreeMap<u64, String>;

impl Model<'_> {
    /// Compares all allocations and prefixes.
    #[must_use]
    pub fn differences(&self, last: &Final) -> Differences {
        let mut differences = Differences::new();
        let mut present: BTreeMap<u64, Held<'_>> = BTreeMap::new();
        for row in &last.allocations {
            let held = Held {
                network: row.network.as_str(),
                block: AddressRange::single(row.address.addr()),
                pool: row.pool.as_str(),
                holder: endpoint_name(&row.endpoint),
                interface: row.interface.as_str(),
                is_prefix: false,
            };
            if present.insert(row.id, held).is_some() {
                differences.insert(row.id, format!("two allocations have the id {}", row.id));
            }
        }
        for row in &last.prefixes {
            let Some(cidr) = row.cidr else { continue };
            let Some(block) = block(&cidr.to_string(), true) else { continue };
            let held = Held {
                network: row.network.as_str(),
                block,
                pool: row.pool.as_str(),
                holder: format!("{}/{}", row.realm, row.owner),
                interface: "",
                is_prefix: true,
            };
            if present.insert(row.id, held).is_some() {
                differences.insert(row.id, format!("two grants have the id {}", row.id));
            }
        }
        for (id, held) in &self.held {
            match present.get(id) {
                None => {
                    differences
                        .insert(*id, format!("grant {id} of {} to {} is absent", held.block, held.holder));
                }
                Some(other) if !self.is_same(held, other) => {
                    let message = format!(
                        "grant {id} is {} of {} in {}, and {} of {} in {} by the journal",
                        other.block, other.holder, other.pool, held.block, held.holder, held.pool
                    );
                    differences.insert(*id, message);
                }
                Some(_) => {}
            }
        }
        for (id, held) in &present {
            if !self.held.contains_key(id) && self.is_complete {
                let message = format!("grant {id} of {} to {} is in no event", held.block, held.holder);
                differences.insert(*id, message);
            }
        }
        differences
    }

    fn is_same(&self, own: &Held<'_>, other: &Held<'_>) -> bool {
        let is_split = self.split.contains(own.pool);
        let pool = if is_split { other.pool } else { own.pool };
        *other == Held { pool, ..own.clone() }
    }
}
