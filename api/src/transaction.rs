//! `POST /v1/transactions`: several changes in one step, all or none.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

/// Steps that are carried out if all conditions hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TransactionRequest {
    /// Preconditions, checked before the first step.
    #[serde(rename = "if", default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Steps, in order.
    pub steps: Vec<TransactionStep>,
}

/// Precondition of one resource: that it doesn't exist, or that it is at a revision.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TransactionCondition"))]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Path of the resource: `/v1/subnets/lan-12`.
    pub path: String,
    /// Requires that the resource doesn't exist.
    pub absent: Option<bool>,
    /// Requires this revision, as in the resource's `ETag`.
    pub revision: Option<String>,
}

/// One change, equivalent to a request of its own.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TransactionStep {
    /// HTTP method of the step.
    pub method: StepMethod,
    /// Path of the step.
    pub path: String,
    /// The request's body, if it has one.
    pub body: Option<Map<String, Value>>,
    /// Required revision, as in the resource's `ETag`.
    pub if_match: Option<String>,
}

/// HTTP method of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum StepMethod {
    /// Creates or replaces.
    Put,
    /// Changes some fields.
    Patch,
    /// Creates, allocates or releases.
    Post,
    /// Removes, or takes addresses back.
    Delete,
}

/// Response to a transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionAnswer<Body = Value> {
    /// Response to each step.
    pub results: Vec<StepResult<Body>>,
    /// Revision after the transaction.
    pub revision: u64,
}

/// Response to one step.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepResult<Body = Value> {
    /// HTTP status.
    pub status: u16,
    /// The answer's body, if it has one.
    pub body: Option<Body>,
}
