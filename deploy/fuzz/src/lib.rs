//! Fuzz targets for everything that reads bytes from outside or from disk: bodies, texts, what a container
//! runtime passes, what peers say, what lies in files; and the machine, under commands that nobody checked.
//!
//! Each target is a function that takes bytes, and panics when something is wrong beyond their being refused:
//! what can be read is written and read again the same, and no input costs memory that its length doesn't
//! explain. `cargo fuzz` finds inputs; the test of this crate holds those that were kept in `corpus/`.
//!
//! **Invariant:** nothing that ships depends on it.

mod disk;
mod machine;
mod node;
mod outside;
pub mod parts;
mod peer;

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What any input may cost: serde trusts the length of a list with up to 1 MiB ahead of its items, and lists
/// stand in lists.
const BYTES_FREE: usize = 16 << 20;
/// What each byte of input may cost beyond that: a decoded command is so much larger than its shortest form.
const BYTES_PER_BYTE: usize = 1024;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. Each has a binary in `targets/` and a folder in `corpus/`.
pub const TARGETS: [Target; 13] = [
    ("request", outside::request),
    ("text", outside::text),
    ("merge", outside::merge),
    ("cni_config", node::config),
    ("cni_arguments", node::arguments),
    ("peer_stream", peer::stream),
    ("peer_message", peer::message),
    ("batch", machine::batch),
    ("apply", machine::apply),
    ("rows", machine::rows),
    ("snapshot", disk::snapshot),
    ("journal", disk::journal),
    ("log", disk::log),
];

/// Runs a target on an input, and looks at what that costs.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    assert!(target.is_some(), "there is no target {name}");
    let Some((_, target)) = target else { return };
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    target(data);
    let cost = MEMORY.peak_usage().saturating_sub(before);
    let allowed = BYTES_FREE + BYTES_PER_BYTE * data.len();
    assert!(cost <= allowed, "{} bytes of input cost {cost} bytes of memory", data.len());
}
