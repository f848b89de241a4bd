//! Ids of events: the position of each event in the log.

use std::fmt;
use std::str::FromStr;

use ipam_api::{Code, Problem};
use serde::{Deserialize, Serialize};

/// Id of an event: the revision of its command, and its position in that command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventId {
    /// The revision after the command.
    pub revision: u64,
    /// Position among the command's events, from 0.
    pub number: u32,
}

impl EventId {
    /// Position after all events of a revision.
    #[must_use]
    pub fn end_of(revision: u64) -> Self {
        Self { revision, number: u32::MAX }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            u32::MAX => write!(f, "{}", self.revision),
            number => write!(f, "{}.{number}", self.revision),
        }
    }
}

impl FromStr for EventId {
    type Err = Problem;

    /// Parses `REVISION.NUMBER`, or `REVISION` for the position after all of its events.
    fn from_str(text: &str) -> Result<Self, Problem> {
        let bad =
            || Problem::new(Code::InvalidCursor, "a place among the events is REVISION or REVISION.NUMBER");
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (revision, number) = text.split_once('.').map_or((text, None), |(one, two)| (one, Some(two)));
        if !digits(revision) || !number.is_none_or(digits) {
            return Err(bad());
        }
        Ok(Self {
            revision: revision.parse().map_err(|_| bad())?,
            number: number.map_or(Ok(u32::MAX), str::parse).map_err(|_| bad())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["0", "7", "1099511627776.0", "5.12"] {
            assert_eq!(text.parse::<EventId>().unwrap().to_string(), text);
        }
        for text in
            ["", ".", "1.", ".1", "+1", "1.+2", "1.2.3", "-1", " 1", "99999999999999999999", "1.4294967296"]
        {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
        assert!("5".parse::<EventId>().unwrap() > "5.7".parse().unwrap(), "behind all of its events");
    }
}
