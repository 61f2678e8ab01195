//! Paths that a command may neither make nor replace, wherever the workspace is: Dragoman's own folders and the links in
//! them, secrets, and files of the user that run later. It only lists them; the helper keeps them.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{lists, registry_credentials};

/// Entries of our own folders that are looked at for links, the upper ones first.
const MOST_ENTRIES: usize = 600;
const DEEPEST: usize = 3;

pub(crate) fn paths(home: &Path, own_folders: &[PathBuf], links: Vec<PathBuf>) -> Vec<PathBuf> {
    let run_later = lists::RUN_LATER.iter().map(|path| home.join(path));
    own_folders.iter().cloned().chain(links).chain(run_later).chain(secrets(home)).collect()
}

/// Secrets of the user; those of the machine are out of reach.
pub(crate) fn secrets(home: &Path) -> impl Iterator<Item = PathBuf> {
    let all =
        [lists::SECRETS, lists::CLOUD, lists::CONTAINERS, registry_credentials::FILES].into_iter().flatten();
    all.filter(|path| !path.starts_with('/')).map(|path| home.join(path))
}

/// Links in our own folders: a file of settings may lie in a folder of dotfiles.
pub(crate) fn links_in(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let mut waiting: VecDeque<(PathBuf, usize)> = folders.iter().map(|folder| (folder.clone(), 1)).collect();
    let mut seen = 0;
    while let Some((folder, depth)) = waiting.pop_front() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_ENTRIES {
                return links;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => links.push(entry.path()),
                Ok(kind) if kind.is_dir() && depth < DEEPEST => waiting.push_back((entry.path(), depth + 1)),
                Ok(_) | Err(_) => {}
            }
        }
    }
    links
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_lower_folders() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        fs::create_dir_all(own.join("skills/review")).unwrap();
        fs::write(own.join("config.json"), "{}").unwrap();
        for name in ["grants.json", "skills/review/SKILL.md"] {
            std::os::unix::fs::symlink("../elsewhere", own.join(name)).unwrap();
        }
        let mut found = links_in(std::slice::from_ref(&own));
        found.sort();
        assert_eq!(found, [own.join("grants.json"), own.join("skills/review/SKILL.md")]);
    }
}
