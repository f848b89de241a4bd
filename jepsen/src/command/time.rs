//! Durations on the command line.

use std::time::Duration;

/// Parses `90`, `90s`, `1500ms`, `2m` or `1h`.
///
/// # Errors
/// For other texts.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit_ms = match unit {
        "" | "s" => 1_000,
        "ms" => 1,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("{unit} is no unit; use ms, s, m or h")),
    };
    let number: u64 = number.parse().map_err(|_| "a number is missing, such as 60s".to_owned())?;
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(|| "that is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_optional() {
        assert_eq!(parse("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("1500ms"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "s", "5 s", "-1", "5d", "99999999999999999999h"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
