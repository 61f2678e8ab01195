//! The target `stream_ollama` for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::run("stream_ollama", bytes));
