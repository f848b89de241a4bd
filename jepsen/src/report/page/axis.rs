//! Axes: places of times and values in a drawing, and round numbers for labels.

/// Horizontal extent of all drawings of a page, so that their times are aligned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// Left end of the time axis.
    pub(super) left: f64,
    /// Right end of the time axis.
    pub(super) right: f64,
    /// Time at the right end.
    pub(super) end_ns: u64,
}

/// Width of all drawings.
pub(super) const WIDTH: f64 = 960.0;
/// Maximum number of labels of a time axis.
const TIME_LABELS_MAX: u64 = 10;
const SECOND_NS: u64 = 1_000_000_000;

#[expect(clippy::cast_precision_loss, reason = "places in a drawing")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

impl Frame {
    /// Frame of a run that took this time.
    pub(super) fn new(end_ns: u64) -> Self {
        Self { left: 108.0, right: WIDTH - 12.0, end_ns: end_ns.max(SECOND_NS) }
    }

    /// Place of a time.
    pub(super) fn x(&self, time_ns: u64) -> f64 {
        let share = float(time_ns.min(self.end_ns)) / float(self.end_ns);
        self.left + share * (self.right - self.left)
    }

    /// Times with a label, in seconds.
    pub(super) fn labels(&self) -> Vec<u64> {
        let seconds = self.end_ns / SECOND_NS;
        let steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 86_400];
        let fits = |step: &u64| seconds / step <= TIME_LABELS_MAX;
        let step = steps.into_iter().find(fits).unwrap_or(seconds.div_ceil(TIME_LABELS_MAX).max(1));
        (0..=seconds / step).map(|at| at * step).collect()
    }
}

/// Label of a time.
pub(super) fn time_label(seconds: u64) -> String {
    match seconds {
        0..600 => format!("{seconds} s"),
        600..36_000 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

/// Round number that is not below this one, so that a quarter of it is round, too.
pub(super) fn round_up(number: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 4, 6, 8] {
            let round = power.saturating_mul(factor);
            if round >= number {
                return round;
            }
        }
        power = power.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_few_and_round() {
        assert_eq!(Frame::new(60 * SECOND_NS).labels(), [0, 10, 20, 30, 40, 50, 60]);
        assert_eq!(Frame::new(7 * SECOND_NS).labels().len(), 8);
        assert_eq!(Frame::new(3600 * SECOND_NS).labels(), [0, 600, 1200, 1800, 2400, 3000, 3600]);
        assert_eq!((round_up(0), round_up(3), round_up(650), round_up(u64::MAX)), (1, 4, 800, u64::MAX));
    }

    #[test]
    fn times_stay_inside_the_frame() {
        let frame = Frame::new(10 * SECOND_NS);
        assert!((frame.x(0) - frame.left).abs() < 1e-9);
        assert!((frame.x(u64::MAX) - frame.right).abs() < 1e-9);
    }
}
