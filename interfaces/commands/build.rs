//! Finds React's bundle, if `make` has built it. Without it everything builds, and `generate --html` says what to do.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "cargo talks to build scripts by the environment, and they to it by stdout"
)]

use std::path::PathBuf;

const VARIABLE: &str = "DRAGOMAN_REACT_BUNDLE";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    println!("cargo:rustc-check-cfg=cfg(react_bundle)");
    let usual = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/web/react-bundle.js"));
    let bundle = std::env::var_os(VARIABLE).map_or(usual, PathBuf::from);
    // Without a bundle, watch its folder: a new bundle must cause a rebuild.
    if let (false, Some(folder)) = (bundle.exists(), bundle.parent()) {
        // A published package has no such folder.
        if PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web")).is_dir() {
            let _ = std::fs::create_dir_all(folder);
        }
        println!("cargo:rerun-if-changed={}", folder.display());
    }
    if let Ok(bundle) = bundle.canonicalize() {
        println!("cargo:rerun-if-changed={}", bundle.display());
        println!("cargo:rustc-env={VARIABLE}={}", bundle.display());
        println!("cargo:rustc-cfg=react_bundle");
    }
}
