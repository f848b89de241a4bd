//! `ipam-jepsen preflight`: capabilities of this machine that runs need.

use super::Outcome;
use crate::live::preflight::check;

/// Tries each capability and prints the result; undecided if one is missing.
#[must_use]
pub fn run() -> Outcome {
    let capabilities = check();
    for capability in &capabilities {
        let mark = if capability.ok { "ok" } else { "MISSING" };
        println!("{mark:<8} {:<28} {}", capability.name, capability.detail);
        if !capability.ok {
            println!("{:<8} {:<28} {}", "", "", capability.remedy);
        }
    }
    match capabilities.iter().all(|capability| capability.ok) {
        true => Outcome::Held,
        false => Outcome::Undecided,
    }
}
