//! Timeline: bounds of the time at which a revision was committed.
//!
//! The journal has revisions and wall times of leaders, the history has monotonic times of clients. Both meet
//! in two facts: an answer that states a revision came after its commit, and a linearizable read that states
//! a revision began before the commit of every later one.

/// Bounds of commit times, by revision.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Revision and a time: every later revision was committed at that time or after it. Both rise.
    lower: Vec<(u64, u64)>,
    /// Revision and a time: this revision and all before it were committed until then. Both rise.
    upper: Vec<(u64, u64)>,
}

impl Timeline {
    /// Timeline from facts: revisions with lower bounds of all later ones, and revisions with upper bounds.
    #[must_use]
    pub fn of(mut lower: Vec<(u64, u64)>, mut upper: Vec<(u64, u64)>) -> Self {
        lower.sort_unstable();
        let mut max_ns = 0;
        for (_, time_ns) in &mut lower {
            max_ns = max_ns.max(*time_ns);
            *time_ns = max_ns;
        }
        upper.sort_unstable();
        let mut min_ns = u64::MAX;
        for (_, time_ns) in upper.iter_mut().rev() {
            min_ns = min_ns.min(*time_ns);
            *time_ns = min_ns;
        }
        Self { lower, upper }
    }

    /// Time before which this revision was surely not committed.
    #[must_use]
    pub fn earliest_ns(&self, revision: u64) -> u64 {
        let behind = self.lower.partition_point(|(fact, _)| *fact < revision);
        behind.checked_sub(1).and_then(|at| self.lower.get(at)).map_or(0, |(_, time_ns)| *time_ns)
    }

    /// Time at which this revision was surely committed; the maximum if no answer shows the commit.
    #[must_use]
    pub fn latest_ns(&self, revision: u64) -> u64 {
        let at = self.upper.partition_point(|(fact, _)| *fact < revision);
        self.upper.get(at).map_or(u64::MAX, |(_, time_ns)| *time_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_the_tightest_that_the_facts_allow() {
        let timeline = Timeline::of(vec![(10, 100), (20, 90), (30, 300)], vec![(12, 400), (25, 350)]);
        let bounds = |revision| (timeline.earliest_ns(revision), timeline.latest_ns(revision));
        assert_eq!(bounds(5), (0, 350));
        assert_eq!(bounds(10), (0, 350));
        assert_eq!(bounds(11), (100, 350));
        assert_eq!(bounds(21), (100, 350));
        assert_eq!(bounds(26), (100, u64::MAX));
        assert_eq!(bounds(31), (300, u64::MAX));
    }
}
