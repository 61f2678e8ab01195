//! Git directories that a command made or changed: what makes git run a program is taken out of them again.
//!
//! Invariants: what existed before the command is not removed; a git directory is left alone where nothing in it names a
//! program; nothing is done through a link.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use platform::project_files;

use crate::config::{changes_are_harmless, local_remotes, without_programs};
use crate::find::{is_git_directory, linked_folder, read_small};
use crate::state::is_step;
use crate::tree::Found;

/// A larger file of settings is not read.
const MOST_BYTES: u64 = 1 << 20;
/// Entries behind a link that are looked at.
const MOST_BELOW: usize = 2_000;
/// The end of the name of what was taken back.
const TAKEN_BACK: &str = ".taken-back";
/// Files that git takes settings from.
const SETTINGS: &[&str] = &["config", "config.worktree"];

/// The git directories of a workspace before a command.
#[derive(Debug, Default)]
pub struct Before {
    folders: BTreeMap<PathBuf, Saved>,
    links: BTreeMap<PathBuf, Link>,
    /// Git directories that the command cannot change.
    covered: Vec<PathBuf>,
    /// Git directories and links that count as they are.
    known: BTreeSet<PathBuf>,
}

/// What a git directory obeyed.
#[derive(Debug, Default, PartialEq)]
struct Saved {
    settings: Vec<Option<Vec<u8>>>,
    commondir: Option<Vec<u8>>,
    hooks: BTreeMap<OsString, Hook>,
}

/// A hook, known again by its size and times.
#[derive(Debug)]
struct Hook {
    size: u64,
    stamp: platform::Stamp,
    /// What it is put back from.
    kept: Option<(u32, Vec<u8>)>,
}

impl PartialEq for Hook {
    fn eq(&self, other: &Self) -> bool {
        (self.size, &self.stamp) == (other.size, &other.stamp)
    }
}

/// An entry named `.git` that is no folder.
#[derive(Debug, PartialEq)]
enum Link {
    Symbolic(PathBuf),
    File(Option<Vec<u8>>),
}

impl Before {
    pub fn new(found: Found, covered: Vec<PathBuf>) -> Self {
        let is_open = |path: &PathBuf| !is_covered(&covered, path);
        let folders = found.folders.into_iter().filter(is_open);
        let folders = folders.map(|folder| (folder.clone(), Saved::of(&folder))).collect();
        let links =
            found.links.into_iter().filter_map(|link| Some((link.clone(), Link::of(&link)?))).collect();
        Self { folders, links, covered, known: BTreeSet::new() }
    }

    /// The state before something of which only the places of git directories and links are known.
    pub fn of_known(known: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { known: known.into_iter().collect(), ..Self::default() }
    }

    /// Takes out of new and changed git directories what makes git run a program, and names it.
    /// `writable`: folders outside of the roots that the command could write.
    pub fn disarm(&self, found: &Found, roots: &[PathBuf], writable: &[PathBuf]) -> Vec<PathBuf> {
        let mut taken = Vec::new();
        for (path, link) in &self.links {
            if path.symlink_metadata().is_ok() && Link::of(path).as_ref() != Some(link) && link.restore(path)
            {
                taken.push(path.clone());
            }
        }
        let is_new_link = |link: &&PathBuf| !self.links.contains_key(*link) && !self.known.contains(*link);
        for link in found.links.iter().filter(is_new_link) {
            if !leads_to_known(link, roots, &self.covered) && project_files::remove_entry(link).is_ok() {
                taken.push(link.clone());
            }
        }
        let is_open = |folder: &&PathBuf| !is_covered(&self.covered, folder) && !self.known.contains(*folder);
        for folder in found.folders.iter().filter(is_open) {
            match self.folders.get(folder) {
                Some(saved) if *saved == Saved::of(folder) => {}
                Some(saved) => saved.restore(folder, &mut taken),
                None => disarm_new(folder, &mut taken),
            }
        }
        // A person who follows a link, or pushes, is in a folder that the command could write.
        let remotes = found.folders.iter().chain(&self.covered).flat_map(|folder| remotes_of(folder));
        for target in found.outward.iter().filter_map(|link| link.canonicalize().ok()).chain(remotes) {
            let Some(top) = writable.iter().find(|folder| target.starts_with(folder)) else { continue };
            let mut folders: Vec<PathBuf> =
                target.ancestors().take_while(|above| above.starts_with(top)).flat_map(here).collect();
            below(&target, 0, &mut { MOST_BELOW }, &mut folders);
            folders.iter().for_each(|folder| disarm_new(folder, &mut taken));
        }
        taken
    }
}

