//! What a command may not leave behind, whoever approved it: git directories that make git run a program, another thing
//! in the place of a protected link, files that git obeys and that did not exist.
//!
//! Invariants: what was there before the command is not removed; a command whose run is dropped is looked at as well.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::git_access::GitView;
use crate::places::{Allowance, Sandbox};
use crate::policy::{Mode, Policy};

/// How long the processes of a dropped run have to end.
const END_TIME: Duration = Duration::from_secs(2);

/// The state of a workspace before a command.
#[derive(Debug)]
pub struct Guard {
    state: Option<State>,
    is_armed: bool,
}

#[derive(Debug)]
struct State {
    sandbox: Arc<Sandbox>,
    before: git::Before,
    /// Protected links and where they led.
    links: Vec<(PathBuf, PathBuf)>,
    missing: Vec<PathBuf>,
    /// Folders outside of the workspace that the command can write.
    writable: Vec<PathBuf>,
    places: Places,
}

/// Folders in which the command wrote copies of git directories; they go with the guard.
#[derive(Debug)]
struct Places(Vec<PathBuf>);

impl Drop for Places {
    fn drop(&mut self) {
        for place in &self.0 {
            #[cfg(target_os = "linux")]
            crate::helper::left::take_over_left(place);
            // The kernel leaves a folder there that nobody may open.
            let _ = platform::set_mode(&place.join("work/work"), 0o700);
            let _ = fs::remove_dir_all(place);
        }
    }
}

impl Sandbox {
    /// The policy of a command that starts in `directory`, and what looks at the workspace after it.
    pub fn guarded_policy(
        self: &Arc<Self>,
        mode: Mode,
        allowance: &Allowance,
        directory: &Path,
    ) -> io::Result<(Policy, Option<Guard>)> {
        let found = if allowance.only_reads { git::Found::default() } else { self.find_git() };
        let view = self.git_view(mode, allowance, &found);
        let policy = self.policy_with(mode, allowance, directory, &view)?;
        let guard = (!allowance.only_reads)
            .then(|| Guard::new(self.clone(), found, view, &policy.protected, &policy.writable));
        Ok((policy, guard))
    }

    /// What looks at the workspace around a call of a server that runs already.
    pub fn guard(self: &Arc<Self>) -> Guard {
        let found = self.find_git();
        let view = self.git_view(Mode::Namespaces, &Allowance::default(), &found);
        let protected = self.protected(&view.protected);
        Guard::new(self.clone(), found, view, &protected, &self.caches().0)
    }
}

impl Guard {
    pub(crate) fn new(
        sandbox: Arc<Sandbox>,
        found: git::Found,
        view: GitView,
        protected: &[PathBuf],
        writable: &[PathBuf],
    ) -> Self {
        let links = protected.iter().filter(|path| path.is_symlink());
        let links = links.filter_map(|link| Some((link.clone(), fs::read_link(link).ok()?))).collect();
        let places = Places(view.copies.into_iter().map(|copy| copy.place).collect());
        let is_outside = |path: &&PathBuf| !sandbox.facts().roots.iter().any(|root| path.starts_with(root));
        let writable =
            writable.iter().filter(is_outside).filter_map(|path| path.canonicalize().ok()).collect();
        let before = git::Before::new(found, view.covered);
        let state = State { sandbox, before, links, missing: view.missing, writable, places };
        Self { state: Some(state), is_armed: false }
    }

    /// The command ends soon: its end is looked at even where nobody waits for it.
    pub fn arm(&mut self) {
        self.is_armed = true;
    }

    /// Takes back what the command left, and names it.
    pub fn end(mut self) -> Vec<PathBuf> {
        self.state.take().map(State::end).unwrap_or_default()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(state) = self.state.take().filter(|_| self.is_armed) {
            std::thread::spawn(move || {
                std::thread::sleep(END_TIME);
                state.end();
            });
        }
    }
}

impl State {
    fn end(self) -> Vec<PathBuf> {
        drop(self.places);
        let mut taken = Vec::new();
        for (link, target) in self.links {
            let is_there = link.symlink_metadata().is_ok();
            let is_same = fs::read_link(&link).is_ok_and(|now| now == target);
            if is_there && !is_same && remove(&link) && platform::symlink(&target, &link).is_ok() {
                taken.push(link);
            }
        }
        taken.extend(self.missing.into_iter().filter(|path| remove(path)));
        let roots: Vec<PathBuf> =
            self.sandbox.facts().roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        taken.extend(self.before.disarm(&self.sandbox.find_git(), &roots, &self.writable));
        taken.sort();
        taken.dedup();
        taken
    }
}

/// False: there was nothing, or it cannot be removed.
fn remove(path: &Path) -> bool {
    path.symlink_metadata().is_ok() && git::remove(path)
}
