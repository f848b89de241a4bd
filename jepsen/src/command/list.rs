//! `ipam-jepsen list`: workloads, nemeses and checkers with their sentences.

use super::Outcome;
use crate::{checker, nemesis, workload};

/// Prints all workloads, nemeses and checkers.
#[must_use]
pub fn run() -> Outcome {
    println!("workloads");
    for workload in workload::all() {
        println!("  {:<16} {}", workload.name(), workload.about());
    }
    println!("\nnemeses");
    for nemesis in nemesis::all() {
        println!("  {:<16} {}", nemesis.name(), nemesis.about());
    }
    println!("\ncheckers, with the promises (DESIGN, section 3) that they cover");
    for checker in checker::all() {
        let promises: Vec<String> = checker.promises().iter().map(u8::to_string).collect();
        let name = format!("{} {}", checker.id(), checker.name());
        println!("  {name:<28} {} [{}]", checker.about(), promises.join(", "));
    }
    Outcome::Held
}
