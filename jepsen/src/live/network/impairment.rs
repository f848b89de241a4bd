//! Impairment of the frames of a host.

use std::time::Duration;

use crate::random::Random;

/// Bounds of the additional time by which a reordered frame is held back, in microseconds.
const REORDER_US: (u64, u64) = (2_000, 10_000);

/// Faults of frames from and to a host.
///
/// Between two impaired hosts, and for two impairments of one host, the larger value of each field counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Impairment {
    /// Delay in each direction.
    pub delay_ms: u64,
    /// Largest deviation from the delay; the deviation is uniformly distributed and reorders no frames.
    pub jitter_ms: u64,
    /// Share of lost frames.
    pub loss_percent: u8,
    /// Share of frames that arrive twice.
    pub duplicate_percent: u8,
    /// Share of frames that are held 2 to 10 ms longer, so that later frames overtake them.
    pub reorder_percent: u8,
    /// Share of frames with one flipped bit behind the Ethernet header.
    pub corrupt_percent: u8,
}

impl Impairment {
    /// Returns the larger value of each field.
    #[must_use]
    pub fn combined(self, other: Self) -> Self {
        Self {
            delay_ms: self.delay_ms.max(other.delay_ms),
            jitter_ms: self.jitter_ms.max(other.jitter_ms),
            loss_percent: self.loss_percent.max(other.loss_percent),
            duplicate_percent: self.duplicate_percent.max(other.duplicate_percent),
            reorder_percent: self.reorder_percent.max(other.reorder_percent),
            corrupt_percent: self.corrupt_percent.max(other.corrupt_percent),
        }
    }

    /// Chooses the delay of a frame.
    pub(super) fn delay(&self, random: &mut Random) -> Duration {
        let jitter_us = self.jitter_ms.saturating_mul(1000);
        let shift_us = random.number() % jitter_us.saturating_mul(2).saturating_add(1);
        let us = self.delay_ms.saturating_mul(1000).saturating_add(shift_us).saturating_sub(jitter_us);
        Duration::from_micros(us)
    }

    /// Chooses the additional delay of a reordered frame.
    pub(super) fn reorder_delay(random: &mut Random) -> Duration {
        let (least, most) = REORDER_US;
        Duration::from_micros(least + random.number() % (most - least))
    }
}

/// Returns true with a probability in percent.
pub(super) fn happens(random: &mut Random, percent: u8) -> bool {
    percent > 0 && random.below(100) < usize::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_around_the_delay_and_above_zero() {
        let mut random = Random::new(1);
        let wide = Impairment { delay_ms: 50, jitter_ms: 20, ..Impairment::default() };
        let delays: Vec<_> = (0..1000).map(|_| wide.delay(&mut random).as_millis()).collect();
        assert!(delays.iter().all(|delay| (30..=70).contains(delay)), "{delays:?}");
        assert!(delays.iter().any(|delay| *delay < 40) && delays.iter().any(|delay| *delay > 60));
        let low = Impairment { delay_ms: 1, jitter_ms: 20, ..Impairment::default() };
        assert!((0..100).any(|_| low.delay(&mut random).is_zero()));
        let none = Impairment { delay_ms: 7, ..Impairment::default() };
        assert_eq!(none.delay(&mut random), Duration::from_millis(7));
    }

    #[test]
    fn a_percentage_is_a_share() {
        let mut random = Random::new(2);
        let share = (0..10_000).filter(|_| happens(&mut random, 30)).count();
        assert!((2700..3300).contains(&share), "{share}");
        assert!(!(0..1000).any(|_| happens(&mut random, 0)));
        assert!((0..1000).all(|_| happens(&mut random, 100)));
    }
}
