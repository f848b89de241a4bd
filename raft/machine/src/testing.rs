//! Options that a test starts a program with: it knows the next feature level, or has other sentences.
//!
//! **Invariant:** what `apply` writes depends on the log alone. An option changes what one process knows or
//! displays.

use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};

/// The options that are on in this process, one bit each.
static ON: AtomicU8 = AtomicU8::new(0);

/// An option of the whole process, off until a test turns it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestOption {
    /// Know the feature level after this version's.
    NextLevel,
    /// Reword every sentence, as another version would.
    RewordSentences,
}

/// A name that no option has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the options of tests are next-level and reword-sentences")]
pub struct UnknownOption;

impl FromStr for TestOption {
    type Err = UnknownOption;

    fn from_str(name: &str) -> Result<Self, UnknownOption> {
        match name {
            "next-level" => Ok(Self::NextLevel),
            "reword-sentences" => Ok(Self::RewordSentences),
            _ => Err(UnknownOption),
        }
    }
}

impl TestOption {
    /// Turns the option on until the process ends.
    pub fn turn_on(self) {
        ON.fetch_or(self.bit(), Ordering::Relaxed);
    }

    pub(crate) fn is_on(self) -> bool {
        ON.load(Ordering::Relaxed) & self.bit() != 0
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}
