//! A plan as text and as JSON.

use serde_json::{Value, json};

use super::kind::{Kind, Spec};
use super::plan::{Change, Plan};
use crate::output::diff::{self, Difference, addresses, ranges, shown};
use crate::output::text;

/// One line per change, and one for each further field that differs.
pub(super) fn text(plan: &Plan) -> String {
    let wide = plan.0.iter().map(|change| title(change).chars().count()).max().unwrap_or_default();
    let mut lines = String::new();
    for change in &plan.0 {
        let mut title = title(change);
        for detail in details(change) {
            lines.push_str(format!("{title:<wide$}   {detail}").trim_end());
            lines.push('\n');
            title.clear();
        }
    }
    lines
}

fn title(change: &Change) -> String {
    let mark = match change {
        Change::Create(_) => "+",
        Change::Update { .. } => "~",
        Change::Delete(_) | Change::Drain(_) => "-",
        Change::Keep(_) => "!",
    };
    let (kind, name) = change.resource();
    format!("{mark} {} {name}", kind.word())
}

fn details(change: &Change) -> Vec<String> {
    match change {
        Change::Create(document) => vec![created(document.kind, &document.spec)],
        Change::Update { differences, .. } => diff::lines(differences),
        Change::Delete(_) => vec!["deleted: not in these files".to_owned()],
        Change::Drain(current) => vec![format!(
            "not in these files; {} in use, so it drains: no new allocations, deleted when the last is released",
            text::count(current.held)
        )],
        Change::Keep(current) => vec![match (current.kind, current.held) {
            (Kind::Pool, held) if held > 0 => format!(
                "not in these files (kept; --prune would delete it: {} in use, so it would drain)",
                text::count(held)
            ),
            _ => "not in these files (kept; --prune would delete it)".to_owned(),
        }],
    }
}

fn created(kind: Kind, spec: &Spec) -> String {
    let field = |name: &str| spec.get(name).map(shown).unwrap_or_default();
    match kind {
        Kind::Network => field("description"),
        Kind::Node => field("labels"),
        Kind::Namespace => [field("labels"), field("default_ipv4_pools"), field("default_ipv6_pools")]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", "),
        Kind::Subnet => format!("{}, network {}", field("cidr"), field("network")),
        Kind::Pool => match ranges(spec.get("ranges")) {
            given if given.is_empty() => format!("all of subnet {}", field("subnet")),
            given => format!("subnet {}, {}", field("subnet"), addresses(&given)),
        },
        Kind::HostPolicy => format!("realm {}", field("realm")),
        Kind::Reservation => addresses(&ranges(spec.get("addresses"))),
    }
}

/// The plan for programs.
pub(super) fn json(plan: &Plan) -> Value {
    let change = |change: &Change| {
        let (kind, name) = change.resource();
        let all = [("action", json!(change.action())), ("kind", json!(kind.word())), ("name", json!(name))];
        let mut all = Vec::from(all);
        match change {
            Change::Update { differences, .. } => {
                let field =
                    |found: &Difference| json!({"field": found.field, "from": found.from, "to": found.to});
                all.push(("fields", differences.iter().map(field).collect()));
            }
            Change::Drain(current) | Change::Keep(current) => all.push(("held", json!(current.held))),
            Change::Create(_) | Change::Delete(_) => {}
        }
        all.into_iter().collect()
    };
    json!({"changes": plan.0.iter().map(change).collect::<Vec<Value>>()})
}

/// `2 created, 1 changed`.
pub(super) fn counts(plan: &Plan) -> String {
    let words = [("create", "created"), ("change", "changed"), ("delete", "deleted"), ("drain", "draining")];
    let said = words.into_iter().filter_map(|(action, word)| {
        let number = plan.0.iter().filter(|change| change.action() == action).count();
        (number > 0).then(|| format!("{number} {word}"))
    });
    said.collect::<Vec<String>>().join(", ")
}
