//! Fixtures of tests: synthetic histories and states.

use ipam_api::event::Event;
use ipam_api::resource::{Allocation, Pool, PoolStatus, Prefix, Resource};
use serde_json::json;

use super::{Final, Sample};
use crate::history::{Function, Operation, Process, Type, Value};
use crate::nemesis::{Fault, Kind};

/// Synthetic history. Each line is one millisecond after the line before.
#[derive(Debug, Default)]
pub(crate) struct Script {
    operations: Vec<Operation>,
    samples: Vec<Sample>,
    time_ms: u64,
}

impl Script {
    /// Sets the time of the next line.
    pub(crate) fn at(&mut self, time_ms: u64) -> &mut Self {
        self.time_ms = time_ms;
        self
    }

    /// Adds one line and returns its index.
    pub(crate) fn line(&mut self, process: Process, f: Function, kind: Type, value: Value) -> u64 {
        let index = self.operations.len() as u64;
        let time_ns = self.time_ms * 1_000_000;
        self.time_ms += 1;
        self.operations.push(Operation { index, time_ns, process, kind, f, value });
        index
    }

    /// Adds a begin.
    pub(crate) fn begin(&mut self, process: u64, f: Function, value: Value) -> u64 {
        self.line(Process::Client(process), f, Type::Invoke, value)
    }

    /// Adds an end.
    pub(crate) fn end(&mut self, process: u64, f: Function, kind: Type, value: Value) -> u64 {
        self.line(Process::Client(process), f, kind, value)
    }

    /// Adds an operation that succeeds.
    pub(crate) fn ok(&mut self, process: u64, f: Function, begin: Value, end: Value) -> u64 {
        self.begin(process, f, begin);
        self.end(process, f, Type::Ok, end)
    }

    /// Adds the injection of a fault.
    pub(crate) fn inject(
        &mut self,
        nemesis: &str,
        lasts_ms: u64,
        kind: Kind,
        leader: Option<&str>,
        evidence: &[&str],
    ) -> u64 {
        if let Some(leader) = leader {
            self.lead(leader);
        }
        self.fault(nemesis, lasts_ms, kind, serde_json::Value::Null, evidence)
    }

    /// Adds a sample of a new leader.
    pub(crate) fn lead(&mut self, leader: &str) {
        self.samples.push(Sample {
            time_ns: self.time_ms * 1_000_000,
            member: leader.to_owned(),
            applied: 0,
            digest: String::new(),
            epoch: 0,
            term: self.samples.len() as u64 + 1,
            leader: Some(leader.to_owned()),
        });
    }

    /// Samples added so far.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.samples.clone()
    }

    /// Adds the healing of a fault.
    pub(crate) fn heal(&mut self, nemesis: &str, lasts_ms: u64, kind: Kind, evidence: &[&str]) -> u64 {
        self.fault(nemesis, lasts_ms, kind, serde_json::json!({ "heal": true }), evidence)
    }

    fn fault(
        &mut self,
        nemesis: &str,
        lasts_ms: u64,
        kind: Kind,
        detail: serde_json::Value,
        evidence: &[&str],
    ) -> u64 {
        let fault = Some(Fault { nemesis: nemesis.to_owned(), lasts_ms, kind });
        let value = Value { fault, detail, ..Value::default() };
        self.line(Process::Nemesis, Function::Fault, Type::Invoke, value.clone());
        let evidence = evidence.iter().map(|line| (*line).to_owned()).collect();
        self.line(Process::Nemesis, Function::Fault, Type::Ok, Value { evidence, ..value })
    }

    /// History added so far.
    pub(crate) fn history(&self) -> Vec<Operation> {
        self.operations.clone()
    }
}

const TIME: &str = "2026-11-01T00:00:00Z";

/// Empty state of a member.
pub(crate) fn final_state(member: &str) -> Final {
    Final {
        time_ns: 0,
        member: member.to_owned(),
        applied: 100,
        revision: 90,
        digest: "d".to_owned(),
        allocations: Vec::new(),
        prefixes: Vec::new(),
        pools: Vec::new(),
    }
}

/// Allocation of an address with its prefix length.
pub(crate) fn allocation(id: u64, address: &str, pool: &str) -> Allocation {
    let allocation = json!({
        "id": id, "address": address, "network": "default", "subnet": "s", "pool": pool,
        "endpoint": { "kind": "pod", "name": format!("e-{id}") }, "interface": "eth0",
        "lifecycle": "held", "checked": false, "created_at": TIME, "created_by": "admin",
    });
    serde_json::from_value(allocation).unwrap()
}

/// Delegated prefix.
pub(crate) fn prefix(id: u64, cidr: &str, pool: &str, parent: Option<u64>) -> Prefix {
    let prefix = json!({
        "id": id, "cidr": cidr, "network": "default", "subnet": "s", "pool": pool, "parent": parent,
        "realm": "default", "owner": format!("o-{id}"), "path": format!("o-{id}"), "keep_edges": false,
        "children": 0, "created_at": TIME, "created_by": "admin",
    });
    serde_json::from_value(prefix).unwrap()
}

/// Pool of 256 addresses: allocated, cooling, quarantined, reserved, excluded, free.
pub(crate) fn pool(name: &str, revision: u64, counts: [u64; 6]) -> Resource<Pool, PoolStatus> {
    let [allocated, cooling, quarantined, reserved, excluded, free] = counts;
    let spec = serde_json::from_value(json!({ "name": name, "subnet": "s" })).unwrap();
    let meta = json!({
        "id": 1, "revision": 1, "created_at": TIME, "created_by": "admin", "updated_at": TIME,
        "updated_by": "admin",
    });
    let status = json!({
        "revision": revision, "family": 4, "cidr": "10.0.0.0/24", "conditions": [],
        "counts": {
            "size": 256, "allocated": allocated, "cooling": cooling, "quarantined": quarantined,
            "reserved": reserved, "excluded": excluded, "free": free, "saturated": false,
        },
    });
    let (meta, status) = (serde_json::from_value(meta).unwrap(), serde_json::from_value(status).unwrap());
    Resource { spec, meta, status }
}

/// Event of the journal.
pub(crate) fn event(revision: u64, number: u32, event_type: &str, allocation: Option<u64>) -> Event {
    let event = json!({
        "revision": revision, "number": number, "at": TIME, "type": event_type, "object": "o",
        "kind": "address", "allocation": allocation,
        "by": { "principal": "admin", "via": "http", "request_id": "r" },
    });
    serde_json::from_value(event).unwrap()
}

/// Event of an address of the pod `default/name`.
pub(crate) fn address_event(revision: u64, event_type: &str, address: &str, pod: &str) -> Event {
    let mut event = event(revision, 0, event_type, None);
    address.clone_into(&mut event.object);
    event.endpoint = serde_json::from_value(json!({ "kind": "pod", "name": pod })).unwrap();
    event
}
