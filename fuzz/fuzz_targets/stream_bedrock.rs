//! The target `stream_bedrock` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("stream_bedrock", bytes));
