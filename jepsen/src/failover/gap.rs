//! Gap: the longest time without an accepted write.

use std::time::{Duration, Instant};

/// Longest time between two accepted writes in a window, its edges included.
pub(super) fn longest(accepted: &[Instant], from: Instant, until: Instant) -> Duration {
    let inside = accepted.iter().copied().filter(|at| *at > from && *at < until);
    let (longest, last) = inside.fold((Duration::ZERO, from), |(longest, before), at| {
        (longest.max(at.saturating_duration_since(before)), at)
    });
    longest.max(until.saturating_duration_since(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_the_window_count_and_writes_outside_do_not() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let gap_ms = |accepted: &[u64]| {
            let accepted: Vec<Instant> = accepted.iter().map(|ms| at(*ms)).collect();
            longest(&accepted, at(100), at(1_000)).as_millis()
        };
        assert_eq!(gap_ms(&[]), 900);
        assert_eq!(gap_ms(&[50, 600, 950]), 500);
        assert_eq!(gap_ms(&[50, 200, 700, 950]), 500);
        assert_eq!(gap_ms(&[150, 300, 1_200]), 700);
    }
}
