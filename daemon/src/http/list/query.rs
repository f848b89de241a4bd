//! Query parameters of a list, parsed strictly: unknown ones are refused.

use std::net::IpAddr;

use axum::extract::Query;
use axum::http::Uri;
use ipam_api::address::{AddressRange, parse_address, parse_cidr};
use ipam_api::limits::{LIST_PARAMETERS_MAX, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, TEXT_CHARS_MAX};
use ipam_api::name::shown;
use ipam_api::{Code, Problem, Selector, strict};
use ipam_machine::command::request_hash;

use super::cursor::Cursor;
use super::field::{Comparison, Field, Holds, Key};
use super::listed::Shape;
use crate::http::request::{Consistency, Freshness};

/// Parameters that every list has.
pub(super) const COMMON: [&str; 8] =
    ["limit", "cursor", "sort", "fields", "count", "q", "consistency", "at_least_revision"];

/// Query parameters of a list.
#[derive(Debug)]
pub(super) struct ListQuery {
    pub(super) limit: usize,
    pub(super) cursor: Option<Cursor>,
    pub(super) freshness: Freshness,
    pub(super) tests: Vec<Test>,
    /// Sort fields, each with true for descending order; empty for the list's own order.
    pub(super) sort: Vec<(&'static Field, bool)>,
    /// Fields to show; empty for all.
    pub(super) fields: Vec<String>,
    pub(super) count: bool,
    /// Hash of the list and of everything that determines its items and their order.
    pub(super) hash: u64,
}

/// Filter on items.
#[derive(Debug)]
pub(in crate::http) enum Test {
    /// Item whose field has one of these values.
    Is(&'static Field, Vec<Key>),
    Compares(&'static Field, Comparison, u64),
    Labelled(Selector),
    Contains(IpAddr),
    Within(AddressRange),
    /// Item with this text in any value or nested key, ignoring case.
    Says(String),
}

fn wrong(detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidFilter, detail)
}

impl ListQuery {
    pub(super) fn read(uri: &Uri, shape: &'static Shape) -> Result<Self, Problem> {
        let query = Query::<Vec<(String, String)>>::try_from_uri(uri);
        let Query(pairs) = query.map_err(|_| wrong("the query can't be read"))?;
        if pairs.len() > LIST_PARAMETERS_MAX {
            return Err(wrong(format!("the query has more than {LIST_PARAMETERS_MAX} parameters")));
        }
        let mut list = Self {
            limit: PAGE_ITEMS_DEFAULT,
            cursor: None,
            freshness: Freshness::default(),
            tests: Vec::new(),
            sort: Vec::new(),
            fields: Vec::new(),
            count: false,
            hash: hash(shape, &pairs),
        };
        for (at, (name, value)) in pairs.iter().enumerate() {
            let repeated = pairs.iter().take(at).any(|(before, _)| before == name);
            list.parameter(shape, name, value, repeated)?;
        }
        if list.cursor.is_some_and(|cursor| cursor.query != list.hash) {
            return Err(Problem::new(
                Code::InvalidCursor,
                "the cursor is of another list, or of other filters",
            )
            .help("Send it with the same parameters as the page before, or begin again without it."));
        }
        Ok(list)
    }

    fn parameter(
        &mut self,
        shape: &'static Shape,
        name: &str,
        value: &str,
        repeated: bool,
    ) -> Result<(), Problem> {
        if value.chars().count() > TEXT_CHARS_MAX {
            return Err(wrong(format!("the parameter {} is too long", shown(name))));
        }
        if repeated && !shape.fields().any(|field| field.name == name) {
            return Err(wrong(format!("the parameter {} is there twice", shown(name))));
        }
        match name {
            "limit" => self.limit = limit(value)?,
            "cursor" => self.cursor = Some(Cursor::decode(value)?),
            "consistency" => self.freshness.consistency = Some(consistency(value)?),
            "at_least_revision" => self.freshness.at_least_revision = Some(number(name, value)?),
            "count" => self.count = flag(name, value)?,
            "sort" => self.sort = sort(shape, value)?,
            "fields" => self.fields = fields(shape, value)?,
            "q" => self.tests.push(Test::Says(value.to_lowercase())),
            "labels" if shape.named => self.tests.push(Test::Labelled(value.parse()?)),
            "contains" if shape.addressed => {
                self.tests.push(Test::Contains(of_filter(name, parse_address(value))?))
            }
            "within" if shape.addressed => {
                self.tests.push(Test::Within(AddressRange::of_cidr(of_filter(name, parse_cidr(value))?)));
            }
            name => self.filter(shape, name, value)?,
        }
        Ok(())
    }

