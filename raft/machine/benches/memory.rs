//! Bytes of a state with a million allocations, by part: `cargo bench -p ipam-machine --bench memory`.
//!
//! The program fills a state through `apply`, then frees one table and one part of the index after another.
//! The bytes that an allocator counts in between are those of the part. Rows and index share names: the part
//! that is freed last has their bytes. Words after `--` choose workloads; a number sets another number of
//! allocations.
#![allow(clippy::unwrap_used, reason = "a measurement that can't be made has failed")]

mod support;

use std::time::Instant;

use ipam_machine::Command;
use peak_alloc::PeakAlloc;
use support::fill;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Allocations of a state without another number on the command line.
const MANY: u64 = 1_000_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let count = words.iter().find_map(|word| word.parse().ok()).unwrap_or(MANY);
    let is_meant = |name: &str| {
        let mut names = words.iter().filter(|word| word.parse::<u64>().is_err()).peekable();
        names.peek().is_none() || names.any(|word| word == name)
    };
    for (name, action) in [("claims", fill::claim as fn(u64) -> _), ("attachments", fill::attachment)] {
        if is_meant(name) {
            report(name, count, action);
        }
    }
}

/// Fills a state and prints the bytes per allocation of its parts.
fn report(name: &str, count: u64, action: fn(u64) -> Command) {
    let (bytes_before, resident_before) = (ALLOCATOR.current_usage(), resident_bytes());
    let begun = Instant::now();
    let state = fill::filled(count, action);
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(state.allocations.len() as u64, count);
    let per = |bytes: usize| bytes as u64 / count;
    let all = ALLOCATOR.current_usage() - bytes_before;
    let resident = resident_bytes().saturating_sub(resident_before);
    println!("{name}: {count} allocations in {seconds:.1} s");
    println!("{:>8} bytes per allocation, all", per(all));
    println!("{:>8} bytes per allocation, resident", per(resident));
    for (part, value) in state.into_parts() {
        let before = ALLOCATOR.current_usage();
        drop(value);
        let freed = per(before - ALLOCATOR.current_usage());
        if freed > 0 {
            println!("{freed:>8} {part}");
        }
    }
}

fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}
