//! The model's own passing of time: leaderships, leases, and what ends.

use std::net::IpAddr;

use ipam_api::Code;
use ipam_api::limits::EXPIRIES_PER_COMMAND_MAX;
use ipam_machine::command::{Leases, Renew};

use crate::model::naive::{Cooling, Held, Model, Reply};

impl Model {
    pub(crate) fn lead(&mut self, number: u64, grace_ms: u64) {
        self.leadership = (number, self.now + grace_ms);
    }

    /// Returns true if a lease or prefix that lasts until then has ended.
    pub(crate) fn has_passed(&self, until_ms: u64) -> bool {
        until_ms <= self.now && self.leadership.1 <= self.now
    }

    /// A little with every command: what has rested first, then leases, then the memory of releases.
    pub(crate) fn expire(&mut self) -> u64 {
        let mut rows = 0;
        let now = self.now;
        while rows < EXPIRIES_PER_COMMAND_MAX as u64 {
            let rested = self.cooling.iter().enumerate().filter(|(_, one)| one.until_ms <= now);
            if let Some((i, _)) = rested.min_by_key(|(i, one)| (one.until_ms, *i)) {
                let Cooling { pool, address, .. } = self.cooling.remove(i);
                self.shed(&pool, address);
            } else if self.end_cooling_block() {
                // One row, as above.
            } else if let Some(ended) = self.end_leases() {
                rows += ended;
                continue;
            } else if let Some(i) = self.first_ended_check() {
                self.checks.remove(i);
            } else if let Some(i) = self.tombstones.iter().position(|one| one.until_ms <= now) {
                self.tombstones.remove(i);
            } else if !self.clear_one_ended() && !self.forget_one_pod() {
                break;
            }
            rows += 1;
        }
        rows
    }

    pub(crate) fn renew(&mut self, request: &Renew) -> Result<Reply, Code> {
        let meant: Vec<Held> = match &request.which {
            Leases::Allocation(id) => {
                let one = self.held.iter().find(|one| one.id == id.get()).ok_or(Code::AllocationChanged)?;
                vec![one.clone()]
            }
            Leases::Endpoint(key) => {
                let all: Vec<u64> =
                    self.endpoints.iter().filter(|one| one.key == *key).map(|one| one.number).collect();
                if all.is_empty() {
                    return Err(Code::NotFound);
                }
                let of = |number| self.held.iter().filter(move |one| one.endpoint == number);
                all.into_iter().flat_map(of).cloned().collect()
            }
        };
        let leases: Vec<Held> = meant.into_iter().filter(|one| one.lease.is_some()).collect();
        if leases.is_empty() {
            return Err(Code::NotLeased);
        }
        self.renew_all(&leases, request.ttl_ms);
        let until = |one: &Held| -> (IpAddr, u64) {
            let end = self.holder(&one.network, one.address).and_then(|held| self.end_of(held));
            (one.address, end.expect("it has a lease"))
        };
        Ok(Reply::Renewed(leases.iter().map(until).collect()))
    }

    pub(crate) fn renew_all(&mut self, meant: &[Held], ttl_ms: Option<u64>) {
        let now = self.now;
        for held in &mut self.held {
            let is_meant =
                meant.iter().any(|one| (&one.network, one.address) == (&held.network, held.address));
            if let (true, Some((old, until))) = (is_meant, &mut held.lease) {
                *old = ttl_ms.unwrap_or(*old);
                *until = now + *old;
            }
        }
    }

    /// Ends the lease that has ended first, with all of its endpoint that have ended.
    pub(crate) fn end_leases(&mut self) -> Option<u64> {
        let has_ended = |one: &&Held| self.end_of(one).is_some_and(|end| self.has_passed(end));
        let ended = self.held.iter().filter(has_ended);
        let endpoint = ended.min_by_key(|one| self.end_of(one))?.endpoint;
        let of = |one: &&Held| one.endpoint == endpoint && has_ended(one);
        let ended: Vec<Held> = self.held.iter().filter(of).cloned().collect();
        match self.release(|one| ended.contains(one)) {
            Reply::Released(addresses) => Some(addresses.len() as u64),
            other => panic!("released: {other:?}"),
        }
    }
}
