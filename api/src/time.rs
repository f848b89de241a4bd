//! Wall time, as a label: rules never read it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment in milliseconds since 1970, UTC; in JSON an RFC 3339 text ending in `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Returns the time of this machine's wall clock; zero if the clock is before 1970.
    #[must_use]
    pub fn now() -> Self {
        #[cfg(feature = "simulation")]
        if let Some(clock) = CLOCK.get() {
            return Self(clock());
        }
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Reads the header `Date` (RFC 9110), which has whole seconds. Nothing if it is malformed.
    #[must_use]
    pub fn from_http_date(text: &str) -> Option<Self> {
        let moment = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        u64::try_from(moment.as_millisecond()).ok().map(Self)
    }
}

#[cfg(feature = "simulation")]
thread_local! {
    static CLOCK: std::cell::Cell<Option<fn() -> u64>> = const { std::cell::Cell::new(None) };
}

/// Replaces the wall clock of this thread: milliseconds since 1970.
#[cfg(feature = "simulation")]
pub fn simulate(clock: fn() -> u64) {
    CLOCK.set(Some(clock));
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(milliseconds) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => write!(f, "9999-12-30T22:00:00.999Z"),
        }
    }
}

impl FromStr for Timestamp {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let moment: jiff::Timestamp =
            text.parse().map_err(|_| format!("{} is not an RFC 3339 time", crate::name::shown(text)))?;
        // Labels begin in 1970: an earlier moment becomes the earliest one.
        Ok(Self(u64::try_from(moment.as_millisecond()).unwrap_or_default()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_rfc_3339() {
        let moment = Timestamp(1_795_132_800_123);
        assert_eq!(moment.to_string(), "2026-11-20T00:00:00.123Z");
        assert_eq!("2026-11-20T00:00:00.123Z".parse::<Timestamp>().unwrap(), moment);
        assert!("yesterday".parse::<Timestamp>().is_err());
        assert_eq!("1815-12-10T00:00:00Z".parse::<Timestamp>().unwrap(), Timestamp(0));
        assert!(!Timestamp(u64::MAX).to_string().is_empty());
    }

    #[test]
    fn reads_dates_of_http() {
        let read = Timestamp::from_http_date;
        assert_eq!(read("Fri, 20 Nov 2026 00:00:00 GMT"), Some(Timestamp(1_795_132_800_000)));
        for malformed in ["", "now", "2026-11-20T00:00:00Z", "Fri, 20 Nov 1815 00:00:00 GMT"] {
            assert_eq!(read(malformed), None, "{malformed}");
        }
    }
}
