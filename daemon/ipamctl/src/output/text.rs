//! Numbers, durations, ages, labels and bars, as people read them.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::request::Released;
use ipam_api::resource::{Counts, Labels, Lease, Meta};
use ipam_api::time::Timestamp;

/// Cells of a bar.
const BAR_CELLS: usize = 8;

/// Units that a duration may be written in, with their milliseconds; the largest first.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads `10s`, `40m`, `1h30m`, `500ms`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("{} is not a duration such as 500ms, 10s, 40m, 2h or 7d", ipam_api::name::shown(text));
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, behind) = rest.split_at(digits);
        let letters = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, behind) = behind.split_at(letters);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let (_, milliseconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        total =
            number.checked_mul(*milliseconds).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = behind;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(Duration::from_millis(total)) }
}

/// A duration exactly, in the largest unit that divides it: `30s`, `90s`, `2h`.
pub(crate) fn duration(milliseconds: u64) -> String {
    in_unit(milliseconds, |(_, size)| milliseconds.is_multiple_of(*size))
}

/// Approximate duration, in the largest unit that fits: `8m`, `13h`, `12d`.
pub(crate) fn roughly(milliseconds: u64) -> String {
    in_unit(milliseconds, |(name, _)| *name != "ms")
}

fn in_unit(milliseconds: u64, fits: impl Fn(&(&str, u64)) -> bool) -> String {
    match UNITS.iter().find(|unit| milliseconds >= unit.1 && fits(unit)) {
        Some((name, size)) => format!("{}{name}", milliseconds / size),
        None => "0s".to_owned(),
    }
}

/// Duration in milliseconds, as the API represents it.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Age since a timestamp. A timestamp in the future, by a clock difference, has age 0.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    roughly(now.0.saturating_sub(since.0))
}

/// A moment to the second, in UTC.
pub(crate) fn moment(at: Timestamp) -> String {
    let text = at.to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}

/// End of a lease and duration of each renewal; empty without one.
pub(crate) fn lease(lease: Option<&Lease>) -> String {
    lease.map_or_else(String::new, |lease| {
        format!("until {} unless renewed (for {})", moment(lease.ends_at), roughly(lease.ttl_ms))
    })
}

/// Count as text; `>9e15` for a saturated count.
pub(crate) fn count(number: u64) -> String {
    if number >= JSON_INTEGER_MAX { ">9e15".to_owned() } else { number.to_string() }
}

/// Number of addresses as text, also beyond the exact integers of JSON.
pub(crate) fn size(exact: u128) -> String {
    match u64::try_from(exact) {
        Ok(number) if number < JSON_INTEGER_MAX => number.to_string(),
        // The count of all IPv6 addresses, 2^128, saturates at `u128::MAX`.
        _ if exact == u128::MAX => "2^128".to_owned(),
        _ if exact.is_power_of_two() => format!("2^{}", exact.trailing_zeros()),
        _ => {
            let digits = exact.to_string();
            format!("{}e{}", digits.get(..1).unwrap_or_default(), digits.len().saturating_sub(1))
        }
    }
}

/// Bytes as people read them: `512 B`, `39.0 GiB`.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let (mut tenths, mut unit) = (number.saturating_mul(10), 0_usize);
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS.get(unit).unwrap_or(&"B"))
}

/// `one pool`, `4 pools`.
pub(crate) fn plural(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {many}", count(number)) }
}

/// Number of addresses that a pool can allocate.
pub(crate) fn usable(counts: &Counts) -> u64 {
    counts.size.saturating_sub(counts.excluded).saturating_sub(counts.reserved)
}

/// Percentage of the usable addresses that are not free; none without usable addresses. Only a full pool has
/// 100, and only an unused pool has 0.
pub(crate) fn use_percent(counts: &Counts) -> Option<u64> {
    let usable = u128::from(usable(counts));
    if usable == 0 {
        return None;
    }
    let used = usable.saturating_sub(u128::from(counts.free));
    let percent = (used * 100 + usable / 2) / usable;
    let percent = if counts.free > 0 { percent.min(99) } else { percent };
    let percent = if used > 0 { percent.max(1) } else { percent };
    u64::try_from(percent).ok()
}

/// A bar and the percentage: `███████▋  96 %`.
pub(crate) fn use_bar(counts: &Counts) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let Some(percent) = use_percent(counts) else { return "-".to_owned() };
    let usable = u128::from(usable(counts));
    let used = usable.saturating_sub(u128::from(counts.free));
    let eighths = usize::try_from(used * 8 * BAR_CELLS as u128 / usable.max(1)).unwrap_or_default();
    // One held address must be visible, even in a /64.
    let eighths = if eighths == 0 && counts.allocated > 0 { 1 } else { eighths };
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS.get(eighths % 8).copied().unwrap_or_default());
    format!("{bar:<BAR_CELLS$} {percent:>3} %")
}

/// `env=prod,team=web`.
pub(crate) fn labels(labels: &Labels) -> String {
    joined(labels.iter().map(|(key, value)| format!("{key}={value}")))
}

/// Joins a list with commas; a dash if it is empty.
pub(crate) fn joined<Item: Display>(items: impl IntoIterator<Item = Item>) -> String {
    let words: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    dash(&words.join(","))
}

