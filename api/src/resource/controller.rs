//! Controllers of endpoints, and the policy for an endpoint's addresses after a scale-down.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::name::ObjectName;

/// Controller of endpoints in its realm and namespace: a `StatefulSet`, a `VirtualMachine`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Its API group without a version, such as `apps`; empty for the oldest one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its kind, such as `StatefulSet`.
    pub kind: String,
    /// Name of the controller.
    pub name: ObjectName,
    /// Uid of the incarnation in the external system.
    pub uid: Option<String>,
}

crate::named_enum! {
/// Policy for the addresses of a sticky endpoint that its controller no longer wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ScaleDown {
    /// The addresses become free.
    #[default]
    Release = "release",
    /// They wait for the endpoint, in case that it is wanted again.
    Keep = "keep",
}
}

impl ScaleDown {
    /// True if the policy is the default.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl std::str::FromStr for ScaleDown {
    type Err = crate::Problem;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| {
            crate::Problem::new(
                crate::Code::InvalidField,
                format!("{} is neither release nor keep", crate::name::shown(text)),
            )
        })
    }
}
