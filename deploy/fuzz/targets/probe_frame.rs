//! The target `probe_frame` for `cargo fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::run("probe_frame", data));
