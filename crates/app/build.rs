//! Packs the pages of the documentation for `dragoman docs`. Makes the published program smaller where its linker can.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "cargo talks to build scripts by the environment, and they to it by stdout"
)]

use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::DeflateEncoder;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    pack_pages();
    tell_tests_of_bundle();
    shrink();
}

/// The tests of generated pages differ where `interfaces` has no bundle of React.
fn tell_tests_of_bundle() {
    println!("cargo:rustc-check-cfg=cfg(react_bundle)");
    println!("cargo:rerun-if-env-changed=DRAGOMAN_REACT_BUNDLE");
    let usual = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/web/react-bundle.js"));
    let bundle = std::env::var_os("DRAGOMAN_REACT_BUNDLE").map_or(usual, PathBuf::from);
    if bundle.exists() {
        println!("cargo:rerun-if-changed={}", bundle.display());
        println!("cargo:rustc-cfg=react_bundle");
    }
}

/// Packs the pages that users read. The package of the registry has no such folder, and its program says so.
fn pack_pages() {
    let docs = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let (mut text, mut names) = (String::new(), Vec::new());
    for folder in ["", "protocols/", "coming-from/"] {
        let inner = docs.join(folder);
        println!("cargo:rerun-if-changed={}", inner.display());
        let entries = std::fs::read_dir(&inner).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "md")) {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            names.push(format!("{folder}{name}"));
            // The program writes this page from its own definitions.
            if folder.is_empty() && name == "configuration" {
                continue;
            }
            if let Ok(page) = std::fs::read_to_string(file) {
                text.push_str(&format!("{folder}{name}\0{page}\0"));
            }
        }
    }
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    let bytes = packed.write_all(text.as_bytes()).and_then(|()| packed.finish()).unwrap_or_default();
    let names = format!("/// The names of all pages.\nconst NAMES: &[&str] = &{names:?};\n");
    let written = std::fs::write(out.join("docs.deflate"), bytes)
        .and_then(|()| std::fs::write(out.join("docs_names.rs"), names));
    if let Err(error) = written {
        println!("cargo:warning=the documentation cannot be embedded: {error}");
    }
}

/// Links equal functions once, and writes the addresses that the loader corrects in their short form. On this target the
/// compiler brings a linker that can do both; the short form is read by glibc since 2.36.
fn shrink() {
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let target = of("TARGET");
    if of("PROFILE") != "release" || target != "x86_64-unknown-linux-gnu" || target != of("HOST") {
        return;
    }
    println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    if glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's C library.
fn glibc() -> Option<(u32, u32)> {
    let output = std::process::Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