    /// `field=value` or `field.lt=value`.
    fn filter(&mut self, shape: &'static Shape, name: &str, value: &str) -> Result<(), Problem> {
        let named = |name: &str| shape.fields().find(|field| field.name == name);
        if let Some(field) = named(name) {
            let key = field.read(value)?;
            let same = self.tests.iter_mut().find_map(|test| match test {
                Test::Is(before, keys) if before.name == field.name => Some(keys),
                _ => None,
            });
            match same {
                Some(keys) => keys.push(key),
                None => self.tests.push(Test::Is(field, vec![key])),
            }
            return Ok(());
        }
        let compared =
            name.rsplit_once('.').and_then(|(name, than)| Some((named(name)?, Comparison::named(than)?)));
        match compared {
            Some((field, than)) if field.holds == Holds::Number => {
                self.tests.push(Test::Compares(field, than, number(name, value)?));
                Ok(())
            }
            Some((field, _)) => Err(wrong(format!("{} is not a number and cannot be compared", field.name))),
            None => Err(unknown(name, shape)),
        }
    }
}

/// Turns an invalid field value into an invalid filter.
fn of_filter<T>(name: &str, read: Result<T, Problem>) -> Result<T, Problem> {
    read.map_err(|problem| match problem.code {
        Code::InvalidField => wrong(format!("{name}: {}", problem.detail)),
        _ => problem,
    })
}

fn unknown(name: &str, shape: &Shape) -> Problem {
    let known = shape.parameters();
    // The suggestion is a parameter name, also for a misspelt comparison such as `sise.lt`.
    let near = strict::nearest(name, known.iter().copied());
    match near {
        Some(near) => wrong(format!("unknown parameter {}; did you mean \"{near}\"?", shown(name))),
        None => wrong(format!("unknown parameter {}", shown(name)))
            .help(format!("The parameters of this list are {}.", known.join(", "))),
    }
}

fn limit(value: &str) -> Result<usize, Problem> {
    match value.parse() {
        Ok(limit) if (1..=PAGE_ITEMS_MAX).contains(&limit) => Ok(limit),
        _ => Err(wrong(format!("limit is {} and must be 1 to {PAGE_ITEMS_MAX}", shown(value)))),
    }
}

fn number(name: &str, value: &str) -> Result<u64, Problem> {
    value.parse().map_err(|_| wrong(format!("{} must be a number, not {}", shown(name), shown(value))))
}

fn flag(name: &str, value: &str) -> Result<bool, Problem> {
    value.parse().map_err(|_| wrong(format!("{name} must be true or false, not {}", shown(value))))
}

fn consistency(value: &str) -> Result<Consistency, Problem> {
    match value {
        "linearizable" => Ok(Consistency::Linearizable),
        "stale" => Ok(Consistency::Stale),
        other => Err(wrong(format!("consistency is linearizable or stale, not {}", shown(other)))),
    }
}

fn sort(shape: &'static Shape, value: &str) -> Result<Vec<(&'static Field, bool)>, Problem> {
    let by = |word: &str| {
        let (name, backwards) = word.strip_prefix('-').map_or((word, false), |name| (name, true));
        let field = shape.fields().find(|field| field.name == name || field.path == name);
        let known = shape.fields().map(|field| field.name);
        field.map(|field| (field, backwards)).ok_or_else(|| not_there("sort by", name, known))
    };
    value.split(',').map(by).collect()
}

fn fields(shape: &'static Shape, value: &str) -> Result<Vec<String>, Problem> {
    let shows = |path: &str| {
        let labels = ["labels.", "annotations."];
        let label =
            shape.named && labels.iter().any(|prefix| path.len() > prefix.len() && path.starts_with(prefix));
        match label || shape.shown().any(|known| known == path) {
            true => Ok(path.to_owned()),
            false => Err(not_there("show", path, shape.shown())),
        }
    };
    value.split(',').map(shows).collect()
}

fn not_there(what: &str, name: &str, known: impl Iterator<Item = &'static str> + Clone) -> Problem {
    match strict::nearest(name, known.clone()) {
        Some(near) => wrong(format!("cannot {what} {}; did you mean \"{near}\"?", shown(name))),
        None => wrong(format!("cannot {what} {}", shown(name)))
            .help(format!("Use one of: {}.", known.collect::<Vec<_>>().join(", "))),
    }
}

/// Hash of a list and its query without page size and consistency; equal for all pages of the list.
fn hash(shape: &Shape, pairs: &[(String, String)]) -> u64 {
    let apart = ["cursor", "limit", "consistency", "at_least_revision"];
    let mut parts: Vec<&[u8]> = vec![shape.path.as_bytes()];
    for (name, value) in pairs.iter().filter(|(name, _)| !apart.contains(&name.as_str())) {
        parts.extend([name.as_bytes(), value.as_bytes()]);
    }
    let hash = request_hash(&parts).to_be_bytes();
    hash.first_chunk().copied().map_or(0, u64::from_be_bytes)
}
