//! Numbers of operations by workload, function and end, and of the states that they met.

use std::collections::BTreeMap;

use ipam_jepsen::history::{Function, Operation, Type};
use serde_json::Value as Json;

/// Numbers of one history.
#[derive(Default)]
pub(crate) struct Tally {
    ends: BTreeMap<(String, Function, &'static str), u64>,
    refusals: BTreeMap<(String, Function, String), u64>,
    states: BTreeMap<(String, Function, String), u64>,
    last_ns: u64,
}

impl Tally {
    pub(crate) fn of(history: &[Operation]) -> Self {
        let mut tally = Self::default();
        for operation in history.iter().filter(|operation| !operation.is_invoke()) {
            let (workload, f) = (operation.value.workload.clone(), operation.f);
            *tally.ends.entry((workload.clone(), f, word(operation.kind))).or_default() += 1;
            if let (Type::Fail | Type::Info, Some(error)) = (operation.kind, &operation.value.error) {
                *tally.refusals.entry((workload.clone(), f, error.clone())).or_default() += 1;
            }
            for state in states(operation) {
                *tally.states.entry((workload.clone(), f, state)).or_default() += 1;
            }
            tally.last_ns = operation.time_ns;
        }
        tally
    }

    pub(crate) fn state(&self, workload: &str, f: Function, state: &str) -> u64 {
        self.states.get(&(workload.to_owned(), f, state.to_owned())).copied().unwrap_or_default()
    }

    pub(crate) fn refusals(&self, workload: &str) -> impl Iterator<Item = (Function, &str)> {
        let own = self.refusals.keys().filter(move |(of, _, _)| of == workload);
        own.map(|(_, f, error)| (*f, error.as_str()))
    }

    /// Prints all numbers, which the output of a failed test shows.
    pub(crate) fn print(&self) {
        let all: u64 = self.ends.values().sum();
        println!("{all} operations in {:.1} s", self.last_ns as f64 / 1e9);
        for ((workload, f, kind), number) in &self.ends {
            println!("{workload:<16} {f:?} {kind}: {number}");
        }
        for ((workload, f, state), number) in &self.states {
            println!("{workload:<16} {f:?} met {state}: {number}");
        }
    }
}

fn word(kind: Type) -> &'static str {
    match kind {
        Type::Invoke => "invoke",
        Type::Ok => "ok",
        Type::Fail => "fail",
        Type::Info => "info",
    }
}

/// States that the end of an operation shows.
fn states(operation: &Operation) -> Vec<String> {
    let value = &operation.value;
    let detail = |name: &str| value.detail.get(name);
    let mut states: Vec<String> = value.error.iter().cloned().collect();
    if operation.kind != Type::Ok {
        return states;
    }
    states.push("ok".to_owned());
    for flag in ["repeated", "replayed", "waiting"] {
        if detail(flag) == Some(&Json::Bool(true)) {
            states.push(flag.to_owned());
        }
    }
    for word in ["state", "source"] {
        states.extend(detail(word).and_then(Json::as_str).map(str::to_owned));
    }
    if operation.f == Function::Claim && detail("repeated").is_some() && !value.grants.is_empty() {
        states.push("served".to_owned());
    }
    if value.grants.len() > 1 {
        states.push("several".to_owned());
    }
    if detail("revisions").and_then(Json::as_array).is_some_and(|pages| pages.len() > 1) {
        states.push("pages".to_owned());
    }
    states
}
