//! Process of a history: a number, or the nemesis.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Logical client that has at most one operation at a time, or the nemesis.
///
/// A client whose operation ended as [`super::Type::Info`] continues under another number, as in Jepsen: the
/// operation may still take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Process {
    /// Client of a workload.
    Client(u64),
    /// Source of faults.
    Nemesis,
}

const NEMESIS: &str = "nemesis";

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(number) => number.fmt(f),
            Self::Nemesis => NEMESIS.fmt(f),
        }
    }
}

impl Serialize for Process {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Client(number) => serializer.serialize_u64(*number),
            Self::Nemesis => serializer.serialize_str(NEMESIS),
        }
    }
}

impl<'de> Deserialize<'de> for Process {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Shown {
            Number(u64),
            Name(String),
        }
        match Shown::deserialize(deserializer)? {
            Shown::Number(number) => Ok(Self::Client(number)),
            Shown::Name(name) if name == NEMESIS => Ok(Self::Nemesis),
            Shown::Name(name) => Err(de::Error::custom(format!("{name} is no process"))),
        }
    }
}
