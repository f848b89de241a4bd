//! Differences between two states of a resource, as data and as text.

use ipam_api::{AddressRange, Family, RangeSet};
use serde_json::{Map, Value};

use crate::output::text;

/// One field that differs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub(crate) field: String,
    pub(crate) from: Value,
    pub(crate) to: Value,
}

/// The fields in which two states differ, by name.
pub(crate) fn between(old: &Map<String, Value>, new: &Map<String, Value>) -> Vec<Difference> {
    let mut fields: Vec<&String> = old.keys().chain(new.keys()).collect();
    fields.sort();
    fields.dedup();
    let value = |state: &Map<String, Value>, field: &str| state.get(field).cloned().unwrap_or_default();
    fields
        .into_iter()
        .map(|field| Difference { field: field.clone(), from: value(old, field), to: value(new, field) })
        .filter(|found| found.from != found.to)
        .collect()
}

/// Merge patch (RFC 7396) from one state to another.
pub(crate) fn patch(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let changed = between(old, new).into_iter().map(|found| match (found.from, found.to) {
        (Value::Object(from), Value::Object(to)) => (found.field, Value::Object(patch(&from, &to))),
        (_, to) => (found.field, to),
    });
    changed.collect()
}

/// One line per field.
pub(crate) fn lines(differences: &[Difference]) -> Vec<String> {
    let wide = differences.iter().map(|found| found.field.len()).max().unwrap_or_default();
    differences.iter().map(|found| line(found, wide)).collect()
}

fn line(found: &Difference, wide: usize) -> String {
    let line = format!("{:<wide$}   {} → {}", found.field, shown(&found.from), shown(&found.to));
    if found.field != "ranges" {
        return line;
    }
    match [&found.from, &found.to].map(|value| size(&ranges(Some(value)))) {
        // No ranges means the whole subnet, whose size is unknown here.
        [0, _] | [_, 0] => line,
        [from, to] if to > from => format!("{line}   (+{} addresses)", text::size(to - from)),
        [from, to] if to < from => format!("{line}   (-{} addresses)", text::size(from - to)),
        _ => line,
    }
}

/// A field of ranges.
pub(crate) fn ranges(field: Option<&Value>) -> Vec<AddressRange> {
    let texts = field.and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(|text| text.as_str()?.parse().ok()).collect()
}

/// Number of addresses in ranges, such as `200 addresses`.
pub(crate) fn addresses(list: &[AddressRange]) -> String {
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

/// Value on one line.
pub(crate) fn shown(value: &Value) -> String {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_patch_names_what_changes_and_nothing_else() {
        let old =
            object(json!({"name": "web", "vlan": 7, "labels": {"team": "web", "old": "x"}, "list": [1, 2]}));
        let new =
            object(json!({"name": "web", "labels": {"team": "db", "new": "y"}, "list": [2], "dns": {}}));
        let expected =
            json!({"vlan": null, "labels": {"team": "db", "old": null, "new": "y"}, "list": [2], "dns": {}});
        assert_eq!(Value::Object(patch(&old, &new)), expected);
        assert!(patch(&old, &old).is_empty());
    }

    #[test]
    fn differences_read_as_what_was_and_what_is() {
        let old = object(json!({"ranges": ["10.0.0.1-10.0.0.9"], "labels": {"a": "b"}, "gateway": null}));
        let new = object(json!({"ranges": ["10.0.0.1-10.0.0.4"], "labels": {}, "gateway": "10.0.0.254"}));
        assert_eq!(
            lines(&between(&old, &new)),
            [
                "gateway   - → 10.0.0.254",
                "labels    a=b → -",
                "ranges    10.0.0.1-10.0.0.9 → 10.0.0.1-10.0.0.4   (-5 addresses)"
            ]
        );
    }
}
