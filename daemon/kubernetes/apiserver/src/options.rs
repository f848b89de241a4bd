//! Options of writes, from the query and from the body of a deletion.

use serde_json::Value;

use crate::patch::Format;
use crate::path::parameter;
use crate::status::Refusal;

/// Options of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// True if nothing is stored.
    pub(crate) is_dry_run: bool,
    /// True for a patch, whose refusals differ.
    pub(crate) is_patch: bool,
    /// True for an apply, which has set the managers of fields.
    pub(crate) is_apply: bool,
    /// Manager of the fields that are written.
    pub(crate) manager: String,
    /// True if an apply takes the fields of other managers.
    pub(crate) force: bool,
    pub(crate) validation: Validation,
    /// Warnings of the answer.
    pub(crate) warnings: Vec<String>,
}

/// Treatment of unknown fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validation {
    Ignore,
    Warn,
    Strict,
}

impl Options {
    /// Options of a query. The client's name is the manager of a write that names none.
    ///
    /// # Errors
    /// 422 for an unknown value, and for an apply without a manager.
    pub(crate) fn of(query: &str, client: &str, format: Option<Format>) -> Result<Self, Refusal> {
        let validation = match parameter(query, "fieldValidation").as_deref() {
            Some("Ignore") => Validation::Ignore,
            None | Some("" | "Warn") => Validation::Warn,
            Some("Strict") => Validation::Strict,
            Some(other) => return Err(unsupported("fieldValidation", other)),
        };
        let is_dry_run = is_dry_run(parameter(query, "dryRun").as_deref())?;
        let named = parameter(query, "fieldManager").filter(|name| !name.is_empty());
        let force = parameter(query, "force");
        let is_apply = format == Some(Format::Apply);
        if is_apply && named.is_none() {
            return Err(Refusal::new(422, "fieldManager: Required value: is required for apply patch"));
        }
        if !is_apply && format.is_some() && force.is_some() {
            return Err(Refusal::new(422, "force: Forbidden: may not be specified for non-apply patch"));
        }
        Ok(Self {
            is_dry_run,
            is_patch: format.is_some(),
            is_apply,
            manager: named.unwrap_or_else(|| client.split('/').next().unwrap_or_default().to_owned()),
            force: force.as_deref() == Some("true"),
            validation,
            warnings: Vec::new(),
        })
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
    /// Options of a query and a body. An option of the body overrides that of the query.
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
