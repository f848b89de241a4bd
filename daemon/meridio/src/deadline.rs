//! Deadline of a call, from its `grpc-timeout`.

use std::time::Duration;

use ipam_api::limits::{GRPC_DEADLINE_MS_DEFAULT, GRPC_DEADLINE_MS_MAX};
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

/// Digits of a timeout (gRPC over HTTP/2, "Timeout").
const DIGITS_MAX: usize = 8;

/// Deadline of a call that begins now.
pub(crate) fn deadline(metadata: &MetadataMap) -> Instant {
    Instant::now() + limit(metadata)
}

/// Time limit of a call. A timeout that can't be read counts as none, as in other servers.
fn limit(metadata: &MetadataMap) -> Duration {
    let text = metadata.get("grpc-timeout").and_then(|value| value.to_str().ok());
    let limit = text.and_then(timeout).unwrap_or(Duration::from_millis(GRPC_DEADLINE_MS_DEFAULT));
    limit.min(Duration::from_millis(GRPC_DEADLINE_MS_MAX))
}

fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > DIGITS_MAX || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_up_to_eight_digits_and_a_unit() {
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3_600))),
            ("2M", Some(Duration::from_secs(120))),
            ("99999999S", Some(Duration::from_secs(99_999_999))),
            ("1500m", Some(Duration::from_millis(1_500))),
            ("7u", Some(Duration::from_micros(7))),
            ("8n", Some(Duration::from_nanos(8))),
            ("0n", Some(Duration::ZERO)),
            ("100000000S", None),
            ("S", None),
            ("", None),
            ("-1S", None),
            ("+1S", None),
            ("1.5S", None),
            ("1s", None),
            ("1µ", None),
        ] {
            assert_eq!(timeout(text), expected, "{text}");
        }
    }

    #[test]
    fn a_call_without_a_deadline_has_ten_seconds_and_a_long_one_is_cut() {
        let mut metadata = MetadataMap::new();
        assert_eq!(limit(&metadata), Duration::from_secs(10));
        metadata.insert("grpc-timeout", "nonsense".parse().unwrap());
        assert_eq!(limit(&metadata), Duration::from_secs(10));
        metadata.insert("grpc-timeout", "250m".parse().unwrap());
        assert_eq!(limit(&metadata), Duration::from_millis(250));
        metadata.insert("grpc-timeout", "99999999H".parse().unwrap());
        assert_eq!(limit(&metadata), Duration::from_millis(GRPC_DEADLINE_MS_MAX));
    }
}
