//! Query parameters, read strictly.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use ipam_api::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};
use ipam_api::name::Name;
use ipam_api::{Code, Problem};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::reply::Refused;

/// How fresh an answer must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Consistency {
    /// As of now, or later.
    #[default]
    Linearizable,
    /// As this member has it.
    Stale,
}

/// Parameters of a read.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadQuery {
    #[serde(default)]
    pub(super) consistency: Consistency,
}

/// Parameters of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    #[serde(default)]
    pub(super) consistency: Consistency,
    pub(super) limit: Option<usize>,
    pub(super) cursor: Option<String>,
}

impl ListQuery {
    pub(super) fn limit(&self) -> Result<usize, Problem> {
        match self.limit {
            None => Ok(PAGE_ITEMS_DEFAULT),
            Some(limit) if (1..=PAGE_ITEMS_MAX).contains(&limit) => Ok(limit),
            Some(limit) => Err(Problem::new(
                Code::InvalidFilter,
                format!("limit is {limit} and must be 1 to {PAGE_ITEMS_MAX}"),
            )),
        }
    }

    /// The cursor, read as the key behind which the page begins.
    pub(super) fn after<T: std::str::FromStr>(&self) -> Result<Option<T>, Problem> {
        let read = |cursor: &String| {
            cursor.parse().map_err(|_| Problem::new(Code::InvalidCursor, "the cursor is not one of ours"))
        };
        self.cursor.as_ref().map(read).transpose()
    }
}

/// Parameters of a removal.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteQuery {
    #[serde(default)]
    pub(super) drain: bool,
}

/// Parameters of a look at one address.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddressQuery {
    #[serde(default)]
    pub(super) consistency: Consistency,
    #[serde(default = "Name::default_name")]
    pub(super) network: Name,
}

/// No parameters at all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoQuery {}

/// A query, or the problem with it.
#[derive(Debug)]
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        Query::<T>::try_from_uri(&parts.uri)
            .map(|Query(query)| Self(query))
            .map_err(|error| Refused(Problem::new(Code::InvalidFilter, error.body_text())))
    }
}
