//! What nothing that runs in the sandbox may leave behind, whoever approved it: git directories that make git run a
//! program, another thing in the place of a protected link, files that git obeys and that did not exist.
//!
//! One state of the workspace is kept while anything runs, and each look moves it on; so what a server or a job plants
//! between two commands is found by the next look. Invariants: what was there before the first of them started is not
//! removed; what is taken out is kept under another name; a look that is due is done at the end of the process or, where
//! that was killed, by the next one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::git_view::GitView;
use crate::places::{Allowance, Sandbox};
use crate::policy::{Mode, Policy};
use crate::watch::{Running, Watch};

/// How long the processes of a dropped run have to end.
const END_TIME: Duration = Duration::from_secs(2);
/// Paths that a sentence names.
const NAMED: usize = 10;

/// Something that runs and may write the workspace.
#[derive(Debug)]
pub struct Guard {
    sandbox: Arc<Sandbox>,
    /// `None`: it has ended.
    id: Option<u64>,
    places: Places,
}

/// What a look found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    pub taken: Vec<PathBuf>,
    /// The workspace has too many folders to look at all of them.
    pub is_incomplete: bool,
}

impl Leftovers {
    /// For the model and the user.
    pub fn sentence(&self) -> Option<String> {
        let names: Vec<String> =
            self.taken.iter().take(NAMED).map(|path| path.display().to_string()).collect();
        let more = self.taken.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let mut texts = Vec::new();
        if !names.is_empty() {
            texts.push(format!(
                "[The sandbox took back {}{more}: git or another program would obey it. Hooks and settings are kept with \
                 the ending .taken-back. No grant allows it; ask the user to make this change.]",
                names.join(", ")
            ));
        }
        if self.is_incomplete {
            let text = "[The workspace has too many folders, so not all were searched for git directories that make git run \
                        a program.]";
            texts.push(text.to_owned());
        }
        (!texts.is_empty()).then(|| texts.join(" "))
    }
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

/// Runs that were dropped, and whose workspaces are not looked at yet.
static DROPPED: Mutex<Vec<(Arc<Sandbox>, u64)>> = Mutex::new(Vec::new());

/// Sandboxes with something that ran.
static USED: Mutex<Vec<Weak<Sandbox>>> = Mutex::new(Vec::new());

/// Looks at every workspace once more. Everything that ran in them must be gone.
pub fn finish_looks() {
    let dropped = std::mem::take(&mut *DROPPED.lock().unwrap_or_else(PoisonError::into_inner));
    for (sandbox, id) in dropped {
        sandbox.end_run(id);
    }
    let used = std::mem::take(&mut *USED.lock().unwrap_or_else(PoisonError::into_inner));
    for sandbox in used.iter().filter_map(Weak::upgrade) {
        sandbox.look();
        let mut watch = sandbox.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.due.set(&sandbox.facts().cache, &sandbox.facts().roots, None);
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
        if allowance.only_reads {
            let view = self.git_view(mode, allowance, &git::Found::default());
            return Ok((self.policy_with(mode, allowance, directory, &view)?, None));
        }
        self.note_use();
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = self.look_at(&mut watch);
        watch.untold.extend(looked.taken);
        if looked.is_incomplete && allowance.strict {
            return Err(io::Error::other(
                "the workspace has too many folders to look for what a command leaves behind, so a command that nobody \
                 approved does not run in it; to ask the user, repeat the call with grants: run-later",
            ));
        }
        let found = self.find_git();
        let view = self.git_view(mode, allowance, &found);
        let policy = self.policy_with(mode, allowance, directory, &view)?;
        let places = Places(view.copies.iter().map(|copy| copy.place.clone()).collect());
        let id = watch.next;
        watch.next += 1;
        watch.running.push(Running::new(id, self, view, &policy));
        self.remember(&mut watch, found);
        Ok((policy, Some(Guard { sandbox: self.clone(), id: Some(id), places })))
    }

    fn note_use(self: &Arc<Self>) {
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|known| known.strong_count() > 0);
        if !used.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(self))) {
            used.push(Arc::downgrade(self));
        }
    }

    /// Takes back what was left since the last look by whatever runs, and names it.
    pub fn look(&self) -> Leftovers {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut looked = self.look_at(&mut watch);
        looked.taken.append(&mut watch.untold);
        let found = self.find_git();
        self.remember(&mut watch, found);
        looked
    }

    fn end_run(&self, id: u64) -> Leftovers {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut looked = self.look_at(&mut watch);
        looked.taken.append(&mut watch.untold);
        watch.running.retain(|running| running.id != id);
        let found = self.find_git();
        self.remember(&mut watch, found);
        looked
    }

    /// The state from which the next look starts.
    fn remember(&self, watch: &mut Watch, found: git::Found) {
        let known = found.folders.iter().chain(&found.links).cloned().collect();
        watch.before = git::Before::new(found, watch.covered());
        let is_due = !watch.running.is_empty();
        watch.due.set(&self.facts().cache, &self.facts().roots, is_due.then_some(known));
    }

    fn look_at(&self, watch: &mut Watch) -> Leftovers {
        let found = self.find_git();
        let roots: Vec<PathBuf> =
            self.facts().roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        let mut taken = Vec::new();
        for known in watch.due.take_of_dead(&self.facts().cache, &self.facts().roots) {
            taken.extend(git::Before::of_known(known).disarm(&found, &roots, &[]));
        }
        if !watch.running.is_empty() {
            watch.running.iter().for_each(|running| running.take_back(&mut taken));
            let writable: Vec<PathBuf> =
                watch.running.iter().flat_map(|running| running.writable.iter().cloned()).collect();
            taken.extend(watch.before.disarm(&self.find_git(), &roots, &writable));
        }
        taken.sort();
        taken.dedup();
        Leftovers { taken, is_incomplete: found.too_large }
    }
}

