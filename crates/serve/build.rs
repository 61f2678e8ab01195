//! Embeds the files of the page, if `make` has built them. Without them everything builds, and the command says what to do.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "cargo talks to build scripts by the environment, and they to it by stdout"
)]

use std::fmt::Write as _;
use std::path::PathBuf;

const VARIABLE: &str = "DRAGOMAN_CHATS_PAGE";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let usual = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/web/chats"));
    let folder = std::env::var_os(VARIABLE).map_or(usual, PathBuf::from);
    // Watch the folder also where it is empty: new files must cause a rebuild. A published package has no such folder.
    if PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/chats")).is_dir() {
        let _ = std::fs::create_dir_all(&folder);
    }
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.is_file() && path.file_name().is_some_and(|name| is_served(&name.to_string_lossy()))
        })
        .collect();
    files.sort();
    let mut table = String::from("const ASSETS: &[web::Asset] = &[\n");
    for path in files {
        let Ok(path) = path.canonicalize() else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("cargo:rerun-if-changed={}", path.display());
        let path = path.display().to_string();
        let _ = writeln!(table, "    web::Asset {{ name: {name:?}, bytes: include_bytes!({path:?}) }},");
    }
    table.push_str("];\n");
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    if let Err(error) = std::fs::write(out.join("assets.rs"), table) {
        println!("cargo:warning=the files of the page cannot be embedded: {error}");
    }
}

/// Only files that a page uses: no packages, no lock files.
fn is_served(name: &str) -> bool {
    let endings = [".html", ".js", ".css", ".svg", ".png", ".woff2"];
    endings.iter().any(|ending| name.ends_with(ending))
}
