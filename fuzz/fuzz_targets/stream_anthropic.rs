//! The target `stream_anthropic` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("stream_anthropic", bytes));
