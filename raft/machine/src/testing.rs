//! Test options of a program: support of the next feature level, reworded messages, or a seeded bug.
//!
//! **Invariant:** what `apply` writes depends on the log and on seeded bugs alone. Other options change what
//! one process knows or displays.

use std::cell::Cell;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::seeded::SeededBug;

/// The options without a bug that are on in this process, one bit each.
static ON: AtomicU8 = AtomicU8::new(0);

thread_local! {
    /// Function that returns true if the next feature level is supported regardless of the option.
    static KNOWS_NEXT_LEVEL: Cell<fn() -> bool> = const { Cell::new(|| false) };
}

/// Lets a simulation decide which of its members, all on this thread, know the next feature level.
pub fn simulate_next_level(is_known: fn() -> bool) {
    KNOWS_NEXT_LEVEL.set(is_known);
}

/// An option of the whole process, off until a test turns it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestOption {
    /// Supports the feature level after this version's.
    NextLevel,
    /// Rewords every message, as another version might.
    RewordSentences,
    /// Turns on a seeded bug.
    Bug(SeededBug),
}

/// A name that no option has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the options of tests are next-level, reword-sentences and the bugs of ipam-jepsen mutants")]
pub struct UnknownOption;

impl FromStr for TestOption {
    type Err = UnknownOption;

    fn from_str(name: &str) -> Result<Self, UnknownOption> {
        let bug = || SeededBug::ALL.iter().find(|(_, option)| *option == name);
        match name {
            "next-level" => Ok(Self::NextLevel),
            "reword-sentences" => Ok(Self::RewordSentences),
            _ => bug().map(|(bug, _)| Self::Bug(*bug)).ok_or(UnknownOption),
        }
    }
}

impl TestOption {
    /// Turns the option on until the process ends.
    pub fn turn_on(self) {
        match self {
            Self::Bug(bug) => bug.turn_on(),
            option => drop(ON.fetch_or(option.bit(), Ordering::Relaxed)),
        }
    }

    pub(crate) fn is_on(self) -> bool {
        ON.load(Ordering::Relaxed) & self.bit() != 0 || self == Self::NextLevel && KNOWS_NEXT_LEVEL.get()()
    }

    /// Bit of an option; none for a bug, which has its own.
    fn bit(self) -> u8 {
        match self {
            Self::NextLevel => 1,
            Self::RewordSentences => 2,
            Self::Bug(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulation_decides_for_its_thread_where_the_next_level_is_known() {
        assert!(!TestOption::NextLevel.is_on());
        simulate_next_level(|| true);
        assert!(TestOption::NextLevel.is_on() && !TestOption::RewordSentences.is_on());
        std::thread::spawn(|| assert!(!TestOption::NextLevel.is_on())).join().unwrap();
    }

    #[test]
    fn each_bug_has_an_option() {
        for (bug, name) in SeededBug::ALL {
            assert!(name.starts_with("bug-"), "{name}");
            assert_eq!(name.parse(), Ok(TestOption::Bug(*bug)));
        }
        assert_eq!("bug-unknown".parse::<TestOption>(), Err(UnknownOption));
    }
}