/// The folders of this machine that the settings of a git directory call remotes.
fn remotes_of(folder: &Path) -> Vec<PathBuf> {
    let texts = SETTINGS.iter().filter_map(|name| read(&folder.join(name)));
    let named: Vec<String> =
        texts.flat_map(|bytes| local_remotes(&String::from_utf8_lossy(&bytes))).collect();
    // A relative one starts where git does.
    let bases = [Some(folder), folder.parent()].into_iter().flatten();
    bases.flat_map(|base| named.iter().filter_map(|path| base.join(path).canonicalize().ok())).collect()
}

/// The git directories that git finds in a folder.
fn here(folder: &Path) -> Vec<PathBuf> {
    let named = folder.join(".git");
    let linked = linked_folder(&named);
    let named = named.canonicalize().ok();
    let candidates = [Some(folder.to_owned()), named, linked];
    candidates.into_iter().flatten().filter(|folder| is_git_directory(folder)).collect()
}

/// The same in the folders below it, as far as that is quick.
fn below(folder: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if *left == 0 || depth > 4 {
            return;
        }
        *left -= 1;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(here(&entry.path()));
            below(&entry.path(), depth + 1, left, found);
        }
    }
}

/// Removes an entry without following a link; false where that is not possible.
pub fn remove_entry(path: &Path) -> bool {
    project_files::remove_entry(path).is_ok()
}

fn is_covered(covered: &[PathBuf], path: &Path) -> bool {
    covered.iter().any(|folder| path.starts_with(folder))
}

impl Link {
    fn of(path: &Path) -> Option<Self> {
        let kind = path.symlink_metadata().ok()?;
        if kind.is_symlink() {
            return fs::read_link(path).ok().map(Self::Symbolic);
        }
        kind.is_file().then(|| Self::File(read(path)))
    }

    /// Puts it back in the place of what is there now.
    fn restore(&self, path: &Path) -> bool {
        if project_files::remove_entry(path).is_err() {
            return false;
        }
        match self {
            Self::Symbolic(target) => platform::symlink(target, path).is_ok(),
            Self::File(Some(bytes)) => fs::write(path, bytes).is_ok(),
            Self::File(None) => false,
        }
    }
}

impl Saved {
    fn of(folder: &Path) -> Self {
        let mut hooks = BTreeMap::new();
        for entry in fs::read_dir(folder.join("hooks")).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Some(metadata) = path.symlink_metadata().ok().filter(|_| !is_sample(&name)) else { continue };
            let kept = read(&path).map(|bytes| (platform::mode_of(&metadata), bytes));
            hooks.insert(name, Hook { size: metadata.len(), stamp: platform::stamp_of(&metadata), kept });
        }
        Self {
            settings: SETTINGS.iter().map(|name| read(&folder.join(name))).collect(),
            commondir: read(&folder.join("commondir")),
            hooks,
        }
    }

    fn restore(&self, folder: &Path, taken: &mut Vec<PathBuf>) {
        let now = Self::of(folder);
        let texts = SETTINGS.iter().zip(self.settings.iter().zip(&now.settings));
        for (name, (before, after)) in texts.filter(|(_, (before, after))| before != after) {
            match before {
                Some(before) if !is_harmless(before, after.as_deref()) => {
                    replace(folder, name, before, taken)
                }
                Some(_) => {}
                None => clean_settings(folder, name, taken),
            }
        }
        match &self.commondir {
            Some(before) if self.commondir != now.commondir => replace(folder, "commondir", before, taken),
            None if now.commondir.is_some() => remove(folder, OsStr::new("commondir"), taken),
            Some(_) | None => {}
        }
        let hooks = folder.join("hooks");
        for (name, _) in now.hooks.iter().filter(|(name, hook)| self.hooks.get(*name) != Some(hook)) {
            let before = self.hooks.get(name).and_then(|hook| hook.kept.as_ref());
            match before.zip(name.to_str()) {
                Some(((mode, bytes), text)) => {
                    replace(&hooks, text, bytes, taken);
                    let _ = platform::set_mode(&hooks.join(name), *mode);
                }
                None => remove(&hooks, name, taken),
            }
        }
    }
}

