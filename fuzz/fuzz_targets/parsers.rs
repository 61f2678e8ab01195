//! Every target for libFuzzer in one program, so that the parsers are linked once. `DRAGOMAN_FUZZ_TARGET` names the one
//! that runs.

#![no_main]

use std::sync::LazyLock;

use fuzz_targets::FuzzTarget;

static TARGET: LazyLock<FuzzTarget> = LazyLock::new(|| {
    let name = std::env::var("DRAGOMAN_FUZZ_TARGET").unwrap_or_default();
    fuzz_targets::find(&name).unwrap_or_else(|| panic!("DRAGOMAN_FUZZ_TARGET names no target: {name:?}"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
