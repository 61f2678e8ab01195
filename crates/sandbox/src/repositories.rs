//! Where git keeps things for a workspace folder: its git directory, the link that leads there, and what in it runs later.
//! It reads small files and runs nothing.
//!
//! Invariant: a repository outside of the workspace counts only if it names this workspace itself.

use std::fs;
use std::path::{Path, PathBuf};

/// Submodules beyond this many are not looked at one by one.
const MOST_SUBMODULES: usize = 200;

/// What git obeys in a git directory.
const OBEYED: &[&str] = &["config", "config.worktree", "hooks", "info", "info/attributes", "modules"];

#[derive(Debug, Default, PartialEq)]
pub(crate) struct GitPaths {
    /// The git directory, with everything in it.
    pub(crate) folder: Option<PathBuf>,
    /// The file or link that leads to it from the workspace.
    pub(crate) link: Option<PathBuf>,
    /// Hooks, attributes, and what leads from a work tree's folder to its repository.
    pub(crate) protected: Vec<PathBuf>,
    /// Configuration, which the grant `git-config` opens.
    pub(crate) configuration: Vec<PathBuf>,
    /// Hooks and configuration of submodules.
    pub(crate) submodules: Vec<PathBuf>,
    /// Where links in the git directory lead.
    pub(crate) targets: Vec<PathBuf>,
    /// It cannot be written safely: a part of it is a link, or it has too many submodules.
    pub(crate) is_unclear: bool,
}

pub(crate) fn paths(root: &Path) -> GitPaths {
    let place = root.join(".git");
    let mut paths = GitPaths::default();
    let Ok(kind) = place.symlink_metadata() else { return paths };
    if kind.is_dir() {
        repository(&place, &mut paths);
        paths.folder = Some(place);
        return paths;
    }
    // A file that leads to a work tree's or submodule's repository, or a link.
    paths.link = Some(place.clone());
    if kind.is_file()
        && let Some((own, shared)) = work_tree(root)
    {
        paths.configuration.push(own.join("config.worktree"));
        paths.protected.extend([own.join("commondir"), own.join("gitdir")]);
        repository(&shared, &mut paths);
        paths.folder = Some(shared);
    } else if let Some(folder) =
        place.canonicalize().ok().filter(|folder| kind.is_symlink() && folder.is_dir())
        && root.canonicalize().is_ok_and(|root| folder.starts_with(root))
    {
        repository(&folder, &mut paths);
        paths.folder = Some(folder);
    }
    paths
}

fn repository(folder: &Path, paths: &mut GitPaths) {
    // A link can be replaced though its target is protected.
    for link in OBEYED.iter().map(|name| folder.join(name)).filter(|path| path.is_symlink()) {
        paths.is_unclear = true;
        let target = fs::read_link(&link).map(|target| link.parent().unwrap_or(folder).join(target));
        paths.targets.extend(target.ok().map(|target| target.canonicalize().unwrap_or(target)));
    }
    paths.protected.extend([folder.join("hooks"), folder.join("info/attributes")]);
    paths.configuration.extend([folder.join("config"), folder.join("config.worktree")]);
    let mut count = 0;
    paths.is_unclear |= !submodules(&folder.join("modules"), 0, &mut count, &mut paths.submodules);
}

/// Submodules may be nested, and their names may hold slashes. False: there are too many to look at.
fn submodules(folder: &Path, depth: usize, count: &mut usize, paths: &mut Vec<PathBuf>) -> bool {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        *count += 1;
        if *count > MOST_SUBMODULES || depth > 6 {
            return false;
        }
        let below = if path.join("HEAD").is_file() {
            paths.extend(OBEYED.iter().map(|name| path.join(name)).filter(|path| !path.ends_with("modules")));
            path.join("modules")
        } else {
            path
        };
        if !submodules(&below, depth + 1, count, paths) {
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