fn is_harmless(before: &[u8], after: Option<&[u8]>) -> bool {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let Some(after) = after else { return true };
    text(before).zip(text(after)).is_some_and(|(before, after)| changes_are_harmless(before, after, true))
}

fn disarm_new(folder: &Path, taken: &mut Vec<PathBuf>) {
    if folder.join("commondir").symlink_metadata().is_ok() && !is_worktree(folder) {
        remove(folder, OsStr::new("commondir"), taken);
    }
    for name in SETTINGS {
        clean_settings(folder, name, taken);
    }
    let hooks = folder.join("hooks");
    match hooks.symlink_metadata() {
        Ok(kind) if kind.is_dir() => {
            for entry in fs::read_dir(&hooks).into_iter().flatten().flatten() {
                if !is_sample(&entry.file_name()) && put_aside(&entry.path()) {
                    taken.push(entry.path());
                }
            }
        }
        Ok(_) => remove(folder, OsStr::new("hooks"), taken),
        Err(_) => {}
    }
    for name in ["rebase-merge", "rebase-apply", "sequencer"] {
        let is_plain = |file: &str| {
            read(&folder.join(name).join(file))
                .is_none_or(|bytes| String::from_utf8_lossy(&bytes).lines().all(is_step))
        };
        if !["git-rebase-todo", "todo"].into_iter().all(is_plain) {
            remove(folder, OsStr::new(name), taken);
        }
    }
}

/// Removes settings that name programs, and keeps the others.
fn clean_settings(folder: &Path, name: &str, taken: &mut Vec<PathBuf>) {
    let path = folder.join(name);
    let Ok(kind) = path.symlink_metadata() else { return };
    let text = kind.is_file().then(|| read(&path)).flatten().and_then(|bytes| String::from_utf8(bytes).ok());
    let in_module = folder.components().any(|part| part.as_os_str() == "modules");
    match text.map(|text| without_programs(&text, in_module)) {
        Some(None) => {}
        Some(Some(kept)) => replace(folder, name, kept.as_bytes(), taken),
        // A link, a pipe, or no text.
        None => remove(folder, OsStr::new(name), taken),
    }
}

/// A worktree's folder, in the repository that it leads to.
fn is_worktree(folder: &Path) -> bool {
    let (Some(above), text) = (folder.parent(), read_small(&folder.join("commondir"))) else { return false };
    above.file_name().is_some_and(|name| name == "worktrees")
        && text.is_some_and(|text| text.trim_end() == "../..")
        && above.parent().is_some_and(is_git_directory)
}

/// Where it leads was looked at as well: inside of the workspace, or to a repository that commands cannot change.
fn leads_to_known(link: &Path, roots: &[PathBuf], covered: &[PathBuf]) -> bool {
    let target = match link.symlink_metadata() {
        Ok(kind) if kind.is_symlink() => link.canonicalize().ok(),
        Ok(kind) if kind.is_file() => linked_folder(link),
        Ok(_) | Err(_) => None,
    };
    let is_inside = |target: &Path| roots.iter().any(|root| target.starts_with(root));
    target.is_some_and(|target| {
        let names_it_back = || {
            let back = read_small(&target.join("gitdir"))?;
            Path::new(back.trim_end()).canonicalize().ok().filter(|back| back == link)
        };
        target.is_dir() && (is_inside(&target) || is_covered(covered, &target) && names_it_back().is_some())
    })
}

fn is_sample(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.ends_with(".sample") || name.ends_with(TAKEN_BACK))
}

/// Gives an entry a name that no program looks for; false where that is not possible. What had that name goes.
pub fn put_aside(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let mut aside = name.to_owned();
    aside.push(TAKEN_BACK);
    platform::Folder::open(folder).is_ok_and(|open| {
        let _ = open.remove(&aside);
        open.rename(name, &open, &aside).is_ok()
    })
}

/// Keeps the settings as they are under another name.
fn keep_copy(folder: &Path, name: &str) {
    let Some(bytes) = read(&folder.join(name)) else { return };
    let aside = format!("{name}{TAKEN_BACK}");
    let _ = platform::Folder::open(folder).and_then(|open| {
        let _ = open.remove(OsStr::new(&aside));
        open.create_file(OsStr::new(&aside), 0o644)?.write_all(&bytes)
    });
}

