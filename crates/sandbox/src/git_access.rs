//! Which git directories a command sees read-only and of which it gets a copy to write.
//!
//! Invariants: no command writes a git directory itself but one with the grant `git-write`; whatever git would find in
//! the workspace before the command is covered, or looked at after it ([`crate::guard`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::git_view::{GitAccess, GitView};
use crate::grant::Grant;
use crate::places::{Allowance, Sandbox};
use crate::policy::{GitCopy, Mode};
use crate::repositories::{self, GitPaths};

/// More git directories than this are not covered each by a mount.
const MOST_COVERED: usize = 100;
/// More are not copied for one command.
const MOST_COPIES: usize = 16;

/// Folders that tools fill and empty: a git directory in them is looked at after the command, and not covered, because
/// the tools remove it.
const PASSING_FOLDERS: &[&str] =
    &[".tox", ".venv", "build", "dist", "env", "node_modules", "out", "target", "tmp", "venv"];

/// What other version control obeys, in each workspace folder.
const OBEYED_BY_OTHERS: &[&str] =
    &[".hg/hgrc", ".hg/hgrc-not-shared", ".jj/repo/config.toml", ".jj/workspace-config.toml", ".sl/config"];

/// Hooks that git runs where a repository names the workspace itself as their folder.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
    "reference-transaction",
];

impl Sandbox {
    pub(crate) fn git_view(&self, mode: Mode, allowance: &Allowance, found: &git::Found) -> GitView {
        let roots = &self.facts().roots;
        let tops = roots.iter().map(|root| repositories::paths(root));
        let is_root = |folder: &Path| roots.iter().any(|root| root == folder);
        // Those that are known by their name count too, whatever they hold.
        let nested =
            found.folders.iter().chain(&found.links).chain(&allowance.run_later).filter_map(|path| {
                let named = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
                path.parent().filter(|above| named && !is_root(above) && !is_passing(path, roots))
            });
        let nested = nested.take(MOST_COVERED).map(repositories::paths);
        let mut view = GitView::default();
        let is_direct = allowance.git == GitAccess::ReadOnly && allowance.grants.contains(&Grant::GitWrite);
        for (is_top, paths) in tops.map(|top| (true, top)).chain(nested.map(|nested| (false, nested))) {
            self.add_repository(paths, is_top, is_direct, allowance, &mut view);
        }
        // Without a `.git`: what git finds by its contents, submodules included.
        let is_covered =
            |view: &GitView, folder: &Path| view.covered.iter().any(|covered| folder.starts_with(covered));
        for folder in &found.folders {
            let is_open = is_root(folder) || is_passing(folder, roots) || is_covered(&view, folder);
            if !is_open && view.covered.len() < MOST_COVERED {
                view.protected.push(folder.clone());
                view.covered.push(folder.clone());
            }
        }
        self.add_named_paths(&mut view);
        if mode == Mode::Landlock {
            // Nothing inside of the workspace can be covered there.
            let may_configure = is_direct || allowance.grants.contains(&Grant::GitConfig);
            view.covered.retain(|folder| may_configure || !roots.iter().any(|root| folder.starts_with(root)));
            // A repository outside is opened for git alone: its hooks cannot be protected, and nobody looks at it later.
            let is_open = |folder: &PathBuf| {
                is_direct || allowance.writes_git || roots.iter().any(|root| folder.starts_with(root))
            };
            view.writable.extend(view.copies.drain(..).map(|copy| copy.folder).filter(is_open));
        }
        view
    }

    fn add_repository(
        &self,
        paths: GitPaths,
        is_top: bool,
        is_direct: bool,
        allowance: &Allowance,
        view: &mut GitView,
    ) {
        let configuration = allowance.grants.contains(&Grant::GitConfig);
        // `git worktree remove` removes a link below the top; another thing in its place is noticed after the command.
        let keeps_link = is_top || allowance.git == GitAccess::ReadOnly;
        view.protected.extend(paths.link.filter(|_| keeps_link));
        for target in paths.targets {
            let list = if target.exists() { &mut view.protected } else { &mut view.missing };
            list.push(plain(&target));
        }
        let Some(folder) = paths.folder.filter(|folder| !view.covered.contains(folder)) else { return };
        let is_direct = is_direct && is_top && !paths.is_unclear;
        let has_place = allowance.git == GitAccess::Copy && view.copies.len() < MOST_COPIES;
        let place = if has_place && !is_direct { self.place_for_copy() } else { None };
        if is_direct || place.is_some() {
            view.protected.extend(paths.protected);
            view.protected.extend(paths.configuration.into_iter().filter(|_| !configuration));
        } else {
            view.protected.push(folder.clone());
        }
        if is_direct {
            let obeyed =
                ["commondir", "config.worktree", "hooks", "info/attributes"].map(|name| folder.join(name));
            view.missing.extend(obeyed.into_iter().filter(|path| path.symlink_metadata().is_err()));
            view.protected.extend(paths.submodules);
            view.writable.push(folder.clone());
        }
        view.copies.extend(place.map(|place| GitCopy { folder: folder.clone(), place, configuration }));
        view.covered.push(folder);
    }

    /// A name in the private folder that no other command has.
    fn place_for_copy(&self) -> Option<PathBuf> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        self.temporary().ok().map(|folder| folder.join(format!("git-{}-{number}", std::process::id())))
    }

    /// Folders of hooks and included files of the settings that hold for the workspace.
    fn add_named_paths(&self, view: &mut GitView) {
        let facts = self.facts();
        let of_user = [".gitconfig", ".config/git/config"].map(|name| facts.home.join(name));
        for root in &facts.roots {
            let Ok(top) = root.canonicalize() else { continue };
            for path in OBEYED_BY_OTHERS.iter().map(|name| top.join(name)) {
                let list = if path.exists() { &mut view.protected } else { &mut view.missing };
                list.push(path);
            }
            let folder = repositories::paths(root).folder;
            let own =
                folder.iter().flat_map(|folder| [folder.join("config"), folder.join("config.worktree")]);
            let files: Vec<PathBuf> =
                own.chain(of_user.iter().cloned()).chain([PathBuf::from("/etc/gitconfig")]).collect();
            for path in git::named_paths(&files, &top, &facts.home) {
                let path = plain(&path);
                let paths = if top.starts_with(&path) {
                    HOOKS.iter().map(|hook| top.join(hook)).collect()
                } else {
                    vec![path]
                };
                for path in paths.into_iter().filter(|path| path.starts_with(&top)) {
                    match path.symlink_metadata() {
                        Ok(_) => view.protected.push(path),
                        Err(_) => view.missing.push(path),
                    }
                }
            }
        }
    }
}

/// Without `.` and `..`, as far as names tell.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(plain.pop()),
            std::path::Component::CurDir => {}
            part @ (std::path::Component::Prefix(_)
            | std::path::Component::RootDir
            | std::path::Component::Normal(_)) => plain.push(part),
        }
    }
    plain
}

fn is_passing(path: &Path, roots: &[PathBuf]) -> bool {
    let inside = roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    let above = inside.parent().into_iter().flat_map(Path::iter);
    above.into_iter().any(|name| PASSING_FOLDERS.iter().any(|passing| name == *passing))
}
