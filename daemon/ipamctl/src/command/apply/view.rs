//! How a plan looks.

use serde_json::{Value, json};

use super::kind::{Intention, Kind};
use super::plan::{Change, Plan};
use crate::output::diff::{self, addresses, ranges, shown};
use crate::output::text;

/// One line a change, and one for each further field that differs.
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
    let (mark, kind, name) = match change {
        Change::Create(document) => ("+", document.kind, &document.name),
        Change::Update { document, .. } => ("~", document.kind, &document.name),
        Change::Delete(current) | Change::Drain(current) => ("-", current.kind, &current.name),
        Change::Keep(current) => ("!", current.kind, &current.name),
    };
    format!("{mark} {} {name}", kind.word())
}

fn details(change: &Change) -> Vec<String> {
    match change {
        Change::Create(document) => vec![created(document.kind, &document.intention)],
        Change::Update { differences, .. } => diff::lines(differences),
        Change::Delete(_) => vec!["deleted: not in these files".to_owned()],
        Change::Drain(current) => vec![format!(
            "not in these files; {} in use, so it drains: nothing more is given, and it goes with the last",
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

fn created(kind: Kind, intention: &Intention) -> String {
    let field = |name: &str| intention.get(name).map(shown).unwrap_or_default();
    match kind {
        Kind::Network => field("description"),
        Kind::Node => field("labels"),
        Kind::Namespace => [field("labels"), field("default_ipv4_pools"), field("default_ipv6_pools")]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(", "),
        Kind::Subnet => format!("{}, network {}", field("cidr"), field("network")),
        Kind::Pool => match ranges(intention.get("ranges")) {
            given if given.is_empty() => format!("all of subnet {}", field("subnet")),
            given => format!("subnet {}, {}", field("subnet"), addresses(&given)),
        },
        Kind::Reservation => addresses(&ranges(intention.get("addresses"))),
    }
}

/// The plan for programs.
pub(super) fn json(plan: &Plan) -> Value {
    let changes: Vec<Value> = plan
        .0
        .iter()
        .map(|change| match change {
            Change::Create(document) => {
                json!({"action": "create", "kind": document.kind.word(), "name": document.name})
            }
            Change::Update { document, differences, .. } => {
                let fields: Vec<Value> = differences
                    .iter()
                    .map(|found| json!({"field": found.field, "from": found.from, "to": found.to}))
                    .collect();
                json!({"action": "change", "kind": document.kind.word(), "name": document.name, "fields": fields})
            }
            Change::Delete(current) => {
                json!({"action": "delete", "kind": current.kind.word(), "name": current.name})
            }
            Change::Drain(current) => {
                json!({"action": "drain", "kind": current.kind.word(), "name": current.name, "held": current.held})
            }
            Change::Keep(current) => {
                json!({"action": "keep", "kind": current.kind.word(), "name": current.name, "held": current.held})
            }
        })
        .collect();
    json!({"changes": changes})
}

/// `2 created, 1 changed`.
pub(super) fn counts(plan: &Plan) -> String {
    let number = |of: fn(&Change) -> bool| plan.0.iter().filter(|change| of(change)).count();
    let words = [
        (number(|change| matches!(change, Change::Create(_))), "created"),
        (number(|change| matches!(change, Change::Update { .. })), "changed"),
        (number(|change| matches!(change, Change::Delete(_))), "deleted"),
        (number(|change| matches!(change, Change::Drain(_))), "draining"),
    ];
    let said: Vec<String> = words
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    said.join(", ")
}