impl Running {
    fn new(id: u64, sandbox: &Sandbox, view: GitView, policy: &Policy) -> Self {
        let links = policy.protected.iter().filter(|path| path.is_symlink());
        let links = links.filter_map(|link| Some((link.clone(), fs::read_link(link).ok()?))).collect();
        let is_outside = |path: &&PathBuf| !sandbox.facts().roots.iter().any(|root| path.starts_with(root));
        let writable = policy.writable.iter().filter(is_outside);
        let writable = writable.filter_map(|path| path.canonicalize().ok()).collect();
        Self { id, covered: view.covered, links, missing: view.missing, writable }
    }

    fn take_back(&self, taken: &mut Vec<PathBuf>) {
        for (link, target) in &self.links {
            let is_there = link.symlink_metadata().is_ok();
            let is_same = fs::read_link(link).is_ok_and(|now| now == *target);
            if is_there && !is_same && clear(link) && platform::symlink(target, link).is_ok() {
                taken.push(link.clone());
            }
        }
        let made = self.missing.iter().filter(|path| path.symlink_metadata().is_ok() && clear(path));
        taken.extend(made.cloned());
    }
}

/// Removes a repository, and puts anything else aside. False: that is not possible.
fn clear(path: &Path) -> bool {
    let is_repository = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    if is_repository { git::remove(path) } else { git::put_aside(path) }
}

impl Guard {
    /// The command has ended: takes back what was left, and names it.
    pub fn end(mut self) -> Leftovers {
        drop(Places(std::mem::take(&mut self.places.0)));
        self.id.take().map(|id| self.sandbox.end_run(id)).unwrap_or_default()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let lock = || DROPPED.lock().unwrap_or_else(PoisonError::into_inner);
        lock().push((self.sandbox.clone(), id));
        let sandbox = self.sandbox.clone();
        std::thread::spawn(move || {
            std::thread::sleep(END_TIME);
            let mut dropped = lock();
            let is_own =
                |(other, number): &(Arc<Sandbox>, u64)| Arc::ptr_eq(other, &sandbox) && *number == id;
            let is_left = dropped.iter().any(is_own);
            dropped.retain(|entry| !is_own(entry));
            drop(dropped);
            if is_left {
                sandbox.end_run(id);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::Facts;

    #[test]
    fn where_not_all_folders_are_searched_nothing_runs_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("work/a/b")).unwrap();
        let facts = Facts {
            roots: vec![root.join("work")],
            temporary: root.clone(),
            cache: root.join("cache"),
            home: root.join("home"),
            ..Facts::default()
        };
        let mut sandbox = Sandbox::new(facts);
        sandbox.trees = git::Trees::limited(2);
        let sandbox = Arc::new(sandbox);
        let run = |strict| {
            let allowance = Allowance { strict, ..Allowance::default() };
            sandbox.guarded_policy(Mode::Namespaces, &allowance, &root)
        };
        let refused = run(true).map(drop).unwrap_err();
        assert!(refused.to_string().contains("too many folders"), "{refused}");
        let looked = run(false).unwrap().1.unwrap().end();
        assert!(looked.is_incomplete && looked.sentence().is_some_and(|text| text.contains("not all")));
    }
}
