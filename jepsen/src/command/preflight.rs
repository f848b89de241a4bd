//! `ipam-jepsen preflight`: capabilities of this machine that runs need.

use super::Outcome;

/// Prints them.
#[must_use]
pub fn run() -> Outcome {
    Outcome::Held
}
