//! Folders that package managers and build tools may write: caches of downloads, and caches of Dragoman's own where the user
//! has none or must not share them.

use std::fs;
use std::path::PathBuf;

use crate::lists;
use crate::places::Sandbox;

impl Sandbox {
    /// Writable folders for downloads, and variables for those that do not exist.
    pub(crate) fn caches(&self) -> (Vec<PathBuf>, Vec<(String, String)>) {
        let mut folders = Vec::new();
        let mut variables = Vec::new();
        let cargo =
            self.facts.variables.get("CARGO_HOME").map_or_else(|| self.at_home(".cargo"), PathBuf::from);
        if cargo.is_dir() {
            let _ = fs::create_dir(cargo.join("registry"));
            folders.extend(lists::CARGO_CACHES.iter().map(|name| cargo.join(name)));
        }
        for (path, variable) in lists::CACHES {
            let folder = self.at_home(path);
            match variable {
                _ if folder.is_dir() => folders.push(folder),
                Some(variable) if !self.facts.variables.contains_key(*variable) => {
                    let moved =
                        self.facts.cache.join("sandbox").join(path.replace('/', "-").trim_start_matches('.'));
                    if fs::create_dir_all(&moved).is_ok() {
                        variables.push(((*variable).to_owned(), moved.display().to_string()));
                        folders.push(moved);
                    }
                }
                _ => {}
            }
        }
        // No variable moves it, and a server with a browser makes it at its start.
        let browsers = self.at_home(".cache/ms-playwright");
        if fs::create_dir(&browsers).is_ok() {
            folders.push(browsers);
        }
        // What can be started by its name must not be writable.
        let on_path = self.facts.variables.get("PATH").map(String::as_str).unwrap_or_default();
        let on_path: Vec<PathBuf> = std::env::split_paths(on_path).collect();
        folders.retain(|folder| folder.exists() && !on_path.iter().any(|path| path.starts_with(folder)));
        (folders, variables)
    }

    /// A command that nobody approved could put code into a cache that the user's own builds take it from. It gets a
    /// cache of its own where a tool cannot work without one.
    pub(crate) fn strict_caches(&self) -> (Vec<PathBuf>, Vec<(String, String)>) {
        let own = self.facts.cache.join("sandbox/unapproved");
        let mut folders = Vec::new();
        let mut variables = Vec::new();
        for (name, variable) in lists::STRICT_CACHES {
            let folder = own.join(name);
            if fs::create_dir_all(&folder).is_ok() {
                variables.push(((*variable).to_owned(), folder.display().to_string()));
                folders.push(folder);
            }
        }
        (folders, variables)
    }
}
