//! Fixtures of tests: synthetic histories.

use crate::history::{Function, Operation, Process, Type, Value};
use crate::nemesis::{Fault, Kind};

/// Synthetic history. Each line is one millisecond after the line before.
#[derive(Debug, Default)]
pub(crate) struct Script {
    operations: Vec<Operation>,
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
        let detail = leader.map_or(serde_json::Value::Null, |leader| serde_json::json!({ "leader": leader }));
        self.fault(nemesis, lasts_ms, kind, detail, evidence)
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

    /// The history up to here.
    pub(crate) fn history(&self) -> Vec<Operation> {
        self.operations.clone()
    }
}
