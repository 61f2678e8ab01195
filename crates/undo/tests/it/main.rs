//! Undo with real files, a real shell and real git.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]
#![allow(clippy::print_stdout, reason = "`make figures` collects the lines that begin with `figure:`")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests read their scale from the environment and start processes"
)]

mod accidents;
mod coverage;
mod histories;
mod jobs;
mod kills;
mod odd_files;
mod restoring;
mod waits;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use undo::{Limits, Outcome, TurnKey, UndoStore};

/// A workspace with its store, outside of it.
struct Bench {
    folder: TempDir,
    store: UndoStore,
}

/// What is at a path: kind and bytes, mode.
type Tree = BTreeMap<PathBuf, (String, Vec<u8>, u32)>;

impl Bench {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        // In memory where that is possible: syncing thousands of small files takes most of the time.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let store = UndoStore::new(folder.path().join("undo"), limits);
        Self { folder, store }
    }

    /// As after a restart: nothing but the files is left.
    fn restart(&mut self) {
        self.store = UndoStore::new(self.folder.path().join("undo"), Limits::default());
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A file tool of the agent's writes.
    fn tool_writes(&self, turn: u64, name: &str, content: impl AsRef<[u8]>) {
        self.tool(turn, name, |path| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        });
    }

    fn tool(&self, turn: u64, name: &str, act: impl FnOnce(&Path)) {
        let path = self.path(name);
        self.store.before_write(&key(turn), &path).unwrap();
        act(&path);
        self.store.after_write(&key(turn), &path).unwrap();
    }

    /// A command of the agent's.
    fn command(&self, turn: u64, act: impl FnOnce()) {
        let snapshot = self.store.before_command(&key(turn), &[self.root()]).unwrap();
        act();
        self.store.after_command(snapshot).unwrap();
    }

    fn shell(&self, turn: u64, script: &str) {
        self.command(turn, || sh(&self.root(), script));
    }

    fn undo(&self, from: Option<u64>) -> Outcome {
        let plan = self.store.plan_undo("chat", from).unwrap().expect("something to undo");
        self.store.apply(&plan).unwrap()
    }

    fn redo(&self) -> Outcome {
        let plan = self.store.plan_redo("chat").unwrap().expect("something to redo");
        self.store.apply(&plan).unwrap()
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        add_tree(&self.root(), &self.root(), &mut tree);
        tree
    }
}

fn key(turn: u64) -> TurnKey {
    TurnKey { owner: "chat".to_owned(), turn }
}

fn add_tree(root: &Path, folder: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let (kind, bytes) = if metadata.is_symlink() {
            ("link", fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
        } else if metadata.is_dir() {
            add_tree(root, &path, tree);
            ("folder", Vec::new())
        } else {
            ("file", fs::read(&path).unwrap())
        };
        let mode = metadata.permissions().mode() & 0o7777;
        tree.insert(path.strip_prefix(root).unwrap().to_owned(), (kind.to_owned(), bytes, mode));
    }
}

/// Ends whatever the script's exit code is: accidents fail half way, too.
fn sh(folder: &Path, script: &str) {
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Ada")
        .env("GIT_AUTHOR_EMAIL", "ada@example.org")
        .env("GIT_COMMITTER_NAME", "Ada")
        .env("GIT_COMMITTER_EMAIL", "ada@example.org")
        .output()
        .unwrap();
    drop(output);
}

/// 1 for every run, 10 for the full figures.
fn scale() -> u64 {
    std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
