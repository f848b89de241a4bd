//! `POST /v1/transactions`: several changes in one step, all or none.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What shall happen, if everything is as it must be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TransactionRequest {
    /// What must be the case before the first step.
    #[serde(rename = "if", default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What shall happen, in this order.
    pub steps: Vec<TransactionStep>,
}

/// What must be the case with one resource: either that it doesn't exist, or that it is at a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TransactionCondition"))]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Where it is: `/v1/subnets/lan-12`.
    pub path: String,
    /// It doesn't exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<bool>,
    /// It is at this revision, as its `ETag` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// One change, as a request of its own would ask for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TransactionStep {
    /// What is done there.
    pub method: StepMethod,
    /// Where.
    pub path: String,
    /// The request's body, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Map<String, Value>>,
    /// The revision at which it must be, as its `ETag` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<String>,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum StepMethod {
    /// Creates or replaces.
    Put,
    /// Changes some fields.
    Patch,
    /// Creates, gives addresses, or takes them back.
    Post,
    /// Removes, or takes addresses back.
    Delete,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionAnswer<Body = Value> {
    /// What each step would have answered by itself.
    pub results: Vec<StepResult<Body>>,
    /// The state after it.
    pub revision: u64,
}

/// What a step would have answered by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepResult<Body = Value> {
    /// HTTP status.
    pub status: u16,
    /// The answer's body, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
}
