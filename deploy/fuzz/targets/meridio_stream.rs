//! The target `meridio_stream` for `cargo fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::run("meridio_stream", data));
