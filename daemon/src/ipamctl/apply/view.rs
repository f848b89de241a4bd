//! How a plan looks.

use ipam_api::{AddressRange, Family, RangeSet};
use serde_json::{Value, json};

use super::kind::{Intention, Kind};
use super::plan::{Change, Difference, Plan, ranges};
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
        Change::Update { differences, .. } => {
            let wide = differences.iter().map(|found| found.field.len()).max().unwrap_or_default();
            differences.iter().map(|found| differs(found, wide)).collect()
        }
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
        Kind::Subnet => format!("{}, network {}", field("cidr"), field("network")),
        Kind::Pool => match ranges(intention, "ranges") {
            given if given.is_empty() => format!("all of subnet {}", field("subnet")),
            given => format!("subnet {}, {}", field("subnet"), addresses(&given)),
        },
        Kind::Reservation => addresses(&ranges(intention, "addresses")),
    }
}

fn differs(found: &Difference, wide: usize) -> String {
    let line = format!("{:<wide$}   {} → {}", found.field, shown(&found.from), shown(&found.to));
    if found.field != "ranges" {
        return line;
    }
    let sizes = [&found.from, &found.to].map(|value| {
        let texts = value.as_array().into_iter().flatten();
        let list: Vec<AddressRange> = texts.filter_map(|text| text.as_str()?.parse().ok()).collect();
        size(&list)
    });
    match sizes {
        // No ranges means all of the subnet, whose size isn't said here.
        [0, _] | [_, 0] => line,
        [from, to] if to > from => format!("{line}   (+{} addresses)", text::size(to - from)),
        [from, to] if to < from => format!("{line}   (-{} addresses)", text::size(from - to)),
        _ => line,
    }
}

fn addresses(list: &[AddressRange]) -> String {
    match size(list) {
        1 => "1 address".to_owned(),
        number => format!("{} addresses", text::size(number)),
    }
}

fn size(list: &[AddressRange]) -> u128 {
    [Family::V4, Family::V6].into_iter().fold(0_u128, |sum, family| {
        let of_family = list.iter().filter(|range| range.family() == family);
        sum.saturating_add(RangeSet::new(family, of_family).size())
    })
}

/// A value in a line.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(word) => text::dash(word),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            text::joined(items.iter().filter_map(Value::as_str))
        }
        Value::Object(fields) if fields.values().all(Value::is_string) => text::joined(
            fields.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())),
        ),
        other => other.to_string(),
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
