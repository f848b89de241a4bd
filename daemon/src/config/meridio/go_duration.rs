//! Durations as Go writes them: `2h`, `1m30s`, `1.5h`, `500ms`.
//!
//! The grammar is that of Go's `time.ParseDuration`, without negative values.

use std::time::Duration;

/// Units with their nanoseconds. Of units with a common prefix, the longer one comes first.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Longest duration of Go, in nanoseconds: about 292 years.
const NANOSECONDS_MAX: u128 = i64::MAX as u128;
/// Digits after the decimal point that are read. Further digits are below one nanosecond in any unit.
const FRACTION_DIGITS: usize = 18;

/// Reads a duration.
///
/// # Errors
/// The reason why the text is not a usable duration.
pub(super) fn parse(text: &str) -> Result<Duration, &'static str> {
    let (is_negative, bare) = match text.strip_prefix('-') {
        Some(bare) => (true, bare),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let nanoseconds = if bare == "0" { 0 } else { sum(bare)? };
    if is_negative && nanoseconds > 0 {
        return Err("it is negative");
    }
    let whole = u64::try_from(nanoseconds).map_err(|_| TOO_LONG)?;
    Ok(Duration::from_nanos(whole))
}

const NOT_A_DURATION: &str = "it is not a duration; write 30s, 40m or 1h30m, for example";
const TOO_LONG: &str = "it is too long";

/// Sums up numbers with units, in nanoseconds.
fn sum(text: &str) -> Result<u128, &'static str> {
    if text.is_empty() {
        return Err(NOT_A_DURATION);
    }
    let (mut rest, mut sum) = (text, 0u128);
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(NOT_A_DURATION);
        }
        let unit = UNITS.iter().find_map(|(name, size)| Some((after.strip_prefix(name)?, *size)));
        let (after, size) = unit.ok_or(NOT_A_DURATION)?;
        // A number beyond 128 bits is too long in any unit.
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| TOO_LONG)? };
        let whole = whole.checked_mul(size).ok_or(TOO_LONG)?;
        sum = whole.checked_add(part(fraction, size)).and_then(|one| sum.checked_add(one)).ok_or(TOO_LONG)?;
        if sum > NANOSECONDS_MAX {
            return Err(TOO_LONG);
        }
        rest = after;
    }
    Ok(sum)
}

/// Splits off the leading digits.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Nanoseconds of the fractional digits of a number whose unit has `size` nanoseconds.
fn part(fraction: &str, size: u128) -> u128 {
    let mut scale = 1u128;
    let mut value = 0u128;
    for digit in fraction.chars().take(FRACTION_DIGITS).filter_map(|digit| digit.to_digit(10)) {
        (value, scale) = (value * 10 + u128::from(digit), scale * 10);
    }
    value * size / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_go_are_read() {
        let (us, ms, s, m, h) = (1_000, 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000);
        for (text, nanoseconds) in [
            ("0", 0),
            ("-0", 0),
            ("+0", 0),
            ("0s", 0),
            ("-0s", 0),
            ("5s", 5 * s),
            ("30s", 30 * s),
            ("1478s", 1478 * s),
            ("+5s", 5 * s),
            ("5.0s", 5 * s),
            ("5.6s", 5 * s + 600 * ms),
            ("5.s", 5 * s),
            (".5s", 500 * ms),
            ("1.0s", s),
            ("1.00s", s),
            ("1.004s", s + 4 * ms),
            ("1.0040s", s + 4 * ms),
            ("100.00100s", 100 * s + ms),
            ("10ns", 10),
            ("11us", 11 * us),
            ("12\u{b5}s", 12 * us),
            ("12\u{3bc}s", 12 * us),
            ("13ms", 13 * ms),
            ("14s", 14 * s),
            ("15m", 15 * m),
            ("16h", 16 * h),
            ("2h", 2 * h),
            ("40m", 40 * m),
            ("1m30s", m + 30 * s),
            ("1.5h", 90 * m),
            ("500ms", 500 * ms),
            ("3h30m", 3 * h + 30 * m),
            ("10.5s4m", 4 * m + 10 * s + 500 * ms),
            ("1h2m3s4ms5us6ns", h + 2 * m + 3 * s + 4 * ms + 5 * us + 6),
            ("39h9m14.425s", 39 * h + 9 * m + 14 * s + 425 * ms),
            ("52763797000ns", 52_763_797_000),
            ("0.100000000000000000000h", 6 * m),
            ("0.830103483285477580700h", 49 * m + 48 * s + 372_539_827),
            ("9223372036854775807ns", 9_223_372_036_854_775_807),
            ("9223372036854775.807us", 9_223_372_036_854_775_807),
            ("9223372036s854ms775us807ns", 9_223_372_036_854_775_807),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused_with_the_reason() {
        for text in [
            "", "3", "-", "+", "s", ".", "-.", ".s", "+.s", "1d", "1w", "5 s", " 5s", "5S", "1e3s", "--5s",
            "1.2.3s",
        ] {
            assert_eq!(parse(text), Err(NOT_A_DURATION), "{text:?}");
        }
        for text in ["-5s", "-1.5h", "-0.000000001s", "-1ns"] {
            assert_eq!(parse(text), Err("it is negative"), "{text}");
        }
        let digits = format!("{}h", "9".repeat(60));
        for text in ["9223372036854775808ns", "9223372036854775.808us", "3000000h", "2562047h48m", &digits] {
            assert_eq!(parse(text), Err(TOO_LONG), "{text}");
        }
    }
}
