//! Where git keeps things for a workspace folder: what its commands must write, and what runs later and must not be
//! written. It reads two small files and runs nothing.
//!
//! Invariant: a repository outside of the workspace becomes writable only if it names this workspace itself.

use std::fs;
use std::path::{Path, PathBuf};

/// Submodules beyond this many make the whole `.git` read-only.
const MOST_SUBMODULES: usize = 200;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct GitPaths {
    pub(crate) writable: Vec<PathBuf>,
    /// Hooks and the link to the repository.
    pub(crate) protected: Vec<PathBuf>,
    /// Configuration, which the grant `git-config` opens.
    pub(crate) configuration: Vec<PathBuf>,
}

pub(crate) fn paths(root: &Path) -> GitPaths {
    let place = root.join(".git");
    let mut paths = GitPaths::default();
    let Ok(kind) = place.symlink_metadata() else { return paths };
    if kind.is_dir() {
        repository(&place, &mut paths);
    } else {
        // A file that leads to a work tree's or submodule's repository, or a link.
        paths.protected.push(place.clone());
        if kind.is_file()
            && let Some((own, shared)) = work_tree(root)
        {
            paths.writable.extend([own.clone(), shared.clone()]);
            paths.configuration.push(own.join("config.worktree"));
            paths.protected.extend([own.join("commondir"), own.join("gitdir")]);
            repository(&shared, &mut paths);
        }
    }
    paths
}

fn repository(folder: &Path, paths: &mut GitPaths) {
    let is_link = |name: &str| folder.join(name).symlink_metadata().is_ok_and(|kind| kind.is_symlink());
    // A link can be replaced though its target is protected.
    if ["hooks", "config", "modules", "info"].into_iter().any(is_link) {
        paths.protected.push(folder.to_owned());
        return;
    }
    let hooks = folder.join("hooks");
    // A missing folder could be made by a command; git makes it, too.
    if !hooks.exists() && folder.join("HEAD").is_file() {
        let _ = fs::create_dir(&hooks);
    }
    paths.protected.push(hooks);
    paths.configuration.extend([folder.join("config"), folder.join("config.worktree")]);
    let mut count = 0;
    if !submodules(&folder.join("modules"), 0, &mut count, paths) {
        paths.protected.push(folder.to_owned());
    }
}

/// Submodules may be nested, and their names may hold slashes. False: there are too many to look at.
fn submodules(folder: &Path, depth: usize, count: &mut usize, paths: &mut GitPaths) -> bool {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        *count += 1;
        if *count > MOST_SUBMODULES || depth > 6 {
            return false;
        }
        if path.join("HEAD").is_file() {
            repository(&path, paths);
        } else if !submodules(&path, depth + 1, count, paths) {
            return false;
        }
    }
    true
}

/// git's folder for a work tree and the repository it belongs to, if that repository names this work tree.
pub fn work_tree(root: &Path) -> Option<(PathBuf, PathBuf)> {
    let link = root.join(".git");
    let own = link_target(&read_small(&link)?, "gitdir:", root)?;
    let back = PathBuf::from(read_small(&own.join("gitdir"))?.trim_end_matches('\n')).canonicalize().ok()?;
    if back != link.canonicalize().ok()? {
        return None;
    }
    let shared = link_target(&read_small(&own.join("commondir"))?, "", &own)?;
    own.starts_with(&shared).then_some((own, shared))
}

fn link_target(text: &str, prefix: &str, base: &Path) -> Option<PathBuf> {
    let target = text.trim_end_matches('\n').strip_prefix(prefix)?.trim_start();
    base.join(target).canonicalize().ok().filter(|path| path.is_dir())
}

fn read_small(path: &Path) -> Option<String> {
    let kind = path.symlink_metadata().ok()?;
    (kind.is_file() && kind.len() < 8192).then(|| fs::read_to_string(path).ok()).flatten()
}
