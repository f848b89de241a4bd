//! Query parameters, read strictly.

use std::fmt::Display;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use ipam_api::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX, TEXT_CHARS_MAX};
use ipam_api::name::{Name, shown};
use ipam_api::{Code, Problem, strict};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::response::ApiError;

/// Consistency of a read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::http) enum Consistency {
    /// Present state or a later one.
    #[default]
    Linearizable,
    /// State of this member, which may be outdated.
    Stale,
}

/// Requested consistency, if any.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::http) struct Freshness {
    pub(in crate::http) consistency: Option<Consistency>,
    /// Minimum revision. Without `consistency`, this member's state suffices once it has reached it.
    pub(in crate::http) at_least_revision: Option<u64>,
}

impl From<Consistency> for Freshness {
    fn from(consistency: Consistency) -> Self {
        Self { consistency: Some(consistency), at_least_revision: None }
    }
}

impl From<(Option<Consistency>, Option<u64>)> for Freshness {
    fn from((consistency, at_least_revision): (Option<Consistency>, Option<u64>)) -> Self {
        Self { consistency, at_least_revision }
    }
}

/// Parameters of a read.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ReadQuery {
    consistency: Option<Consistency>,
    at_least_revision: Option<u64>,
}

impl From<ReadQuery> for Freshness {
    fn from(ReadQuery { consistency, at_least_revision }: ReadQuery) -> Self {
        Self { consistency, at_least_revision }
    }
}

/// Common parameters of all writes.
#[derive(Debug, Default, Deserialize)]
pub(in crate::http) struct WriteQuery {
    /// True for a dry run.
    #[serde(default)]
    pub(in crate::http) dry_run: bool,
    /// True to change the resource despite its manager.
    #[serde(default)]
    pub(in crate::http) take_over: bool,
    /// Manager in whose name the resource is changed.
    pub(in crate::http) manager: Option<String>,
}

impl WriteQuery {
    pub(in crate::http) const NAMES: [&str; 3] = ["dry_run", "take_over", "manager"];

    /// Reads the common parameters; all others are left to [`Asked`].
    pub(in crate::http) fn of(uri: &Uri) -> Result<Self, Problem> {
        let query = parts(uri, |name| Self::NAMES.contains(&name));
        let query: Self = read(&query)?;
        let manager = query.manager.as_deref().unwrap_or("-");
        if manager.is_empty()
            || manager.chars().count() > TEXT_CHARS_MAX
            || manager.contains(char::is_control)
        {
            return Err(Problem::new(
                Code::InvalidFilter,
                "the parameter manager is empty, too long or has control characters",
            ));
        }
        Ok(query)
    }
}

/// Parts of a query with matching names, unchanged.
fn parts(uri: &Uri, wanted: impl Fn(&str) -> bool) -> String {
    let parts = uri.query().unwrap_or_default().split('&');
    let wanted = parts.filter(|part| wanted(part.split('=').next().unwrap_or_default()));
    wanted.collect::<Vec<_>>().join("&")
}

fn read<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let uri = format!("/?{query}").parse::<Uri>();
    let uri = uri.map_err(|_| Problem::new(Code::InvalidFilter, "the query can't be read"))?;
    Query::<T>::try_from_uri(&uri).map(|Query(query)| query).map_err(|error| {
        let text = error.body_text();
        let text = text.rsplit_once("query string: ").map_or(text.as_str(), |(_, text)| text);
        // serde may put the path of the parameter before the message.
        let unknown = text.find("unknown field `").and_then(|at| text.get(at..));
        let known = unknown.and_then(|text| strict::unknown_word(text, Code::InvalidFilter, "parameter"));
        known.map_or_else(|| Problem::new(Code::InvalidFilter, text), |(_, problem)| problem)
    })
}

/// Reads the number of items of a page from the parameter `limit`.
pub(in crate::http) fn page_limit(limit: Option<usize>) -> Result<usize, Problem> {
    match limit.unwrap_or(PAGE_ITEMS_DEFAULT) {
        limit if (1..=PAGE_ITEMS_MAX).contains(&limit) => Ok(limit),
        limit => {
            let detail = format!("limit is {limit} and must be 1 to {PAGE_ITEMS_MAX}");
            Err(Problem::new(Code::InvalidFilter, detail))
        }
    }
}

/// Reads a name in a path. An invalid name is `not-found`, since no resource can have it.
pub(in crate::http) fn in_path<T>(
    what: impl Display,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, Problem>,
) -> Result<T, Problem> {
    read(name).map_err(|problem| {
        let detail = format!("no {what} can be called {}: {}", shown(name), problem.detail);
        Problem::new(Code::NotFound, detail)
    })
}

/// Parameters of a removal.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct DeleteQuery {
    #[serde(default)]
    pub(in crate::http) drain: bool,
}

/// Parameters of an explanation.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ExplainQuery {
    /// Names all pools that are skipped, and not only the first for each reason.
    #[serde(default)]
    pub(in crate::http) all_skipped: bool,
}

/// Parameters of `/v1/addresses/{ip}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct AddressQuery {
    #[serde(default)]
    pub(in crate::http) consistency: Consistency,
    #[serde(default = "Name::default_name")]
    pub(in crate::http) network: Name,
}

/// No parameters at all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct NoQuery {}

/// Extractor of a strictly parsed query.
#[derive(Debug)]
pub(in crate::http) struct Asked<T>(pub(in crate::http) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // `Write` reads the common parameters of writes.
        let of_writes = |name: &str| parts.method != Method::GET && WriteQuery::NAMES.contains(&name);
        let query = super::query::parts(&parts.uri, |name| !of_writes(name));
        read(&query).map(Self).map_err(ApiError)
    }
}