fn remove(folder: &Path, name: &OsStr, taken: &mut Vec<PathBuf>) {
    let path = folder.join(name);
    if project_files::remove_entry(&path).is_ok() {
        taken.push(path);
    }
}

/// Writes a new file in its place.
fn replace(folder: &Path, name: &str, contents: &[u8], taken: &mut Vec<PathBuf>) {
    keep_copy(folder, name);
    let temporary = OsStr::new("dragoman-settings.tmp");
    let replaced = platform::Folder::open(folder).and_then(|open| {
        let _ = open.remove(temporary);
        open.create_file(temporary, 0o644)?.write_all(contents)?;
        open.rename(temporary, &open, OsStr::new(name))
    });
    match replaced {
        Ok(()) => taken.push(folder.join(name)),
        Err(_) => remove(folder, OsStr::new(name), taken),
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let kind = path.symlink_metadata().ok()?;
    (kind.is_file() && kind.len() <= MOST_BYTES).then(|| fs::read(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Trees;

    fn make(folder: &Path, config: &str) {
        for name in ["objects", "refs", "hooks"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(folder.join("config"), config).unwrap();
        fs::write(folder.join("hooks/pre-commit.sample"), "x").unwrap();
    }

    const PLAIN: &str = "[core]\n\tbare = false\n";
    const EVIL: &str = "[core]\n\tbare = false\n\tfsmonitor = evil\n";

    fn config(folder: &Path) -> String {
        fs::read_to_string(folder.join("config")).unwrap()
    }

    #[test]
    fn new_repositories_lose_what_names_programs() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let roots = [root.clone()];
        let trees = Trees::default();
        make(&root.join(".git"), EVIL);
        make(&root.join("target/old/.git"), EVIL);
        make(&root.join("target/kept/.git"), PLAIN);
        let before = Before::new(trees.find(&roots), vec![root.join(".git")]);
        for (name, text) in [("src", EVIL), ("node_modules/x/.git", EVIL), ("target/fixture/.git", PLAIN)] {
            make(&root.join(name), text);
        }
        fs::write(root.join("src/hooks/post-checkout"), "evil").unwrap();
        fs::write(root.join("target/kept/.git/config"), EVIL).unwrap();
        fs::write(root.join("target/kept/.git/hooks/pre-push"), "evil").unwrap();
        fs::write(root.join("target/kept/.git/commondir"), "../../../src").unwrap();
        let taken = before.disarm(&trees.find(&roots), &roots, &[]);
        assert_eq!(config(&root.join("src")), PLAIN, "{taken:?}");
        assert_eq!(config(&root.join("node_modules/x/.git")), PLAIN);
        assert_eq!(config(&root.join("target/kept/.git")), PLAIN);
        for gone in
            ["src/hooks/post-checkout", "target/kept/.git/hooks/pre-push", "target/kept/.git/commondir"]
        {
            assert!(!root.join(gone).exists(), "{gone}");
        }
        // What was there before, and what names nothing, stays.
        assert_eq!(config(&root.join(".git")), EVIL);
        assert_eq!(config(&root.join("target/old/.git")), EVIL);
        assert!(root.join("src/hooks/pre-commit.sample").exists());
        // What was taken out is kept under a name that nothing looks for.
        assert_eq!(fs::read_to_string(root.join("src/hooks/post-checkout.taken-back")).unwrap(), "evil");
        assert_eq!(fs::read_to_string(root.join("src/config.taken-back")).unwrap(), EVIL);
        assert!(!taken.iter().any(|path| path.starts_with(root.join("target/fixture"))), "{taken:?}");
    }

    #[test]
    fn hooks_that_were_there_are_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (roots, trees) = ([root.clone()], Trees::default());
        let store = root.join("tmp/x/.git");
        make(&store, PLAIN);
        let hook = store.join("hooks/pre-commit");
        fs::write(&hook, "own").unwrap();
        platform::set_mode(&hook, 0o755).unwrap();
        fs::write(store.join("commondir"), ".").unwrap();
        let before = Before::new(trees.find(&roots), Vec::new());
        fs::write(&hook, "evil").unwrap();
        fs::write(store.join("commondir"), "../../evil").unwrap();
        fs::write(store.join("hooks/post-merge"), "evil").unwrap();
        make(&root.join("tmp/evil"), EVIL);
        let taken = before.disarm(&trees.find(&roots), &roots, &[]);
        assert_eq!(fs::read_to_string(&hook).unwrap(), "own", "{taken:?}");
        assert_eq!(platform::mode_of(&hook.metadata().unwrap()) & 0o777, 0o755);
        assert_eq!(fs::read_to_string(store.join("commondir")).unwrap(), ".");
        assert!(!store.join("hooks/post-merge").exists());
    }

    #[test]
    fn a_remote_in_a_folder_that_was_writable_runs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, cache) = (base.join("work"), base.join("cache"));
        let (roots, trees) = ([root.clone()], Trees::default());
        make(&root.join(".git"), PLAIN);
        let before = Before::new(trees.find(&roots), vec![root.join(".git")]);
        for name in ["a.git", "b.git"] {
            make(&cache.join(name), EVIL);
            fs::write(cache.join(name).join("hooks/pre-receive"), "evil").unwrap();
        }
        let remotes = format!(
            "{PLAIN}[remote \"o\"]\n\turl = https://example.org/x\n\tpushurl = {}\n[branch \"main\"]\n\tpushRemote = file://{}\n",
            cache.join("a.git").display(),
            cache.join("b.git").display()
        );
        fs::write(root.join(".git/config"), remotes).unwrap();
        before.disarm(&trees.find(&roots), &roots, std::slice::from_ref(&cache));
        for name in ["a.git", "b.git"] {
            assert!(!cache.join(name).join("hooks/pre-receive").exists(), "{name}");
            assert_eq!(config(&cache.join(name)), PLAIN);
        }
    }

    #[test]
    fn links_are_put_back_and_new_ones_lead_to_known_folders() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("work");
        let roots = [root.clone()];
        let trees = Trees::default();
        make(&root.join("store"), PLAIN);
        make(&base.join("outside"), EVIL);
        fs::create_dir_all(root.join("a")).unwrap();
        fs::create_dir_all(root.join("b")).unwrap();
        platform::symlink(Path::new("../store"), &root.join("a/.git")).unwrap();
        fs::write(root.join("b/.git"), "gitdir: ../store\n").unwrap();
        let before = Before::new(trees.find(&roots), Vec::new());
        fs::remove_file(root.join("a/.git")).unwrap();
        make(&root.join("a/.git"), EVIL);
        fs::write(root.join("b/.git"), "gitdir: ../../outside\n").unwrap();
        for name in ["c", "d", "e"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("c/.git"), "gitdir: ../../outside\n").unwrap();
        platform::symlink(&base.join("outside"), &root.join("d/.git")).unwrap();
        fs::write(root.join("e/.git"), "gitdir: ../store\n").unwrap();
        before.disarm(&trees.find(&roots), &roots, &[]);
        assert_eq!(fs::read_link(root.join("a/.git")).unwrap(), Path::new("../store"));
        assert_eq!(fs::read_to_string(root.join("b/.git")).unwrap(), "gitdir: ../store\n");
        assert!(root.join("c/.git").symlink_metadata().is_err());
        assert!(root.join("d/.git").symlink_metadata().is_err());
        assert!(root.join("e/.git").exists());
    }

    #[test]
    fn a_link_out_leads_to_no_program() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, cache) = (base.join("work"), base.join("cache"));
        let roots = [root.clone()];
        fs::create_dir_all(&root).unwrap();
        let trees = Trees::default();
        let before = Before::new(trees.find(&roots), Vec::new());
        make(&cache.join("a/.git"), EVIL);
        make(&cache.join("b/c/.git"), EVIL);
        make(&base.join("other/.git"), EVIL);
        fs::create_dir_all(cache.join("a/deep")).unwrap();
        for (target, link) in [("cache/a/deep", "x"), ("cache/b", "y"), ("other", "z")] {
            platform::symlink(&base.join(target), &root.join(link)).unwrap();
        }
        before.disarm(&trees.find(&roots), &roots, std::slice::from_ref(&cache));
        assert_eq!(config(&cache.join("a/.git")), PLAIN);
        assert_eq!(config(&cache.join("b/c/.git")), PLAIN);
        assert_eq!(config(&base.join("other/.git")), EVIL, "the command could not write it");
    }
}
