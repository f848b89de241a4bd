//! Evaluation of filters on an item.

use std::net::IpAddr;

use ipam_api::RangeSet;
use ipam_api::address::{Family, number};
use serde_json::Value;

use super::field::Key;
use super::listed::Listable;
use super::query::Test;

impl Test {
    /// True if the filter needs the item as JSON.
    pub(super) fn needs_json(&self) -> bool {
        matches!(self, Test::Is(..) | Test::Compares(..) | Test::Says(_))
    }

    /// Permitted texts of a field, if the filter restricts it.
    pub(in crate::http) fn texts(&self, name: &str) -> Option<Vec<&str>> {
        match self {
            Test::Is(field, keys) if field.name == name => Some(keys.iter().filter_map(Key::text).collect()),
            _ => None,
        }
    }

    /// Permitted numbers of a field, if the filter restricts it.
    pub(in crate::http) fn numbers(&self, name: &str) -> Option<Vec<u64>> {
        let number = |key: &Key| match key {
            Key::Number(number) => Some(*number),
            _ => None,
        };
        match self {
            Test::Is(field, keys) if field.name == name => Some(keys.iter().filter_map(number).collect()),
            _ => None,
        }
    }

    /// The only permitted address, if the filter has one.
    pub(in crate::http) fn address(&self) -> Option<IpAddr> {
        match self {
            Test::Contains(address) => Some(*address),
            Test::Is(_, keys) => match keys.as_slice() {
                [Key::Address(address, _)] => Some(*address),
                _ => None,
            },
            _ => None,
        }
    }

    pub(in crate::http) fn fits<L: Listable>(&self, item: &L::Item, json: &Value) -> bool {
        match self {
            Test::Is(field, wanted) => {
                let value = field.of(json);
                wanted.iter().any(|wanted| value.is(wanted))
            }
            Test::Compares(field, than, limit) => than.holds(&field.of(json), *limit),
            Test::Labelled(selector) => {
                let labels = L::labels(item);
                selector.fits(|key| labels?.get(key).map(String::as_str))
            }
            Test::Contains(address) => L::ranges(item).iter().any(|range| {
                range.family() == Family::of(*address)
                    && (range.first()..=range.last()).contains(&number(*address))
            }),
            Test::Within(outer) => {
                let ranges = L::ranges(item);
                !ranges.is_empty() && ranges.iter().all(|range| outer.contains(range))
            }
            Test::Says(text) => says(json, text, true),
        }
    }
}

/// True if the item contains the text in a value or in a nested key, such as that of a label. The top-level
/// objects `meta` and `status` are excluded.
fn says(value: &Value, text: &str, top: bool) -> bool {
    match value {
        Value::String(value) => value.to_lowercase().contains(text),
        Value::Array(items) => items.iter().any(|item| says(item, text, false)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| !top || !matches!(key.as_str(), "meta" | "status"))
            .any(|(key, value)| (!top && key.to_lowercase().contains(text)) || says(value, text, false)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Subtracts the excluded ranges. All ranges have one family.
pub(in crate::http) fn without(
    ranges: &[ipam_api::AddressRange],
    exclude: &[ipam_api::AddressRange],
) -> Vec<ipam_api::AddressRange> {
    let Some(family) = ranges.first().map(ipam_api::AddressRange::family) else { return Vec::new() };
    RangeSet::new(family, ranges).minus(&RangeSet::new(family, exclude)).ranges().collect()
}
