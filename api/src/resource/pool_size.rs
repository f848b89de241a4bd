//! Size of an automatic pool.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::AUTOMATIC_POOL_ADDRESSES_MAX;
use crate::name::is_not;
use crate::{Code, Problem};

const HELP: &str = "Write how many, as 5, or how many more than replicas, as +2.";

/// Number of an automatic pool's addresses: fixed (`5`), or more than the replicas (`+2`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolSize {
    /// This number of addresses.
    Fixed(u32),
    /// This number of addresses more than replicas.
    Flexible(u32),
}

impl PoolSize {
    /// Number of addresses for this number of replicas: 1 to [`AUTOMATIC_POOL_ADDRESSES_MAX`].
    #[must_use]
    pub fn of(self, replicas: u32) -> u32 {
        let count = match self {
            Self::Fixed(count) => count,
            Self::Flexible(more) => replicas.saturating_add(more),
        };
        count.clamp(1, AUTOMATIC_POOL_ADDRESSES_MAX)
    }
}

impl fmt::Display for PoolSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(count) => write!(f, "{count}"),
            Self::Flexible(more) => write!(f, "+{more}"),
        }
    }
}

impl FromStr for PoolSize {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (flexible, digits) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
        // `u32::from_str` accepts a sign, so `++2` must be rejected here.
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let count = if is_number { digits.parse::<u32>().ok() } else { None };
        match count {
            Some(count) if count > AUTOMATIC_POOL_ADDRESSES_MAX => Err(too_many(text)),
            None if is_number => Err(too_many(text)),
            Some(0) if !flexible => {
                Err(Problem::new(Code::InvalidField, "a pool needs at least 1 address").help(HELP))
            }
            Some(count) if flexible => Ok(Self::Flexible(count)),
            Some(count) => Ok(Self::Fixed(count)),
            None => Err(is_not(text, "a number of addresses").help(HELP)),
        }
    }
}

fn too_many(text: &str) -> Problem {
    let detail = format!(
        "{} is too many: an automatic pool has at most {AUTOMATIC_POOL_ADDRESSES_MAX} addresses",
        crate::name::shown(text)
    );
    Problem::new(Code::LimitExceeded, detail)
}

impl Serialize for PoolSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PoolSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_annotations_have_it() {
        for (text, size) in
            [("5", PoolSize::Fixed(5)), ("+2", PoolSize::Flexible(2)), ("+0", PoolSize::Flexible(0))]
        {
            assert_eq!(text.parse::<PoolSize>().unwrap(), size);
            assert_eq!(size.to_string(), text);
        }
    }

    #[test]
    fn a_malformed_pool_size_is_refused() {
        for (text, code) in [
            ("", Code::InvalidField),
            ("0", Code::InvalidField),
            ("+", Code::InvalidField),
            ("-1", Code::InvalidField),
            ("++2", Code::InvalidField),
            ("+-2", Code::InvalidField),
            ("1e9", Code::InvalidField),
            ("2.5", Code::InvalidField),
            (" 2", Code::InvalidField),
            ("٢", Code::InvalidField),
            ("65537", Code::LimitExceeded),
            ("+65537", Code::LimitExceeded),
            ("99999999999999999999", Code::LimitExceeded),
        ] {
            assert_eq!(text.parse::<PoolSize>().unwrap_err().code, code, "{text:?}");
        }
    }

    #[test]
    fn it_is_never_none_and_never_more_than_fit() {
        assert_eq!(PoolSize::Fixed(5).of(9), 5);
        assert_eq!(PoolSize::Flexible(2).of(3), 5);
        assert_eq!(PoolSize::Flexible(0).of(0), 1);
        assert_eq!(PoolSize::Flexible(1).of(u32::MAX), AUTOMATIC_POOL_ADDRESSES_MAX);
    }
}
