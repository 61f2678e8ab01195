//! The submodules of a checkout, where the task asks for them and the worker's settings allow them.
//!
//! A submodule becomes files without a repository: git at the end of a task never enters it, so nothing that a model writes
//! there decides what git runs. Invariants: only addresses that the settings name are fetched; their number and depth are
//! bounded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::git::Git;
use super::large_files;
use super::repository::{self, Place};
use super::worker::Worker;

const MAX_SUBMODULES: usize = 100;
const MAX_DEPTH: usize = 8;

/// A folder with a repository, and where it came from.
struct Fetched {
    folder: PathBuf,
    address: Option<String>,
    depth: usize,
}

pub(super) async fn fetch(
    worker: &Worker,
    folder: &Path,
    address: Option<&str>,
    with_large_files: bool,
) -> Result<(), String> {
    let mut count = 0;
    let mut left = vec![Fetched { folder: folder.to_owned(), address: address.map(str::to_owned), depth: 0 }];
    while let Some(parent) = left.pop() {
        let git = Git::open(&parent.folder).await?;
        for (path, commit) in links(&git).await? {
            count += 1;
            if count > MAX_SUBMODULES || parent.depth >= MAX_DEPTH {
                return Err("The repository has too many submodules.".to_owned());
            }
            let address = address_of(&git, &path, parent.address.as_deref()).await?;
            if !repository::is_named(&worker.settings.repositories, &address) {
                return Err(format!("The worker's settings do not name the submodule {path} at {address}."));
            }
            let folder = parent.folder.join(&path);
            check_empty(&parent.folder, &folder)?;
            worker.network.clone_into(&folder, &address).await?;
            Git::open(&folder).await?.run(&["checkout", "--detach", "--quiet", &commit], Vec::new()).await?;
            left.push(Fetched { folder, address: Some(address), depth: parent.depth + 1 });
        }
        if parent.depth > 0 {
            if with_large_files {
                let source = parent.folder.join(".git");
                large_files::fetch(&worker.network, &parent.folder, parent.address.as_deref(), &source)
                    .await?;
            }
            let repository = parent.folder.join(".git");
            let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(repository)).await;
            removed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// The paths and commits of submodules.
async fn links(git: &Git) -> Result<Vec<(String, String)>, String> {
    let listed = git.run(&["ls-tree", "-r", "-z", "HEAD"], Vec::new()).await?;
    let link = |entry: &[u8]| {
        let entry = std::str::from_utf8(entry).ok()?;
        let (head, path) = entry.split_once('\t')?;
        let commit = head.strip_prefix("160000 commit ")?;
        Some((path.to_owned(), commit.to_owned()))
    };
    Ok(listed.split(|byte| *byte == 0).filter_map(link).collect())
}

/// The address that `.gitmodules` has for a path.
async fn address_of(git: &Git, path: &str, parent: Option<&str>) -> Result<String, String> {
    let listed = git.run(&["config", "--blob", "HEAD:.gitmodules", "--list", "-z"], Vec::new()).await?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let mut paths = HashMap::new();
    let mut addresses = HashMap::new();
    for entry in listed.split('\0') {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        let Some((name, member)) = key.strip_prefix("submodule.").and_then(|key| key.rsplit_once('.')) else {
            continue;
        };
        match member {
            "path" => drop(paths.insert(value, name)),
            "url" => drop(addresses.insert(name, value)),
            _ => {}
        }
    }
    let written = paths.get(path).and_then(|name| addresses.get(name)).copied();
    let written = written.ok_or_else(|| format!("The submodule {path} has no address."))?;
    let address = resolve(written, parent)
        .ok_or_else(|| format!("The submodule {path} at {written} is not an address of git by itself."))?;
    match repository::place(&address)? {
        Place::Address(address) => Ok(address),
        Place::Folder(_) => Err(format!("The submodule {path} is a folder, and only addresses are fetched.")),
    }
}

/// An address that begins with a dot is relative to the one of the repository.
fn resolve(written: &str, parent: Option<&str>) -> Option<String> {
    if !written.starts_with("./") && !written.starts_with("../") {
        return Some(written.to_owned());
    }
    let mut base = parent?.trim_end_matches('/');
    let mut rest = written;
    loop {
        if let Some(after) = rest.strip_prefix("./") {
            rest = after;
        } else if let Some(after) = rest.strip_prefix("../") {
            rest = after;
            base = base.rsplit_once('/').map(|(before, _)| before)?;
            if base.ends_with(['/', ':']) {
                return None;
            }
        } else {
            return Some(format!("{base}/{rest}"));
        }
    }
}

/// git has made an empty folder in the place of a submodule.
fn check_empty(parent: &Path, folder: &Path) -> Result<(), String> {
    let inside = |path: &Path| Some(path.canonicalize().ok()?.starts_with(parent.canonicalize().ok()?));
    let is_empty = || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if inside(folder) == Some(true) && is_empty() {
        return Ok(());
    }
    Err(format!("{} is no empty folder for a submodule.", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_address_stays_on_its_host() {
        for (written, parent, expected) in [
            ("https://h/x.git", None, Some("https://h/x.git")),
            ("../lib.git", Some("https://h/acme/shop.git"), Some("https://h/acme/lib.git")),
            ("./lib.git", Some("https://h/acme/shop.git/"), Some("https://h/acme/shop.git/lib.git")),
            ("../../other/x", Some("https://h/acme/shop.git"), Some("https://h/other/x")),
            ("../../../evil/x", Some("https://h/acme/shop.git"), None),
            ("../lib.git", Some("git@h:acme/shop.git"), Some("git@h:acme/lib.git")),
            ("../../lib.git", Some("git@h:acme/shop.git"), None),
            ("../lib.git", None, None),
        ] {
            assert_eq!(resolve(written, parent).as_deref(), expected, "{written} of {parent:?}");
        }
    }
}
