//! Bytes of a held allocation in the state, counted by the allocator: equal on each run and machine.
//!
//! **Guard:** a state of a million allocations has to fit into memory. Each field of a row and each part of
//! the index costs its bytes a million times. A change that exceeds the recorded numbers needs a reason; one
//! that saves lowers them. `cargo bench -p ipam-machine --bench memory` prints the parts.
#![allow(clippy::unwrap_used, reason = "an error that is not handled is a failed test")]

#[path = "../benches/support/mod.rs"]
mod support;

use ipam_machine::model::{Allocation, Attachment, Endpoint};
use ipam_machine::{Loading, State};
use peak_alloc::PeakAlloc;
use support::fill;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Allocations of a measured state: many enough that what is there once doesn't count.
const COUNT: u64 = 20_000;
/// Bytes of an allocation of a named endpoint: two rows and their entries of the index.
const CLAIM_BYTES_MAX: u64 = 520;
/// Bytes of an allocation of a pod with its attachment: three rows, a container id, and their entries.
const ATTACHMENT_BYTES_MAX: u64 = 810;

/// Bytes of each allocation in a state that `make` returns.
fn bytes_of(make: impl FnOnce() -> State) -> u64 {
    let before = ALLOCATOR.current_usage();
    let state = make();
    assert_eq!(state.allocations.len() as u64, COUNT);
    (ALLOCATOR.current_usage() - before) as u64 / COUNT
}

/// The state as a start reads it.
fn read_again(state: &State) -> State {
    let mut loading = Loading::default();
    for (key, row) in state.rows() {
        loading.put(key, &row).unwrap();
    }
    loading.finish().unwrap()
}

/// One test: another one would allocate at the same time.
#[test]
fn a_held_allocation_takes_at_most_the_recorded_bytes() {
    for (name, action, most) in [
        ("claim", fill::claim as fn(u64) -> _, CLAIM_BYTES_MAX),
        ("attachment", fill::attachment, ATTACHMENT_BYTES_MAX),
    ] {
        let applied = bytes_of(|| fill::filled(COUNT, action));
        let read = fill::filled(COUNT, action);
        let read = bytes_of(|| read_again(&read));
        println!("{name}: {applied} bytes after apply, {read} after a start");
        assert!(applied <= most && read <= most, "{name}: {applied} and {read} bytes, recorded {most}");
    }
    let sizes = (size_of::<Endpoint>(), size_of::<Attachment>(), size_of::<Allocation>());
    assert_eq!(sizes, (136, 96, 168), "bytes of an endpoint, an attachment and an allocation");
}
