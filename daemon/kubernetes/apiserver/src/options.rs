//! Options of writes, from the query and from the body of a deletion.

use serde_json::Value;

use crate::path::parameter;
use crate::status::Refusal;

/// Options of a write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// True if nothing is stored.
    pub(crate) is_dry_run: bool,
    /// True for a patch, whose refusals differ.
    pub(crate) is_patch: bool,
    pub(crate) validation: Validation,
    /// Warnings of the answer.
    pub(crate) warnings: Vec<String>,
}

/// Treatment of unknown fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Validation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl Options {
    /// Options of a query.
    ///
    /// # Errors
    /// 422 for an unknown value.
    pub(crate) fn of(query: &str) -> Result<Self, Refusal> {
        let validation = match parameter(query, "fieldValidation").as_deref() {
            Some("Ignore") => Validation::Ignore,
            None | Some("" | "Warn") => Validation::Warn,
            Some("Strict") => Validation::Strict,
            Some(other) => return Err(unsupported("fieldValidation", other)),
        };
        let is_dry_run = is_dry_run(parameter(query, "dryRun").as_deref())?;
        Ok(Self { is_dry_run, validation, ..Self::default() })
    }
}

/// Treatment of the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// Options of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deletion {
    pub(crate) grace_s: Option<u64>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) is_dry_run: bool,
    /// Uid that the object must have.
    pub(crate) uid: Option<String>,
    /// Resource version that the object must have.
    pub(crate) version: Option<String>,
}

impl Deletion {
    /// Options of a query and a body, of which the body counts first.
    ///
    /// # Errors
    /// 422 for an unknown value.
    pub(crate) fn of(query: &str, body: &Value) -> Result<Self, Refusal> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let propagation = text(&body["propagationPolicy"]).or_else(|| parameter(query, "propagationPolicy"));
        let propagation = match propagation.as_deref() {
            None => None,
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => return Err(unsupported("propagationPolicy", other)),
        };
        let grace_s = body["gracePeriodSeconds"].as_u64();
        let dry_run = text(&body["dryRun"][0]).or_else(|| parameter(query, "dryRun"));
        Ok(Self {
            grace_s: grace_s
                .or_else(|| parameter(query, "gracePeriodSeconds").and_then(|seconds| seconds.parse().ok())),
            propagation,
            is_dry_run: is_dry_run(dry_run.as_deref())?,
            uid: text(&body["preconditions"]["uid"]),
            version: text(&body["preconditions"]["resourceVersion"]),
        })
    }
}

fn is_dry_run(value: Option<&str>) -> Result<bool, Refusal> {
    match value {
        None | Some("") => Ok(false),
        Some("All") => Ok(true),
        Some(other) => Err(unsupported("dryRun", other)),
    }
}

fn unsupported(option: &str, value: &str) -> Refusal {
    Refusal::new(422, format!("{option}: Unsupported value: {value:?}"))
}
