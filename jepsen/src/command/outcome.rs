//! Outcome of a subcommand, and its exit code.

use std::process::ExitCode;

/// Outcome of a subcommand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// All promises were kept.
    Held,
    /// No violation was found, but the run did too little for a verdict.
    Undecided,
    /// A promise was broken.
    Violated,
}

impl Outcome {
    /// Returns [`Self::Held`] or [`Self::Violated`], for tasks that always decide.
    #[must_use]
    pub fn of(holds: bool) -> Self {
        if holds { Self::Held } else { Self::Violated }
    }

    /// The outcome of a run in which a violation is expected.
    #[must_use]
    pub fn expecting_violation(self) -> Self {
        match self {
            Self::Held => Self::Violated,
            Self::Undecided => Self::Undecided,
            Self::Violated => Self::Held,
        }
    }

    /// Exit code: 0, 2 for an undecided outcome, 1 for a violation.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Held => 0,
            Self::Violated => 1,
            Self::Undecided => 2,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(outcome.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_outcome_is_the_greatest() {
        let worst = [Outcome::Held, Outcome::Violated, Outcome::Undecided].into_iter().max();
        assert_eq!(worst, Some(Outcome::Violated));
    }

    #[test]
    fn an_undecided_run_does_not_count_as_an_expected_violation() {
        assert_eq!(Outcome::Undecided.expecting_violation(), Outcome::Undecided);
        assert_eq!(Outcome::Violated.expecting_violation().code(), 0);
        assert_eq!(Outcome::Held.expecting_violation().code(), 1);
    }
}
