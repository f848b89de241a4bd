//! Builder of synthetic runs for tests: operations, journal and final states.

use ipam_api::event::{By, Event};
use ipam_api::resource::{Allocation, EndpointKey};
use ipam_api::time::Timestamp;
use serde_json::json;

use super::fixtures::Script;
use super::{Checker, Final, Record, Verdict};
use crate::history::{Function, Grant, Type, Value};

/// Grant of an address in the network `default`.
pub(crate) fn grant(id: u64, address: &str) -> Grant {
    let (network, address) = ("default".to_owned(), address.to_owned());
    Grant { id, network, address, pool: None, endpoint: None }
}

/// Grant of an endpoint, for transactions and lists.
pub(crate) fn grant_of(id: u64, address: &str, endpoint: &str) -> Grant {
    Grant { endpoint: Some(endpoint.to_owned()), ..grant(id, address) }
}

/// Run under construction. Each line of its history is one millisecond after the line before.
#[derive(Default)]
pub(crate) struct Run {
    /// History.
    pub script: Script,
    record: Record,
}

/// Operation under construction.
pub(crate) struct Call<'r> {
    run: &'r mut Run,
    process: u64,
    f: Function,
    value: Value,
    revision: Option<u64>,
}

impl Run {
    /// Sets the time of the next line.
    pub(crate) fn at(&mut self, time_ms: u64) -> &mut Self {
        self.script.at(time_ms);
        self
    }

    /// Operation of a process; an end completes it.
    pub(crate) fn call(&mut self, process: u64, f: Function) -> Call<'_> {
        Call { run: self, process, f, value: Value::default(), revision: None }
    }

    /// Adds an event of an address with the reason of a request.
    pub(crate) fn allocated(&mut self, id: u64, address: &str, endpoint: &str) -> &mut Self {
        self.address(id, "address.allocated", id, address, endpoint, "requested")
    }

    /// Adds the end of an allocation.
    pub(crate) fn released(
        &mut self,
        revision: u64,
        id: u64,
        address: &str,
        endpoint: &str,
        reason: &str,
    ) -> &mut Self {
        self.address(revision, "address.released", id, address, endpoint, reason)
    }

    /// Adds an event of an allocation.
    pub(crate) fn address(
        &mut self,
        revision: u64,
        name: &str,
        id: u64,
        address: &str,
        endpoint: &str,
        reason: &str,
    ) -> &mut Self {
        let mut event = self.event(revision, name, address);
        let key: EndpointKey = endpoint.parse().unwrap();
        event.network = Some("default".parse().unwrap());
        event.pool = Some("web".parse().unwrap());
        event.interface = Some("eth0".parse().unwrap());
        event.endpoint = Some(key);
        event.allocation = Some(id);
        event.reason = Some(reason.to_owned());
        self.record.journal.push(event);
        self
    }

    /// Adds an event of a prefix.
    pub(crate) fn prefix(&mut self, revision: u64, name: &str, id: u64, cidr: &str) -> &mut Self {
        let mut event = self.event(revision, name, cidr);
        event.network = Some("default".parse().unwrap());
        event.pool = Some("web".parse().unwrap());
        event.prefix = Some(id);
        event.owner = Some("default/trench".to_owned());
        self.record.journal.push(event);
        self
    }

    /// Adds any event.
    pub(crate) fn other(&mut self, revision: u64, name: &str, object: &str, reason: &str) -> &mut Self {
        let mut event = self.event(revision, name, object);
        event.reason = Some(reason.to_owned());
        self.record.journal.push(event);
        self
    }

    /// The last event, for changes.
    pub(crate) fn last_event(&mut self) -> &mut Event {
        self.record.journal.last_mut().unwrap()
    }

    fn event(&self, revision: u64, name: &str, object: &str) -> Event {
        let same = self.record.journal.iter().rev().take_while(|event| event.revision == revision);
        let principal = "test".to_owned();
        Event {
            revision,
            number: u32::try_from(same.count()).unwrap(),
            at: Timestamp(0),
            event_type: name.to_owned(),
            object: object.to_owned(),
            kind: name.split('.').next().unwrap().to_owned(),
            network: None,
            pool: None,
            endpoint: None,
            interface: None,
            allocation: None,
            prefix: None,
            owner: None,
            node: None,
            macs: Vec::new(),
            by: By { principal, via: "http".to_owned(), request_id: "1".to_owned() },
            reason: None,
            comment: None,
            changes: Vec::new(),
        }
    }

    /// Adds the final state of a member.
    pub(crate) fn last_state(&mut self, revision: u64, held: &[(u64, &str, &str)]) -> &mut Self {
        let allocations =
            held.iter().map(|(id, address, endpoint)| allocation(*id, address, endpoint)).collect();
        self.record.finals.push(Final {
            time_ns: 0,
            member: format!("n{}", self.record.finals.len() + 1),
            applied: revision,
            revision,
            digest: String::new(),
            allocations,
            prefixes: Vec::new(),
            pools: Vec::new(),
        });
        self
    }

    /// Record built so far.
    pub(crate) fn record(&self) -> Record {
        Record { history: self.script.history(), ..self.record.clone() }
    }

    /// Verdict of a checker.
    pub(crate) fn verdict(&self, checker: &dyn Checker) -> Verdict {
        checker.check(&self.record())
    }
}

