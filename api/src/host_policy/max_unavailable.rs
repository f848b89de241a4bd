//! Nodes that a roll-out may change at once.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::name::is_not;
use crate::{Code, Problem};

const RULE: &str = "a number of nodes; write a count, as 3, or a percentage, as 50%";

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

impl FromStr for MaxUnavailable {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (digits, is_percentage) = text.strip_suffix('%').map_or((text, false), |rest| (rest, true));
        // The parser of integers accepts a sign.
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(is_not(text, RULE));
        }
        let number: u32 = digits.parse().map_err(|_| is_not(text, RULE))?;
        match (number, is_percentage) {
            (0, _) => Err(Problem::new(Code::InvalidField, "a roll-out changes at least 1 node at a time")),
            (count, false) => Ok(Self::Count(count)),
            (percent, true) => match u8::try_from(percent) {
                Ok(percent) if percent <= 100 => Ok(Self::Percent(percent)),
                _ => Err(is_not(text, "a percentage from 1% to 100%")),
            },
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
        self.visit_str(&count.to_string())
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<MaxUnavailable, E> {
        self.visit_str(&count.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<MaxUnavailable, E> {
        text.parse().map_err(|problem: Problem| E::custom(problem.detail))
    }
}

impl<'de> Deserialize<'de> for MaxUnavailable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrText)
    }
}
