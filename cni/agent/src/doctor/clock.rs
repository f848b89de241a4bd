//! Clocks of the servers, compared with that of the node.
//!
//! The only time in the servers' answers is the header `Date` (RFC 9110), which has whole seconds. So an
//! answer gives bounds of the offset, as wide as a second and the round trip together. The HTTP server of a
//! member never sets the date back: after its clock was set back, the date stands still until the clock has
//! caught up.

use ipam_api::agent::DoctorCheck;
use ipam_api::time::Timestamp;

use super::{ok, warning};

/// Clock offset above which a check warns, in milliseconds.
const OFFSET_MS_MAX: i64 = 1000;

/// Bounds of a server's clock offset from the node, in milliseconds. Negative if the server is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    min_ms: i64,
    max_ms: i64,
}

impl Offset {
    /// Computes the bounds from the date of an answer and the node's time before the request and after the
    /// answer.
    pub(super) fn of(date: Timestamp, before: Timestamp, after: Timestamp) -> Self {
        let ms = |time: Timestamp| i64::try_from(time.0).unwrap_or(i64::MAX);
        Self {
            min_ms: ms(date).saturating_sub(ms(after)),
            max_ms: ms(date).saturating_add(999).saturating_sub(ms(before)),
        }
    }

    /// Estimate of the offset: the middle of the bounds.
    fn estimate_ms(self) -> i64 {
        self.min_ms.midpoint(self.max_ms)
    }

    /// Returns true if every offset within the bounds exceeds the limit.
    fn is_wrong(self) -> bool {
        self.min_ms > OFFSET_MS_MAX || self.max_ms < -OFFSET_MS_MAX
    }

    fn bound_ms(self) -> u64 {
        self.min_ms.unsigned_abs().max(self.max_ms.unsigned_abs())
    }
}

/// Compares the clocks of all servers that answered; `None` if no server did.
pub(super) fn check(offsets: &[(String, Offset)]) -> Option<DoctorCheck> {
    let name = "clock";
    let bound_ms = offsets.iter().map(|(_, offset)| offset.bound_ms()).max()?;
    let wrong: Vec<String> = offsets
        .iter()
        .filter(|(_, offset)| offset.is_wrong())
        .map(|(server, offset)| shown(server, *offset))
        .collect();
    if wrong.is_empty() {
        return Some(ok(name, format!("differs from the clocks of the servers by {bound_ms} ms at most")));
    }
    Some(warning(
        name,
        format!("the clocks differ: {}", wrong.join("; ")),
        "Synchronize the clocks of node and servers (NTP): certificates and times of events depend on them.",
    ))
}

fn shown(server: &str, offset: Offset) -> String {
    let estimate_ms = offset.estimate_ms();
    let side = if estimate_ms < 0 { "behind" } else { "ahead of" };
    format!("{server} is about {} s {side} the node", estimate_ms.unsigned_abs().saturating_add(500) / 1000)
}

#[cfg(test)]
mod tests {
    use ipam_api::agent::Verdict;

    use super::*;

    /// Offset by an answer with the date 1,000 s; the request was under way from `before_ms` to `after_ms`.
    fn offset(before_ms: u64, after_ms: u64) -> Offset {
        Offset::of(Timestamp(1_000_000), Timestamp(before_ms), Timestamp(after_ms))
    }

    #[test]
    fn an_offset_has_the_width_of_a_second_and_the_round_trip() {
        assert_eq!(offset(1_000_100, 1_000_300), Offset { min_ms: -300, max_ms: 899 });
        assert_eq!(
            offset(1_000_400, 1_000_600).estimate_ms(),
            0,
            "half of the round trip, half of the second"
        );
    }

    #[test]
    fn a_clock_is_wrong_once_it_is_certain() {
        // The servers' clock is between 1,000 and 1,000.999 s.
        for (node_ms, is_wrong) in
            [(998_999, true), (999_000, false), (1_000_500, false), (1_001_999, false), (1_002_000, true)]
        {
            assert_eq!(offset(node_ms, node_ms).is_wrong(), is_wrong, "{node_ms}");
        }
        // A slow answer proves less.
        assert!(!offset(998_999, 999_100).is_wrong());
    }

    #[test]
    fn the_servers_with_another_clock_are_named() {
        assert_eq!(check(&[]), None);
        let right = ("http://n1".to_owned(), offset(1_000_400, 1_000_600));
        let found = check(std::slice::from_ref(&right)).unwrap();
        assert_eq!((found.verdict, found.help.as_str()), (Verdict::Ok, ""));
        let early = ("http://n2".to_owned(), offset(1_060_400, 1_060_600));
        let late = ("http://n3".to_owned(), offset(940_400, 940_600));
        let found = check(&[right, early, late]).unwrap();
        assert_eq!(found.verdict, Verdict::Warning);
        let wanted = "the clocks differ: http://n2 is about 60 s behind the node; \
                      http://n3 is about 60 s ahead of the node";
        assert_eq!(found.detail, wanted);
    }
}
