//! What a user of the embedded model would notice, checked on real weights and on small files made here.
// Tests read DRAGOMAN_* and fetch the weights with pip, as the command does; what is not there fails the test.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod broken;
mod decoding;
mod files;
mod install;
mod provider;
mod recorded;
mod synthetic;
mod toys;
mod weights;

/// How much of the heavy tests to run: 1 by default, 10 for all of it.
fn scale() -> usize {
    std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1)
}