/// Allocation of a final state.
pub(crate) fn allocation(id: u64, address: &str, endpoint: &str) -> Allocation {
    let key: EndpointKey = endpoint.parse().unwrap();
    let lifecycle = if key.kind.as_str() == "pod" { "attached" } else { "held" };
    serde_json::from_value(json!({
        "id": id, "address": format!("{address}/24"), "network": "default", "subnet": "lan", "pool": "web",
        "endpoint": key, "interface": "eth0", "lifecycle": lifecycle, "checked": false,
        "created_at": "2026-11-01T00:00:00Z", "created_by": "test",
    }))
    .unwrap()
}

impl Call<'_> {
    /// Sets the endpoint.
    pub(crate) fn endpoint(mut self, endpoint: &str) -> Self {
        self.value.endpoint = Some(endpoint.to_owned());
        self
    }

    /// Sets the key.
    pub(crate) fn key(mut self, key: &str) -> Self {
        self.value.key = Some(key.to_owned());
        self
    }

    /// Sets the pools.
    pub(crate) fn pools(mut self, pools: &[&str]) -> Self {
        self.value.pools = pools.iter().map(|pool| (*pool).to_owned()).collect();
        self
    }

    /// Sets the target.
    pub(crate) fn target(mut self, target: &str) -> Self {
        self.value.target = Some(target.to_owned());
        self
    }

    /// Sets the error of the end.
    pub(crate) fn error(mut self, error: &str) -> Self {
        self.value.error = Some(error.to_owned());
        self
    }

    /// Sets the TTL.
    pub(crate) fn ttl_ms(mut self, ttl_ms: u64) -> Self {
        self.value.ttl_ms = Some(ttl_ms);
        self
    }

    /// Sets the details.
    pub(crate) fn detail(mut self, detail: serde_json::Value) -> Self {
        self.value.detail = detail;
        self
    }

    /// Sets the grants of the begin.
    pub(crate) fn grants(mut self, grants: &[Grant]) -> Self {
        self.value.grants = grants.to_vec();
        self
    }

    /// Makes a read stale.
    pub(crate) fn stale(mut self) -> Self {
        self.value.is_stale = true;
        self
    }

    /// Sets the revision of the answer.
    pub(crate) fn revision(mut self, revision: u64) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Ends the operation at once with these grants, and returns the index of its begin.
    pub(crate) fn ok(self, grants: &[Grant]) -> u64 {
        self.both(Type::Ok, Some(grants))
    }

    /// Ends the operation without a known outcome.
    pub(crate) fn info(self) -> u64 {
        self.both(Type::Info, None)
    }

    /// Ends the operation without an effect.
    pub(crate) fn fail(self) -> u64 {
        self.both(Type::Fail, None)
    }

    fn both(self, kind: Type, grants: Option<&[Grant]>) -> u64 {
        let Self { run, process, f, value, revision } = self;
        let begin = run.script.begin(process, f, value.clone());
        run.end(Open { process, f, value, revision }, kind, grants);
        begin
    }

    /// Begins the operation; others can begin before [`Run::end`].
    pub(crate) fn begin(self) -> Open {
        let Self { run, process, f, value, revision } = self;
        run.script.begin(process, f, value.clone());
        Open { process, f, value, revision }
    }
}

/// Operation that has begun.
pub(crate) struct Open {
    process: u64,
    f: Function,
    value: Value,
    revision: Option<u64>,
}

impl Run {
    /// Ends an operation, with these grants if it succeeded.
    pub(crate) fn end(&mut self, open: Open, kind: Type, grants: Option<&[Grant]>) {
        let mut value = open.value;
        if let Some(grants) = grants {
            value.grants = grants.to_vec();
        }
        value.revision = open.revision;
        self.script.end(open.process, open.f, kind, value);
    }
}
