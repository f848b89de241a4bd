//! Definition of a nemesis.

use super::{Fault, View};
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
}
