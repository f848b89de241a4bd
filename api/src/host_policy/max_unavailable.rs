//! Nodes that a roll-out may change at once.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::name::is_not;
use crate::{Code, Problem};

const RULE: &str = "a number of nodes; write a count, as 3, or a percentage from 1% to 100%, as \"50%\"";

/// Number of nodes that a roll-out may change at once: a count (`3`) or a percentage (`"50%"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxUnavailable {
    /// This number of nodes.
    Count(u32),
    /// This percentage of the policy's nodes, rounded up.
    Percent(u8),
}

impl MaxUnavailable {
    /// Number of nodes out of `nodes`: at least 1.
    #[must_use]
    pub fn of(self, nodes: u64) -> u64 {
        let count = match self {
            Self::Count(count) => u64::from(count),
            Self::Percent(percent) => nodes.saturating_mul(u64::from(percent)).div_ceil(100),
        };
        count.max(1)
    }
}

impl Default for MaxUnavailable {
    fn default() -> Self {
        Self::Percent(50)
    }
}

impl fmt::Display for MaxUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl MaxUnavailable {
    fn count(count: u64) -> Result<Self, Problem> {
        match u32::try_from(count) {
            Ok(0) => Err(Problem::new(Code::InvalidField, "a roll-out changes at least 1 node at a time")),
            Ok(count) => Ok(Self::Count(count)),
            Err(_) => Err(is_not(&count.to_string(), RULE)),
        }
    }

    fn percentage(text: &str) -> Result<Self, Problem> {
        let digits = text.strip_suffix('%').filter(|digits| !digits.starts_with(['0', '+']));
        match digits.and_then(|digits| digits.parse::<u8>().ok()) {
            Some(percent) if percent <= 100 => Ok(Self::Percent(percent)),
            _ => Err(is_not(text, RULE)),
        }
    }
}

/// A count is a number in JSON, a percentage a string, as in Kubernetes.
impl Serialize for MaxUnavailable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u32(*count),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

struct NumberOrText;

impl Visitor<'_> for NumberOrText {
    type Value = MaxUnavailable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count or a percentage")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<MaxUnavailable, E> {
        MaxUnavailable::count(count).map_err(|problem| E::custom(problem.detail))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<MaxUnavailable, E> {
        MaxUnavailable::percentage(text).map_err(|problem| E::custom(problem.detail))
    }
}

impl<'de> Deserialize<'de> for MaxUnavailable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrText)
    }
}
