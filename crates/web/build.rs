//! Embeds the files of the pages, if `make` has built them. Without them everything builds, and the commands say what to do.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "cargo talks to build scripts by the environment, and they to it by stdout"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A page: its folder, its constant, and the variable that names another folder.
const PAGES: [(&str, &str, &str); 2] =
    [("chats", "CHATS", "DRAGOMAN_CHATS_PAGE"), ("studio", "STUDIO", "DRAGOMAN_STUDIO_PAGE")];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let mut tables = String::new();
    for (name, constant, variable) in PAGES {
        // The feature has the name of the page.
        if std::env::var_os(format!("CARGO_FEATURE_{constant}")).is_some() {
            println!("cargo:rerun-if-env-changed={variable}");
            add_table(&mut tables, constant, &folder_of(name, variable));
        }
    }
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    if let Err(error) = std::fs::write(out.join("pages.rs"), tables) {
        println!("cargo:warning=the files of the pages cannot be embedded: {error}");
    }
}

fn folder_of(name: &str, variable: &str) -> PathBuf {
    let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let usual = repository.join("target/web").join(name);
    let folder = std::env::var_os(variable).map_or(usual, PathBuf::from);
    // Watch the folder also where it is empty: new files must cause a rebuild. A published package has no such folder.
    if repository.join("web").is_dir() {
        let _ = std::fs::create_dir_all(&folder);
    }
    folder
}

fn add_table(tables: &mut String, constant: &str, folder: &Path) {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_served(path)).collect();
    files.sort();
    let _ = writeln!(tables, "pub const {constant}: &[crate::Asset] = &[");
    for path in files {
        let Ok(path) = path.canonicalize() else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("cargo:rerun-if-changed={}", path.display());
        let path = path.display().to_string();
        let _ = writeln!(tables, "    crate::Asset {{ name: {name:?}, bytes: include_bytes!({path:?}) }},");
    }
    tables.push_str("];\n");
}

/// Only files that a page uses: no packages, no lock files.
fn is_served(path: &Path) -> bool {
    let endings = ["html", "js", "css", "svg", "png", "woff2"];
    path.is_file() && path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known))
}
