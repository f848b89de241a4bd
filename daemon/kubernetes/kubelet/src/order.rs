//! Orders and answers, as lines of JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One order. Its answer has the same id.
#[derive(Debug, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: u64,
    /// True if a failure is reported instead of being retried.
    #[serde(default)]
    pub(crate) once: bool,
    #[serde(flatten)]
    pub(crate) action: Action,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    /// Creates the pod's sandbox.
    Create(Pod),
    /// Stops and removes all sandboxes of the pod.
    Delete(Pod),
}

/// Part of a pod that a runtime gets.
#[derive(Debug, Deserialize)]
pub(crate) struct Pod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// Sandbox of a pod.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Created {
    /// Id of the sandbox; none after a deletion.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) sandbox: String,
    /// Addresses of the sandbox, as the runtime reports them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) addresses: Vec<String>,
    /// Process of the sandbox, in the runtime's process namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// Number of attempts until the success.
    pub(crate) attempts: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    id: u64,
    /// Time that the order took.
    milliseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    created: Created,
}

impl Answer {
    pub(crate) fn new(id: u64, result: anyhow::Result<Created>, took: Duration) -> Self {
        let milliseconds = took.as_secs_f64() * 1000.0;
        match result {
            Ok(created) => Self { id, milliseconds, error: None, created },
            Err(error) => {
                Self { id, milliseconds, error: Some(format!("{error:#}")), created: Created::default() }
            }
        }
    }
}
