//! Fields that lists are filtered and sorted by: a closed list per kind.

use std::cmp::Ordering;
use std::net::IpAddr;

use ipam_api::address::{canonical_mac, parse_address};
use ipam_api::name::shown;
use ipam_api::resource::EndpointKey;
use ipam_api::{Code, Problem};
use ipnet::IpNet;
use serde_json::Value;

/// Type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Holds {
    Text,
    Number,
    Flag,
    /// An address, with or without a prefix length.
    Address,
    /// A hardware address, however it is written.
    Mac,
    /// Key of an endpoint.
    Endpoint,
}

/// A field that a list can be filtered and sorted by.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Field {
    /// Name in queries.
    pub(crate) name: &'static str,
    /// Path of the field in an item, with dots.
    pub(crate) path: &'static str,
    pub(in crate::http) holds: Holds,
}

/// A row of the table of an item's parts.
#[derive(Debug)]
pub(in crate::http) enum Row {
    /// Field that can also be selected for the response.
    Both(Field),
    /// Field that can't be selected for the response.
    Unshown(Field),
    /// Paths that can be selected for the response, but are not filters or sort keys.
    ShownOnly(&'static [&'static str]),
}

impl Row {
    pub(in crate::http) const fn text(name: &'static str, path: &'static str) -> Self {
        Self::of(Holds::Text, name, path)
    }

    pub(in crate::http) const fn number(name: &'static str, path: &'static str) -> Self {
        Self::of(Holds::Number, name, path)
    }

    pub(in crate::http) const fn flag(name: &'static str, path: &'static str) -> Self {
        Self::of(Holds::Flag, name, path)
    }

    pub(in crate::http) const fn address(name: &'static str, path: &'static str) -> Self {
        Self::of(Holds::Address, name, path)
    }

    pub(in crate::http) const fn of(holds: Holds, name: &'static str, path: &'static str) -> Self {
        Self::Both(Field { name, path, holds })
    }

    /// Excludes the field from selection: another row covers it, or it is not selectable.
    pub(in crate::http) const fn unshown(self) -> Self {
        match self {
            Self::Both(field) => Self::Unshown(field),
            other => other,
        }
    }

    pub(in crate::http) const fn shown(paths: &'static [&'static str]) -> Self {
        Self::ShownOnly(paths)
    }

    /// The field that lists are filtered and sorted by.
    pub(super) fn field(&self) -> Option<&Field> {
        match self {
            Self::Both(field) | Self::Unshown(field) => Some(field),
            Self::ShownOnly(_) => None,
        }
    }

    /// Paths that can be selected for the response.
    pub(super) fn paths(&'static self) -> &'static [&'static str] {
        match self {
            Self::Both(field) => std::slice::from_ref(&field.path),
            Self::Unshown(_) => &[],
            Self::ShownOnly(paths) => paths,
        }
    }
}

impl Holds {
    /// The kind of the query parameter that is compared with it.
    pub(in crate::http) fn kind(self) -> &'static str {
        match self {
            Holds::Number => "number",
            Holds::Flag => "boolean",
            Holds::Text | Holds::Mac => "text",
            Holds::Address => "address or CIDR",
            Holds::Endpoint => "endpoint",
        }
    }
}

impl Field {
    /// Parses a filter value of the field.
    pub(super) fn read(&self, text: &str) -> Result<Key, Problem> {
        let key = match self.holds {
            Holds::Text => Some(Key::Text(text.to_owned())),
            Holds::Number => text.parse().ok().map(Key::Number),
            Holds::Flag => text.parse().ok().map(Key::Flag),
            Holds::Address => address(text),
            Holds::Mac => Some(Key::Text(canonical_mac(text))),
            Holds::Endpoint => text.parse::<EndpointKey>().ok().map(|key| Key::Text(key.to_string())),
        };
        let what = match self.holds {
            Holds::Text => "text",
            Holds::Number => "a number",
            Holds::Flag => "true or false",
            Holds::Address => "an address or CIDR",
            Holds::Mac => "a hardware address",
            Holds::Endpoint => "an endpoint, such as host/db-07",
        };
        key.ok_or_else(|| {
            let detail = format!("{} must be {what}, not {}", self.name, shown(text));
            Problem::new(Code::InvalidFilter, detail)
        })
    }

    /// Sort key of an item.
    pub(super) fn of(&self, item: &Value) -> Key {
        let Some(value) = self.path.split('.').try_fold(item, step) else { return Key::Nothing };
        match (self.holds, value) {
            (_, Value::Null) => Key::Nothing,
            (Holds::Address, Value::String(text)) => address(text).unwrap_or(Key::Nothing),
            (Holds::Endpoint, value) => serde_json::from_value::<EndpointKey>(value.clone())
                .map_or(Key::Nothing, |key| Key::Text(key.to_string())),
            (_, Value::String(text)) => Key::Text(text.clone()),
            (_, Value::Number(number)) => number.as_u64().map_or(Key::Nothing, Key::Number),
            (_, Value::Bool(flag)) => Key::Flag(*flag),
            (_, Value::Array(_) | Value::Object(_)) => Key::Nothing,
        }
    }
}

/// Follows one segment of a path. Elements of a list are numbered from 0.
fn step<'a>(value: &'a Value, segment: &str) -> Option<&'a Value> {
    match value {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        value => value.get(segment),
    }
}

fn address(text: &str) -> Option<Key> {
    match text.split_once('/') {
        Some(_) => {
            let net: IpNet = text.parse().ok()?;
            Some(Key::Address(net.addr(), Some(net.prefix_len())))
        }
        None => parse_address(text).ok().map(|address| Key::Address(address, None)),
    }
}

/// Comparable value of a field. `Nothing` sorts first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::http) enum Key {
    Nothing,
    Flag(bool),
    Number(u64),
    Text(String),
    Address(IpAddr, Option<u8>),
}

impl Key {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Key::Text(text) => Some(text),
            _ => None,
        }
    }

    /// True if the value equals `wanted`. An address without prefix length matches any length.
    pub(super) fn is(&self, wanted: &Key) -> bool {
        match (self, wanted) {
            (Key::Address(one, _), Key::Address(other, None)) => one == other,
            _ => self == wanted,
        }
    }
}

/// A comparison with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    pub(super) fn named(word: &str) -> Option<Self> {
        match word {
            "lt" => Some(Comparison::Less),
            "le" => Some(Comparison::LessOrEqual),
            "gt" => Some(Comparison::Greater),
            "ge" => Some(Comparison::GreaterOrEqual),
            _ => None,
        }
    }

    pub(super) fn holds(self, value: &Key, limit: u64) -> bool {
        let Key::Number(number) = value else { return false };
        match number.cmp(&limit) {
            Ordering::Less => matches!(self, Comparison::Less | Comparison::LessOrEqual),
            Ordering::Equal => matches!(self, Comparison::LessOrEqual | Comparison::GreaterOrEqual),
            Ordering::Greater => matches!(self, Comparison::Greater | Comparison::GreaterOrEqual),
        }
    }
}