/// Addresses with commas, and the number of those that the answer doesn't list.
pub(crate) fn released(released: &Released) -> String {
    let listed = joined(&released.addresses);
    and_more(released.more).map(|more| format!("{listed} {more}")).unwrap_or(listed)
}

/// `and 3 more`, if there are any.
pub(crate) fn and_more(more: u64) -> Option<String> {
    (more > 0).then(|| format!("and {} more", count(more)))
}

/// Removes the number from an operating system's error message, since the text suffices.
pub(crate) fn without_number(why: &str) -> &str {
    why.split(" (os error ").next().unwrap_or(why)
}

/// Returns a dash for an empty text, because an empty cell would shift the columns of `awk`.
pub(crate) fn dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// A value, or a dash.
pub(crate) fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// First line of `show`: kind and name, then the id, which distinguishes namesakes.
pub(crate) fn heading(word: &str, name: &str, meta: &Meta, network: Option<&str>) -> String {
    let left = format!("{word} {name}");
    let network = network.map(|network| format!("   network {network}")).unwrap_or_default();
    format!("{left:<33} id {}   revision {}{network}", meta.id, meta.revision)
}

/// Writes `2026-11-19T22:14:07Z (13h)   by cni`.
pub(crate) fn made(at: Timestamp, by: &str, now: Timestamp) -> String {
    format!("{} ({})   by {}", moment(at), age(at, now), dash(by))
}

/// Footer of a list.
pub(crate) fn footer(number: usize, one: &str, many: &str, revision: u64) -> String {
    if number == 0 {
        return format!("no {many} · revision {revision}");
    }
    format!("{} · revision {revision}", plural(number as u64, one, many))
}

/// Lines of a label and a value.
#[derive(Debug, Default)]
pub(crate) struct Fields(String);

impl Fields {
    /// Adds a line.
    pub(crate) fn line(&mut self, label: &str, value: impl Display) {
        let _ = writeln!(self.0, "{label:<12} {value}");
    }

    /// Adds a line for a value that may be absent.
    pub(crate) fn some(&mut self, label: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.line(label, value);
        }
    }

    /// Adds a line, unless the value is empty.
    pub(crate) fn line_if(&mut self, label: &str, value: &str) {
        if !value.is_empty() && value != "-" {
            self.line(label, value);
        }
    }

    /// Adds text as it is, on lines of its own.
    pub(crate) fn raw(&mut self, text: &str) {
        self.0.push_str(text);
        if !text.ends_with('\n') {
            self.0.push('\n');
        }
    }

    /// The lines.
    pub(crate) fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_beyond_those_listed_are_counted() {
        let of = |more| {
            let addresses = vec!["10.1.0.9".parse().unwrap(), "10.1.0.10".parse().unwrap()];
            released(&Released { addresses, more, late: false, revision: 9 })
        };
        assert_eq!(of(0), "10.1.0.9,10.1.0.10");
        assert_eq!(of(1234), "10.1.0.9,10.1.0.10 and 1234 more");
    }

    #[test]
    fn durations_are_read_and_printed() {
        for (text, milliseconds, printed) in [
            ("10s", 10_000, "10s"),
            ("40m", 2_400_000, "40m"),
            ("500ms", 500, "500ms"),
            ("1h30m", 5_400_000, "90m"),
            ("7d", 604_800_000, "7d"),
            ("0s", 0, "0s"),
        ] {
            assert_eq!(parse_duration(text).unwrap(), Duration::from_millis(milliseconds));
            assert_eq!(duration(milliseconds), printed);
        }
        for wrong in ["", "10", "s", "10 s", "-1s", "1w", "99999999999999999999s", "300000000000000d", "1.5s"]
        {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(roughly(46_800_500), "13h");
        assert_eq!(age(Timestamp(9_000), Timestamp(5_000)), "0s");
    }

    #[test]
    fn moments_have_seconds() {
        assert_eq!(moment(Timestamp(1_795_132_800_123)), "2026-11-20T00:00:00Z");
    }

    #[test]
    fn sizes_beyond_json_are_powers() {
        assert_eq!(size(150), "150");
        assert_eq!(size(1 << 64), "2^64");
        assert_eq!(size(u128::MAX), "2^128");
        assert_eq!(size((1 << 64) - 2), "1e19");
        assert_eq!(count(JSON_INTEGER_MAX), ">9e15");
    }

    #[test]
    fn bars_show_the_first_and_the_last_address() {
        let counts = |size, allocated, free| Counts { size, allocated, free, ..Counts::default() };
        assert_eq!(use_bar(&counts(141, 135, 6)), "███████▋  96 %");
        assert_eq!(use_bar(&counts(11, 11, 0)), "████████ 100 %");
        assert_eq!(use_bar(&counts(JSON_INTEGER_MAX, 125, JSON_INTEGER_MAX)), "▏          0 %");
        assert_eq!(use_bar(&counts(100_000, 99_999, 1)), "███████▉  99 %");
        assert_eq!(use_bar(&counts(10, 0, 10)), "           0 %");
        assert_eq!(use_bar(&Counts::default()), "-");
        assert_eq!(use_percent(&counts(100_000, 1, 99_999)), Some(1));
    }
}
