//! Fuzz targets for all readers of foreign bytes: bodies, text, plugin input, frames, peers, files, commands.
//!
//! Each target is a function of bytes that panics on a defect: accepted input must be the same after it is
//! written and read again, and no input may use memory out of proportion to its length. `cargo fuzz` finds
//! inputs; the test of this crate runs the inputs in `corpus/`.
//!
//! **Invariant:** no shipped program depends on this crate.

mod disk;
mod link;
mod machine;
mod meridio;
mod node;
mod outside;
pub mod parts;
mod peer;

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory in bytes that any input may use. Serde trusts the announced length of a list up to 1 MiB, and lists
/// are nested.
const BYTES_FREE: usize = 16 << 20;
/// Memory per byte of input beyond [`BYTES_FREE`]. A decoded command exceeds its shortest encoding by this
/// factor.
const BYTES_PER_BYTE: usize = 1024;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. Each has a binary in `targets/` and a folder in `corpus/`.
pub const TARGETS: [Target; 17] = [
    ("request", outside::request),
    ("text", outside::text),
    ("merge", outside::merge),
    ("cni_config", node::config),
    ("cni_arguments", node::arguments),
    ("pods", link::pods),
    ("probe_frame", link::frame),
    ("meridio_message", meridio::message),
    ("meridio_stream", meridio::stream),
    ("peer_stream", peer::stream),
    ("peer_message", peer::message),
    ("batch", machine::batch),
    ("apply", machine::apply),
    ("rows", machine::rows),
    ("snapshot", disk::snapshot),
    ("journal", disk::journal),
    ("log", disk::log),
];

/// Runs a target on an input, and checks its memory use.
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
