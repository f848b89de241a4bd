//! Definition of a nemesis.

use super::{Fault, Kind, View};
use crate::random::Random;

/// Source of faults.
pub trait Nemesis: Send + Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// Purpose in one sentence.
    fn about(&self) -> &'static str;

    /// Next fault, or none if the cluster allows none now.
    ///
    /// The driver injects it, waits [`Fault::lasts_ms`], heals it, and waits for a while before the next.
    fn next(&self, random: &mut Random, view: &View) -> Option<Fault>;

    /// Shortest and longest pause between two of its faults, in milliseconds.
    fn pause_ms(&self) -> (u64, u64) {
        (300, 2_000)
    }

    /// A fault of this nemesis.
    fn fault(&self, lasts_ms: u64, kind: Kind) -> Fault {
        Fault { nemesis: self.name().to_owned(), lasts_ms, kind }
    }
}
