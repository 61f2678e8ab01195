//! The target `stream_openai_responses` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("stream_openai_responses", bytes));
